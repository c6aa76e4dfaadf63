package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lifthouse/stats"
)

// sentence says in plain words what the answer concludes.
func (q *CalculatorInput) sentence(a *Answer) string {
	s := &statement{
		conclusion: &a.Conclusion, control: "control", rate: q.Metric == MetricBinary, level: a.SignificanceLevel, mde: q.MDE,
		required: a.Power.RequiredVisitors, remaining: a.Power.RemainingVisitors,
	}
	if a.Checks != nil {
		s.sampleRatio = &a.Checks.SampleRatio
	}
	for _, v := range a.Variations {
		if id := a.Conclusion.VariationID; id != nil && v.ID == *id {
			s.decides, s.comparison = fmt.Sprintf("Variation %d", v.ID), v.Comparison
		}
	}
	return s.sentence()
}

// Explain says in words why a number is missing, or why a verdict is not
// plainer.
func Explain(r stats.Reason) string {
	if text, known := explanations[r]; known {
		return text
	}
	return string(r)
}

var explanations = map[stats.Reason]string{
	stats.ReasonNoVisitors:                    "there are no visitors",
	stats.ReasonTooFewVisitors:                "there are too few visitors (a verdict needs 100 in each variation)",
	stats.ReasonTooFewConversions:             "too few visitors converted, or too few did not",
	stats.ReasonTooFewNonzero:                 "too few visitors have a value other than 0 (a verdict needs 20 in each variation)",
	stats.ReasonTooFewVariations:              "fewer than two variations have a share",
	stats.ReasonZeroVariance:                  "all values are equal, so that their spread says nothing",
	stats.ReasonBaselineZero:                  "control stands at 0, of which nothing is a percentage",
	stats.ReasonBaselineNotDistinguishable:    "control cannot be told from 0, so that the lift over it has no bound",
	stats.ReasonLevel100:                      "at significance level 100 nothing is ever significant and there are no intervals",
	stats.ReasonUnbalancedSkew:                "an effect shows, but the variations are so uneven in size that skewed values could feign it",
	stats.ReasonSharesChanged:                 "the shares changed meanwhile, so that the variations' visitors differ in more than the variation",
	stats.ReasonTooEarly:                      "it is too early, as whoever looks often sees an effect by chance",
	stats.ReasonLiftImpossible:                "a rate lifted so far would exceed 100 %",
	stats.ReasonSampleRatioMismatch:           "visitors did not fall on the variations as their shares say",
	stats.ReasonNotSignificantAcrossBreakdown: "among so many cells of the breakdown chance alone shows such an effect",
	stats.ReasonNoTraffic:                     "control, or every other variation, gets no traffic",
	reasonNotSignificant:                      "no variation differs by more than chance explains",
	reasonNothingToCompare:                    "there is no second variation",
	stats.ReasonInvalidData:                   "the numbers are beyond what can be computed",
}

// Decimals returns how many decimals show two digits of a spread, such as half
// an interval.
func Decimals(spread float64) int {
	if !(spread > 0) || math.IsInf(spread, 1) {
		return 2
	}
	return min(max(1-int(math.Floor(math.Log10(spread))), 0), 9)
}

// PercentDecimals is Decimals for a fraction that is written in per cent, where
// it is at least one below 100 %.
func PercentDecimals(spread float64) int {
	if decimals := Decimals(100 * spread); decimals > 0 || spread >= 1 {
		return decimals
	}
	return 1
}

// HalfWidth returns how far an interval reaches from its middle, or from the
// value where one end is unbounded; without an interval as far as the value is
// from 0.
func HalfWidth(value *float64, in *Bounds) float64 {
	switch {
	case in != nil && in[0] != nil && in[1] != nil:
		return *in[1]/2 - *in[0]/2
	case value == nil:
		return 0
	case in != nil && in[0] != nil:
		return math.Abs(*value - *in[0])
	case in != nil && in[1] != nil:
		return math.Abs(*in[1] - *value)
	}
	return math.Abs(*value)
}

// Percent writes a fraction in per cent: 7.49 %, or with its sign +24.8 %.
func Percent(fraction float64, decimals int, sign bool) string {
	x := math.Max(-math.MaxFloat64, math.Min(100*fraction, math.MaxFloat64))
	if sign {
		return signed(x, decimals) + " %"
	}
	return Number(x, decimals) + " %"
}

func signed(x float64, decimals int) string {
	if x > 0 {
		return "+" + Number(x, decimals)
	}
	return Number(x, decimals)
}

// Number writes a number with groups of thousands, or with an exponent where it
// would be too long.
func Number(x float64, decimals int) string {
	const longest = 1e9
	if math.Abs(x) >= longest {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	minus := ""
	if strings.HasPrefix(whole, "-") {
		minus, whole = "-", whole[1:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return minus + thousands(whole) + rest
}

// Grouped writes a count: 11,927.
func Grouped(n int64) string {
	if n < 0 {
		return "-" + thousands(strconv.FormatInt(n, 10)[1:])
	}
	return thousands(strconv.FormatInt(n, 10))
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Probability writes a p-value: 0.0312, 0.0000043, 1.2e-13.
func Probability(p float64) string {
	const smallest = 0.001
	switch {
	case p >= smallest:
		return strconv.FormatFloat(p, 'f', 4, 64)
	case p == 0: // too small for a float
		return "0"
	}
	if decimals := 1 - int(math.Floor(math.Log10(p))); decimals <= 10 {
		return strconv.FormatFloat(p, 'f', decimals, 64)
	}
	return strconv.FormatFloat(p, 'e', 1, 64)
}

// Chance writes a probability in per cent, never as certain.
func Chance(p float64) string {
	const rare = 0.0001
	switch {
	case p > 1-rare:
		return "over 99.99 %"
	case p < rare:
		return "under 0.01 %"
	}
	return Percent(p, 2, false)
}
