package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"
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
	observePath   func(string) // called with the source of each report
	refreshRollup func(context.Context, Subject) error
}

// The sources of the rows of a report.
const (
	PathInProcess = "in-process" // the server counts the events; for subjects with few events
	PathRollup    = "rollup"     // cubes of the rollup
	PathReference = "reference"  // the store counts the events
)

// ObservePath sets a function that is called with the source of each report. It
// must be called before the first report.
func (e *Engine) ObservePath(report func(path string)) { e.observePath = report }

func (e *Engine) recordPath(path string) {
	if e.observePath != nil {
		e.observePath(path)
	}
}

// path returns the source of rows that are not in a rollup.
func (p *Plan) path(limits Limits) string {
	if p.events <= limits.inProcessEvents() {
		return PathInProcess
	}
	return PathReference
}

// New returns the engine of a store.
func New(conn driver.Conn, c *catalogue.Catalogue, limits Limits) *Engine {
	s := &store{Conn: conn, limits: limits, shards: shardsOf(conn)}
	if limits.Scans > 0 {
		s.scans = semaphore.NewWeighted(int64(limits.Scans))
	}
	return &Engine{store: s, catalogue: c}
}

// Report computes a report from the cheapest source. The error is an
// InvalidError, a NotFoundError, a StoreError, or that of the context.
func (e *Engine) Report(ctx context.Context, r Request) (*Results, error) {
	plan, err := e.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	if answer, err := e.fromRollup(ctx, plan); err == nil {
		e.recordPath(PathRollup)
		return answer.results(ctx, plan, e.store)
	} else if !errors.Is(err, errNoRollup) {
		return nil, err
	}
	e.recordPath(plan.path(e.store.limits))
	return plan.fromEvents(ctx, e.store)
}

// Reference computes a report from the events.
func (e *Engine) Reference(ctx context.Context, r Request) (*Results, error) {
	plan, err := e.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	return plan.fromEvents(ctx, e.store)
}

func (p *Plan) fromEvents(ctx context.Context, from *store) (*Results, error) {
	rows, points, err := p.answer(ctx, from)
	if err != nil {
		return nil, err
	}
	_, span := tracer.Start(ctx, "stats")
	results := newResults(p, rows, rows)
	span.End()
	results.Series = points
	return results, nil
}

// rollupFor returns the state of the rollup of the subject if it can serve the
// plan. Otherwise the error is errNoRollup.
func (e *Engine) rollupFor(ctx context.Context, plan *Plan) (rollupState, error) {
	if plan.events <= e.store.limits.inProcessEvents() || !plan.fitsRollup() {
		return rollupState{}, errNoRollup
	}
	if now := e.stats.rollups.Load(); now == nil || time.Since(now.readAt) > statsMaxAge {
		if err := e.RefreshRollupStates(ctx); err != nil {
			return rollupState{}, storeError(ctx, err)
		}
	}
	state, rollups := e.usableRollup(plan.Subject, plan.DataThrough)
	if !rollups || plan.Fresh && state.through.Before(plan.DataThrough) {
		return state, errNoRollup
	}
	return state, nil
}

// fromRollup computes the report from the rollup. The error is errNoRollup if
// that is not possible.
func (e *Engine) fromRollup(ctx context.Context, plan *Plan) (*rollupAnswer, error) {
	state, err := e.rollupFor(ctx, plan)
	if err != nil {
		return nil, err
	}
	at := *plan
	answer, err := at.fromRollup(ctx, e.store, state)
	if err == nil {
		*plan = at
	}
	return answer, err
}

// SharesSince returns when the current shares of a subject took effect. It
// returns false if the subject is not in the catalogue.
func (e *Engine) SharesSince(of Subject) (time.Time, bool) {
	snapshot := e.catalogue.Snapshot()
	account, known := snapshot.AccountOfWebsite(of.WebsiteID)
	if !known {
		return time.Time{}, false
	}
	plan, err := NewPlan(of.request(account), snapshot.Account(account))
	if err != nil {
		return time.Time{}, false
	}
	return plan.SharesSince, true
}

// plan resolves a request, and reads from the store how fresh the data are and
// which values are outliers.
func (e *Engine) plan(ctx context.Context, r Request) (plan *Plan, err error) {
	ctx, span := tracer.Start(ctx, "plan")
	defer func() { endSpan(span, err) }()
	plan, err = NewPlan(r, e.catalogue.Snapshot().Account(r.AccountID))
	if err != nil {
		return nil, err
	}
	plan.shards = e.store.shards
	if err := e.freshness(ctx, plan); err != nil {
		return nil, err
	}
	if plan.Filters.ZScore != 0 {
		if err := plan.findOutliers(ctx, e.store); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// freshness sets DataThrough, the newest event time and the number of events.
// It is called before the events are read, so that the report has at least the
// events up to DataThrough. Values that a server remembers are slightly older
// and also valid.
func (e *Engine) freshness(ctx context.Context, p *Plan) error {
	if last := e.stats.last.Load(); last != nil && time.Since(last.readAt) < statsMaxAge {
		p.setFreshness(last.events[p.Subject])
		return nil
	}
	query, err := p.freshnessQuery(schema.CountersTable(e.store.Conn))
	if err != nil {
		return err
	}
	var now subjectTotals
	if err := e.store.each(ctx, query, func(row driver.Rows) error { return row.Scan(&now.events, &now.ingested, &now.newest) }); err != nil {
		return err
	}
	p.setFreshness(now)
	return nil
}

func (p *Plan) setFreshness(now subjectTotals) {
	p.events = now.events
	if now.events > 0 {
		p.DataThrough, p.newest = now.ingested.UTC(), now.newest.UTC()
	}
}

// newResults computes the body from rows. whole are the rows of the whole
// report; they differ from rows only if the rows of the breakdown are
// incomplete.
func newResults(plan *Plan, rows, whole []row) *Results {
	all := sumRows(whole, plan.MultipleExposures)
	result := all.evaluate(plan)
	result.Checks.Outliers = plan.Outliers.check(result.Totals.GoalsReached)
	result.conclude(plan, stats.Conclude(result.evidence, plan.options()))
	results := &Results{
		Methodology:       plan.Rules.Methodology,
		SignificanceLevel: plan.Rules.SignificanceLevel,
		Filters:           plan.Filters.echo(),
		Window:            Window{given(plan.Filters.From), given(plan.Filters.To)},
		Population:        "firstExposedInWindow",
		GeneratedAt:       time.Now().UTC().Truncate(time.Millisecond),
		DataThrough:       given(plan.DataThrough),
		NewestEvent:       given(plan.newest),
		Cell:              result.Cell,
	}
	if plan.Operation == CampaignResults {
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
		results.Breakdown = breakdown(plan, rows)
	}
	return results
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// echo returns the filters in canonical form; encoding/json sorts the keys of a
// map.
func (f *Filters) echo() map[string]any {
	echo := map[string]any{}
	for _, filter := range f.Lists {
		echo[filter.Attribute] = filter.Values
	}
	for _, filter := range f.Texts {
		echo[filter.Attribute] = filter.Pattern
	}
	if f.GoalValue != nil {
		value, _ := f.GoalValue.Float64()
		echo["goalValue"] = value
	}
	if f.ZScore != 0 {
		echo["zScore"] = f.ZScore
	}
	return echo
}

// maxBreakdown is the maximum number of dimension values with separate cells.
const maxBreakdown = 50

// The names of cells without a value. A real value with such a name, possibly
// after backslashes, gets another backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown computes a cell for each of the most frequent values of the
// dimension, and one for all others.
func breakdown(plan *Plan, rows []row) []BreakdownCell {
	byValue := map[string][]row{}
	visitors := map[string]int64{}
	var others []row
	for _, r := range rows {
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
	for _, value := range values[:min(len(values), plan.top)] {
		add(shownValue(value), byValue[value])
		delete(byValue, value)
	}
	if len(values) > plan.top || len(others) > 0 {
		for _, rows := range byValue {
			others = append(others, rows...)
		}
		add(otherValues, others)
	}
	cells := make([]cellResult, len(all))
	onAllCores(len(cells), func(i int) { cells[i] = all[i].evaluate(plan) })
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
func concluded(plan *Plan, names []string, cells []cellResult) []BreakdownCell {
	evidence := make([]stats.Evidence, len(cells))
	for i := range cells {
		evidence[i] = cells[i].evidence
	}
	shown := make([]BreakdownCell, len(cells))
	for i, conclusion := range stats.ConcludeCells(evidence, plan.options()) {
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
