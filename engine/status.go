package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// statuses keeps the last status of each subject, and computes new ones in the background.
type statuses struct {
	mu     sync.Mutex
	kept   *simplelru.LRU[statusKey, keptStatus]
	wanted map[statusKey]bool
	queue  chan statusKey
}

// statusKey is a subject of an account.
type statusKey struct {
	account int64
	subject plan.Subject
}

// keptStatus is a status at a version of the events and of the catalogue.
type keptStatus struct {
	version, catalogue uint64
	status             *result.Status
}

// maxStatuses bounds the memory of the statuses, about 1 KiB each, and the length of the queue.
const maxStatuses = 20_000

func newStatuses() *statuses {
	kept, err := simplelru.NewLRU[statusKey, keptStatus](maxStatuses, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &statuses{kept: kept, wanted: map[statusKey]bool{}, queue: make(chan statusKey, maxStatuses)}
}

// LastStatuses returns the last computed status of each subject at once. A subject whose status
// was never computed has none. If the events or definitions of a subject have changed, its
// status is outdated. In both cases, FollowStatuses computes a new status.
func (e *Engine) LastStatuses(ctx context.Context, account int64, subjects []plan.Subject) []*result.Status {
	defined := e.catalogue.Snapshot().AccountResources(account).Version
	found := make([]*result.Status, len(subjects))
	day, known := e.lastDay(ctx)
	for i, subject := range subjects {
		key := statusKey{account, subject}
		version := e.versionOn(day, subject)
		e.statuses.mu.Lock()
		last, computed := e.statuses.kept.Get(key)
		if computed {
			found[i] = last.status
		}
		if known && (!computed || last.version != version || last.catalogue != defined) {
			e.statuses.queueStatus(key)
		}
		e.statuses.mu.Unlock()
	}
	return found
}

// queueStatus queues a status, unless it is queued or too many are. The caller holds the lock.
func (s *statuses) queueStatus(key statusKey) {
	if s.wanted[key] {
		return
	}
	select {
	case s.queue <- key:
		s.wanted[key] = true
	default:
	}
}

// FollowStatuses computes the requested statuses until the context ends.
func (e *Engine) FollowStatuses(ctx context.Context) {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				select {
				case key := <-e.statuses.queue:
					e.computeStatuses(ctx, e.statuses.takeBatch(key))
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// maxBatch is the maximum number of statuses that are computed together.
const maxBatch = 50

// takeBatch takes more statuses from the queue, as long as there are some.
func (s *statuses) takeBatch(first statusKey) []statusKey {
	keys := []statusKey{first}
	for len(keys) < maxBatch {
		select {
		case key := <-s.queue:
			keys = append(keys, key)
		default:
			return keys
		}
	}
	return keys
}

// pending is a status that is being computed.
type pending struct {
	statusKey
	keptStatus
	x *source.ReportQuery
}

// computeStatuses computes statuses.
func (e *Engine) computeStatuses(ctx context.Context, keys []statusKey) {
	var all []*pending
	for _, key := range keys {
		e.statuses.mu.Lock()
		delete(e.statuses.wanted, key) // a later change is queued again
		e.statuses.mu.Unlock()
		p, err := e.prepareStatus(ctx, key)
		if err == nil && p != nil {
			all = append(all, p)
		}
		e.complainOfStatus(ctx, key, err)
	}
	for _, p := range all {
		status, err := e.computeStatus(ctx, p)
		if err != nil {
			e.complainOfStatus(ctx, p.statusKey, err)
			continue
		}
		p.status = status
		e.statuses.mu.Lock()
		e.statuses.kept.Add(p.statusKey, p.keptStatus)
		e.statuses.mu.Unlock()
	}
}

func (e *Engine) complainOfStatus(ctx context.Context, key statusKey, err error) {
	var gone *query.NotFoundError
	if err != nil && ctx.Err() == nil && !errors.As(err, &gone) {
		slog.WarnContext(ctx, "compute status failed", "subject", key.subject, "err", err)
	}
}

// prepareStatus prepares the report of the declared question with a scorecard. It returns nil
// if the store does not answer; the next list request tries again.
func (e *Engine) prepareStatus(ctx context.Context, key statusKey) (*pending, error) {
	p := &pending{statusKey: key}
	p.catalogue = e.catalogue.Snapshot().AccountResources(key.account).Version
	var known bool
	if p.version, known = e.ResultsVersion(ctx, key.subject); !known {
		return nil, nil
	}
	r := key.subject.ResultsRequest(key.account)
	r.Scorecard = true
	of, err := e.PlanReport(r)
	if err != nil {
		return nil, err
	}
	p.x, err = e.prepareReport(ctx, of)
	return p, err
}

// computeStatus computes a status.
func (e *Engine) computeStatus(ctx context.Context, p *pending) (*result.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !canDecide(p.x.Plan) {
		return result.NewStatus(nil, nil), nil
	}
	plain := withoutScorecard(p.x)
	a, err := e.cachedAnalysis(ctx, plain)
	if err != nil {
		return nil, err
	}
	found, err := e.readRows(ctx, plain)
	if err != nil {
		return nil, err
	}
	report := result.New(plain.Plan, found, a)
	report.AddScorecard(p.x.Plan, nil, a)
	return result.NewStatus(report, a), nil
}
