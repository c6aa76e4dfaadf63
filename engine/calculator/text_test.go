package calculator

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/stats"
)

func TestCalculatorConcludesInOneSentence(t *testing.T) {
	rates := func(options string, control, treatment string) string {
		return `{"metric":"binary",` + options + `"variations":[{` + control + `},{` + treatment + `}]}`
	}
	means := func(options string, control, treatment string) string {
		return `{"metric":"mean",` + options + `"variations":[{` + control + `},{` + treatment + `}]}`
	}
	for _, test := range []struct {
		line   string
		status stats.Status
		want   string
	}{
		{
			rates(``, `"n":20000,"converted":1000`, `"n":20000,"converted":915`), stats.StatusInconclusive,
			"No conclusion: the effect is not significant at repeated looks, and there are no sums of the planned look; the sample is large enough to detect a lift of 20 %.",
		},
		{
			rates(`"methodology":"bayesian",`, `"n":20000,"converted":1000`, `"n":20000,"converted":1200`), stats.StatusWinner,
			"Variation 1 is better than control: an observed lift of +20.0 % (90 % always-valid interval +2.8 % to +40.1 %), with a chance of over 99.99 % to beat control, which is valid at every look.",
		},
		{
			rates(``, `"n":1000,"converted":0`, `"n":1000,"converted":50`), stats.StatusWinner,
			"Variation 1 is better than control: a difference of +5.0 percentage points " +
				"(90 % always-valid interval +3.0 percentage points to +8.2 percentage points), which is valid at every look.",
		},
		{
			means(``, `"n":9000,"mean":0,"variance":4`, `"n":9000,"mean":1,"variance":4`), stats.StatusWinner,
			"Variation 1 is better than control: a difference of +1.00 (90 % always-valid interval +0.89 to +1.11), which is valid at every look.",
		},
		{
			means(`"nonnegative":true,`, `"n":9000,"mean":0.01,"variance":4`, `"n":9000,"mean":1,"variance":4`), stats.StatusWinner,
			"Variation 1 is better than control: a lift of +9,900 % (90 % always-valid interval from +1,048 % upward), which is valid at every look.",
		},
		{
			rates(``, `"n":2000,"converted":100`, `"n":2000,"converted":130`), stats.StatusInconclusive,
			"It is too early for a conclusion: the effect is not significant at repeated looks; 8,848 more visitors are needed to detect a lift of 20 %.",
		},
		{
			rates(`"mde":50,`, `"n":2000,"converted":100`, `"n":2000,"converted":103`), stats.StatusInconclusive,
			"No variation differs significantly from control at the 90 % level; the sample is large enough to detect a lift of 50 %.",
		},
		{
			rates(`"significanceLevel":100,`, `"n":2000,"converted":100`, `"n":2000,"converted":903`), stats.StatusInconclusive,
			"No conclusion is possible: at significance level 100 no result is significant and there are no intervals.",
		},
		{
			means(``, `"n":9900,"mean":10,"variance":900`, `"n":100,"mean":8,"variance":1`), stats.StatusInconclusive,
			"No variation differs significantly from control at the 90 % level; 130,513 more visitors are needed to detect a lift of 20 %.",
		},
		{
			rates(``, `"n":20,"converted":1`, `"n":20,"converted":13`), stats.StatusInsufficientData,
			"Not enough data for a verdict: there are too few visitors (a verdict needs 100 in each variation).",
		},
		{
			rates(``, `"n":2000,"converted":100,"share":50`, `"n":2400,"converted":903,"share":50`), stats.StatusInvalid,
			"The results are not valid: the split of the visitors does not match the configured shares (sample ratio mismatch, p = 0.0000000016).",
		},
	} {
		a := answerTo(t, test.line)
		if a.Conclusion.Status != test.status || a.Conclusion.Text != test.want {
			t.Errorf("%s\n     %s: %s\nwant %s: %s", test.line, a.Conclusion.Status, a.Conclusion.Text, test.status, test.want)
		}
	}
}

func TestCalculatorExplainsEveryReason(t *testing.T) {
	source, err := os.ReadFile("../../stats/types.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`Reason = "([A-Z_0-9]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 16 {
		t.Fatalf("found %d reasons", len(reasons))
	}
	for _, reason := range reasons {
		if result.Explain(stats.Reason(reason[1])) == reason[1] {
			t.Errorf("%s has no words", reason[1])
		}
	}
}

func TestCalculatorWritesNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{result.Number(1234567.891, 2), "1,234,567.89"},
		{result.Number(-1234.5, 1), "-1,234.5"},
		{result.Number(-123, 0), "-123"},
		{result.Number(3e12, 2), "3e+12"},
		{result.Grouped(0), "0"},
		{result.Grouped(-1234), "-1,234"},
		{result.Grouped(math.MinInt64), "-9,223,372,036,854,775,808"},
		{result.Percent(0.2483, result.PercentDecimals(0.119), true), "+24.8 %"},
		{result.Percent(0.06003, result.PercentDecimals(0.0042), false), "6.00 %"},
		{result.Percent(-12, result.PercentDecimals(3), true), "-1,200 %"},
		{result.Percent(0, 1, true), "0.0 %"},
		{result.Percent(math.MaxFloat64, 1, true), "+1.798e+308 %"},
		{result.Probability(0.03125), "0.0312"},
		{result.Probability(4.316e-6), "0.0000043"},
		{result.Probability(0), "0"},
		{result.Chance(1), "over 99.99 %"},
		{result.Chance(0), "under 0.01 %"},
		{result.Chance(0.97254), "97.25 %"},
		{fmt.Sprint(result.Decimals(0), result.Decimals(0.176), result.Decimals(3.1), result.Decimals(311), result.Decimals(1e-300), result.Decimals(math.Inf(1))), "2 2 1 0 9 2"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
