package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Engine answers requests for reports from a store.
type Engine struct {
	conn      driver.Conn
	catalogue *catalogue.Catalogue
}

// New returns the engine of a store.
func New(conn driver.Conn, c *catalogue.Catalogue) *Engine { return &Engine{conn, c} }

// Report answers a request. The error is an InvalidError, a NotFoundError, or
// the store's.
func (e *Engine) Report(ctx context.Context, r Request) (*Results, error) {
	plan, err := NewPlan(r, e.catalogue.Snapshot().Account(r.AccountID))
	if err != nil {
		return nil, err
	}
	fresh, err := e.freshness(ctx, plan)
	if err != nil {
		return nil, err
	}
	query, err := plan.momentsQuery()
	if err != nil {
		return nil, err
	}
	rows, err := scanRows(ctx, e.conn, query)
	if err != nil {
		return nil, err
	}
	return newResults(plan, fresh, rows), nil
}

// freshness is read before the events are, so that it never claims more than
// the answer holds.
type freshness struct{ dataThrough, newestEvent *time.Time }

func (e *Engine) freshness(ctx context.Context, plan *Plan) (freshness, error) {
	query, err := plan.freshnessQuery()
	if err != nil {
		return freshness{}, err
	}
	var events uint64
	var ingested, newest time.Time
	if err := e.conn.QueryRow(ctx, query.SQL, query.args()...).Scan(&events, &ingested, &newest); err != nil {
		return freshness{}, fmt.Errorf("report: %w", err)
	}
	if events == 0 {
		return freshness{}, nil
	}
	ingested, newest = ingested.UTC(), newest.UTC()
	return freshness{&ingested, &newest}, nil
}

func newResults(plan *Plan, fresh freshness, rows []row) *Results {
	all := gather(rows, plan.Crossovers)
	results := &Results{
		CampaignID:        plan.Campaign.ID,
		CompareMetric:     plan.Metric,
		Methodology:       plan.Campaign.Methodology,
		SignificanceLevel: plan.Campaign.SignificanceLevel,
		Filters:           plan.Filters.echo(),
		Window:            Window{given(plan.Filters.From), given(plan.Filters.To)},
		Population:        "firstExposedInWindow",
		GeneratedAt:       time.Now().UTC().Truncate(time.Millisecond),
		DataThrough:       fresh.dataThrough,
		NewestEvent:       fresh.newestEvent,
		Cell:              all.results(plan),
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

// echo returns the filters in their canonical form: encoding/json writes a
// map's keys in order.
func (f *Filters) echo() map[string]any {
	echo := map[string]any{}
	for _, filter := range f.Lists {
		echo[filter.Attribute] = filter.Values
	}
	for _, filter := range f.Texts {
		echo[filter.Attribute] = filter.Pattern
	}
	return echo
}

// maxBreakdown is how many values of a dimension stand alone.
const maxBreakdown = 50

// The names of the values that are none; a real value spelt so is escaped by a
// backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown computes a cell for each of the most visited values of the
// dimension, and one for all others together.
func breakdown(plan *Plan, rows []row) []BreakdownCell {
	byValue := map[string][]row{}
	visitors := map[string]int64{}
	for _, r := range rows {
		byValue[r.dimension] = append(byValue[r.dimension], r)
		if !r.earlier {
			visitors[r.dimension] += r.Visitors
		}
	}
	values := make([]string, 0, len(visitors))
	for value := range visitors {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
	cells := []BreakdownCell{}
	add := func(name string, rows []row) {
		c := gather(rows, plan.Crossovers)
		cells = append(cells, BreakdownCell{Value: name, Cell: c.results(plan)})
	}
	for _, value := range values[:min(len(values), maxBreakdown)] {
		add(shownValue(value), byValue[value])
	}
	if len(values) > maxBreakdown {
		var others []row
		for _, value := range values[maxBreakdown:] {
			others = append(others, byValue[value]...)
		}
		add(otherValues, others)
	}
	return cells
}

func shownValue(value string) string {
	switch value {
	case "":
		return noValue
	case otherValues, noValue:
		return `\` + value
	}
	return value
}
