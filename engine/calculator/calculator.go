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

