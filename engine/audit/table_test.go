package audit

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

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

func TestExportsOfProducts(t *testing.T) {
	for name, want := range map[string]string{
		"convert.csv":     "Checkout in one step: Original Page 602/12034, Variation 1 684/11987",
		"vwo.csv":         "Test of line 1: Control 1204/20110, Variation 1 1301/20043",
		"optimizely.csv":  "Search as you type: Original 2160/15201, Variation #1 2310/15120; Sticky header: Original 1980/14040, Variation #1 1944/13985",
		"growthbook.csv":  "Test of line 1: Control 10120:4.3:458, Free shipping bar 10090:4.59:510.8",
		"posthog.tsv":     "Test of line 1: control 8102:2:7.973, test 8170:2.1:8.382",
		"statsig.csv":     "new_onboarding: control 11800:100:201.6, test 11790:101.5:225; dark_mode: control 9050:99.6:207.4, test 9110:99.4:198.8",
		"intelligems.csv": "Price +5 %: Control 903/30112, Group B 842/29955",
		"personizely.csv": "Exit offer: Control 261/5210, Variant A 322/5188 shipped Variant A; Free gift: Control 190/4100, Variant A 195/4087",
	} {
		file := must.Get(os.Open("testdata/" + name))(t)
		table := must.Get(ReadTable(file))(t)
		check.Equal(t, describe(table), want, "%s", name)
		a := New(table, .2)
		must.Get(json.Marshal(a))(t)
		check.Equal(t, len(a.Tests), len(table.Tests), "%s: tests", name)
	}
}

func TestSpreadsheets(t *testing.T) {
	const want = "Banner: control 500/10000, treatment 560/10000 shipped treatment"
	for text, want := range map[string]string{
		"name,control,treatment,shipped\nBanner,500/10000,560/10000,yes":                                                                               want,
		"\ufeffNAME;Control;Treatment;Shipped\r\nBanner;500 / 10.000;560/10\u202f000;1\r\n":                                                            strings.NewReplacer("control", "Control", "treatment", "Treatment").Replace(want),
		"name\tcontrol visitors\tcontrol conversions\ttreatment visitors\ttreatment conversions\tshipped\nBanner\t10,000\t500\t10'000\t560\tTreatment": want,
		"test;variation;visitors;conversion rate;days\nA;B;2.000;6,05 %;14 days\nA;Control;2.000;5,00 %;14\nA;Gesamt;4.000;5,5 %;":                     "A: Control 100/2000, B 121/2000 14 days",
		"test,variant,users,mean,std dev\nA,x,\"1,000\",\"$1,234\",2.5\nA,y,1000,1240.5,2":                                                             "A: x 1000:1234:6.25, y 1000:1240:4",
		"test;variant;users;mean;std dev\nA;x;1.000;1,234;2,5\nA;y;1000;1,24;2":                                                                        "A: x 1000:1.234:6.25, y 1000:1.24:4",
		"First\nvariation,visitors,conversions\nA,1000,50\nB,1000,60\n\nSecond\nvariation,visitors,conversions\nA,2000,50\nB,2000,60":                  "First: A 50/1000, B 60/1000; Second: A 50/2000, B 60/2000",
		"variation,n,total,sum of squares\nA,1000,3000,10000\nB,1000,3100,11000":                                                                       "Test of line 1: A 1000:3:1.001, B 1000:3.1:1.391",
		"name,A,B,C,shipped\nx,5/100,,7/110,1\ny,5/100,6/100,7/100,2":                                                                                  "x: A 5/100, C 7/110 shipped C; y: A 5/100, B 6/100, C 7/100 shipped C",
	} {
		table, err := ReadTable(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		check.Equal(t, describe(table), want, "%q", text)
	}
}

// TestFaultsOfTables checks that what cannot be read is named by line, all at once, and that hostile tables do no harm.
func TestFaultsOfTables(t *testing.T) {
	const header = "test,variation,visitors,conversions\n"
	for text, want := range map[string][]string{
		"":             {"header: must have name, control"},
		"a,b\n1,2":     {"header: must have"},
		header:         {"file: must have at least one test"},
		"Title\nOther": {"header: must have"},
		header + "A,x,ten,5\nA,y,1e3,=1+1\nB,x,-5,1\nB,y,5,7\nC,x,100,5":           {`line 2: visitors: "ten": is not a number`, `line 3: conversions: "=1+1": is not a number`, `line 4: visitors: "-5": must be an integer`, "line 5: y: has 7 converted of 5 visitors", `line 6: variations: "C": must be 2 to 21`},
		header + "A,x,NaN,5\nA,y,Inf,5\nA,z,1e308,5\nA,w,1e999,5\nA,v,0x10,5":      {`"NaN": is not a number`, `"Inf": is not a number`, `"1e308": must be an integer from 0 to 1000000000000`, `"1e999": must be at most 1.8e308`, `"0x10": is not a number`},
		header + "A,x,100,5\nA,y,100,1.5":                                          {`line 3: conversions: "1.5": must be an integer`},
		"test,variation,visitors,conversion rate\nA,x,1000,5\nA,y,1000,6":          {`line 2: conversion rate: "5": must be a fraction, or have the sign %`},
		"test,variation,visitors,mean\nA,x,1000,5":                                 {"line 2: x: must have conversions, or a mean"},
		"name,A,B,shipped\nx,5/100,6/100,maybe\ny,5/100,10:2:1,no\nz,5-100,6/100,": {`line 2: shipped: "maybe": must be yes, no`, "line 3: B: must be like control", `line 4: A: "5-100": must be converted/visitors`},
		strings.Repeat("x", maxBytes+1):                                            {"file: must have at most 5242880 bytes"},
		"name,A,B\n" + strings.Repeat("x,5/100,6/100\n", maxTests+1):               {"file: must have at most 1000 tests"},
		"name,A,B,C,D\n" + strings.Repeat("x,5/100,6/100,6/100,6/100\n", 700):      {"file: must have at most 2000 treatments, has 2100"},
		header + strings.Repeat("A,x,ten,5\n", 300):                                {"file: \"\": 200 more faults"},
	} {
		_, err := ReadTable(strings.NewReader(text))
		for _, w := range want {
			check.That(t, err != nil && strings.Contains(err.Error(), w), "%.200q: %v, want %q", text, err, w)
		}
	}
}

func FuzzTable(f *testing.F) {
	for _, name := range []string{"convert.csv", "vwo.csv", "optimizely.csv", "growthbook.csv", "posthog.tsv", "statsig.csv"} {
		f.Add(string(must.Get(os.ReadFile("testdata/" + name))(f)))
	}
	f.Add("name,A,B,shipped\nx,2:1e308:1e308,2:-1e308:0,1\ny,0/0,0/0,no\nz,1:1:1,1:1:1,yes")
	f.Add("variation,visitors,mean,sd,share\nA,1000000000000,1e-300,1e154,0\nB,3,-1,0,0")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadTable(strings.NewReader(text))
		if err != nil {
			return
		}
		a := New(table, .2)
		if _, err := json.Marshal(a); err != nil {
			t.Errorf("%v", err)
		}
		if err := a.WriteCSV(new(strings.Builder)); err != nil {
			t.Error(err)
		}
	})
}

// TestAuditEqualsItsParts compares an audit with the fit of the same effects, and its sentence with the numbers.
func TestAuditEqualsItsParts(t *testing.T) {
	table := must.Get(ReadTable(strings.NewReader(`name,control,B,days
Banner,500/10000,600/10000,28
Pictures,500/10000,520/10000,28
Split,500/10000,700/11000,28
Skewed,5000/100000,7000/104000,28
Search,500/10000,580/10000,28
`)))(t)
	a := New(table, .2)
	effect := func(x, n int64) stats.PooledEffect {
		return stats.NewPooledEffect([]stats.Stratum{{Control: stats.Rate{Visitors: 10000, Converted: 500}, Treatment: stats.Rate{Visitors: n, Converted: x}}})
	}
	all := [][]stats.PooledEffect{{effect(600, 10000)}, {effect(520, 10000)}, {effect(700, 11000)}, {effect(580, 10000)}}
	fit := effects.NewFit(.2, all)
	total := fit.Total([]float64{1, 0, 1, 1})
	check.That(t, a.Total != nil && a.Total.Shipped == 3 && math.Abs(a.Total.Expected-total.Mean) <= 1e-15 && a.Total.Interval == [2]float64{total.Lower, total.Upper},
		"%+v, want %+v", a.Total, total)
	check.Equal(t, a.Tests[2].SampleRatio == nil, true, "an uneven split may be meant")
	ratio := a.Tests[3]
	check.That(t, ratio.SampleRatio != nil && ratio.SampleRatio.Mismatch && ratio.Treatments[0].Expected == nil && ratio.Treatments[0].Reason == stats.ReasonSampleRatioMismatch && !ratio.Treatments[0].Winner,
		"a mismatch: %+v", ratio)
	first := a.Tests[0].Treatments[0]
	comparison := stats.Compare(table.Tests[0].Samples[0], table.Tests[0].Samples[1:], stats.Options{SignificanceLevel: 95, NonNegative: true, Shares: []float64{1, 1}})[0]
	check.That(t, *first.PValue == *comparison.Frequentist.PValue && first.Concludes && *first.Power > .5 && *first.Lift.Value == *comparison.Lift.Value,
		"%+v, want %+v", first, comparison)
	check.Equal(t, a.Text, fmt.Sprintf("You reported +%.0f %%. Expect +%.0f %% to +%.0f %%. All 3 winners are probably worth something.", 100*a.Total.Observed, 100*total.Lower, 100*total.Upper), "the sentence")
	shipped := New(must.Get(ReadTable(strings.NewReader("name,A,B,shipped\nSkewed,5000/100000,7000/104000,yes\nSmall,5/50,9/50,yes\nFine,500/10000,600/10000,yes\n")))(t), .2)
	check.Equal(t, shipped.Total.Shipped, 1, "winners that can be judged")
	check.Equal(t, shipped.Sentences[1], "Winners that cannot be judged, and are not counted: 2.", "the others")
	check.Equal(t, shipped.Tests[0].Treatments[0].Concludes, false, "a mismatch concludes")
	var file strings.Builder
	table.Tests[0].Name = "=HYPERLINK(1)"
	must.OK(t, New(table, .2).WriteCSV(&file))
	if lines := strings.Split(file.String(), "\n"); len(lines) != 7 || !strings.HasPrefix(lines[1], "'=HYPERLINK(1),B,true,0.2") {
		t.Errorf("%s", file.String())
	}
}
