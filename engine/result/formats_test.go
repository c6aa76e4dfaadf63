package result

import (
	"math"
	"os"
	"testing"

	"lifthouse/engine/wording"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// formatExamples are in testdata/formats.json. The dashboard has the same formats and tests them with the same file
// (api/dashboard/web/format.test.js).
type formatExamples struct {
	Percent, Number []struct {
		X        float64 `json:"x"`
		Decimals int     `json:"decimals"`
		Sign     bool    `json:"sign"`
		Text     string  `json:"text"`
	}
	Probability, Chance []struct {
		P    float64 `json:"p"`
		Text string  `json:"text"`
	}
	Grouped []struct {
		N    int64  `json:"n"`
		Text string `json:"text"`
	}
	Decimals []struct {
		Spread          float64 `json:"spread"`
		Decimals        int     `json:"decimals"`
		PercentDecimals int     `json:"percentDecimals"`
	}
}

func TestFormatsOfSharedExamples(t *testing.T) {
	text := must.Get(os.ReadFile("../testdata/formats.json"))(t)
	examples := must.JSON[formatExamples](t, text)
	count := 0
	compare := func(format string, input any, got, want any) {
		t.Helper()
		count++
		check.Equal(t, got, want, "%s of %+v is", format, input)
	}
	for _, e := range examples.Percent {
		compare("Percent", e, wording.FormatPercent(e.X, e.Decimals, e.Sign), e.Text)
	}
	for _, e := range examples.Number {
		compare("Number", e, wording.FormatNumber(e.X, e.Decimals), e.Text)
	}
	for _, e := range examples.Probability {
		compare("Probability", e, wording.FormatPValue(e.P), e.Text)
	}
	for _, e := range examples.Chance {
		compare("Chance", e, wording.FormatChance(e.P), e.Text)
	}
	for _, e := range examples.Grouped {
		compare("Grouped", e, wording.FormatCount(e.N), e.Text)
	}
	compare("Grouped", math.MinInt64, wording.FormatCount(math.MinInt64), "-9,223,372,036,854,775,808")
	compare("Decimals", math.Inf(1), wording.SpreadDecimals(math.Inf(1)), 2)
	for _, e := range examples.Decimals {
		compare("Decimals", e, wording.SpreadDecimals(e.Spread), e.Decimals)
		compare("PercentDecimals", e, wording.PercentDecimals(e.Spread), e.PercentDecimals)
	}
	check.That(t, count >= 150, "compared %d examples, want at least 150", count)
}
