package opinion

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema/schematest/scripts"

	"lifthouse/engine/effects"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// describe writes what was read: its variations, control first, with their numbers.
func describe(table *Table) string {
	var tests []string
	for _, t := range table.Tests {
		var said []string
		for i, s := range t.Samples {
			switch s := s.(type) {
			case stats.Rate:
				said = append(said, fmt.Sprintf("%s %d/%d", t.Variations[i], s.Converted, s.Visitors))
			case stats.Mean:
				said = append(said, fmt.Sprintf("%s %d:%.4g:%.4g", t.Variations[i], s.Visitors, s.Mean, s.Variance))
			}
		}
		text := t.Name + ": " + strings.Join(said, ", ")
		if t.Shipped > 0 {
			text += " shipped " + t.Variations[t.Shipped]
		}
		if t.Days > 0 {
			text += fmt.Sprintf(" %d days", t.Days)
		}
		tests = append(tests, text)
	}
	return strings.Join(tests, "; ")
}

// TestScripts runs the scripts of testdata/scripts: a file, or a text that is quoted as in Go, per line. -rewrite
// records what was read, or the first five faults and the last one.
func TestScripts(t *testing.T) {
	scripts.RunLines(t, func(t *testing.T, d *datadriven.TestData, line string) string {
		t.Helper()
		text := ""
		switch {
		case d.Cmd == "file":
			text = string(must.Get(os.ReadFile("testdata/" + line))(t))
		case line != `""`:
			quoted := strings.ReplaceAll(scripts.Expand(t, line, nil), `"`, `\"`)
			text = must.Get(strconv.Unquote(`"` + quoted + `"`))(t)
		}
		table, err := ReadTable(strings.NewReader(text))
		if err != nil {
			faults := strings.Split(err.Error(), "\n")
			if n := len(faults); n > 6 {
				faults = append(faults[:5], faults[n-1])
			}
			return strings.Join(faults, "\n  ")
		}
		o := New(table, .2)
		must.Get(json.Marshal(o))(t)
		check.Equal(t, len(o.Tests), len(table.Tests), "%s: tests", line)
		return describe(table)
	})
}

func FuzzTable(f *testing.F) {
	for _, name := range []string{
		"convert.csv", "vwo.csv", "optimizely.csv", "growthbook.csv", "posthog.tsv",
		"statsig.csv",
	} {
		f.Add(string(must.Get(os.ReadFile("testdata/" + name))(f)))
	}
	f.Add("name,A,B,shipped\nx,2:1e308:1e308,2:-1e308:0,1\ny,0/0,0/0,no\nz,1:1:1,1:1:1,yes")
	f.Add("variation,visitors,mean,sd,share\nA,1000000000000,1e-300,1e154,0\nB,3,-1,0,0")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadTable(strings.NewReader(text))
		if err != nil {
			return
		}
		o := New(table, .2)
		if _, err := json.Marshal(o); err != nil {
			t.Errorf("%v", err)
		}
		check.OK(t, o.WriteCSV(new(strings.Builder)))
	})
}

// TestOpinionEqualsItsParts compares an opinion with the fit of the same effects, and its sentence with the numbers.
func TestOpinionEqualsItsParts(t *testing.T) {
	table := must.Get(ReadTable(strings.NewReader(`name,control,B,days
Banner,500/10000,600/10000,28
Pictures,500/10000,520/10000,28
Split,500/10000,700/11000,28
Skewed,5000/100000,7000/104000,28
Search,500/10000,580/10000,28
`)))(t)
	o := New(table, .2)
	effect := func(x, n int64) stats.PooledEffect {
		return stats.NewPooledEffect([]stats.Stratum{{
			Control:   stats.Rate{Visitors: 10000, Converted: 500},
			Treatment: stats.Rate{Visitors: n, Converted: x},
		}})
	}
	all := [][]stats.PooledEffect{
		{effect(600, 10000)},
		{effect(520, 10000)},
		{effect(700, 11000)},
		{effect(580, 10000)},
	}
	fit := effects.NewFit(.2, all)
	var factors []float64 // from effects to lifts
	for i, shipped := range []bool{true, false, true, true} {
		e := fit.TrueEffect(i)
		factors = append(factors, 0)
		if shipped {
			factors[i] = effects.ExpectedLift(e, &fit.Effects[i]).Value / e.Mean
		}
	}
	total := fit.Total(factors)
	must.That(t, o.Total != nil, "%+v, want %+v", o.Total, total)
	check.Equal(t, o.Total.Shipped, 3, "%+v, want %+v", o.Total, total)
	check.That(t, math.Abs(o.Total.Expected-total.Mean) <= 1e-15, "%+v, want %+v", o.Total, total)
	check.Equal(t, o.Total.Interval, [2]float64{total.Lower, total.Upper}, "%+v, want %+v", o.Total, total)
	check.Equal(t, o.Tests[2].SampleRatio == nil, true, "an uneven split may be meant")
	ratio := o.Tests[3]
	must.That(t, ratio.SampleRatio != nil, "a mismatch: %+v", ratio)
	check.That(t, ratio.SampleRatio.Mismatch, "a mismatch: %+v", ratio)
	check.That(t, ratio.Treatments[0].Expected == nil, "a mismatch: %+v", ratio)
	check.Equal(t, ratio.Treatments[0].Reason, stats.ReasonSampleRatioMismatch, "a mismatch: %+v", ratio)
	check.That(t, !ratio.Treatments[0].Winner, "a mismatch: %+v", ratio)
	first := o.Tests[0].Treatments[0]
	comparison := stats.Compare(table.Tests[0].Samples[0], table.Tests[0].Samples[1:],
		stats.Options{SignificanceLevel: 95, NonNegative: true, Shares: []float64{1, 1}})[0]
	check.Equal(t, *first.PValue, *comparison.Frequentist.PValue, "%+v, want %+v", first, comparison)
	check.That(t, first.Concludes, "%+v, want %+v", first, comparison)
	check.Equal(t, *first.Lift.Value, *comparison.Lift.Value, "%+v, want %+v", first, comparison)
	check.Equal(t, o.Text, fmt.Sprintf("The lifts of 3 winners add up to +%.0f %%. Expect +%.0f %% to +%.0f %%. Of the 3, less than 1 is expected to do harm or nothing.", 100*(.2+.2727272727+.16), 100*total.Lower, 100*total.Upper), "the sentence")
	shipped := New(must.Get(ReadTable(strings.NewReader("name,A,B,shipped\nSkewed,5000/100000,7000/104000,yes\nSmall,5/50,9/50,yes\nFine,500/10000,600/10000,yes\n")))(t), .2)
	check.Equal(t, shipped.Total.Shipped, 1, "winners that can be judged")
	check.Equal(t, shipped.Sentences[1], "Shipped variations that cannot be judged, and are not counted: 2.", "the others")
	check.Equal(t, shipped.Tests[0].Treatments[0].Concludes, false, "a mismatch concludes")
	var file strings.Builder
	table.Tests[0].Name = "=HYPERLINK(1)"
	must.OK(t, New(table, .2).WriteCSV(&file))
	lines := strings.Split(file.String(), "\n")
	must.Equal(t, len(lines), 7, "%s", file.String())
	check.That(t, strings.HasPrefix(lines[1], "'=HYPERLINK(1),B,true,true,0.2"), "%s", file.String())
}

func opinionOf(t *testing.T, table string) *Opinion {
	t.Helper()
	return New(must.Get(ReadTable(strings.NewReader(table)))(t), .2)
}

// TestWinnersOnlyGetNoPromise has eight tests with p-values of .01 to .04.
func TestWinnersOnlyGetNoPromise(t *testing.T) {
	table := "name,control,B\n"
	for i := range 8 {
		table += fmt.Sprintf("Test %d,500/10000,%d/10000\n", i, 565+2*i)
	}
	o := opinionOf(t, table)
	check.That(t, strings.HasPrefix(o.Text, "All 8 tests that can be judged have a winner."), "%s", o.Text)
	check.Equal(t, o.Total == nil, true, "a total")
	check.Equal(t, o.Pool.Campaigns, 0, "tests in the pool")
	check.Equal(t, o.Required == nil, true, "required visitors")
	first := o.Tests[0].Treatments[0]
	check.Equal(t, first.Winner, true, "a winner")
	check.Equal(t, first.Expected == nil, true, "expected")
	check.Equal(t, first.Reason, reasonWinnersOnly)
	more := opinionOf(t, table+"Another,500/10000,505/10000\n")
	check.That(t, strings.HasPrefix(more.Text, "The lifts of 8 winners add up to +"), "%s", more.Text)
	check.Equal(t, more.Tests[0].Treatments[0].Expected != nil, true, "expected beside a test without a winner")
}

func TestReportedNumbersAreLifts(t *testing.T) {
	o := opinionOf(t, "name,control,B\nBanner,500/10000,585/10000\nPictures,500/10000,505/10000\n")
	check.That(t, strings.HasPrefix(o.Text, "You reported +17 %. Expect "), "%s", o.Text)
	check.That(t, strings.Contains(o.Text, "The chance that the winner does harm or nothing is "), "%s", o.Text)
}

func TestHarmfulRolloutsAreNoWinners(t *testing.T) {
	o := opinionOf(t, "name,control,B,shipped\nBanner,500/10000,585/10000,yes\nPictures,500/10000,400/10000,yes\nColours,500/10000,505/10000,no\n")
	check.Equal(t, o.Tests[1].Treatments[0].Shipped, true, "shipped")
	check.Equal(t, o.Tests[1].Treatments[0].Winner, false, "a winner")
	check.That(t, strings.HasPrefix(o.Text, "The lifts of 2 shipped variations add up to "), "%s", o.Text)
	check.That(t, slices.Contains(o.Sentences, "Shipped although behind control, and no winners: 1."), "%q",
		o.Sentences)
}

func TestRepeatedTests(t *testing.T) {
	table := must.Get(ReadTable(strings.NewReader("name,control,B\nBanner,500/10000,585/10000\nBanner,500/10000,585/10000\n")))(t)
	check.Equal(t, len(table.Tests), 1, "tests")
	check.That(t, slices.Equal(table.Notes, []string{"line 3: the test \"Banner\" repeats line 2, so it counts once"}),
		"%q", table.Notes)
	_, err := ReadTable(strings.NewReader("name,control,B\nBanner,500/10000,585/10000\nBanner,500/10000,600/10000\n"))
	must.That(t, err != nil, "%v", err)
	check.Contains(t, err.Error(), "line 2 has other numbers", "%v", err)
	_, err = ReadTable(strings.NewReader("test,variation,visitors,conversions\nBanner,A,10000,500\nBanner,B,10000,585\nBanner,B,10000,590\n"))
	must.That(t, err != nil, "%v", err)
	check.Contains(t, err.Error(), "stands twice", "%v", err)
}

func TestFindMarks(t *testing.T) {
	for _, test := range []struct {
		text                      string
		isCount, hasDecimalCommas bool
		decimal                   string
	}{
		{"1,234.5", false, false, "."},
		{"1.234,5", false, false, ","},
		{"1.234.567", false, false, ","},
		{"1.234", false, false, "."},
		{"1.234", true, false, ","},
		{"1.234", false, true, ","},
		{"1.23", true, true, "."},
		{"1,234", false, false, "."},
		{"1,234", false, true, ","},
		{"1,234", true, true, "."},
		{"1,23", false, false, ","},
		{"12", true, true, "."},
	} {
		decimal, _ := findMarks(test.text, test.isCount, test.hasDecimalCommas)
		check.Equal(t, decimal, test.decimal, "%+v", test)
	}
}

func TestFindSeparator(t *testing.T) {
	for text, want := range map[string]rune{
		"":                       ',',
		"a,b\n1,2":               ',',
		"a;b;c\n1,5;2,5;3":       ';',
		"a;b\n1,5;2,5,1":         ',',
		"a\tb\n1,5\t2;5":         '\t',
		"Title; a test\na,b,c\n": ',',
	} {
		check.Equal(t, findSeparator([]byte(text)), want, "%q", text)
	}
}

func TestMeanOf(t *testing.T) {
	for _, test := range []struct {
		numbers        map[role]float64
		mean, variance float64
		has            bool
	}{
		{map[role]float64{meanRole: 2, varianceRole: 9, deviationRole: 5}, 2, 9, true},
		{map[role]float64{meanRole: 2, deviationRole: 3}, 2, 9, true},
		{map[role]float64{meanRole: 2, deviationRole: -3}, 2, -9, true},
		{map[role]float64{visitorsRole: 3, totalRole: 6, squaresRole: 20}, 2, 4, true},
		{map[role]float64{meanRole: 2}, 0, 0, false},
		{map[role]float64{meanRole: 2, squaresRole: 20}, 0, 0, false},
	} {
		mean, variance, has := meanOf(test.numbers)
		check.Equal(t, mean, test.mean, "%v", test.numbers)
		check.Equal(t, variance, test.variance, "%v", test.numbers)
		check.Equal(t, has, test.has, "%v", test.numbers)
	}
}
