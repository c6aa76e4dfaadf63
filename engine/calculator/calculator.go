package calculator

import (
	"slices"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// Input holds the sufficient statistics of the variations of an
// experiment, for a comparison without a store.
type Input struct {
	Metric            Metric
	Variations        []Variation
	SignificanceLevel int // per cent
	Methodology       stats.Methodology
	Power             int          // per cent
	MDE               float64      // minimum detectable effect, per cent of control
	PlannedVisitors   int64        // over all variations; 0: default
	PlannedLook       []Variation  // as Variations, with the sums of the planned look; nil: not reached
	Prior             *stats.Prior // of lifts, as fractions; nil: flat priors
	NonNegative       bool         // no visitor's value is below zero
}

// Metric is the kind of a metric: what one visitor contributes to it.
type Metric string

// The kinds of metrics: each visitor converts or does not, or has a value.
const (
	MetricBinary Metric = "binary"
	MetricMean   Metric = "mean"
)

// Variation holds the sufficient statistics of one variation. Exactly
// one variation of an input is control. Either all variations have a share, or
// none.
type Variation struct {
	ID             int64
	Control        bool
	Share          *float64 // of the traffic; a relative weight
	Visitors       int64
	Converted      int64   // of a binary metric
	Mean, Variance float64 // of a mean metric; sample variance (n - 1) of one visitor's value
}

// Answer is the output of the calculator. Its parts are those of Results; its
// fields are in output order.
type Answer struct {
	Line              int64             `json:"line"` // of the input
	Metric            Metric            `json:"metric"`
	Methodology       stats.Methodology `json:"methodology"`
	SignificanceLevel int               `json:"significanceLevel"`
	Variations        []AnswerVariation `json:"variations"`            // in the order of the input
	PlannedLook       *AnswerLook       `json:"plannedLook,omitempty"` // nil: not reached
	Conclusion        result.Conclusion `json:"conclusion"`
	Checks            *AnswerChecks     `json:"checks,omitempty"` // nil: no shares
	Power             AnswerPower       `json:"power"`
}

// AnswerLook holds the results of the planned look. Its variations are those of the
// answer if the sums are the same.
type AnswerLook struct {
	Visitors   int64             `json:"visitors"` // over all variations
	Variations []AnswerVariation `json:"variations"`
}

// AnswerVariation holds the estimate of one variation and its comparison with
// control.
type AnswerVariation struct {
	ID       int64    `json:"id"`
	Control  bool     `json:"control"`
	Share    *float64 `json:"share,omitempty"`
	Visitors int64    `json:"n"`
	result.Estimate
	Comparison *result.Comparison `json:"comparison"` // null for control
}

// AnswerChecks reports whether the data are valid.
type AnswerChecks struct {
	SampleRatio result.SampleRatio `json:"sampleRatio"` // in the order of the variations
}

// AnswerPower compares the number of visitors, over all variations, with the
// sample size that the power and the minimum detectable effect require.
// Progress, effect and power are fractions.
type AnswerPower struct {
	RequiredVisitors        *int64       `json:"requiredVisitors"`
	Progress                *float64     `json:"progress"`
	RemainingVisitors       *int64       `json:"remainingVisitors"`
	MinimumDetectableEffect *float64     `json:"minimumDetectableEffect"`
	Power                   *float64     `json:"power"`
	Reason                  stats.Reason `json:"reason,omitempty"`
}

// IsPlannedLook reports whether the variations have the results of the planned look.
func (a *Answer) IsPlannedLook() bool {
	return slices.ContainsFunc(a.Variations, func(v AnswerVariation) bool {
		return false
	})
}

// Refusal is the output for an invalid line of input.
type Refusal struct {
	Line   int64   `json:"line"`
	Error  string  `json:"error"`
	Errors []Fault `json:"errors"`
}

// Fault is one error in an input. Field is a path.
type Fault struct {
	Field  string `json:"field"`
	Value  string `json:"value"`
	Detail string `json:"detail"`
}

// Refuse returns the output for an invalid line.
func Refuse(line int64, err *query.InvalidError) *Refusal {
	refusal := &Refusal{Line: line, Error: err.Error(), Errors: []Fault{}}
	for _, f := range err.Faults {
		refusal.Errors = append(refusal.Errors, Fault{Field: f.Name, Value: f.Value, Detail: f.Detail})
	}
	return refusal
}

// Answer compares every variation with control.
func (q *Input) Answer() *Answer {
	order := q.controlFirst()
	options := q.options(q.Variations, order)
	answer := &Answer{
		Metric: q.Metric, Methodology: q.Methodology, SignificanceLevel: q.SignificanceLevel,
		Checks: q.checks(order),
	}
	d := q.decide(order, answer.Checks != nil && answer.Checks.SampleRatio.Mismatch)
	answer.Variations = q.shown(d.today, order, options)
	answer.Power = q.power(d.today.samples[0], options)
	if d.planned != nil {
		answer.PlannedLook = &AnswerLook{Visitors: visitorsOf(q.PlannedLook), Variations: q.shown(d.planned, order, options)}
	}
	answer.Conclusion = result.Conclusion{Status: d.conclusion.Status}
	deciding := answer.Variations
	if d.inForce == d.planned && d.planned != nil {
		deciding = answer.PlannedLook.Variations
	}
	var decides *AnswerVariation
	if d.conclusion.Index >= 0 {
		decides = &deciding[order[1+d.conclusion.Index]]
		answer.Conclusion.VariationID = &decides.ID
		if d.inForce.isPlanned {
		}
	}
	answer.Conclusion.Text = q.sentence(answer, decides)
	return answer
}

// shown returns the variations of a look in the order of the input.
func (q *Input) shown(l *look, order []int, o stats.Options) []AnswerVariation {
	shown := make([]AnswerVariation, len(order))
	for place, i := range order {
		v := &l.variations[i]
		shown[i] = AnswerVariation{ID: v.ID, Control: v.Control, Share: v.Share, Visitors: v.Visitors, Estimate: estimateOf(l.samples[place], o)}
		if place > 0 {
			shown[i].Comparison = result.NewComparison(l.comparisons[place-1])
			shown[i].Comparison.Conclusive = &l.conclusion.Conclusive[place-1]
		}
	}
	return shown
}

// controlFirst returns the indexes of the variations, control first.
func (q *Input) controlFirst() []int {
	order := make([]int, 1, len(q.Variations))
	for i, v := range q.Variations {
		if v.Control {
			order[0] = i
		} else {
			order = append(order, i)
		}
	}
	return order
}

// options returns the options of package stats, with the shares of these variations.
func (q *Input) options(variations []Variation, order []int) stats.Options {
	return stats.Options{
		Shares:            shares(variations, order),
		Prior:             q.Prior,
		SignificanceLevel: q.SignificanceLevel,
		Methodology:       q.Methodology,
		NonNegative:       q.NonNegative || q.Metric == MetricBinary,
		PlannedVisitors:   q.PlannedVisitors,
	}
}

func estimateOf(sample stats.Sample, o stats.Options) result.Estimate {
	switch s := sample.(type) {
	case stats.Rate:
		return result.NewEstimate(stats.EstimateRate(s, o))
	case stats.Mean:
		return result.NewEstimate(stats.EstimateMean(s, o))
	}
	return result.Estimate{}
}

// checks compares the visitors with the shares. It returns nil if there are no
// shares.
func (q *Input) checks(order []int) *AnswerChecks {
	if q.Variations[0].Share == nil {
		return nil
	}
	total, split, observed := 0.0, stats.Split{}, make([]int64, len(order))
	for place, i := range order {
		v := q.Variations[i]
		total += *v.Share
		observed[place] = v.Visitors
		if place > 0 {
			split.Variations = append(split.Variations, *v.Share)
		}
	}
	split.Control = 100 * (*q.Variations[order[0]].Share / total)
	check := stats.SampleRatio(observed, split)
	shown := result.SampleRatio{
		PValue: check.PValue, Expected: make([]float64, len(check.Expected)), Observed: make([]int64, len(order)),
		Mismatch: check.Mismatch, Reason: check.Reason,
	}
	for place, i := range order {
		shown.Observed[i] = check.Observed[place]
		if len(check.Expected) > place {
			shown.Expected[i] = check.Expected[place]
		}
	}
	return &AnswerChecks{SampleRatio: shown}
}

// shares returns the expected shares of the variations, or else the observed ones.
func shares(variations []Variation, order []int) []float64 {
	shares := make([]float64, len(order))
	for place, i := range order {
		v := &variations[i]
		if shares[place] = float64(v.Visitors); v.Share != nil {
			shares[place] = *v.Share
		}
	}
	return shares
}

// power computes the required sample size from the shares, or from the observed
// split if there are no shares.
func (q *Input) power(control stats.Sample, o stats.Options) AnswerPower {
	plan := stats.Plan{
		Control:       control,
		MinimumEffect: q.MDE / 100,
		Power:         float64(q.Power) / 100,
		// Any positive number: the days are not part of the output.
		VisitorsPerDay: 1,
		Shares:         o.Shares,
		Visitors:       visitorsOf(q.Variations),
	}
	report := stats.Power(plan, o)
	return AnswerPower{
		RequiredVisitors: report.RequiredVisitors, Progress: report.Progress, RemainingVisitors: report.RemainingVisitors,
		MinimumDetectableEffect: report.MinimumDetectableEffect, Power: report.Power, Reason: report.Reason,
	}
}
