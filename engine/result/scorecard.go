package result

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// ScorecardRow compares the variations on one metric of one goal, or on a declared metric.
type ScorecardRow struct {
	Goal             *GoalName            `json:"goal"` // null: all goals count, or the metric names several
	Metric           query.Metric         `json:"metric"`
	Name             string               `json:"name,omitempty"`             // of a declared metric
	Unit             metric.Unit          `json:"unit,omitempty"`             // of a declared metric: share, money or number
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

	lookLift *float64 // at the last look
}

// MeasureRows are the rows of a report about one goal.
type MeasureRows struct {
	Plan *plan.Plan // see plan.Plan.AboutMeasure
	Rows *moments.Rows
}

// roleOf is a metric with a role in the declaration.
type roleOf struct {
	plan.Measure
	metric               query.Metric
	role                 Role
	down                 bool // less is better
	guardrail, secondary int  // index in the declared ones; -1: it is none
}

// declaredRoles returns the metrics with a role: the primary metric, the guardrails and the secondary metrics.
func declaredRoles(p *plan.Plan) []roleOf {
	d := &p.Declared
	all := []roleOf{{d.PrimaryMeasure(), d.Metric, RolePrimary, false, -1, -1}}
	for i, g := range d.Guardrails {
		all = append(all, roleOf{g.Measure, g.Metric, RoleGuardrail, g.Down, i, -1})
	}
	for i, g := range d.Secondary {
		all = append(all, roleOf{g.Measure, g.Metric, RoleSecondary, g.Down, -1, i})
	}
	return all
}

// metricsOf returns the metrics of a goal that have a row: all, unless its window is that of a guardrail or a secondary
// metric only; the metrics with a role; and that of the report.
func metricsOf(p *plan.Plan, goal *plan.Plan, declared []roleOf) []query.Metric {
	metrics := slices.Clone(query.GoalMetrics)
	if goal.Expression != nil || goal.ConversionWindow != p.WindowOf(goal.GoalID) {
		metrics = nil
	}
	for _, d := range append([]roleOf{{Measure: p.Measure(), metric: p.Metric}}, declared...) {
		if goal.Measure() == d.Measure && !slices.Contains(metrics, d.metric) {
			metrics = append(metrics, d.metric)
		}
	}
	return metrics
}

// newScorecardRow returns the row of a metric of a goal, without its variations. The last role of the metric counts,
// but the row is also that of its guardrail and of its secondary metric.
func newScorecardRow(goal *plan.Plan, of query.Metric, declared []roleOf) *ScorecardRow {
	r := &ScorecardRow{
		Metric: of, Role: RoleOther, Direction: catalogue.Up,
		plan: goal.WithMetric(of), guardrail: -1, secondary: -1,
	}
	for _, d := range declared {
		if d.Measure != goal.Measure() || d.metric != of {
			continue
		}
		r.Role, r.Direction = d.role, catalogue.Up
		if d.down {
			r.Direction = catalogue.Down
		}
		r.guardrail, r.secondary = max(r.guardrail, d.guardrail), max(r.secondary, d.secondary)
	}
	r.ConversionWindow = newAgeRange(r.plan)
	if r.plan.Expression != nil {
		r.Name = nameOfExpression(r.plan)
		r.Unit = r.plan.Expression.Unit()
	}
	if r.plan.GoalID != 0 {
		r.Goal = &GoalName{r.plan.GoalID, r.plan.GoalName}
	}
	return r
}

// newScorecard returns a row for each metric of a goal that has events or is the goal of the report, and for each
// metric with a role, in the order of the roles and of the goals.
func newScorecard(p *plan.Plan, goals []MeasureRows) (rows []*ScorecardRow) {
	declared := declaredRoles(p)
	for _, g := range goals {
		sums := sumRows(g.Rows.Whole, g.Plan)
		isShown := g.Plan.Measure() == p.Measure()
		for _, m := range sums.counted {
			isShown = isShown || m.GoalsReached() > 0
		}
		for _, metric := range metricsOf(p, g.Plan, declared) {
			r := newScorecardRow(g.Plan, metric, declared)
			r.sums = &sums
			r.through = g.Rows.Through
			if isShown || r.Role != RoleOther {
				rows = append(rows, r)
			}
		}
	}
	onAllCores(len(rows), func(i int) { rows[i].compareVariations() })
	slices.SortStableFunc(rows, func(a, b *ScorecardRow) int {
		return cmp.Or(cmp.Compare(slices.Index(roles, a.Role), slices.Index(roles, b.Role)),
			cmp.Compare(a.plan.GoalID, b.plan.GoalID))
	})
	return rows
}

// compareVariations sets the results of the variations.
func (r *ScorecardRow) compareVariations() {
	r.result = r.sums.compareVariations(r.plan)
	for i := range r.result.Variations {
		v := &r.result.Variations[i]
		if v.Comparison != nil {
			v.Comparison.Sequential = NewSequential(nil, stats.ReasonNotDeclared)
		}
		r.Variations = append(r.Variations, ScorecardVariation{
			ID: v.ID, Name: v.Name, Control: v.Control,
			Estimate: v.estimateOf(r.Metric), Comparison: v.Comparison,
		})
	}
}

// MetricInWords returns the names of the row's metric and goal, or of a declared metric.
func (r *ScorecardRow) MetricInWords() string {
	if r.Name != "" {
		return r.Name
	}
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

// AddScorecard adds the scorecard to a report, and what only a report with a scorecard has. a has the results of the
// looks; nil: there are none.
func (r *Report) AddScorecard(p *plan.Plan, goals []MeasureRows, a *looks.Analysis) {
	r.Scorecard = newScorecard(p, goals)
	r.WorthReason = whyNoWorth(p, a)
	for _, row := range r.Scorecard {
		if row.guardrail >= 0 {
			row.addGuardrail(p, a)
		}
	}
	if a == nil {
		return
	}
	for _, of := range a.ComputedRecords() {
		r.computedLooks = append(r.computedLooks, NewLookFigures(of))
	}
	addDiscoveries(r.Scorecard, a.SecondaryP, statsOptions(p).Alpha())
	if p.OfAllVisitors() {
		for _, row := range r.Scorecard {
			row.addLastLook(a)
		}
	}
	r.Checks.FullWeeks = newFullWeeks(a.FullDays())
	if r.NewestEvent != nil {
		r.Pulse = &Pulse{
			First: a.FirstView.Start(), Newest: *r.NewestEvent, Views: r.Totals.Views,
			IsExpected: p.Running && r.Window.To == nil,
		}
	}
}

// addDiscoveries adds the q-values of each variation to the secondary rows. pValues are those of the last look, by
// declared secondary metric and treatment.
func addDiscoveries(rows []*ScorecardRow, pValues [][]float64, alpha float64) {
	if len(pValues) == 0 {
		return
	}
	for treatment := range pValues[0] {
		ofTreatment := make([]float64, len(pValues))
		for i := range ofTreatment {
			ofTreatment[i] = pValues[i][treatment]
		}
		q := stats.FalseDiscovery(ofTreatment)
		for _, row := range rows {
			if row.secondary < 0 || math.IsNaN(q[row.secondary]) {
				continue
			}
			v := &row.Variations[treatment+1]
			v.QValue = &q[row.secondary]
			v.Discovered = new(q[row.secondary] < alpha)
		}
	}
}

// addGuardrail adds the status of the row's guardrail to each treatment.
func (r *ScorecardRow) addGuardrail(p *plan.Plan, a *looks.Analysis) {
	declared := &p.Declared.Guardrails[r.guardrail]
	// The visitors at which a variation without an effect is shown to be safe, with the planned power: not if the
	// report and the looks have different visitors.
	var required *int64
	if a != nil && !isDescriptive(p) {
		daily := perDay(&r.result.total, a.FirstView.Start(), r.through)
		if size, reason := r.result.sampleSize(r.plan, daily); reason == "" {
			required, _ = size.RequiredForMargin(declared.Margin)
		}
	}
	for i := range r.Variations {
		if v := &r.Variations[i]; !v.Control {
			v.Guardrail = newGuardrail(declared, a, r.guardrail, i-1)
			v.Guardrail.RequiredVisitors = required
		}
	}
}

// addLastLook adds the result of the last look to each treatment of the primary row and of the guardrails.
func (r *ScorecardRow) addLastLook(a *looks.Analysis) {
	missing := missingLook(a.Plan, false)
	for i := range r.Variations {
		v := &r.Variations[i]
		if v.Control {
			continue
		}
		if r.Role == RolePrimary {
			supports := a.Primary.SupportsVerdict(i-1, v.Comparison.Verdict, statsOptions(a.Plan).Alpha())
			v.Comparison.Conclusive = &supports
			v.addLook(a.Primary.LastLook(i-1), missing)
		}
		if r.guardrail >= 0 {
			v.addLook(a.Guardrails[r.guardrail].LastLook(i-1), missing)
		}
	}
}

// addLook adds the result of a look; nil: there is none, for a reason.
func (v *ScorecardVariation) addLook(last *looks.LookRow, missing stats.Reason) {
	v.Comparison.Sequential = NewSequential(last, missing)
	if last != nil {
		v.lookLift = last.Lift.Value
	}
}

// Guardrail is the status of a guardrail for a variation. Lower and Upper bound the effect in the good direction. The
// effect is a lift (a fraction) for a relative margin, and a difference for an absolute margin.
type Guardrail struct {
	Status           string       `json:"status"`
	Margin           *float64     `json:"margin,omitempty"`         // the largest acceptable loss, as a fraction
	AbsoluteMargin   *float64     `json:"absoluteMargin,omitempty"` // the same in the unit of the metric
	Lower            *float64     `json:"lower"`                    // of the last look; safe above the negative margin
	Upper            *float64     `json:"upper"`                    // always valid; harmed below the negative margin
	RequiredVisitors *int64       `json:"requiredVisitors"`         // in all, to show safety with the planned power
	DecidedAt        *time.Time   `json:"decidedAt,omitempty"`      // end of the look or day that decided
	Reason           stats.Reason `json:"reason,omitempty"`
}

func newGuardrail(g *plan.Guardrail, a *looks.Analysis, guardrail, treatment int) *Guardrail {
	shown := &Guardrail{Status: looks.NotYetKnown, Reason: stats.ReasonTooEarly}
	if g.Relative > 0 {
		shown.Margin = &g.Relative
	} else {
		shown.AbsoluteMargin = &g.Absolute
	}
	if a == nil || guardrail >= len(a.Guardrails) {
		return shown
	}
	found := &a.Guardrails[guardrail]
	status := &found.Status[treatment]
	shown.Status, shown.Upper, shown.Reason = status.Status, status.Upper, status.Reason
	shown.DecidedAt = optionalTime(status.DecidedAt)
	if last := found.LastLook(treatment); last != nil {
		in := last.Difference.Interval
		if g.Relative > 0 {
			in = last.Lift.Interval
		}
		switch {
		case in == nil:
			shown.Reason = cmp.Or(shown.Reason, last.Reason, last.Lift.Reason, last.Difference.Reason)
		case !g.Down:
			shown.Lower = in[0]
		case in[1] != nil:
			shown.Lower = new(-*in[1])
		}
	}
	return shown
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

// NeedsAttention reports whether a check has failed that makes the numbers wrong. Missing events and late declarations
// do not.
func (s *ListedStatus) NeedsAttention() bool {
	if s.Decision != nil && s.Decision.Status == DecisionInvalid {
		return true
	}
	harmless := []WarningCode{warningSilent, WarningDeclaredLate, warningNoEvents}
	return slices.ContainsFunc(s.Health, func(code WarningCode) bool { return !slices.Contains(harmless, code) })
}

// Status is a report's summary, from which a list has its status at any time.
type Status struct {
	ListedStatus // without silence

	Pulse    *Pulse    // of the events; nil: there are none
	NextLook *NextLook // nil: none follows
}

// NewListedStatus returns the status of a running or stopped subject. If s is nil, the status is not computed yet.
func NewListedStatus(s *Status, running bool) *ListedStatus {
	if s == nil {
		return &ListedStatus{Health: []WarningCode{}, Reason: ReasonNotComputed}
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
	s.Decision = r.Decision
	if s.Decision != nil {
		s.Reason = ""
	}
	if r.Checks.FullWeeks != nil {
		*s.Days = r.Checks.FullWeeks.Days
	}
	for _, w := range r.Checks.Warnings {
		s.Health = append(s.Health, w.Code)
	}
	s.Pulse = r.Pulse
	s.NextLook = r.NextLook

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
		s.VariationID = &v.ID
		s.Lift = r.liftAtLook(v)
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
