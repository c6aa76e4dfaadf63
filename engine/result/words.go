package result

import (
	"cmp"
	_ "embed" // the texts of reasons
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/stats"
)

// VerdictInWords returns a verdict as text. A verdict that is not conclusive reads as a preliminary result, and one
// that only describes as the state of today.
func (c *Comparison) VerdictInWords() string {
	words := func(conclusive, today string) string {
		switch {
		case c.Conclusive == nil:
			return today
		case *c.Conclusive:
			return conclusive
		}
		return today + ", not conclusive"
	}
	switch v := c.Verdict; v {
	case stats.VerdictBetter:
		return words("better", "ahead")
	case stats.VerdictWorse:
		return words("worse", "behind")
	case stats.VerdictInconclusive:
		return "inconclusive"
	case stats.VerdictInsufficientData:
		return "not enough data"
	}
	return string(c.Verdict)
}

// ConclusiveVerdict returns the verdict if it is conclusive, and VerdictInconclusive otherwise. The result selects the
// colour of a verdict.
func (c *Comparison) ConclusiveVerdict() stats.Verdict {
	if !c.isConclusive() {
		return stats.VerdictInconclusive
	}
	return c.Verdict
}

// metrics has the name of each metric in texts, what it counts in a month, and whether it is a share of the visitors.
// The units of money follow its currency.
var metrics = map[query.Metric]struct {
	name, month string
	isRate      bool
}{
	query.GoalConversionRate:   {"the goal conversion rate", "converted visitors", true},
	query.ConversionRate:       {"the conversion rate", "visitors with a conversion", true},
	query.CompletionRate:       {"the completion rate", "visitors with a completion", true},
	query.GoalsPerVisitor:      {"goals per visitor", "goals", false},
	query.AverageValue:         {"average value", "", false},
	query.ValuePerVisitor:      {"value per visitor", "of value", false},
	query.ProfitPerVisitor:     {"profit per visitor", "of profit", false},
	query.ExtraValuePerVisitor: {"extra value per visitor", "of extra value", false},
}

// nameIn returns the name of the compared metric of a plan in a sentence, with its conversion window.
func nameIn(p *plan.Plan) string { return metrics[p.Metric].name + newAgeRange(p).afterName() }

// MetricInWords returns the name of a metric in texts.
func MetricInWords(m query.Metric) string { return strings.TrimPrefix(metrics[m].name, "the ") }

// RangeInWords formats an interval. An unbounded end is shown as open, and a missing interval as a dash.
func RangeInWords(in *stats.Interval, write func(float64) string) string {
	if in == nil || in[0] == nil && in[1] == nil {
		return "–"
	}
	lower, upper := "(-∞", "∞)"
	if in[0] != nil {
		lower = "[" + write(*in[0])
	}
	if in[1] != nil {
		upper = write(*in[1]) + "]"
	}
	return lower + ", " + upper
}

// FormatValue formats a value with the decimals that its interval permits, as the page does. A rate is in per cent.
func FormatValue(x float64, in *stats.Interval, rate bool) string {
	if rate {
		return FormatPercent(x, PercentDecimals(HalfWidth(nil, in)), false)
	}
	return FormatNumber(x, SpreadDecimals(HalfWidth(nil, in)))
}

// FormatLift formats a lift with the decimals that its interval permits, as the page does.
func FormatLift(x float64, in *stats.Interval) string {
	return FormatPercent(x, PercentDecimals(HalfWidth(nil, in)), true)
}

// EstimateOf returns the estimate of a metric.
func (m *Metrics) EstimateOf(metric query.Metric) Estimate {
	switch metric {
	case query.GoalConversionRate:
		return m.GoalConversionRate
	case query.ConversionRate:
		return m.ConversionRate
	case query.CompletionRate:
		return m.CompletionRate
	case query.GoalsPerVisitor:
		return m.GoalsPerVisitor
	case query.ValuePerVisitor:
		return m.ValuePerVisitor
	case query.ProfitPerVisitor:
		return m.ProfitPerVisitor
	case query.ExtraValuePerVisitor:
		return m.ExtraValuePerVisitor
	case query.AverageValue:
	}
	return m.AverageValue
}

// IsRate reports whether a metric is a share of the visitors.
func IsRate(m query.Metric) bool { return metrics[m].isRate }

//go:embed reasons.json
var reasonTexts []byte

//go:embed next_steps.json
var nextStepTexts []byte

// explanations are the texts of reasons, and nextSteps what to do after each decision. The page has the same files.
var (
	explanations = parseTexts[stats.Reason](reasonTexts)
	nextSteps    = parseTexts[DecisionStatus](nextStepTexts)
)

func parseTexts[K ~string](file []byte) (texts map[K]string) {
	if err := json.Unmarshal(file, &texts); err != nil {
		panic(err) // the file is part of the program
	}
	return texts
}

// ExplainReason returns the text of a reason: why a number is null, or why there is no verdict.
func ExplainReason(r stats.Reason) string { return cmp.Or(explanations[r], string(r)) }

// NextStep returns what to do after the decision.
func (d *Decision) NextStep() string { return nextSteps[d.Status] }

// SpreadDecimals returns the number of decimals that show two significant digits of a spread, such as half the width of
// an interval.
func SpreadDecimals(spread float64) int {
	if !(spread > 0) || math.IsInf(spread, 1) {
		return 2
	}
	return min(max(1-int(math.Floor(math.Log10(spread))), 0), 9)
}

// PercentDecimals is like SpreadDecimals, for a fraction that is printed in per cent. It is at least 1 for spreads
// below 100 %.
func PercentDecimals(spread float64) int {
	if decimals := SpreadDecimals(100 * spread); decimals > 0 || spread >= 1 {
		return decimals
	}
	return 1
}

// HalfWidth returns half the width of an interval. If one end is unbounded, it returns the distance of the other end
// from the value; without an interval, the absolute value.
func HalfWidth(value *float64, in *stats.Interval) float64 {
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

// FormatNumber formats a number with thousands separators, or with an exponent if it is long.
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

// lastDay returns the date of the day that ends at a time.
func lastDay(end time.Time) string { return end.Add(-time.Millisecond).UTC().Format(time.DateOnly) }

// LookInWords returns the lift that a look found, such as "a lift of +5 % (95 % interval +2 % to +8 %)", or else the
// difference. rate reports whether the metric is a rate.
func LookInWords(row *looks.Row, level int, rate bool) string {
	if lift := row.Lift; lift.Value != nil && lift.Interval != nil {
		decimals := PercentDecimals(HalfWidth(lift.Value, lift.Interval))
		return "a lift of " +
			withInterval(lift, level, func(x float64) string { return FormatPercent(x, decimals, true) })
	}
	spread := HalfWidth(row.Difference.Value, row.Difference.Interval)
	write := func(x float64) string { return FormatSigned(x, SpreadDecimals(spread)) }
	if rate {
		write = func(x float64) string { return FormatSigned(100*x, PercentDecimals(spread)) + " percentage points" }
	}
	return "a difference of " + withInterval(row.Difference, level, write)
}

// withInterval formats an effect and its interval: 5 (95 % interval 2 to 8).
func withInterval(e stats.Effect, level int, write func(float64) string) string {
	text := write(*e.Value)
	if e.Interval == nil {
		return text
	}
	switch lower, upper := e.Interval[0], e.Interval[1]; {
	case lower != nil && upper != nil:
		return text + fmt.Sprintf(" (%d %% interval %s to %s)", level, write(*lower), write(*upper))
	case lower != nil:
		return text + fmt.Sprintf(" (%d %% interval from %s upward)", level, write(*lower))
	case upper != nil:
		return text + fmt.Sprintf(" (%d %% interval up to %s)", level, write(*upper))
	}
	return text
}
