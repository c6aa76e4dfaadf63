package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lifthouse/engine/conclusions"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// decisions keeps the days of subjects, and the earlier looks at cells of breakdowns, as
// long as the events of the subjects do not change.
type decisions struct {
	mu         sync.Mutex
	days       *simplelru.LRU[string, datedDays]
	cells      *simplelru.LRU[string, datedCells]
	firstViews sync.Map // plan.Subject to time.Time
}

// dated says of which version of a subject's events something was read.
type dated struct {
	version uint64
	at      time.Time // when it was read
	through time.Time // acceptance time of the last event
}

// datedDays are the days of a subject at a version of its events.
type datedDays struct {
	dated
	days   *result.Days
	guards []*result.Days // of the declared guardrails; nil: not read
}

// maxDaysAge is how long the days of a large subject without a rollup, and the earlier
// looks at its cells, are used although new events arrived. Reading them takes the store
// several times as long as a report, and they change only by late events, until the next
// day is full.
const maxDaysAge = time.Minute

// The limits bound the memory: of the days, about 1 KiB a day and subject; of the cells,
// about 1 KiB for each cell and variation.
const (
	maxDecisions  = 1000
	maxBreakdowns = 300
)

func newDecisions() *decisions {
	days, err := simplelru.NewLRU[string, datedDays](maxDecisions, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	cells, err := simplelru.NewLRU[string, datedCells](maxBreakdowns, nil)
	if err != nil {
		panic(err)
	}
	return &decisions{days: days, cells: cells}
}

// decideAndReport computes a report and what the days of the subject decided, and
// returns the name of its source.
func (e *Engine) decideAndReport(ctx context.Context, x *source.Execution, s state) (*result.Report, string, error) {
	if !decides(x.Plan) {
		return reportOf(ctx, x, s, nil)
	}
	results, from, err := e.reportWithDays(ctx, x, s)
	if err == nil && x.Dimension != "" {
		err = e.decisions.concludeCells(ctx, x, s, results, e.version(ctx, x, &s))
	}
	return results, from, err
}

// version returns the version of the events that a report reads, or nil if it is not
// known.
func (e *Engine) version(ctx context.Context, x *source.Execution, s *state) *uint64 {
	version, known := e.Version(ctx, x.Subject)
	if !known || x.AllEvents && s.rollup != nil && s.rollup.Lacks {
		return nil // it is that of the rollup
	}
	return &version
}

// reportWithDays computes a report with the decision of the days, without the conclusions
// of cells. The days are read again only if the events changed. The report of the
// declared question has them among its own rows.
func (e *Engine) reportWithDays(ctx context.Context, x *source.Execution, s state) (*result.Report, string, error) {
	if x.Scorecard {
		return e.keptScorecard(ctx, x, s)
	}
	if !hasDays(x.Plan) {
		days, err := e.days(ctx, x, s)
		if err != nil {
			return nil, "", err
		}
		return reportOf(ctx, x, s, e.decide(ctx, x.Plan, days))
	}
	days, keep := e.keptDays(ctx, x, s)
	if days != nil {
		return reportOf(ctx, x, s, e.decide(ctx, x.Plan, days))
	}
	daily := *x
	daily.Plan = x.Declaration()
	found, from, err := read(ctx, &daily, s)
	if err != nil {
		return nil, "", err
	}
	days = result.NewDays(daily.Plan, found.Steps, found.Through)
	keep(days)
	results, err := reportFrom(ctx, x, s, found, e.decide(ctx, x.Plan, days))
	return results, from, err
}

// days returns the days of the declared question of a plan. They are read again only if
// the events changed.
func (e *Engine) days(ctx context.Context, x *source.Execution, s state) (*result.Days, error) {
	days, keep := e.keptDays(ctx, x, s)
	if days != nil {
		return days, nil
	}
	days, err := daysOf(ctx, x, x.Declaration(), s)
	if err == nil {
		keep(days)
	}
	return days, err
}

// keptDays returns the kept days of the declared question, or nil and a function that
// keeps them.
func (e *Engine) keptDays(ctx context.Context, x *source.Execution, s state) (*result.Days, func(*result.Days)) {
	key := decisionKey(x.Declaration())
	version := e.version(ctx, x, &s)
	if last, kept := e.decisions.get(key); kept && last.isOf(version, &s, e.store.Limits) {
		return last.days, nil
	}
	return nil, func(days *result.Days) {
		if version != nil {
			e.decisions.set(key, datedDays{dated: dated{*version, time.Now(), s.through}, days: days})
		}
	}
}

// keptGuards returns the kept days of the declared guardrails, or nil and a function
// that keeps them beside the days of the declared question.
func (e *Engine) keptGuards(ctx context.Context, x *source.Execution, s state) ([]*result.Days, func([]*result.Days)) {
	key := decisionKey(x.Declaration())
	last, kept := e.decisions.get(key)
	kept = kept && last.isOf(e.version(ctx, x, &s), &s, e.store.Limits)
	if kept && last.guards != nil {
		return last.guards, nil
	}
	return nil, func(guards []*result.Days) {
		if kept {
			last.guards = guards
			e.decisions.set(key, last)
		}
	}
}

// decide returns what the days up to the end of a report decided. A decision by all
// days has what was recorded of it; if that cannot be read, the report goes without.
func (e *Engine) decide(ctx context.Context, p *plan.Plan, days *result.Days) *result.Decision {
	decision := days.Decide(p.Filters.To)
	if !p.Filters.To.IsZero() {
		return decision
	}
	last, err := e.conclusions.Last(ctx, questionOf(p.Declaration()))
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "read recorded conclusions failed", "err", err)
	}
	decision.Recorded = last
	return decision
}

// questionOf returns the question that a plan declares. It depends on all that the
// conclusion depends on besides the events.
func questionOf(p *plan.Plan) conclusions.Question {
	of := []any{
		p.Rules.Methodology, p.Rules.SignificanceLevel, p.Rules.Power, p.Rules.MDE, p.Rules.PlannedVisitors,
		p.Metric, p.Declared.GoalID, p.ControlShare, p.MultipleExposures, p.SharesSince.UnixMilli(),
	}
	if p.Rules.Prior != nil {
		of = append(of, *p.Rules.Prior)
	}
	if p.Cap != nil {
		of = append(of, p.Cap.String())
	}
	for _, v := range p.Variations {
		of = append(of, v.ID, v.Share)
	}
	return conclusions.Question{Subject: p.Subject, Hash: xxhash.Sum64String(fmt.Sprint(of...))}
}

// hasDays reports whether the rows of the daily series of the declared question are
// those of the report.
func hasDays(p *plan.Plan) bool {
	return p.IsDeclared() && p.OfAllVisitors() && p.Filters.To.IsZero() && p.Dimension == "" &&
		(p.Interval == "" || p.Interval == query.Daily) && !p.SharesSince.After(plan.OpenFrom)
}

// decides reports whether there is something to decide.
func decides(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// daysOf reads the days of the declared question.
func daysOf(ctx context.Context, x *source.Execution, declaration *plan.Plan, s state) (*result.Days, error) {
	of := *x
	of.Plan, of.Outliers = declaration, nil
	s.declined = nil
	found, _, err := read(ctx, &of, s)
	if err != nil {
		return nil, err
	}
	return result.NewDays(declaration, found.Steps, found.Through), nil
}

// decisionKey identifies a declared question.
func decisionKey(p *plan.Plan) string {
	prior := ""
	if p.Rules.Prior != nil {
		prior = fmt.Sprint(*p.Rules.Prior)
	}
	rules := p.Rules
	rules.Prior = nil
	return fmt.Sprint(p.Subject, rules, prior, p.Declared.GoalID, p.Declared.Guardrails, p.Declared.Cap, p.Metric, p.Variations, p.ControlShare, p.MultipleExposures, p.SharesSince.UnixMilli(), p.Ended)
}

func (d *decisions) get(key string) (datedDays, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.days.Get(key)
}

// isOf reports whether the days may be used for a version of the events; nil: not known.
// Without a rollup, those of an earlier version suffice for a while.
func (d *datedDays) isOf(version *uint64, s *state, limits source.Limits) bool {
	return version != nil && (d.version == *version || s.rollup == nil && d.isRecent(s, limits))
}

// isRecent reports whether something of a large subject was read less than maxDaysAge ago,
// and on the day of the last event.
func (d *dated) isRecent(s *state, limits source.Limits) bool {
	day := func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
	return s.events > limits.MaxInProcess() && time.Since(d.at) < maxDaysAge && day(d.through).Equal(day(s.through))
}

func (d *decisions) set(key string, days datedDays) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.days.Add(key, days)
}

// asOfFirstView returns the plan as it was in force when the first view of the subject
// was accepted.
func (e *Engine) asOfFirstView(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	if !p.PlanChanged() {
		return p, nil
	}
	if at, known := e.decisions.firstViews.Load(p.Subject); known {
		return p.AsOf(at.(time.Time)), nil //nolint:forcetypeassert // only times are stored
	}
	at, viewed, err := e.store.FirstView(ctx, p.Subject)
	switch {
	case err != nil:
		return nil, err
	case !viewed:
		return p, nil // a change before the first view counts
	}
	e.decisions.firstViews.Store(p.Subject, at)
	return p.AsOf(at), nil
}
