package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Attributes returns the names of all attributes of a first view, sorted.
func Attributes() []string { return slices.Sorted(maps.Keys(source.Columns)) }

// Values has the observed values of an attribute, the most frequent first.
// Visitors counts all visitors of the subject, including those that a report
// excludes, by the attribute of their first view.
type Values struct {
	CampaignID     int64           `json:"campaignId,omitzero"`
	WidgetID       int64           `json:"widgetId,omitzero"`
	ExperimentID   int64           `json:"experimentId,omitzero"`
	Dimension      string          `json:"dimension"`
	DataThrough    *time.Time      `json:"dataThrough"` // null: the subject has no events
	Visitors       int64           `json:"visitors"`
	DistinctValues int64           `json:"distinctValues"`
	Values         []ObservedValue `json:"values"`
}

// ObservedValue is a value in the form of a filter. An empty value means not
// set.
type ObservedValue struct {
	Value    string `json:"value"`
	Visitors int64  `json:"visitors"`
}

// Values returns the most frequent values of an attribute for the subject of
// the plan, at most the given number. It ignores the filters of the plan.
func (e *Engine) Values(ctx context.Context, plan *plan.Plan, attribute string, most int) (*Values, error) {
	stored, err := e.stored(ctx, plan.Subject)
	if err != nil {
		return nil, err
	}
	found := &Values{Dimension: attribute, Values: []ObservedValue{}}
	if through := stored.Ingested; !through.IsZero() {
		found.DataThrough = &through
	}
	if plan.Operation == query.CampaignResults {
		found.CampaignID = plan.Subject.ID
	} else {
		found.WidgetID, found.ExperimentID = plan.Subject.ID, plan.Subject.ExperimentID
	}
	if e.facts != nil {
		return found, e.factsValues(ctx, plan, found, most)
	}
	query, err := valuesQuery(plan.Subject, stored.Events, attribute, most)
	if err != nil {
		return nil, err
	}
	err = e.store.Each(ctx, query, func(row driver.Rows) error {
		var v ObservedValue
		err := row.Scan(&v.Value, &v.Visitors, &found.Visitors, &found.DistinctValues)
		found.Values = append(found.Values, v)
		return err
	})
	return found, err
}

// valuesQuery compiles the query for the values of an attribute.
func valuesQuery(of plan.Subject, events uint64, attribute string, most int) (*source.Query, error) {
	q := &source.Query{Params: append(source.SubjectParams(of), source.Param{Name: "limit", Value: uint32(most)}), Events: events} //nolint:gosec // a bound of ours
	return q, q.Render("values.sql", source.Slots{Dimension: "toString(" + source.Columns[attribute] + ")"})
}
