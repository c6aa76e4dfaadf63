package api

import (
	"time"

	"lifthouse/engine/result"
	"lifthouse/stats"
)

// status is the summary of the results of a campaign or an experiment in a list.
type status struct {
	Decision    *result.Decision     `json:"decision"`
	VariationID *int64               `json:"variationId"`
	Lift        *result.Effect       `json:"lift"` // on the primary metric, with the interval of the last look
	Visitors    *int64               `json:"visitors"`
	Days        *int                 `json:"days"` // full days since the first visitor
	Health      []result.WarningCode `json:"health"`
	ComputedAt  *time.Time           `json:"computedAt"`
	Reason      stats.Reason         `json:"reason,omitempty"` // why there is no decision
}

// experimentStatus is the status of an experiment of a widget.
type experimentStatus struct {
	ExperimentID int64 `json:"experimentId"`
	*status
}

// The reasons why a status has no decision.
const (
	reasonNotComputed  stats.Reason = "NOT_COMPUTED" // not computed yet; ask again
	reasonNoComparison stats.Reason = "NOTHING_TO_COMPARE"
)

// newStatus returns the status of a running or stopped subject. If s is nil, the status
// is not computed yet.
func newStatus(s *result.Status, running bool) *status {
	if s == nil {
		return &status{Health: []result.WarningCode{}, Reason: reasonNotComputed}
	}
	shown := &status{
		Decision: s.Decision, VariationID: s.Variation, Lift: s.Lift, Visitors: &s.Visitors, Days: &s.Days,
		Health: s.HealthAt(time.Now(), running), ComputedAt: &s.Computed,
	}
	if s.Decision == nil {
		shown.Reason = reasonNoComparison
	}
	return shown
}
