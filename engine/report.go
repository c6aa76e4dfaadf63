package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/semaphore"
)

// Engine computes reports from a store.
type Engine struct {
	store         *store
	catalogue     *catalogue.Catalogue
	stats         statsCache
	observeSource func(string) // called with the source of each report
	refreshRollup func(context.Context, plan.Subject) error
}

// ObserveSource sets a function that is called with the source of each report.
// It must be called before the first report.
func (e *Engine) ObserveSource(report func(source string)) { e.observeSource = report }

// New returns the engine of a store.
func New(conn driver.Conn, c *catalogue.Catalogue, limits Limits) *Engine {
	s := &store{Conn: conn, limits: limits, shards: shardsOf(conn)}
	if limits.Scans > 0 {
		s.scans = semaphore.NewWeighted(int64(limits.Scans))
	}
	return &Engine{store: s, catalogue: c}
}

// Plan resolves a request against the catalogue. The error is an InvalidError or
// a NotFoundError.
func (e *Engine) Plan(r query.Request) (*plan.Plan, error) {
	return plan.New(r, e.catalogue.Snapshot().Account(r.AccountID))
}

// Report computes a report from the cheapest source. The error is an
// InvalidError, a StoreError, or that of the context.
func (e *Engine) Report(ctx context.Context, p *plan.Plan) (*Results, error) {
	x, err := e.execution(ctx, p)
	if err != nil {
		return nil, err
	}
	s, err := e.state(ctx, x)
	if err != nil {
		return nil, err
	}
	results, source, err := x.report(ctx, s)
	if err == nil && e.observeSource != nil {
		e.observeSource(source)
	}
	return results, err
}

// Reference computes a report from the events.
func (e *Engine) Reference(ctx context.Context, p *plan.Plan) (*Results, error) {
	x, err := e.execution(ctx, p)
	if err != nil {
		return nil, err
	}
	results, _, err := x.report(ctx, x.state().withoutRollup())
	return results, err
}

// report computes the body from the cheapest source.
func (x *execution) report(ctx context.Context, s state) (results *Results, source string, err error) {
	found, source, err := x.read(ctx, s)
	if err != nil {
		return nil, "", err
	}
	_, span := tracer.Start(ctx, "stats")
	results = newResults(x.Plan, found)
	span.End()
	if x.Interval != "" {
		results.Series, err = x.series(ctx, found)
	}
	return results, source, err
}

// state returns the state of a store without rollups.
func (x *execution) state() state {
	return state{events: x.stored.events, through: x.stored.ingested, sharded: x.store.shards != nil}
}

// state returns what the choice of a source depends on.
func (e *Engine) state(ctx context.Context, x *execution) (state, error) {
	s := x.state()
	if now := e.stats.rollups.Load(); now == nil || time.Since(now.readAt) > statsMaxAge {
		if err := e.RefreshRollupStates(ctx); err != nil {
			return s, storeError(ctx, err)
		}
	}
	if current, usable := e.usableRollup(x.Subject, s.through); usable {
		s.rollup = &current
	}
	return s, nil
}

// SharesSince returns when the current shares of a subject took effect. It
// returns false if the subject is not in the catalogue.
func (e *Engine) SharesSince(of plan.Subject) (time.Time, bool) {
	snapshot := e.catalogue.Snapshot()
	account, known := snapshot.AccountOfWebsite(of.WebsiteID)
	if !known {
		return time.Time{}, false
	}
	plan, err := plan.New(of.Request(account), snapshot.Account(account))
	if err != nil {
		return time.Time{}, false
	}
	return plan.SharesSince, true
}

// newResults computes the body from the rows, without the series.
func newResults(plan *plan.Plan, found *answer) *Results {
	all := sumRows(found.whole, plan.MultipleExposures)
	result := all.evaluate(plan, found)
	result.Checks.Outliers = found.outliers.check(result.Totals.GoalsReached)
	result.conclude(plan, stats.Conclude(result.evidence, options(plan)))
	results := &Results{
		Methodology:       plan.Rules.Methodology,
		SignificanceLevel: plan.Rules.SignificanceLevel,
		Filters:           plan.Filters.Echo(),
		Window:            Window{given(plan.Filters.From), given(plan.Filters.To)},
		Population:        "firstExposedInWindow",
		GeneratedAt:       time.Now().UTC().Truncate(time.Millisecond),
		DataThrough:       given(found.through),
		NewestEvent:       given(found.newest),
		Cell:              result.Cell,
	}
	if plan.Operation == query.CampaignResults {
		results.CampaignID = plan.Subject.ID
	} else {
		results.WidgetID, results.ExperimentID = plan.Subject.ID, plan.Subject.ExperimentID
	}
	if plan.Rules.Compare {
		results.CompareMetric = &plan.Metric
	}
	if plan.Goal != nil {
		results.Goal = &GoalName{plan.Goal.ID, plan.Goal.Name}
	}
	if plan.Dimension != "" {
		results.Dimension = &plan.Dimension
		results.Breakdown = breakdown(plan, found)
	}
	return results
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// The names of cells without a value. A real value with such a name, possibly
// after backslashes, gets another backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown computes a cell for each of the most frequent values of the
// dimension, and one for all others.
func breakdown(plan *plan.Plan, found *answer) []BreakdownCell {
	byValue := map[string][]row{}
	visitors := map[string]int64{}
	var others []row
	for _, r := range found.cells {
		if r.others {
			others = append(others, r)
			continue
		}
		byValue[r.dimension] = append(byValue[r.dimension], r)
		if !r.exposedBefore {
			visitors[r.dimension] += r.Visitors
		}
	}
	values := mostVisited(visitors)
	var names []string
	var all []cell
	add := func(name string, rows []row) {
		names, all = append(names, name), append(all, sumRows(rows, plan.MultipleExposures))
	}
	for _, value := range values[:min(len(values), plan.Top)] {
		add(shownValue(value), byValue[value])
		delete(byValue, value)
	}
	if len(values) > plan.Top || len(others) > 0 {
		for _, rows := range byValue {
			others = append(others, rows...)
		}
		add(otherValues, others)
	}
	cells := make([]cellResult, len(all))
	onAllCores(len(cells), func(i int) { cells[i] = all[i].evaluate(plan, found) })
	return concluded(plan, names, cells)
}

// mostVisited returns the values sorted by visitors, descending.
func mostVisited(visitors map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(visitors), func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
}

// concluded adds the conclusions to the cells. They are corrected for the
// number of cells.
func concluded(plan *plan.Plan, names []string, cells []cellResult) []BreakdownCell {
	evidence := make([]stats.Evidence, len(cells))
	for i := range cells {
		evidence[i] = cells[i].evidence
	}
	shown := make([]BreakdownCell, len(cells))
	for i, conclusion := range stats.ConcludeCells(evidence, options(plan)) {
		cells[i].conclude(plan, conclusion)
		cells[i].Power = nil
		shown[i] = BreakdownCell{Value: names[i], Cell: cells[i].Cell}
	}
	return shown
}

func shownValue(value string) string {
	switch strings.TrimLeft(value, `\`) {
	case "":
		if value == "" {
			return noValue
		}
	case otherValues, noValue:
		return `\` + value
	}
	return value
}
