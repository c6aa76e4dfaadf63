package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"

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
	subject schema.Subject
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
func (e *Engine) LastStatuses(ctx context.Context, account int64, subjects []schema.Subject) []*result.Status {
	defined := e.catalogue.Snapshot().AccountResources(account).Version
	found := make([]*result.Status, len(subjects))
	day, known := e.shards.LastDay(ctx)
	for i, subject := range subjects {
		key := statusKey{account, subject}
		version := e.shards.VersionOn(day, subject)
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
					var gone *query.NotFoundError
					if err := e.computeStatus(ctx, key); err != nil && ctx.Err() == nil && !errors.As(err, &gone) {
						slog.WarnContext(ctx, "compute status failed", "subject", key.subject, "err", err)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// maxStatusTime is the maximum time to compute a status.
const maxStatusTime = time.Minute

// computeStatus computes and keeps the status of a queued subject. If the store does not answer, it keeps none, and the
// next list request tries again.
func (e *Engine) computeStatus(ctx context.Context, key statusKey) error {
	ctx, cancel := context.WithTimeout(ctx, maxStatusTime)
	defer cancel()
	e.statuses.mu.Lock()
	delete(e.statuses.wanted, key) // a later change is queued again
	e.statuses.mu.Unlock()
	kept := keptStatus{catalogue: e.catalogue.Snapshot().AccountResources(key.account).Version}
	var known bool
	if kept.version, known = e.ResultsVersion(ctx, key.subject); !known {
		return nil
	}
	r := plan.ResultsRequest(key.account, key.subject)
	r.Scorecard = true
	p, err := e.PlanReport(r)
	if err != nil {
		return err
	}
	x, err := e.prepareReport(ctx, p)
	if err != nil {
		return err
	}
	var report *result.Report
	var a *looks.Analysis
	if canDecide(x.Plan) {
		if a, err = e.cachedAnalysis(ctx, withoutScorecard(x)); err != nil {
			return err
		}
		if report, err = e.decide(ctx, x, a); err != nil {
			return err
		}
	}
	kept.status = result.NewStatus(report, a)
	e.statuses.mu.Lock()
	e.statuses.kept.Add(key, kept)
	e.statuses.mu.Unlock()
	return nil
}

// decide returns the report of a declared question, whose scorecard has only the counted goal, with its decision.
func (e *Engine) decide(ctx context.Context, x *source.ReportQuery, a *looks.Analysis) (*result.Report, error) {
	plain := withoutScorecard(x)
	rows, err := e.readRows(ctx, plain)
	if err != nil {
		return nil, err
	}
	report := result.New(plain.Plan, rows, a)
	report.AddScorecard(x.Plan, []result.GoalRows{{Plan: x.AboutGoal(x.CountedGoal()), Rows: rows}}, a)
	return report, nil
}

// withoutScorecard returns the query of the same report without its scorecard.
func withoutScorecard(x *source.ReportQuery) *source.ReportQuery {
	query, p := *x, *x.Plan
	p.Scorecard = false
	query.Plan = &p
	return &query
}
