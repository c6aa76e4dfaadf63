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
	"lifthouse/schema"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// statuses keeps the last status of each subject, and computes the others in the
// background.
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

// maxStatuses bounds the memory of the statuses, about 1 KiB each, and the number of
// those that wait.
const maxStatuses = 20_000

func newStatuses() *statuses {
	kept, err := simplelru.NewLRU[statusKey, keptStatus](maxStatuses, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &statuses{kept: kept, wanted: map[statusKey]bool{}, queue: make(chan statusKey, maxStatuses)}
}

// Statuses returns the last computed status of each subject at once. A subject whose
// status was never computed has none, and subjects whose events or definitions changed
// since have an older one. FollowStatuses computes both.
func (e *Engine) Statuses(ctx context.Context, account int64, subjects []plan.Subject) []*result.Status {
	defined := e.catalogue.Snapshot().Account(account).Version
	found := make([]*result.Status, len(subjects))
	for i, subject := range subjects {
		key := statusKey{account, subject}
		version, known := e.Version(ctx, subject)
		e.statuses.mu.Lock()
		last, computed := e.statuses.kept.Get(key)
		if computed {
			found[i] = last.status
		}
		if known && (!computed || last.version != version || last.catalogue != defined) {
			e.statuses.want(key)
		}
		e.statuses.mu.Unlock()
	}
	return found
}

// want queues a status, unless it is queued or too many are. The caller holds the lock.
func (s *statuses) want(key statusKey) {
	if s.wanted[key] {
		return
	}
	select {
	case s.queue <- key:
		s.wanted[key] = true
	default:
	}
}

// FollowStatuses computes the statuses that were asked for until the context ends.
func (e *Engine) FollowStatuses(ctx context.Context) {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				select {
				case key := <-e.statuses.queue:
					e.computeStatus(ctx, key)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

func (e *Engine) computeStatus(ctx context.Context, key statusKey) {
	e.statuses.mu.Lock()
	delete(e.statuses.wanted, key) // a later change is queued again
	e.statuses.mu.Unlock()
	defined := e.catalogue.Snapshot().Account(key.account).Version
	version, known := e.Version(ctx, key.subject)
	status, err := e.status(ctx, key)
	var gone *query.NotFoundError
	switch {
	case errors.As(err, &gone) || !known:
		return
	case err != nil:
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "compute status failed", "subject", key.subject, "err", err)
		}
		return
	}
	e.statuses.mu.Lock()
	defer e.statuses.mu.Unlock()
	e.statuses.kept.Add(key, keptStatus{version, defined, status})
}

// status computes the status of a subject.
func (e *Engine) status(ctx context.Context, key statusKey) (*result.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := key.subject.Request(key.account)
	r.Scorecard = true
	if key.subject.Kind == schema.SubjectCampaign {
		r.Metric = query.GoalConversionRate
	}
	p, err := e.Plan(r)
	if err != nil {
		return nil, err
	}
	x, s, err := e.prepare(ctx, p)
	if err != nil {
		return nil, err
	}
	if !decides(x.Plan) {
		return result.NewStatus(nil, nil), nil
	}
	plain := *x
	withoutScorecard := *x.Plan
	withoutScorecard.Scorecard = false
	plain.Plan = &withoutScorecard
	report, decision, guards, err := e.reportForStatus(ctx, &plain, s)
	if err != nil {
		return nil, err
	}
	report.AddScorecard(x.Plan, nil, decision, guards)
	return result.NewStatus(report, decision), nil
}

// reportForStatus computes the report of the declared question, its decision, and the
// days of the guardrails. If the days are those of the report, everything is read at
// once.
func (e *Engine) reportForStatus(ctx context.Context, x *source.Execution, s state) (*result.Report, *result.Decision, []*result.Days, error) {
	if !hasDays(x.Plan) {
		report, _, err := e.decideAndReport(ctx, x, s)
		if err != nil {
			return nil, nil, nil, err
		}
		days, err := e.days(ctx, x, s)
		if err != nil {
			return nil, nil, nil, err
		}
		guards, err := e.guards(ctx, x, s)
		return report, e.decide(ctx, x.Plan, days), guards, err
	}
	declaration := x.Declaration()
	found, err := readDays(ctx, x, s, append(guardedGoals(x.Plan), declaration.CountedGoal()))
	if err != nil {
		return nil, nil, nil, err
	}
	own := found[declaration.CountedGoal()]
	days := result.NewDays(declaration, own.Steps, own.Through)
	if _, keep := e.keptDays(ctx, x, s); keep != nil {
		keep(days)
	}
	guards := daysOfGuards(declaration, found)
	if _, keep := e.keptGuards(ctx, x, s); keep != nil {
		keep(guards)
	}
	decision := e.decide(ctx, x.Plan, days)
	report, err := reportFrom(ctx, x, s, own, decision)
	return report, decision, guards, err
}
