package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/calculator"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"

	"github.com/rivo/uniseg"
)

const comparison = `{"metric":"binary","significanceLevel":95,"looks":[{"days":28,"variations":[{"n":11927,"converted":716},{"n":12010,"converted":900}]}],
	"variations":[{"n":11927,"converted":716},{"n":12010,"converted":900}]}`

// drawn returns the table of a line of the calculator.
func drawn(t *testing.T, line string, s Screen) string {
	t.Helper()
	input, err := calculator.ParseInput([]byte(line))
	must.OK(t, err, "%s", line)
	return Comparison(input.ComputeAnswer(), s)
}

func TestTableIsOneOnAWideScreen(t *testing.T) {
	const want = `
variation  visitors    rate     95 % interval     lift       95 % interval             p   p at look 1  verdict
0 control    11,927  6.00 %  5.59 % to 6.44 %
1            12,010  7.49 %  7.04 % to 7.98 %  +24.8 %  +13.5 % to +37.2 %  under 0.0001  under 0.0001  better
`
	got := drawn(t, comparison, Screen{Width: 120})
	check.That(t, strings.Contains(got, want), "%s\nwant in it\n%s", got, want)
}

// TestColoursSayNothingMore compares a coloured table without its colours with a plain one.
func TestColoursSayNothingMore(t *testing.T) {
	coloured, plainly := drawn(t, comparison, Screen{Width: 80, Colour: true}), drawn(t, comparison, Screen{Width: 80})
	check.That(t, strings.Contains(coloured, green+"better"), "no colour in\n%s", coloured)
	escapes := regexp.MustCompile(`\x1b\[\d+m`)
	spaces := regexp.MustCompile(` +\n`)
	check.Equal(t, spaces.ReplaceAllString(escapes.ReplaceAllString(coloured, ""), "\n"), plainly)
}

// TestTableHoldsAnything checks that no line is wider than the screen, for random inputs.
func TestTableHoldsAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	extreme := func() float64 {
		if r.IntN(3) == 0 {
			return math.Pow(10, 616*r.Float64()-308)
		}
		return 10 * r.Float64()
	}
	for range tier.Of(10, 1_000) {
		metric := []string{"binary", "mean"}[r.IntN(2)]
		variations := make([]map[string]any, 2+r.IntN(4))
		for i := range variations {
			n := int64(math.Pow(10, 12*r.Float64()))
			v := map[string]any{"id": r.Int64() >> r.IntN(60), "n": n}
			if metric == "binary" {
				v["converted"] = int64(float64(n) * math.Pow(r.Float64(), float64(r.IntN(9))))
			} else {
				v["mean"], v["variance"] = extreme()*float64(r.IntN(3)-1), extreme()*float64(r.IntN(3))/3
			}
			variations[i] = v
		}
		line := must.Get(json.Marshal(map[string]any{
			"metric": metric, "variations": variations,
			"significanceLevel": []int{80, 90, 95, 100}[r.IntN(4)],
			"methodology":       []string{"frequentist", "bayesian"}[r.IntN(2)],
		}))(t)
		input := must.Get(calculator.ParseInput(line))(t)
		answer := input.ComputeAnswer()
		for _, width := range []int{80, 120} {
			for row := range strings.Lines(Comparison(answer, Screen{Width: width})) {
				n := uniseg.StringWidth(strings.TrimSuffix(row, "\n"))
				must.That(t, n <= width, "%s\nhas a line of %d columns:\n%s", line, n, row)
				must.That(t, !strings.Contains(row, "Inf"), "%s\nhas a line of %d columns:\n%s", line, n, row)
				must.That(t, !strings.Contains(row, "NaN"), "%s\nhas a line of %d columns:\n%s", line, n, row)
			}
		}
	}
}

// results returns a recorded report by device.
func results(t *testing.T) *result.Report {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/by_device.json"))(t)
	r := must.JSON[result.Report](t, text)
	return &r
}

// TestReportHoldsAnyName checks that names cannot move the cursor, and that no line is wider than the screen.
func TestReportHoldsAnyName(t *testing.T) {
	r := results(t)
	for _, odd := range []string{
		"\x1b[31mred\r\n" + strings.Repeat("wide ", 30), strings.Repeat("変化", 40),
		strings.Repeat("👩‍👩‍👧‍👦", 30),
	} {
		r.Variations[1].Name, r.Breakdown[0].Value, r.Breakdown[0].Variations[1].Name, r.Goal.Name = odd, odd, odd, odd
		r.Conclusion.Text = odd
		for _, width := range []int{MinWidth, PlainWidth, MaxWidth} {
			text := Report(r, Screen{Width: width})
			for line := range strings.Lines(text) {
				n := uniseg.StringWidth(strings.TrimSuffix(line, "\n"))
				check.That(t, n <= width || !strings.Contains(line, " "), "a line of %d columns on a screen of %d: %q",
					n, width, line)
			}
			check.That(t, !strings.ContainsAny(text, "\x1b\r"), "it moves the cursor: %q", text)
		}
	}
	text := Report(results(t), Screen{Width: PlainWidth, Colour: true})
	check.That(t, strings.Contains(text, bold+"By device"+plain), "no colour in\n%s", text)
}

// TestReportNotesTheLooks also checks that a verdict without a look has no colour.
func TestReportNotesTheLooks(t *testing.T) {
	r := results(t)
	conclusive := false
	r.Filters, r.Window = nil, result.Window{}
	r.Looks, r.NextLook = []result.Look{}, &result.NextLook{
		Number: 1, End: time.Date(2026, 5, 9, 0, 0, 0, 0, time.UTC),
		PublishedAt: time.Date(2026, 5, 10, 0, 0, 0, 0, time.UTC),
	}
	r.Conclusion = &result.Conclusion{
		Status: stats.StatusInconclusive, Reasons: []stats.Reason{stats.ReasonTooEarly},
		Text: "No conclusion.",
	}
	r.Variations[1].Comparison.Verdict, r.Variations[1].Comparison.Conclusive = stats.VerdictBetter, &conclusive
	r.Dimension = nil
	text := Report(r, Screen{Width: MaxWidth, Colour: true})
	for _, want := range []string{"Looks: none yet; the next look is on 2026-05-08 and is published on Sunday, 10 May 2026.", "ahead, not conclusive"} {
		check.That(t, strings.Contains(text, want), "%s\nwant in it %q", text, want)
	}
	check.That(t, !strings.Contains(text, green), "green without a conclusion:\n%s", text)
}

// TestWideNamesAreAligned has a name whose characters take two columns each: the next cell of each row ends in the same
// column. TestReportsNameTheirView checks that the table, the plot and CSV say which visitors they are about.
func TestReportsNameTheirView(t *testing.T) {
	r := &result.Report{
		SubjectIDs: schema.SubjectIDs{CampaignID: 12},
		Filters:    map[string]any{"device": []string{"mobile", ""}, "goalValue": 2.5, "utmSource": "a*"},
	}
	r.Checks.Cap = &result.CapCheck{Rule: "p99"}
	r.Variations = []result.VariationResults{{Name: "Control", Control: true}}
	const want = "device: mobile, not set · goalValue: 2.5 · utmSource: a* · cap p99"
	got := ReportSubtitle(r)
	check.That(t, strings.Contains(got, want), "the subtitle is %q, want %q", got, want)
	text := must.Get(CSV(r))(t)
	rows := must.Get(csv.NewReader(bytes.NewReader(text)).ReadAll())(t)
	const filters = `{"device":["mobile",""],"goalValue":2.5,"utmSource":"a*"}`
	at := slices.Index(rows[0], "filters")
	check.That(t, at >= 0, "the column filters is %d:\n%s", at, text)
	check.That(t, at <= 10, "the column filters is %d:\n%s", at, text)
	check.Equal(t, rows[1][at], filters, "the column filters is %d:\n%s", at, text)
}

func TestWideNamesAreAligned(t *testing.T) {
	r := results(t)
	for _, name := range []string{"チェックアウト", "Größe 👍", "plain"} {
		r.Variations[1].Name = name
		ends := map[int]bool{}
		for line := range strings.Lines(Report(r, Screen{Width: MaxWidth})) {
			if at := regexp.MustCompile(`[\d,.]+ to [-+]?[\d,.]+`).FindStringIndex(line); at != nil && len(ends) < 2 {
				ends[uniseg.StringWidth(line[:at[1]])] = true
			}
			if strings.HasPrefix(line, name) {
				break
			}
		}
		if len(ends) != 1 {
			t.Errorf("%s: the intervals end in columns %v\n%s", name, ends, Report(r, Screen{Width: MaxWidth}))
		}
	}
}

// TestAxisIsThatOfThePage checks examples with which the page's scale.js is tested, too.
func TestAxisIsThatOfThePage(t *testing.T) {
	text := must.Get(os.ReadFile("../testdata/formats.json"))(t)
	var examples struct {
		Scale []struct{ Numbers, Ticks []float64 }
	}
	if err := json.Unmarshal(text, &examples); err != nil || len(examples.Scale) == 0 {
		t.Fatal(err)
	}
	for _, e := range examples.Scale {
		got := newAxis(e.Numbers, forestTicks).ticks()
		check.That(t, slices.EqualFunc(got, e.Ticks, func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }),
			"%v: %v, want %v", e.Numbers, got, e.Ticks)
	}
}

// TestScorecardCSVNamesTheReport checks that a row of a scorecard, which has a goal and a window of its own, also has those
// of the report.
func TestScorecardCSVNamesTheReport(t *testing.T) {
	text := must.Get(CSV(&result.Report{
		Goal:             &result.GoalName{ID: 3, Name: "Purchase"},
		ConversionWindow: &result.AgeRange{From: "0h", To: "168h", Source: "request"},
		Scorecard: []*result.ScorecardRow{{
			Goal:       &result.GoalName{ID: 4, Name: "Support"},
			Variations: []result.ScorecardVariation{{ID: 1}},
		}},
	}))(t)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	must.That(t, err == nil, "%v, %v", rows, err)
	must.Equal(t, len(rows), 2, "%v, %v", rows, err)
	for column, want := range map[string]string{
		"report.goal.name": "Purchase", "report.conversionWindow.to": "168h", "goal.name": "Support",
		"conversionWindow.to": "",
	} {
		check.Equal(t, rows[1][slices.Index(rows[0], column)], want, "%s is", column)
	}
}
