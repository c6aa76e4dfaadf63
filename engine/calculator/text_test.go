package calculator

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"testing"

	"lifthouse/engine/wording"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

func TestCalculatorExplainsEveryReason(t *testing.T) {
	var source []byte
	for _, file := range []string{"types.go", "look.go"} {
		text := must.Get(os.ReadFile("../../stats/" + file))(t)
		source = append(source, text...)
	}
	reasons := regexp.MustCompile(`Reason = "([A-Z_0-9]+)"`).FindAllStringSubmatch(string(source), -1)
	must.That(t, len(reasons) >= 16, "found %d reasons", len(reasons))
	for _, reason := range reasons {
		check.That(t, wording.ExplainReason(stats.Reason(reason[1])) != reason[1], "%s has no words", reason[1])
	}
}

func TestCalculatorWritesNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{wording.FormatNumber(1234567.891, 2), "1,234,567.89"},
		{wording.FormatNumber(-1234.5, 1), "-1,234.5"},
		{wording.FormatNumber(-123, 0), "-123"},
		{wording.FormatNumber(3e12, 2), "3e+12"},
		{wording.FormatCount(0), "0"},
		{wording.FormatCount(-1234), "-1,234"},
		{wording.FormatCount(math.MinInt64), "-9,223,372,036,854,775,808"},
		{wording.FormatPercent(0.2483, wording.PercentDecimals(0.119), true), "+24.8 %"},
		{wording.FormatPercent(0.06003, wording.PercentDecimals(0.0042), false), "6.00 %"},
		{wording.FormatPercent(-12, wording.PercentDecimals(3), true), "-1,200 %"},
		{wording.FormatPercent(0, 1, true), "0.0 %"},
		{wording.FormatPercent(math.MaxFloat64, 1, true), "+1.798e+308 %"},
		{wording.FormatPValue(0.03125), "0.0312"},
		{wording.FormatPValue(4.316e-6), "0.0000043"},
		{wording.FormatPValue(0), "0"},
		{wording.FormatChance(1), "over 99.99 %"},
		{wording.FormatChance(0), "under 0.01 %"},
		{wording.FormatChance(0.97254), "97.25 %"},
		{fmt.Sprint(wording.SpreadDecimals(0), wording.SpreadDecimals(0.176), wording.SpreadDecimals(3.1), wording.SpreadDecimals(311), wording.SpreadDecimals(1e-300), wording.SpreadDecimals(math.Inf(1))), "2 2 1 0 9 2"},
	} {
		check.Equal(t, test.got, test.want)
	}
}
