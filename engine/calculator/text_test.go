package calculator

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"testing"

	"lifthouse/engine/result"
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
	if len(reasons) < 16 {
		t.Fatalf("found %d reasons", len(reasons))
	}
	for _, reason := range reasons {
		if result.ExplainReason(stats.Reason(reason[1])) == reason[1] {
			t.Errorf("%s has no words", reason[1])
		}
	}
}

func TestCalculatorWritesNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{result.FormatNumber(1234567.891, 2), "1,234,567.89"},
		{result.FormatNumber(-1234.5, 1), "-1,234.5"},
		{result.FormatNumber(-123, 0), "-123"},
		{result.FormatNumber(3e12, 2), "3e+12"},
		{result.FormatCount(0), "0"},
		{result.FormatCount(-1234), "-1,234"},
		{result.FormatCount(math.MinInt64), "-9,223,372,036,854,775,808"},
		{result.FormatPercent(0.2483, result.PercentDecimals(0.119), true), "+24.8 %"},
		{result.FormatPercent(0.06003, result.PercentDecimals(0.0042), false), "6.00 %"},
		{result.FormatPercent(-12, result.PercentDecimals(3), true), "-1,200 %"},
		{result.FormatPercent(0, 1, true), "0.0 %"},
		{result.FormatPercent(math.MaxFloat64, 1, true), "+1.798e+308 %"},
		{result.FormatPValue(0.03125), "0.0312"},
		{result.FormatPValue(4.316e-6), "0.0000043"},
		{result.FormatPValue(0), "0"},
		{result.FormatChance(1), "over 99.99 %"},
		{result.FormatChance(0), "under 0.01 %"},
		{result.FormatChance(0.97254), "97.25 %"},
		{fmt.Sprint(result.SpreadDecimals(0), result.SpreadDecimals(0.176), result.SpreadDecimals(3.1), result.SpreadDecimals(311), result.SpreadDecimals(1e-300), result.SpreadDecimals(math.Inf(1))), "2 2 1 0 9 2"},
	} {
		check.Equal(t, test.got, test.want)
	}
}
