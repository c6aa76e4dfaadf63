package result

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// ScorecardRow compares the variations on one metric of one goal.
type ScorecardRow struct {
	Goal             *GoalName            `json:"goal"` // null: all goals count
	Metric           query.Metric         `json:"metric"`
	ConversionWindow *AgeRange            `json:"conversionWindow,omitempty"` // nil: none
	Role             Role                 `json:"role"`
	Direction        string               `json:"direction"` // up or down: the good direction
	Variations       []ScorecardVariation `json:"variations"`

	plan      *plan.Plan // of the metric and the goal
	sums      *sliceSums
	result    sliceResult
	through   time.Time // acceptance time of the last event
	guardrail int       // index in the declared guardrails; -1: not a guardrail
	secondary int       // index in the declared secondary goals; -1: not secondary
}

// Role is the role of a row in the scorecard.
type Role string

// The roles, in the order of the scorecard.
const (
	RolePrimary   Role = "primary"
	RoleGuardrail Role = "guardrail"
	RoleSecondary Role = "secondary"
	RoleOther     Role = "other"
)

var roles = []Role{RolePrimary, RoleGuardrail, RoleSecondary, RoleOther}

// ScorecardVariation has the results of a variation in a row of the scorecard.
type ScorecardVariation struct {
	ID         int64       `json:"id"`
	Name       string      `json:"name"`
	Control    bool        `json:"control"`
	Estimate   Estimate    `json:"estimate"`
	Comparison *Comparison `json:"comparison"` // null for control
	// QValue is the p-value at the last look, adjusted over the declared secondary metrics of the variation, and
	// Discovered reports whether it is below alpha. Other rows have neither.
	QValue     *float64   `json:"qValue,omitempty"`
	Discovered *bool      `json:"discovered,omitempty"`
	Guardrail  *Guardrail `json:"guardrail,omitempty"` // only in rows of guardrails
}

// GoalRows are the rows of a report about one goal.
type GoalRows struct {
	Plan *plan.Plan // see plan.Plan.AboutGoal
	Rows *moments.Rows
}

// newScorecard returns a row for each metric of a goal that has events or is the goal of the report, and for each
// metric with a role.
func newScorecard(p *plan.Plan, goals []GoalRows) []*ScorecardRow {
	// The metrics of some goals have a role.
	type declared struct {
		plan.GoalWindow
		metric query.Metric
		row    ScorecardRow
	}
	row := func(role Role, down bool, guardrail, secondary int) ScorecardRow {
		direction := catalogue.Up
		if down {
			direction = catalogue.Down
		}
		return ScorecardRow{Role: role, Direction: direction, guardrail: guardrail, secondary: secondary}
	}
	all := []declared{{p.Declared.PrimaryGoal(), p.Declared.Metric, row(RolePrimary, false, -1, -1)}}
	for i, g := range p.Declared.Guardrails {
		all = append(all, declared{g.GoalWindow, g.Metric, row(RoleGuardrail, g.Down, i, -1)})
	}
	for i, g := range p.Declared.Secondary {
		all = append(all, declared{g.GoalWindow, g.Metric, row(RoleSecondary, g.Down, -1, i)})
	}

	var rows []*ScorecardRow
	for _, g := range goals {
		sums := sumRows(g.Rows.Whole, g.Plan)
		hasGoals := slices.ContainsFunc(slices.Collect(maps.Values(sums.counted)),
			func(m moments.Moments) bool { return m.GoalsReached() > 0 })
		metrics := slices.Clone(query.GoalMetrics)
		if g.Plan.ConversionWindow != p.WindowOf(g.Plan.GoalID) { // that of a guardrail or a secondary metric only
			metrics = nil
		}
		for _, d := range append([]declared{{p.Goal(), p.Metric, ScorecardRow{}}}, all...) {
			if g.Plan.Goal() == d.GoalWindow && !slices.Contains(metrics, d.metric) {
				metrics = append(metrics, d.metric)
			}
		}
		for _, metric := range metrics {
			r := row(RoleOther, false, -1, -1)
			for _, d := range all {
				if d.GoalWindow == g.Plan.Goal() && d.metric == metric {
					guardrail, secondary := max(r.guardrail, d.row.guardrail), max(r.secondary, d.row.secondary)
					r = d.row
					r.guardrail, r.secondary = guardrail, secondary
				}
			}
			r.Metric, r.plan, r.sums, r.through = metric, g.Plan.WithMetric(metric), &sums, g.Rows.Through
			if r.ConversionWindow = newAgeRange(r.plan); r.plan.GoalID != 0 {
				r.Goal = &GoalName{r.plan.GoalID, r.plan.GoalName}
			}
			if hasGoals || r.Role != RoleOther || g.Plan.Goal() == p.Goal() {
				rows = append(rows, &r)
			}
		}
	}
	onAllCores(len(rows), func(i int) {
		r := rows[i]
		r.result = r.sums.compareVariations(r.plan)
		for i := range r.result.Variations {
			v := &r.result.Variations[i]
			if v.Comparison != nil {
				v.Comparison.Sequential = NewSequential(nil, stats.ReasonNotDeclared)
			}
			r.Variations = append(r.Variations, ScorecardVariation{
				ID: v.ID, Name: v.Name, Control: v.Control,
				Estimate: v.Metrics.EstimateOf(r.Metric), Comparison: v.Comparison,
			})
		}
	})
	slices.SortStableFunc(rows, func(a, b *ScorecardRow) int {
		return cmp.Or(cmp.Compare(slices.Index(roles, a.Role), slices.Index(roles, b.Role)),
			cmp.Compare(a.plan.GoalID, b.plan.GoalID))
	})
	return rows
}

// MetricInWords returns the names of the row's metric and goal.
func (r *ScorecardRow) MetricInWords() string {
	if r.Goal == nil {
		return MetricInWords(r.Metric) + " of all goals" + r.ConversionWindow.afterName()
	}
	return MetricInWords(r.Metric) + " of " + r.Goal.Name + r.ConversionWindow.afterName()
}

// IsEmpty reports whether the row has no role, and all its values are 0 or unknown.
func (r *ScorecardRow) IsEmpty() bool {
	return r.Role == RoleOther && !slices.ContainsFunc(r.Variations,
		func(v ScorecardVariation) bool { return v.Estimate.Value != nil && *v.Estimate.Value != 0 })
}

// AddScorecard adds the scorecard and the decision to a report. a has the results of the looks; nil: there are none.
func (r *Report) AddScorecard(p *plan.Plan, goals []GoalRows, a *looks.Analysis) {
	rows := newScorecard(p, goals)
	all := p.OfAllVisitors() && a != nil
	// The q-values of each variation in the secondary rows, from the p-values at the last look.
	if a != nil && len(a.SecondaryP) > 0 {
		for treatment := range a.SecondaryP[0] {
			pValues := make([]float64, len(a.SecondaryP))
			for i := range pValues {
				pValues[i] = a.SecondaryP[i][treatment]
			}
			q := stats.FalseDiscovery(pValues)
			for _, row := range rows {
				if row.secondary < 0 || math.IsNaN(q[row.secondary]) {
					continue
				}
				v := &row.Variations[treatment+1]
				v.QValue, v.Discovered = &q[row.secondary], new(q[row.secondary] < statsOptions(p).Alpha())
			}
		}
	}
	for _, row := range rows {
		// The visitors at which a variation without an effect is shown to be safe, with the planned power: not if the
		// report and the looks have different visitors.
		var required *int64
		if row.guardrail >= 0 && a != nil && !isDescriptive(p) {
			daily := perDay(&row.result.total, a.FirstView.Start(), row.through)
			if size, reason := row.result.sampleSize(row.plan, daily); reason == "" {
				required, _ = size.RequiredForMargin(p.Declared.Guardrails[row.guardrail].Margin)
			}
		}
		for i := range row.Variations {
			v := &row.Variations[i]
			if v.Control {
				continue
			}
			if row.Role == RolePrimary && all {
				v.Comparison.Conclusive = new(a.Primary.SupportsVerdict(i-1, v.Comparison.Verdict,
					statsOptions(a.Plan).Alpha()))
				v.Comparison.Sequential = NewSequential(a.Primary.LastLook(i-1), missingLook(a.Plan, false))
			}
			if row.guardrail >= 0 {
				v.Guardrail = newGuardrail(&p.Declared.Guardrails[row.guardrail], a, row.guardrail, i-1)
				v.Guardrail.RequiredVisitors = required
				if all {
					v.Comparison.Sequential = NewSequential(a.Guardrails[row.guardrail].LastLook(i-1),
						missingLook(a.Plan, false))
				}
			}
		}
	}
	r.Scorecard, r.WorthReason = rows, whyNoWorth(p, a)
	if a != nil {
		r.Checks.FullWeeks = newFullWeeks(a.FullDays())
	}
	if a != nil && r.NewestEvent != nil {
		r.Pulse = &Pulse{
			First: a.FirstView.Start(), Newest: *r.NewestEvent, Views: r.Totals.Views,
			IsExpected: p.Running && r.Window.To == nil,
		}
	}
	if !isDescriptive(p) {
		r.Decision = r.makeDecision(p, a)
	}
}

// ListedStatus is the summary of the results of a campaign or an experiment in a list.
type ListedStatus struct {
	Decision    *Decision     `json:"decision"`
	VariationID *int64        `json:"variationId"`
	Lift        *stats.Effect `json:"lift"` // on the primary metric, at the last look
	Visitors    *int64        `json:"visitors"`
	Days        *int          `json:"days"`   // full days since the first visitor
	Health      []WarningCode `json:"health"` // codes of the warnings
	ComputedAt  *time.Time    `json:"computedAt"`
	Reason      stats.Reason  `json:"reason,omitempty"` // for a missing decision
}

// Status is a report's summary, from which a list has its status at any time.
type Status struct {
	ListedStatus // without silence

	Pulse *Pulse // of the events; nil: there are none
}

// NewListedStatus returns the status of a running or stopped subject. If s is nil, the status is not computed yet.
func NewListedStatus(s *Status, running bool) *ListedStatus {
	if s == nil {
		return &ListedStatus{Health: []WarningCode{}, Reason: reasonNotComputed}
	}
	shown := s.ListedStatus
	if running && s.Pulse.SilenceAt(time.Now()) > 0 {
		shown.Health = append(slices.Clip(s.Health), warningSilent)
	}
	return &shown
}

// NewStatus returns the status for a report with a scorecard; nil: nothing is compared.
func NewStatus(r *Report) *Status {
	s := &Status{ListedStatus: ListedStatus{
		Visitors: new(int64), Days: new(int), Health: []WarningCode{},
		ComputedAt: new(time.Now().UTC().Truncate(time.Millisecond)), Reason: reasonNothingToCompare,
	}}
	if r == nil {
		return s
	}
	*s.Visitors = r.Totals.Visitors
	if s.Decision = r.Decision; s.Decision != nil {
		s.Reason = ""
	}
	if r.Checks.FullWeeks != nil {
		*s.Days = r.Checks.FullWeeks.Days
	}
	for _, w := range r.Checks.Warnings {
		s.Health = append(s.Health, w.Code)
	}
	s.Pulse = r.Pulse

	// The variation of the decision leads, or else that with the smallest p-value at the last look.
	var leading *VariationResults
	least := math.Inf(1)
	for i := range r.Variations {
		v := &r.Variations[i]
		if v.Comparison == nil {
			continue
		}
		if r.Decision != nil && r.Decision.VariationID != nil && *r.Decision.VariationID == v.ID {
			leading = v
			break
		}
		p := 1.0
		if of := v.Comparison.Sequential; of != nil && of.PValue != nil {
			p = *of.PValue
		}
		if p < least {
			leading, least = v, p
		}
	}
	if v := leading; v != nil {
		s.VariationID, s.Lift = &v.ID, r.liftAtLook(v)
	}
	return s
}

// liftAtLook returns the lift of a variation at its last look, with the interval of that look. Before the first look,
// it is the lift so far, without an interval.
func (r *Report) liftAtLook(v *VariationResults) *stats.Effect {
	last := v.Comparison.Sequential
	if last != nil && last.Look != nil {
		for i := range r.Looks {
			if r.Looks[i].Number != *last.Look {
				continue
			}
			of := r.Looks[i].Variations
			if at := slices.IndexFunc(of, func(l LookVariation) bool { return l.ID == v.ID }); at >= 0 {
				return &of[at].Improvement
			}
		}
	}
	soFar := v.Comparison.Improvement
	lift := &stats.Effect{Value: soFar.Value, Observed: soFar.Observed, Reason: soFar.Reason}
	if last != nil {
		lift.Reason = last.ImprovementReason
	}
	return lift
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
