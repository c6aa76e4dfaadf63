package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestSafe(t *testing.T) {
	analyze := func(n, xc, xt int64) LookResult {
		return newLooked(.05, 1, 1).Analyze(1, even(n, xc, xt), true)
	}
	for _, test := range []struct {
		name   string
		margin Margin
		look   LookResult
		want   bool
	}{
		{"few", Margin{Relative: .1}, analyze(50, 5, 5), false},
		{"open", Margin{Relative: .1}, analyze(1000, 100, 100), false},
		{"safe", Margin{Relative: .05}, analyze(20_000, 4000, 4000), true},
		{"loss", Margin{Relative: .05}, analyze(20_000, 4000, 3800), false},
		{"less is better", Margin{Relative: .1, Down: true}, analyze(10_000, 2000, 1000), true},
		{"less is better, and more came", Margin{Relative: .1, Down: true}, analyze(10_000, 1000, 2000), false},
		{"in units", Margin{Absolute: .02}, analyze(10_000, 2000, 2000), true},
		{"in units, small", Margin{Absolute: .005}, analyze(10_000, 2000, 2000), false},
	} {
		check.Equal(t, test.margin.IsSafe(test.look), test.want, "%v", test.name)
	}
}

func TestHarm(t *testing.T) {
	rule := HarmRule{Alpha: .05, Treatments: 1, Guardrails: 1, PlannedVisitors: 20_000}
	for _, test := range []struct {
		name          string
		margin        Margin
		strata        []Stratum
		below, breaks bool
		reason        Reason
	}{
		{"few", Margin{Relative: .1}, even(50, 5, 5), false, false, ReasonTooFewVisitors},
		{"harmless", Margin{Relative: .1}, even(10_000, 2000, 2000), false, false, ""},
		{"half", Margin{Relative: .1}, even(10_000, 2000, 1000), true, true, ""},
		{"a little", Margin{Relative: .02}, even(40_000, 8000, 7200), true, false, ""},
		{"more is worse", Margin{Relative: .1, Down: true}, even(10_000, 1000, 2000), true, true, ""},
		{"in units", Margin{Absolute: .01}, even(10_000, 2000, 1000), true, true, ""},
		{"in units, a little", Margin{Absolute: .004}, even(40_000, 8000, 7200), true, false, ""},
		{"two periods", Margin{Relative: .1}, append(even(10_000, 2000, 1000), even(10_000, 1000, 600)...), true, true, ""},
	} {
		h := test.margin.HarmBound(test.strata, true, rule)
		check.That(t, h.Below == test.below && h.Breaks == test.breaks && h.Reason == test.reason, "%s: %+v", test.name, h)
	}
	rule.Alpha = 0
	if h := (Margin{Relative: .1}).HarmBound(even(1000, 100, 1), true, rule); h.Below || h.Reason != ReasonLevel100 {
		t.Errorf("level 100: %+v", h)
	}
}

// TestHarmBound checks the bound of a mean, d + k SE, with the critical value k of a sequence whose two sides have
// twice the error rate.
func TestHarmBound(t *testing.T) {
	control := Mean{Visitors: 4000, Mean: 10, Variance: 100, Nonzero: 4000}
	treatment := Mean{Visitors: 4000, Mean: 9, Variance: 100, Nonzero: 4000}
	h := Margin{Absolute: .1}.HarmBound([]Stratum{{Control: control, Treatment: treatment}}, true, HarmRule{Alpha: .05, Treatments: 2, Guardrails: 3})
	a := 2 * .1 * .05 / (2 * 4)
	rho2 := (-2*math.Log(a) + math.Log(1-2*math.Log(a))) / 5000
	k := math.Sqrt((8000*rho2 + 1) / (8000 * rho2) * math.Log((8000*rho2+1)/(a*a)))
	want := -1 + k*math.Sqrt(.05)
	check.That(t, math.Abs(*h.Upper-want) <= 1e-9, "%v, want %v", *h.Upper, want)
}
