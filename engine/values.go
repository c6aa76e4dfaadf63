package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// AttributeNames returns the names of all attributes of a first view, sorted.
func AttributeNames() []string { return slices.Sorted(maps.Keys(source.Columns)) }

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

// ObservedValue is a value in the form of a filter. An empty value means that the attribute is
// not set.
type ObservedValue struct {
	Value    string `json:"value"`
	Visitors int64  `json:"visitors"`
}

// ReadValues returns the most frequent values of an attribute for the subject of
// the plan, at most the given number. It ignores the filters of the plan.
func (e *Engine) ReadValues(ctx context.Context, plan *plan.Plan, attribute string, most int) (*Values, error) {
	stored, err := e.facts.StoredEvents(ctx, plan.Subject)
	if err != nil {
		return nil, err
	}
	found := &Values{Dimension: attribute, Values: []ObservedValue{}}
	if through := stored.Ingested; !through.IsZero() {
		found.DataThrough = &through
	}
	if plan.Subject.Kind == schema.SubjectCampaign {
		found.CampaignID = plan.Subject.ID
	} else {
		found.WidgetID, found.ExperimentID = plan.Subject.ID, plan.Subject.ExperimentID
	}
	values, err := e.facts.ReadValues(ctx, plan.Question, attribute)
	for i, v := range values {
		if found.Visitors += v.Visitors; i < most {
			found.Values = append(found.Values, ObservedValue(v))
		}
	}
	found.DistinctValues = int64(len(values))
	return found, source.StoreFailure(ctx, err)
}
