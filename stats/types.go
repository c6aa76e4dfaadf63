package stats

// Reason says why a number is missing, or why a verdict is not plainer.
type Reason string

// The reasons, in the spelling that results show.
const (
	ReasonNoVisitors                    Reason = "NO_VISITORS"
	ReasonTooFewVisitors                Reason = "TOO_FEW_VISITORS"
	ReasonTooFewConversions             Reason = "TOO_FEW_CONVERSIONS"
	ReasonTooFewNonzero                 Reason = "TOO_FEW_NONZERO"
	ReasonTooFewVariations              Reason = "TOO_FEW_VARIATIONS"
	ReasonZeroVariance                  Reason = "ZERO_VARIANCE"
	ReasonBaselineZero                  Reason = "BASELINE_ZERO"
	ReasonBaselineNotDistinguishable    Reason = "BASELINE_NOT_DISTINGUISHABLE_FROM_ZERO"
	ReasonLevel100                      Reason = "LEVEL_100"
	ReasonUnbalancedSkew                Reason = "UNBALANCED_SKEW"
	ReasonSharesChanged                 Reason = "SHARES_CHANGED"
	ReasonTooEarly                      Reason = "TOO_EARLY"
	ReasonLiftImpossible                Reason = "LIFT_IMPOSSIBLE"
	ReasonSampleRatioMismatch           Reason = "SAMPLE_RATIO_MISMATCH"
	ReasonNotSignificantAcrossBreakdown Reason = "NOT_SIGNIFICANT_ACROSS_BREAKDOWN"
	ReasonNoTraffic                     Reason = "NO_TRAFFIC"
	// ReasonInvalidData marks sums that contradict each other (more converted
	// than visitors, a negative variance), mixed kinds of sample, and numbers
	// beyond floating point.
	ReasonInvalidData Reason = "INVALID_DATA"
)

// Verdict is what a comparison says of a treatment.
type Verdict string

// The verdicts. The zero value is none of them.
const (
	VerdictBetter           Verdict = "better"
	VerdictWorse            Verdict = "worse"
	VerdictInconclusive     Verdict = "inconclusive"
	VerdictInsufficientData Verdict = "insufficientData"
)

// Methodology is the school a comparison is judged by.
type Methodology string

// The methodologies. Options read any other value as frequentist.
const (
	MethodologyFrequentist Methodology = "frequentist"
	MethodologyBayesian    Methodology = "bayesian"
)

// Test names the frequentist test of a comparison.
type Test string

// The tests: Miettinen and Nurminen's score test of two rates, and Welch's t
// of two means.
const (
	TestScore Test = "scoreMN"
	TestWelch Test = "welch"
)

// Correction names what the p-values of a family were adjusted by.
type Correction string

// The corrections: none with a single p-value, else Dunnett's.
const (
	CorrectionNone    Correction = "none"
	CorrectionDunnett Correction = "dunnett"
)

// DefaultPlannedVisitors is the sample size at which the confidence sequence is
// tightest where a campaign names none (N* in the documentation of Sequential).
const DefaultPlannedVisitors = 5000

// Options are the decisions of a campaign that a comparison depends on.
type Options struct {
	// SignificanceLevel in percent; alpha = 1 - level/100. At 100, and at any
	// value outside 1..99, nothing is significant and intervals are nil.
	SignificanceLevel int
	Methodology       Methodology
	// NonNegative says that a visitor's value is never below zero, so that a
	// lift from a baseline near zero keeps its lower end.
	NonNegative bool
	// PlannedVisitors is N* of the confidence sequence, over the pair; 0 or
	// less reads as DefaultPlannedVisitors. It must never derive from results.
	PlannedVisitors int64
	// SharesChanged says that the traffic shares changed within the window; every
	// comparison then carries ReasonSharesChanged.
	SharesChanged bool
}

// Alpha returns the accepted error, 1 - level/100, in [0, 0.99]; 0 means that
// nothing is ever significant.
func (o Options) Alpha() float64 {
	if o.SignificanceLevel < 1 || o.SignificanceLevel > 99 {
		return 0
	}
	return float64(100-o.SignificanceLevel) / 100
}

func (o Options) plannedVisitors() float64 {
	if o.PlannedVisitors <= 0 {
		return DefaultPlannedVisitors
	}
	return float64(o.PlannedVisitors)
}

// Interval is a confidence or credible interval. A nil end is unbounded; an
// interval that cannot be had is a nil *Interval beside a Reason.
type Interval struct {
	Lower, Upper *float64
}

// Excludes reports whether x lies outside the interval.
func (i *Interval) Excludes(x float64) bool {
	if i == nil {
		return false
	}
	return (i.Lower != nil && x < *i.Lower) || (i.Upper != nil && x > *i.Upper)
}

// Effect is a treatment's distance from control: a difference in the metric's
// unit, or a lift as a fraction of the control's size. Value is what was
// observed. Reason is set whenever Value, Interval or one of its ends is nil.
type Effect struct {
	Value    *float64
	Interval *Interval
	Reason   Reason
}

// Comparison is what one treatment's data say against control.
type Comparison struct {
	Difference Effect
	Lift       Effect
	// Frequentist and Sequential are nil under the Bayesian methodology,
	// Bayesian under the frequentist one.
	Frequentist *Frequentist
	Sequential  *Sequential
	Bayesian    *Bayesian
	Significant bool
	Verdict     Verdict
	Reasons     []Reason
}

// Frequentist is the fixed-horizon test: right when it is read once, at the
// planned end. Statistic is z for TestScore and t for TestWelch, positive where
// the treatment is above control; DegreesOfFreedom is nil for TestScore.
// AdjustedPValue is the p-value within the family of all treatments.
type Frequentist struct {
	Test             Test
	Statistic        *float64
	DegreesOfFreedom *float64
	PValue           *float64
	AdjustedPValue   *float64
	Correction       Correction
	Reason           Reason
}

// Sequential is the always-valid answer: right however often it is read.
// Reason is set where PValue or Difference is nil, LiftReason where Lift or one
// of its ends is.
type Sequential struct {
	PValue      *float64
	Difference  *Interval
	Lift        *Interval
	Significant bool
	Reason      Reason
	LiftReason  Reason
}

// Bayesian is the posterior's answer. Chances are in [0, 1]; the expected losses
// are in the metric's unit: ExpectedLoss of shipping the treatment,
// ExpectedLossControl of keeping control. ChanceToBeBest is over control and all
// treatments together; ControlChanceToBeBest is control's own.
type Bayesian struct {
	ChanceToBeatControl   *float64
	ChanceToBeBest        *float64
	ControlChanceToBeBest *float64
	ExpectedLoss          *float64
	ExpectedLossControl   *float64
	Reason                Reason
}
