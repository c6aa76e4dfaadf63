package stats

import (
	"math"
	"testing"
)

func TestPowerVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Kind  string
			Input struct {
				Baseline, Mean, SD, Alpha, Power float64
				MDE                              float64 `json:"mde_rel"`
				Control                          float64 `json:"control_share"`
			}
			Expected struct {
				Unpooled float64 `json:"n_total_unpooled_z"`
				Mean     float64 `json:"n_total_z"`
				Power    float64 `json:"power_at_ceil_unpooled"`
			}
		}
	}
	readVectors(t, "power.json", &file)
	w := worst{name: "power.json (unpooled z)"}
	for _, v := range file.Vectors {
		in := v.Input
		s := sizing{rate: v.Kind == "proportion", mean: in.Mean, variance: in.SD * in.SD}
		want := v.Expected.Mean
		if s.rate {
			s.mean, s.variance, want = in.Baseline, in.Baseline*(1-in.Baseline), v.Expected.Unpooled
		}
		s.power = normalQuantile(1 - in.Power)
		if reason := s.divide([]float64{in.Control, 1 - in.Control}, in.Alpha, MethodologyFrequentist); reason != "" {
			t.Fatal(reason)
		}
		vt, reason := s.lifted(in.MDE)
		if reason != "" {
			t.Fatal(reason)
		}
		z := s.critical + s.power
		w.check(t, "n", z*z*s.spread(vt)/(in.MDE*s.mean*in.MDE*s.mean), want, 1e-9)
		// The equation solved for mde and for power returns the plan's values.
		mde, _ := s.detectable(want)
		w.check(t, "mde", mde, in.MDE, 1e-9)
		var out PowerReport
		s.require(Plan{MinimumEffect: in.MDE, Visitors: int64(math.Ceil(want))}, &out)
		if *out.RequiredVisitors != int64(math.Ceil(want)) || *out.Progress != 1 || *out.RemainingVisitors != 0 {
			t.Errorf("required %d, progress %v, want %v and 1", *out.RequiredVisitors, *out.Progress, want)
		}
		if *out.Power < in.Power-1e-12 || *out.Power > in.Power+0.01 {
			t.Errorf("power at the required sample = %v, want %v", *out.Power, in.Power)
		}
	}
	w.log(t, len(file.Vectors))
}

func TestPower(t *testing.T) {
	o := Options{SignificanceLevel: 95}
	plan := Plan{
		Control: Rate{Visitors: 1000, Converted: 100}, Shares: []float64{50, 50},
		Visitors: 2000, MinimumEffect: 0.2, Power: 0.8, VisitorsPerDay: 300,
	}
	with := func(change func(*Plan)) Plan {
		changed := plan
		change(&changed)
		return changed
	}
	got := Power(plan, o)
	// (1.959964 + 0.841621)² (.09 + .1056) / (.5 * .02²) = 7676.2
	if *got.RequiredVisitors != 7677 || *got.RemainingVisitors != 5677 || *got.DaysRemaining != 19 {
		t.Errorf("Power = %d required, %d remaining, %d days", *got.RequiredVisitors, *got.RemainingVisitors, *got.DaysRemaining)
	}
	three := Power(with(func(p *Plan) { p.Shares = []float64{1, 1, 1} }), o)
	if *three.RequiredVisitors <= *got.RequiredVisitors*3/2 {
		t.Errorf("two treatments need %d, which is too few for the family", *three.RequiredVisitors)
	}
	bayes := Power(with(func(p *Plan) { p.Shares = []float64{1, 1, 1} }), Options{SignificanceLevel: 95, Methodology: MethodologyBayesian})
	if *bayes.RequiredVisitors >= *three.RequiredVisitors {
		t.Errorf("Bayesian needs %d, frequentist %d", *bayes.RequiredVisitors, *three.RequiredVisitors)
	}
	tests := []struct {
		name   string
		plan   Plan
		reason Reason
	}{
		{"no visitors", with(func(p *Plan) { p.Control = Rate{} }), ReasonNoVisitors},
		{"nil control", with(func(p *Plan) { p.Control = nil }), ReasonNoVisitors},
		{"no conversion", with(func(p *Plan) { p.Control = Rate{Visitors: 9} }), ReasonBaselineZero},
		{"all converted", with(func(p *Plan) { p.Control = Rate{Visitors: 9, Converted: 9} }), ReasonLiftImpossible},
		{"lift beyond 1", with(func(p *Plan) { p.Control = Rate{Visitors: 10, Converted: 9} }), ReasonLiftImpossible},
		{"one visitor", with(func(p *Plan) { p.Control = Mean{Visitors: 1, Mean: 3} }), ReasonTooFewVisitors},
		{"constant", with(func(p *Plan) { p.Control = Mean{Visitors: 5, Mean: 3} }), ReasonZeroVariance},
		{"no shares", with(func(p *Plan) { p.Shares = nil }), ReasonNoTraffic},
		{"control alone", with(func(p *Plan) { p.Shares = []float64{100, 0} }), ReasonNoTraffic},
		{"no control", with(func(p *Plan) { p.Shares = []float64{0, 100} }), ReasonNoTraffic},
		{"no traffic", with(func(p *Plan) { p.VisitorsPerDay = 0 }), ReasonNoTraffic},
		{"mde 0", with(func(p *Plan) { p.MinimumEffect = 0 }), ReasonInvalidData},
		{"power 1", with(func(p *Plan) { p.Power = 1 }), ReasonInvalidData},
		{"nobody yet", with(func(p *Plan) { p.Visitors = 0 }), ReasonNoVisitors},
		{"NaN share", with(func(p *Plan) { p.Shares = []float64{1, math.NaN()} }), ReasonInvalidData},
		{"tiny mean", with(func(p *Plan) { p.Control = Mean{Visitors: 5, Mean: 1e-200, Variance: 1} }), ReasonBaselineNotDistinguishable},
		{"tiny sample", with(func(p *Plan) { p.Visitors = 1 }), ReasonLiftImpossible},
	}
	for _, test := range tests {
		if got := Power(test.plan, o).Reason; got != test.reason {
			t.Errorf("%s: reason %q, want %q", test.name, got, test.reason)
		}
	}
	if got := Power(plan, Options{SignificanceLevel: 100}).Reason; got != ReasonLevel100 {
		t.Errorf("level 100: reason %q", got)
	}
}
