package stats

import (
	"math"
	"slices"
)

// Reason is a code that explains why a number is missing or why a verdict is weak.
type Reason string

// The reasons, in the spelling that results show.
const (
	ReasonNoVisitors                 Reason = "NO_VISITORS"
	ReasonTooFewVisitors             Reason = "TOO_FEW_VISITORS"
	ReasonMeanNotPositive            Reason = "MEAN_NOT_POSITIVE"  // of both variations
	ReasonMeanUncertain              Reason = "MEAN_TOO_UNCERTAIN" // of both variations, to divide by it
	ReasonTooFewConversions          Reason = "TOO_FEW_CONVERSIONS"
	ReasonTooFewNonzero              Reason = "TOO_FEW_NONZERO"
	ReasonTooFewVariations           Reason = "TOO_FEW_VARIATIONS"
	ReasonZeroVariance               Reason = "ZERO_VARIANCE"
	ReasonBaselineZero               Reason = "BASELINE_ZERO"
	ReasonBaselineNotDistinguishable Reason = "BASELINE_NOT_DISTINGUISHABLE_FROM_ZERO"
	ReasonLevel100                   Reason = "LEVEL_100"
	ReasonTooEarly                   Reason = "TOO_EARLY"
	ReasonNotDeclared                Reason = "NOT_DECLARED"
	ReasonPlanChanged                Reason = "PLAN_CHANGED"
	ReasonLiftImpossible             Reason = "LIFT_IMPOSSIBLE"
	ReasonSampleRatioMismatch        Reason = "SAMPLE_RATIO_MISMATCH"
	ReasonTooFewSegments             Reason = "TOO_FEW_SEGMENTS"
	ReasonNoTraffic                  Reason = "NO_TRAFFIC"
	// A look has no result if it has less than .1 % more information than the last computed one, or spends below 1e-13.
	ReasonNoNewVisitors Reason = "NO_NEW_VISITORS"
	ReasonNoAlphaSpent  Reason = "NO_ALPHA_SPENT"
	// ReasonRateUnknown means that a value is in a currency without a rate, so that the mean is not known.
	ReasonRateUnknown Reason = "RATE_UNKNOWN"
	// ReasonInvalidData marks sums that contradict each other (more converted than visitors, a negative variance),
	// samples of different kinds, and numbers beyond floating point.
	ReasonInvalidData Reason = "INVALID_DATA"
)

// Verdict is the outcome of a comparison for a treatment.
type Verdict string

// The verdicts. The zero value is none of them.
const (
	VerdictBetter           Verdict = "better"
	VerdictWorse            Verdict = "worse"
	VerdictInconclusive     Verdict = "inconclusive"
	VerdictInsufficientData Verdict = "insufficientData"
)

// Methodology is the statistical methodology of a comparison.
type Methodology string

// The methodologies. Options read any other value as frequentist.
const (
	MethodologyFrequentist Methodology = "frequentist"
	MethodologyBayesian    Methodology = "bayesian"
)

// Test names the frequentist test of a comparison.
type Test string

// The tests: Miettinen and Nurminen's score test of two rates, and Welch's t-test of two means. For means with an
// uneven split, the larger p-value of Welch's and the pooled t-test counts.
const (
	TestScore       Test = "scoreMN"
	TestWelch       Test = "welch"
	TestWelchPooled Test = "welchPooled"
)

// Correction names the adjustment of the p-values of a family.
type Correction string

// The corrections: none for a single p-value, and Dunnett's otherwise.
const (
	CorrectionNone    Correction = "none"
	CorrectionDunnett Correction = "dunnett"
)

// Options are the settings of a campaign that affect a comparison.
type Options struct {
	// SignificanceLevel is in percent; alpha = 1 - level/100. At 100, and at any value outside 1..99, nothing is
	// significant and intervals are nil.
	SignificanceLevel int
	Methodology       Methodology
	// NonNegative reports whether the values of visitors are never below zero. If so, the lift from a baseline near
	// zero keeps its lower end.
	NonNegative bool
	// Shares are the expected shares of the visitors, control first, in any unit. They decide whether a pair of means
	// is uneven. Without them, or where a share is 0, the observed shares decide.
	Shares []float64
	// Prior is the prior of the lift. The Bayesian methodology needs one.
	Prior *Prior
	// Critical replaces the critical value of the level if it is larger, also for significance, see
	// SimultaneousCritical. 0: it does not. Intervals are those of the same method at a stricter level, so they contain
	// those of the level. Credible intervals have the level 1 - 2 P(Z > Critical) of a standard normal Z.
	Critical float64
}

// pointAlpha returns the accepted error rate of a comparison: that of the critical value if it is stricter, or else of
// the level.
func (o Options) pointAlpha() float64 {
	if o.Critical > 0 {
		return math.Min(o.Alpha(), 2*normalSurvival(o.Critical))
	}
	return o.Alpha()
}

// Alpha returns the accepted error rate, 1 - level/100, in [0, 0.99]. At 0 nothing is significant.
func (o Options) Alpha() float64 {
	if o.SignificanceLevel < 1 || o.SignificanceLevel > 99 {
		return 0
	}
	return float64(100-o.SignificanceLevel) / 100
}

// SmallerShare returns the share of the smaller variation in the pair of control and a treatment, for shares in any
// unit, control first. It is 0 if a share is unknown or 0.
func SmallerShare(shares []float64, treatment int) float64 {
	if treatment+1 >= len(shares) || !(shares[0] > 0 && shares[treatment+1] > 0) {
		return 0
	}
	return math.Min(shares[0], shares[treatment+1]) / (shares[0] + shares[treatment+1])
}

// Interval is a confidence or credible interval, [lower, upper]. A nil end is unbounded. An interval that cannot be
// computed is a nil *Interval, and its Reason is set.
type Interval [2]*float64

// Excludes reports whether x lies outside the interval. A nil interval excludes nothing.
func (i *Interval) Excludes(x float64) bool {
	if i == nil {
		return false
	}
	isBelow := i[0] != nil && x < *i[0]
	isAbove := i[1] != nil && x > *i[1]
	return isBelow || isAbove
}

// Effect is the effect of a treatment relative to control: a difference in the metric's unit, or a lift as a fraction
// of the control's absolute value. Value is the observed effect. Under a prior of the lift, Value is the posterior
// mean, and Observed is the observed effect. Reason is set if Value, Interval or an end of Interval is nil.
type Effect struct {
	Value    *float64  `json:"value"`
	Observed *float64  `json:"observed,omitempty"`
	Interval *Interval `json:"interval"`
	Reason   Reason    `json:"reason,omitempty"`
}

// Comparison is the result of comparing one treatment with control at a fixed horizon: its error rate is alpha if it is
// read once. It describes the data and concludes nothing. For conclusions, see LookSequence.
type Comparison struct {
	Difference Effect
	Lift       Effect
	// Frequentist is nil under the Bayesian methodology. Bayesian is nil under the frequentist methodology.
	Frequentist *Frequentist
	Bayesian    *Bayesian
	Significant bool
	Verdict     Verdict
	Reasons     []Reason
}

// Frequentist is the result of the fixed-horizon test. Statistic is z for TestScore and t for TestWelch, and is
// positive if the treatment is above control. DegreesOfFreedom is nil for TestScore. AdjustedPValue is the p-value
// within the family of all treatments.
type Frequentist struct {
	Test             Test       `json:"test"`
	Statistic        *float64   `json:"statistic"`
	DegreesOfFreedom *float64   `json:"degreesOfFreedom,omitempty"`
	PValue           *float64   `json:"pValue"`
	AdjustedPValue   *float64   `json:"adjustedPValue"`
	Correction       Correction `json:"correction"`
	Reason           Reason     `json:"reason,omitempty"`
}

// Bayesian is the result of the Bayesian methodology. Chances are in [0, 1]. Expected losses are in the metric's unit:
// ExpectedLoss is the loss from shipping the treatment, ExpectedLossControl the loss from keeping control.
// ChanceToBeBest is the treatment's chance to be best among control and all treatments. ControlChanceToBeBest is the
// chance of control to be best. Reason is set if a chance or a loss is nil.
type Bayesian struct {
	ChanceToBeatControl   *float64 `json:"chanceToBeatControl"`
	ChanceToBeBest        *float64 `json:"chanceToBeBest"`
	ControlChanceToBeBest *float64 `json:"-"`
	ExpectedLoss          *float64 `json:"expectedLoss"`
	ExpectedLossControl   *float64 `json:"expectedLossControl"`
	Prior                 *Prior   `json:"prior,omitempty"` // of the lift; nil: no test
	Reason                Reason   `json:"reason,omitempty"`
}

// MinimumVisitors is the minimum number of visitors of each variation for a verdict. Below this or another minimum
// count, the normal approximation is unreliable.
const MinimumVisitors = 100

// setVerdict sets the verdict of a comparison after its numbers are set, and the reasons why it is weak and why numbers
// are missing, each reason once.
func (c pair) setVerdict(out *Comparison, o Options) {
	const (
		minimumConversions = 5  // converted, and unconverted, in both variations together
		minimumNonzero     = 20 // visitors with a value, in each variation
	)
	out.Reasons = AppendReasons([]Reason{}, c.reason)
	isSufficient := c.contrast != nil
	if c.isComparable() {
		few := func(is bool, reason Reason) {
			if is {
				isSufficient = false
				out.Reasons = AppendReasons(out.Reasons, reason)
			}
		}
		few(min(c.control.visitorCount(), c.treatment.visitorCount()) < MinimumVisitors, ReasonTooFewVisitors)
		switch control := c.control.(type) {
		case Rate:
			treatment, _ := c.treatment.(Rate)
			converted := float64(control.Converted) + float64(treatment.Converted)
			rest := float64(control.Visitors-control.Converted) + float64(treatment.Visitors-treatment.Converted)
			few(math.Min(converted, rest) < minimumConversions, ReasonTooFewConversions)
		case Mean:
			treatment, _ := c.treatment.(Mean)
			for _, n := range []int64{control.Nonzero, treatment.Nonzero} {
				few(n >= 0 && n < minimumNonzero, ReasonTooFewNonzero)
			}
		}
	}
	out.Reasons = AppendReasons(out.Reasons, out.Difference.Reason, out.Lift.Reason)
	if o.Alpha() == 0 {
		out.Reasons = AppendReasons(out.Reasons, ReasonLevel100)
	}
	switch {
	case !isSufficient:
		out.Verdict = VerdictInsufficientData
	case !out.Significant:
		out.Verdict = VerdictInconclusive
	case c.statistic > 0:
		out.Verdict = VerdictBetter
	default:
		out.Verdict = VerdictWorse
	}
}

// AppendReasons appends the reasons that are neither empty nor in the list.
func AppendReasons(reasons []Reason, more ...Reason) []Reason {
	for _, reason := range more {
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
