package result

import (
	"math"
	"strconv"
	"strings"

	"lifthouse/stats"
)

// ExplainReason returns the text of a reason: why a number is null, or why there is
// no verdict.
func ExplainReason(r stats.Reason) string {
	if text, known := explanations[r]; known {
		return text
	}
	return string(r)
}

var explanations = map[stats.Reason]string{
	stats.ReasonNoVisitors:                    "there are no visitors",
	stats.ReasonTooFewVisitors:                "there are too few visitors (a verdict needs 100 in each variation)",
	stats.ReasonTooFewConversions:             "there are too few conversions or too few visitors without one",
	stats.ReasonTooFewNonzero:                 "too few visitors have a nonzero value (a verdict needs 20 in each variation)",
	stats.ReasonTooFewVariations:              "fewer than two variations have a share of the traffic",
	stats.ReasonZeroVariance:                  "all values of a variation are equal; the other variation's variance stands in, if it has one",
	stats.ReasonBaselineZero:                  "the metric of control is 0, so there is no relative lift",
	stats.ReasonBaselineNotDistinguishable:    "the metric of control is not distinguishable from 0, so the lift is unbounded",
	stats.ReasonLevel100:                      "at significance level 100 no result is significant and there are no intervals",
	stats.ReasonTooEarly:                      "there was no look yet",
	stats.ReasonNotDeclared:                   "only the primary metric of all visitors has looks",
	stats.ReasonPlanChanged:                   "the variation was added after the first view, so it has no looks",
	stats.ReasonLiftImpossible:                "the planned lift would exceed a rate of 100 %",
	stats.ReasonSampleRatioMismatch:           "the split of the visitors does not match the configured shares (sample ratio mismatch)",
	stats.ReasonNotSignificantAcrossBreakdown: "the effect is not significant after correction for the number of values in the breakdown",
	stats.ReasonNoTraffic:                     "control or every other variation gets no traffic",
	stats.ReasonNoNewVisitors:                 "no new visitors have come since the look before",
	stats.ReasonNoAlphaSpent:                  "this look comes too early in the plan to spend a part of alpha",
	reasonNotSignificant:                      "no difference is statistically significant",
	reasonNothingToCompare:                    "there is no second variation",
	stats.ReasonInvalidData:                   "the numbers are too large to compute",
}

// SpreadDecimals returns the number of decimals that show two significant digits of a
// spread, such as half the width of an interval.
func SpreadDecimals(spread float64) int {
	if !(spread > 0) || math.IsInf(spread, 1) {
		return 2
	}
	return min(max(1-int(math.Floor(math.Log10(spread))), 0), 9)
}

// PercentDecimals is like SpreadDecimals, for a fraction that is printed in per cent.
// It is at least 1 for spreads below 100 %.
func PercentDecimals(spread float64) int {
	if decimals := SpreadDecimals(100 * spread); decimals > 0 || spread >= 1 {
		return decimals
	}
	return 1
}

// HalfWidth returns half the width of an interval. If one end is unbounded, it
// returns the distance of the other end from the value; without an interval,
// the absolute value.
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

// FormatPercent formats a fraction in per cent: 7.49 %, or +24.8 % with the sign.
func FormatPercent(fraction float64, decimals int, sign bool) string {
	x := math.Max(-math.MaxFloat64, math.Min(100*fraction, math.MaxFloat64))
	if sign {
		return FormatSigned(x, decimals) + " %"
	}
	return FormatNumber(x, decimals) + " %"
}

// FormatSigned formats a number with its sign.
func FormatSigned(x float64, decimals int) string {
	if x > 0 {
		return "+" + FormatNumber(x, decimals)
	}
	return FormatNumber(x, decimals)
}

// FormatNumber formats a number with thousands separators, or with an exponent if it
// is long.
func FormatNumber(x float64, decimals int) string {
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
	return minus + groupThousands(whole) + rest
}

// FormatCount formats a count: 11,927.
func FormatCount(n int64) string {
	if n < 0 {
		return "-" + groupThousands(strconv.FormatInt(n, 10)[1:])
	}
	return groupThousands(strconv.FormatInt(n, 10))
}

func groupThousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// FormatPValue formats a p-value: 0.0312, 0.0000043, 1.2e-13.
func FormatPValue(p float64) string {
	const smallest = 0.001
	switch {
	case p >= smallest:
		return strconv.FormatFloat(p, 'f', 4, 64)
	case p == 0: // underflow
		return "0"
	}
	if decimals := 1 - int(math.Floor(math.Log10(p))); decimals <= 10 {
		return strconv.FormatFloat(p, 'f', decimals, 64)
	}
	return strconv.FormatFloat(p, 'e', 1, 64)
}

// FormatChance formats a probability in per cent. It never shows 0 % or 100 %.
func FormatChance(p float64) string {
	const rare = 0.0001
	switch {
	case p > 1-rare:
		return "over 99.99 %"
	case p < rare:
		return "under 0.01 %"
	}
	return FormatPercent(p, 2, false)
}
