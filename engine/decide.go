package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"

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
	days *result.Days
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
	var version *uint64 // nil: not known
	if current, known := e.Version(ctx, x.Subject); known {
		version = &current
	}
	if x.AllEvents && s.rollup != nil && s.rollup.Through.Before(s.through) {
		version = nil // it is that of the rollup
	}
	results, from, err := e.reportWithDays(ctx, x, s, version)
	if err == nil && x.Dimension != "" {
		err = e.decisions.concludeCells(ctx, x, s, results, version)
	}
	return results, from, err
}

// reportWithDays computes a report with the decision of the days, without the conclusions
// of cells. The days are read again only if the events changed. The report of the
// declared question has them among its own rows.
func (e *Engine) reportWithDays(ctx context.Context, x *source.Execution, s state, version *uint64) (*result.Report, string, error) {
	declaration := x.Declaration()
	key := decisionKey(declaration)
	if last, read := e.decisions.get(key); version != nil && read && (last.version == *version || last.suffices(&s, e.store.Limits)) {
		return reportOf(ctx, x, s, last.days.Decide(x.Filters.To))
	}
	keep := func(days *result.Days) {
		if version != nil {
			e.decisions.set(key, datedDays{dated{*version, time.Now(), s.through}, days})
		}
	}
	if !hasDays(x.Plan) {
		days, err := daysOf(ctx, x, declaration, s)
		if err != nil {
			return nil, "", err
		}
		keep(days)
		return reportOf(ctx, x, s, days.Decide(x.Filters.To))
	}
	daily := *x
	daily.Plan = declaration
	found, from, err := read(ctx, &daily, s)
	if err != nil {
		return nil, "", err
	}
	days := result.NewDays(declaration, found.Steps, found.Through)
	keep(days)
	results, err := reportFrom(ctx, x, s, found, days.Decide(time.Time{}))
	return results, from, err
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
	return fmt.Sprint(p.Subject, rules, prior, p.Declared.GoalID, p.Declared.Cap, p.Metric, p.Variations, p.ControlShare, p.MultipleExposures, p.SharesSince.UnixMilli(), p.Ended)
}

func (d *decisions) get(key string) (datedDays, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.days.Get(key)
}

// suffices reports whether the days may be used although events changed. Those of a
// rollup cost little.
func (d *datedDays) suffices(s *state, limits source.Limits) bool {
	return s.rollup == nil && d.isRecent(s, limits)
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
