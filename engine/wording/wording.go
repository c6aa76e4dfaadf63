// Package wording writes numbers and reasons as people read them. It knows nothing of what they are about.
package wording

import (
	"cmp"
	_ "embed" // the texts of reasons
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"lifthouse/stats"
)

// RangeInWords formats an interval: 2.4 to 4.8. A missing interval is a dash.
func RangeInWords(in *stats.Interval, write func(float64) string) string {
	if in == nil || in[0] == nil && in[1] == nil {
		return "–"
	}
	lower, upper := "-∞", "+∞"
	if in[0] != nil {
		lower = write(*in[0])
	}
	if in[1] != nil {
		upper = write(*in[1])
	}
	return lower + " to " + upper
}

// FormatValue formats a value with the decimals that its interval permits, as the page does. A rate is in per cent.
func FormatValue(x float64, in *stats.Interval, rate bool) string {
	if rate {
		return FormatPercent(x, PercentDecimals(HalfWidth(in)), false)
	}
	return FormatNumber(x, SpreadDecimals(HalfWidth(in)))
}

// FormatLift formats a lift with the decimals that its interval permits, as the page does.
func FormatLift(x float64, in *stats.Interval) string {
	return FormatPercent(x, PercentDecimals(HalfWidth(in)), true)
}

//go:embed reasons.json
var reasonTexts []byte

// explanations are the texts of reasons. The page has the same file.
var explanations = func() (texts map[stats.Reason]string) {
	if err := json.Unmarshal(reasonTexts, &texts); err != nil {
		panic(err) // the file is part of the program
	}
	return texts
}()

// ExplainReason returns the text of a reason: why a number is null, or why there is no verdict.
func ExplainReason(r stats.Reason) string { return cmp.Or(explanations[r], string(r)) }

// SpreadDecimals returns the number of decimals that show two significant digits of a spread, such as half the width of
// an interval.
func SpreadDecimals(spread float64) int {
	if !(spread > 0) || math.IsInf(spread, 1) {
		return 2
	}
	return min(max(1-int(math.Floor(math.Log10(spread))), 0), 9)
}

// PercentDecimals is like SpreadDecimals, for a fraction that is printed in per cent. It is at least 1 for spreads
// below 100 %, and 1 without a spread.
func PercentDecimals(spread float64) int {
	decimals := SpreadDecimals(100 * spread)
	if !(spread > 0) || decimals == 0 && spread < 1 {
		return 1
	}
	return decimals
}

// HalfWidth returns half the width of an interval, or, if one end is unbounded, the absolute value of the other end.
// Without an interval, it returns 0.
func HalfWidth(in *stats.Interval) float64 {
	switch {
	case in == nil || in[0] == nil && in[1] == nil:
		return 0
	case in[1] == nil:
		return math.Abs(*in[0])
	case in[0] == nil:
		return math.Abs(*in[1])
	}
	return *in[1]/2 - *in[0]/2
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

// FormatNumber formats a number with thousands separators, or with an exponent if it is long.
func FormatNumber(x float64, decimals int) string {
	const longest = 1e9
	if math.Abs(x) >= longest {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	point := strings.IndexByte(text+".", '.')
	return groupThousands(text[:point]) + text[point:]
}

// FormatCount formats a count: 11,927.
func FormatCount(n int64) string { return groupThousands(strconv.FormatInt(n, 10)) }

// CountNoun writes a count with its noun in the singular or, with an s, in the plural: 1 row, 1,200 rows.
func CountNoun[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return FormatCount(int64(n)) + " " + noun + "s" //nolint:gosec // no count overflows
}

// groupThousands separates the thousands of an integer.
func groupThousands(digits string) string {
	sign := len(digits) - len(strings.TrimPrefix(digits, "-"))
	for i := len(digits) - 3; i > sign; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// FormatPValue formats a p-value: 0.0312, or under 0.0001 or over 0.99, beyond which nobody decides otherwise.
func FormatPValue(p float64) string {
	const least, most = 0.0001, 0.99
	switch {
	case p < least:
		return "under 0.0001"
	case p > most:
		return "over 0.99"
	}
	return strconv.FormatFloat(p, 'f', 4, 64)
}

// PValueInWords formats a p-value in a sentence: p = 0.0312, or p under 0.0001.
func PValueInWords(p float64) string {
	text := FormatPValue(p)
	if text[0] == '0' {
		return "p = " + text
	}
	return "p " + text
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

// EscapeFormula escapes a text that a spreadsheet would evaluate as a formula. Names and attribute values are user
// input.
func EscapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
