package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// newTestSize returns the relation of a rate of 5 % and an even split.
func newTestSize(t *testing.T, change func(*SamplePlan)) *SampleSize {
	t.Helper()
	plan := SamplePlan{Control: Rate{Visitors: 10_000, Converted: 500}, Shares: []float64{1, 1}, Looks: 4, Power: .8}
	change(&plan)
	s, reason := NewSampleSize(plan, NewLookDesign(.05, plan.Shares))
	must.Equal(t, reason, "")
	return s
}

func TestDrift(t *testing.T) {
	for _, power := range []float64{.8, .9} {
		var inflation []float64
		for _, looks := range []int{1, 2, 4, 8} {
			s := newTestSize(t, func(p *SamplePlan) { p.Looks, p.Power = looks, power })
			single := normalQuantile(.025) + normalQuantile(1-power)
			inflation = append(inflation, s.theta*s.theta/single/single)
			if looks == 4 && power == .8 {
				equal(t, []float64{s.theta}, []float64{2.8539}, 1e-4)
			}
		}
		want := []float64{1.016, 1.025, 1.038, 1.049}
		if power == .9 {
			want = []float64{1.014, 1.022, 1.034, 1.044}
		}
		equal(t, inflation, want, 1e-3)
	}
}

func TestBayesianDrift(t *testing.T) {
	for deviation, want := range map[float64][]float64{ // in lifts to detect
		1 / 1.96: {1.26, 1.25, 1.23, 1.20},
		.2474:    {1.77, 1.77, 1.76, 1.74}, // that of a first campaign
	} {
		var inflation []float64
		for _, looks := range []int{1, 2, 4, 8} {
			s := newTestSize(t,
				func(p *SamplePlan) { p.Looks, p.Prior = looks, &Prior{StandardDeviation: .1 * deviation} })
			single := normalQuantile(.025) + normalQuantile(.2)
			theta := s.driftOfLift(.1)
			inflation = append(inflation, theta*theta/single/single)
		}
		equal(t, inflation, want, 1e-2)
	}
}

// powerOnGrid returns the probability of an upward crossing under the drift itself: the density of Z under the drift on
// a uniform grid, without the likelihood ratio.
func powerOnGrid(s *SampleSize, theta float64, upper []float64) (power float64) {
	const n = 1500
	at, mass, last := []float64{0}, []float64{1}, 0.0
	for k, tau := range s.tau {
		sd, mean, root := math.Sqrt(tau-last), theta*(tau-last), math.Sqrt(tau)
		for j, y := range at {
			power += mass[j] * math.Erfc((upper[k]*root-y-mean)/sd/math.Sqrt2) / 2
		}
		low := -s.critical[k] * root
		step := (upper[k]*root - low) / n
		next, weight := make([]float64, n+1), make([]float64, n+1)
		for i := range next {
			next[i] = low + float64(i)*step
			simpson := float64(2 + 2*(i%2))
			if i == 0 || i == n {
				simpson = 1
			}
			for j, y := range at {
				u := (next[i] - y - mean) / sd
				weight[i] += mass[j] * math.Exp(-u*u/2) / (sd * math.Sqrt(2*math.Pi)) * simpson * step / 3
			}
		}
		at, mass, last = next, weight, tau
	}
	return power
}

// TestDriftByAnotherIntegration recomputes the power of effects above and below 0.
func TestDriftByAnotherIntegration(t *testing.T) {
	for _, prior := range []*Prior{nil, {StandardDeviation: .1 / 1.96}, {Mean: .02, StandardDeviation: .03}} {
		s := newTestSize(t, func(p *SamplePlan) { p.Prior = prior })
		theta := s.driftOfLift(.1)
		power := powerOnGrid(s, theta, s.upperBounds(.1/theta))
		check.That(t, math.Abs(power-.8) <= 1e-9, "prior %v: power %.12f, want .8", prior, power)
		for _, lift := range []float64{-.05, -.01, .03} {
			const visitors = 20_000
			se, _ := s.standardError(lift, visitors)
			got, reason := s.PowerAt(lift, visitors)
			want := powerOnGrid(s, lift/se, s.upperBounds(se))
			check.Equal(t, reason, "", "prior %v, lift %v: power %.12f, want %.12f", prior, lift, *got, want)
			check.That(t, math.Abs(*got-want) <= 1e-9, "prior %v, lift %v: power %.12f, want %.12f", prior, lift, *got,
				want)
		}
	}
}

// TestSampleSizeOfRates compares with the formula: theta² times the larger variance.
func TestSampleSizeOfRates(t *testing.T) {
	for _, shares := range [][]float64{{.5, .5}, {.05, .95}, {.95, .05}} {
		s := newTestSize(t, func(p *SamplePlan) { p.Shares = shares })
		const pc, pt = .05, .06
		pooled := shares[0]*pc + shares[1]*pt
		v := math.Max(pc*(1-pc)/shares[0]+pt*(1-pt)/shares[1], pooled*(1-pooled)*(1/shares[0]+1/shares[1]))
		want := s.theta * s.theta * v / (.01 * .01)
		got, _ := s.RequiredVisitors(.2)
		check.That(t, math.Abs(float64(*got)-want) <= 1.001, "shares %v: %d, want %.1f", shares, *got, want)
		effect, _ := s.DetectableLift(want)
		power, _ := s.PowerAt(.2, want)
		check.That(t, math.Abs(*effect-.2) <= 1e-7, "shares %v: effect %v and power %v at the required sample", shares,
			*effect, *power)
		check.That(t, math.Abs(*power-.8) <= 1e-7, "shares %v: effect %v and power %v at the required sample", shares,
			*effect, *power)
	}
}

func TestSampleSizeOfMeans(t *testing.T) {
	control := Mean{Visitors: 1000, Mean: 2, Variance: 100, Nonzero: 100}
	s := newTestSize(t, func(p *SamplePlan) { p.Control, p.Shares = control, []float64{1, 3} })
	got, _ := s.RequiredVisitors(.1)
	// Every value is 10 % larger, so the variance of the treatment is 121, and the pooled one (100 + 3 * 121) / 4.
	want := s.theta * s.theta * math.Max(400+121*4./3, 115.75*(4+4./3)) / .04
	check.That(t, math.Abs(float64(*got)-want) <= 1, "%d, want %v", *got, want)
	for _, prior := range []*Prior{nil, {StandardDeviation: .1 / 1.96}} {
		s.plan.Prior = prior
		required, _ := s.RequiredVisitors(.1)
		effect, _ := s.DetectableLift(float64(*required))
		power, _ := s.PowerAt(.1, float64(*required))
		if math.Abs(*effect-.1) > 1e-5 || math.Abs(*power-.8) > 1e-5 {
			t.Errorf("prior %v: effect %v, power %v at the required %d", prior, *effect, *power, *required)
		}
	}
}

func TestRequiredForMargin(t *testing.T) {
	s := newTestSize(t, func(*SamplePlan) {})
	base := s.theta * s.theta * .05 * .95
	for _, test := range []struct {
		margin    Margin
		low, high float64
	}{
		{Margin{Absolute: .005}, base * 4 / (.005 * .005), base * 4.01 / (.005 * .005)},
		{Margin{Relative: .1}, base * 2 * (1 + .81) / (.005 * .005), base * 2 * 1.9 / (.005 * .005)},
		{Margin{Relative: .1, Down: true}, base * 2 * (1 + 1.21) / (.005 * .005), base * 2 * 2.3 / (.005 * .005)},
	} {
		got, reason := s.RequiredForMargin(test.margin)
		check.Equal(t, reason, "", "%+v: %d %s, want %.0f to %.0f", test.margin, *got, reason, test.low, test.high)
		check.That(t, float64(*got) >= test.low, "%+v: %d %s, want %.0f to %.0f", test.margin, *got, reason, test.low,
			test.high)
		check.That(t, float64(*got) <= test.high, "%+v: %d %s, want %.0f to %.0f", test.margin, *got, reason, test.low,
			test.high)
	}
	got, reason := s.RequiredForMargin(Margin{})
	check.That(t, got == nil, "no margin: %v %v", got, reason)
	check.Equal(t, reason, ReasonInvalidData, "no margin: %v %v", got, reason)
}

func TestSampleProgress(t *testing.T) {
	s := newTestSize(t, func(*SamplePlan) {})
	required, _ := s.RequiredVisitors(.2)
	p := s.ProgressTowards(.2, *required/2, 1000)
	remaining := *required - *required/2
	check.Equal(t, *p.RemainingVisitors, remaining, "%+v", p)
	check.Equal(t, *p.DaysRemaining, (remaining+999)/1000, "%+v", p)
	check.That(t, math.Abs(*p.Progress-.5) <= .001, "%+v", p)
	check.Equal(t, p.Reason, "", "%+v", p)
	check.That(t, *p.MinimumDetectableEffect > .25, "half of the sample: effect %v, power %v",
		*p.MinimumDetectableEffect, *p.Power)
	check.That(t, *p.MinimumDetectableEffect < .32, "half of the sample: effect %v, power %v",
		*p.MinimumDetectableEffect, *p.Power)
	check.That(t, *p.Power > .4, "half of the sample: effect %v, power %v", *p.MinimumDetectableEffect, *p.Power)
	check.That(t, *p.Power < .6, "half of the sample: effect %v, power %v", *p.MinimumDetectableEffect, *p.Power)
	if p = s.ProgressTowards(.2, *required, 0); *p.DaysRemaining != 0 || *p.Progress != 1 || p.Reason != "" {
		t.Errorf("reached: %+v", p)
	}
	if p = s.ProgressTowards(.2, 1, 0); p.DaysRemaining != nil || p.Reason != ReasonNoTraffic {
		t.Errorf("no traffic: %+v", p)
	}
	if p = s.ProgressTowards(30, 0, 0); p.RequiredVisitors != nil || p.Reason != ReasonLiftImpossible {
		t.Errorf("impossible lift: %+v", p)
	}
	if p = s.ProgressTowards(.2, 2, 0); p.MinimumDetectableEffect != nil {
		t.Errorf("two visitors detect %v", *p.MinimumDetectableEffect)
	}
}

func TestNoSampleSize(t *testing.T) {
	valid := SamplePlan{
		Control: Mean{Visitors: 100, Mean: 1, Variance: 1}, Shares: []float64{1, 1}, Looks: 1,
		Power: .8,
	}
	for _, test := range []struct {
		alpha  float64
		change func(*SamplePlan)
		reason Reason
	}{
		{0, func(*SamplePlan) {}, ReasonLevel100},
		{.05, func(p *SamplePlan) { p.Control = Rate{} }, ReasonNoVisitors},
		{.05, func(p *SamplePlan) { p.Control = Rate{Visitors: 9} }, ReasonBaselineZero},
		{.05, func(p *SamplePlan) { p.Control = Mean{Visitors: 9, Mean: 1} }, ReasonZeroVariance},
		{.05, func(p *SamplePlan) { p.Control = Mean{Visitors: 1, Mean: 1} }, ReasonTooFewVisitors},
		{.05, func(p *SamplePlan) { p.Shares = []float64{0, 1} }, ReasonNoTraffic},
		{.05, func(p *SamplePlan) { p.Shares = nil }, ReasonNoTraffic},
		{.05, func(p *SamplePlan) { p.Shares = []float64{1, -1} }, ReasonInvalidData},
		{.05, func(p *SamplePlan) { p.Power = 1 }, ReasonInvalidData},
		{.05, func(p *SamplePlan) { p.Looks = 0 }, ReasonInvalidData},
		{.05, func(p *SamplePlan) { p.Prior = &Prior{} }, ReasonInvalidData},
	} {
		plan := valid
		test.change(&plan)
		s, reason := NewSampleSize(plan, NewLookDesign(test.alpha, plan.Shares))
		check.That(t, s == nil, "%+v: %v, want %v", plan, reason, test.reason)
		check.Equal(t, reason, test.reason, "%+v: %v, want %v", plan, reason, test.reason)
	}
}

// singleLook returns the relation for one look that spends all of alpha.
func singleLook(t *testing.T, control Sample, shares []float64, alpha, power float64) *SampleSize {
	t.Helper()
	design := NewLookDesign(alpha, shares)
	s, reason := NewSampleSize(SamplePlan{Control: control, Shares: shares, Looks: 1, Power: power}, design)
	must.Equal(t, reason, "")
	s.theta = normalQuantile(design.Level/2) + normalQuantile(1-power)
	return s
}

// unpooled returns the variance of the difference of each variation's own variance, times the number of visitors.
func (s *SampleSize) unpooled(lift float64) float64 {
	m, vc := s.plan.Control.observedValue(), s.plan.Control.variance()
	vt := vc
	if _, rate := s.plan.Control.(Rate); rate {
		vt = m * (1 + lift) * (1 - m*(1+lift))
	}
	return vc/s.shares[0] + vt/s.shares[1]
}

// TestSampleSizeVectors compares with samples for one look. Those of rates have the variance of each variation, which
// may be below the pooled one.
func TestSampleSizeVectors(t *testing.T) {
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
			}
		}
	}
	readVectors(t, "power.json", &file)
	w := worst{name: "power.json (z)"}
	for _, v := range file.Vectors {
		in, want := v.Input, v.Expected.Mean
		var control Sample = Mean{Visitors: 1e12, Mean: in.Mean, Variance: in.SD * in.SD}
		raised := 1.0 // the variance of larger values; that of the vectors is of more buyers of the same values
		if v.Kind == "mean" {
			raised = (in.Control*(1+in.MDE)*(1+in.MDE) + 1 - in.Control)
		}
		if v.Kind == "proportion" {
			control, want = Rate{Visitors: 1e12, Converted: int64(math.Round(1e12 * in.Baseline))}, v.Expected.Unpooled
		}
		s := singleLook(t, control, []float64{in.Control, 1 - in.Control}, in.Alpha, in.Power)
		distance := in.MDE * control.observedValue()
		w.check(t, "n", s.theta*s.theta*s.unpooled(in.MDE)/(distance*distance), want, 1e-9)
		required, _ := s.RequiredVisitors(in.MDE)
		if got := float64(*required); got < want-1e-6*want || got > 2*want+1 || v.Kind == "mean" &&
			math.Abs(got-want*raised) > 1e-9*want+1 {
			t.Errorf("%s, %+v: %v required, want %v or, for an uneven split of rates, more", v.Kind, in, got, want)
		}
	}
	w.log(t, len(file.Vectors))
}

// TestPowerCurve compares the power of many lifts with that of each. Under a prior, the paths of all lifts are those of
// one, so the power differs a little, least near that lift.
func TestPowerCurve(t *testing.T) {
	for _, sample := range []Sample{
		Rate{Visitors: 4000, Converted: 100}, Mean{Visitors: 4000, Mean: 2.5, Variance: 60},
	} {
		for _, prior := range []*Prior{nil, {StandardDeviation: .1}, {StandardDeviation: .2, Mean: -.02}} {
			for _, looks := range []int{1, 4, 12} {
				size, reason := NewSampleSize(SamplePlan{
					Control: sample, Shares: []float64{50, 30, 20}, Looks: looks, Power: .8, Prior: prior,
				}, NewLookDesign(.05, []float64{50, 30, 20}))
				must.Equal(t, reason, "", "a plan")
				n := 20_000.0 * float64(looks)
				detectable, _ := size.DetectableLift(n)
				powerAt := size.PowerCurve(n, detectable)
				most := 1e-6
				if prior != nil {
					most = .01
				}
				for lift := -.5; lift < 2; lift += .0301 {
					want, _ := size.PowerAt(lift, n)
					check.That(t, math.Abs(powerAt(lift)-*want) <= most, "%T, %+v, %d looks: the power at %v is %v, want %v",
						sample, prior, looks, lift, powerAt(lift), *want)
				}
				if detectable != nil {
					check.That(t, math.Abs(powerAt(*detectable)-.8) <= 1e-6, "%T, %+v, %d looks: the power at %v is %v",
						sample, prior, looks, *detectable, powerAt(*detectable))
				}
				check.Equal(t, powerAt(0), 0, "power without a lift")
				check.Equal(t, powerAt(-1), 0, "power of a lift that ends all")
			}
		}
	}
}
