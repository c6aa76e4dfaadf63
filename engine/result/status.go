package result

import (
	"math"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/stats"
)

// Status is a report's summary for a list.
type Status struct {
	Decision  *Decision // nil: nothing is compared
	Variation *int64    // of the lift; nil: there is none
	Lift      *Effect
	Visitors  int64
	Days      int           // full days since the first visitor
	Health    []WarningCode // codes of the warnings other than silence
	Computed  time.Time

	first, newest time.Time
	views         int64
}

// NewStatus returns the status for a report and the results of its looks; nil: nothing is
// compared.
func NewStatus(r *Report, a *looks.Analysis) *Status {
	s := &Status{Health: []WarningCode{}, Computed: time.Now().UTC().Truncate(time.Millisecond)}
	if r == nil {
		return s
	}
	s.Decision, s.Visitors, s.views = r.Decision, r.Totals.Visitors, r.Totals.Views
	if r.Checks.FullWeeks != nil {
		s.Days = r.Checks.FullWeeks.Days
	}
	for _, w := range r.Checks.Warnings {
		if w.Code != warningSilent {
			s.Health = append(s.Health, w.Code)
		}
	}
	if r.NewestEvent != nil && a != nil {
		s.first, s.newest = a.FirstView.Start(), *r.NewestEvent
	}
	if v := r.leadingVariation(); v != nil {
		s.Variation, s.Lift = &v.ID, &Effect{Value: v.Comparison.Improvement.Value, Observed: v.Comparison.Improvement.Observed, Reason: v.Comparison.Improvement.Reason}
		if look := v.Comparison.Sequential; look != nil {
			s.Lift.Interval, s.Lift.Reason = look.Improvement, look.ImprovementReason
		}
	}
	return s
}

// leadingVariation returns the variation of the decision, or else the variation with the
// smallest p-value at the last look. It returns nil if nothing is compared.
func (r *Report) leadingVariation() *VariationResults {
	var found *VariationResults
	least := math.Inf(1)
	for i := range r.Variations {
		v := &r.Variations[i]
		if v.Comparison == nil {
			continue
		}
		if r.Decision != nil && r.Decision.VariationID != nil && *r.Decision.VariationID == v.ID {
			return v
		}
		p := 1.0
		if s := v.Comparison.Sequential; s != nil && s.PValue != nil {
			p = *s.PValue
		}
		if p < least {
			found, least = v, p
		}
	}
	return found
}

// HealthAt returns the codes of the warnings of a running or stopped subject at a time.
func (s *Status) HealthAt(now time.Time, running bool) []WarningCode {
	if running && s.SilenceAt(now) > 0 {
		return append(s.Health[:len(s.Health):len(s.Health)], warningSilent)
	}
	return s.Health
}

// SilenceAt returns how long the subject has been silent at a time, or 0 if it is not silent.
func (s *Status) SilenceAt(now time.Time) time.Duration {
	return SilenceDuration(s.first, s.newest, s.views, now)
}

// WarningText returns the message of the first warning of the report with one of the codes, or an empty text.
func (r *Report) WarningText(codes ...WarningCode) string {
	for _, w := range r.Checks.Warnings {
		if slices.Contains(codes, w.Code) {
			return w.Message
		}
	}
	return ""
}

// ListedStatus is the summary of the results of a campaign or an experiment in a list.
type ListedStatus struct {
	Decision    *Decision     `json:"decision"`
	VariationID *int64        `json:"variationId"`
	Lift        *Effect       `json:"lift"` // on the primary metric, with the interval of the last look
	Visitors    *int64        `json:"visitors"`
	Days        *int          `json:"days"` // full days since the first visitor
	Health      []WarningCode `json:"health"`
	ComputedAt  *time.Time    `json:"computedAt"`
	Reason      stats.Reason  `json:"reason,omitempty"` // for a missing decision
}

// reasonNotComputed is the reason why a status has no decision yet. Clients may ask again.
const reasonNotComputed stats.Reason = "NOT_COMPUTED"

// NewListedStatus returns the status of a running or stopped subject. If s is nil, the status
// is not computed yet.
func NewListedStatus(s *Status, running bool) *ListedStatus {
	if s == nil {
		return &ListedStatus{Health: []WarningCode{}, Reason: reasonNotComputed}
	}
	shown := &ListedStatus{
		Decision: s.Decision, VariationID: s.Variation, Lift: s.Lift, Visitors: &s.Visitors, Days: &s.Days,
		Health: s.HealthAt(time.Now(), running), ComputedAt: &s.Computed,
	}
	if s.Decision == nil {
		shown.Reason = reasonNothingToCompare
	}
	return shown
}
