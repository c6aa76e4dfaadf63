package calculator

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

func TestCalculatorConcludesInOneSentence(t *testing.T) {
	input := func(metric, options, control, treatment string) string {
		sums := `"variations":[{` + control + `},{` + treatment + `}]`
		return `{"metric":"` + metric + `",` + options + sums + `}`
	}
	atOnce := func(metric, options, control, treatment string) string { // at the planned end
		return input(metric, options+`"looks":[{"tau":1,"variations":[{`+control+`},{`+treatment+`}]}],`, control, treatment)
	}
	for _, test := range []struct {
		line   string
		status stats.Status
		want   string
	}{
		{
			input("binary", ``, `"n":20000,"converted":1000`, `"n":20000,"converted":1200`), stats.StatusInconclusive,
			"No conclusion: pass the sums at each weekly look to conclude.",
		},
		{
			atOnce("binary", ``, `"n":1000,"converted":0`, `"n":1000,"converted":50`), stats.StatusWinner,
			"Variation 1 is better than control at look 1: a difference of +5.0 percentage points (90 % interval +4.0 percentage points to +6.3 percentage points).",
		},
		{
			atOnce("mean", ``, `"n":9000,"mean":0,"variance":4`, `"n":9000,"mean":1,"variance":4`), stats.StatusWinner,
			"Variation 1 is better than control at look 1: a difference of +1.000 (90 % interval +0.950 to +1.050).",
		},
		{
			atOnce("mean", `"nonnegative":true,`, `"n":9000,"mean":0.01,"variance":4`, `"n":9000,"mean":1,"variance":4`), stats.StatusWinner,
			"Variation 1 is better than control at look 1: a lift of +9,900 % (90 % interval from +2,111 % upward).",
		},
		{
			atOnce("binary", ``, `"n":20000,"converted":1000`, `"n":20000,"converted":850`), stats.StatusLoser,
			"Variation 1 is worse than control at look 1: a lift of -15.0 % (90 % interval -21.2 % to -8.3 %).",
		},
		{
			atOnce("binary", `"significanceLevel":100,`, `"n":2000,"converted":100`, `"n":2000,"converted":903`), stats.StatusInconclusive,
			"No conclusion is possible: at significance level 100 no result is significant and there are no intervals.",
		},
		{
			input("binary", ``, `"n":20,"converted":1`, `"n":20,"converted":13`), stats.StatusInsufficientData,
			"Not enough data for a verdict: there are too few visitors (a verdict needs 100 in each variation).",
		},
		{
			input("binary", ``, `"n":2000,"converted":100,"share":50`, `"n":2600,"converted":903,"share":50`), stats.StatusInvalid,
			"The results are not valid: the split of the visitors does not match the configured shares (sample ratio mismatch).",
		},
	} {
		a := answerTo(t, test.line)
		if a.Conclusion.Status != test.status || a.Conclusion.Text != test.want {
			t.Errorf("%s\n     %s: %s\nwant %s: %s", test.line, a.Conclusion.Status, a.Conclusion.Text, test.status, test.want)
		}
	}
}

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
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
