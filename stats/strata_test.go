package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// randomStratum returns a stratum of rates, even means or uneven means.
func randomStratum(r *rand.Rand, kind int) Stratum {
	size := func() int64 { return 100 + int64(math.Exp(r.Float64()*8)) }
	nc, nt := size(), size()
	if kind == 0 {
		rate, lift := math.Exp(-5*r.Float64()), math.Exp(.3*r.NormFloat64())
		converted := func(n int64, p float64) int64 {
			mean := float64(n) * math.Min(p, 1)
			return max(0, min(n, int64(math.Round(mean+r.NormFloat64()*math.Sqrt(mean)))))
		}
		return Stratum{Control: Rate{nc, converted(nc, rate)}, Treatment: Rate{nt, converted(nt, rate*lift)}}
	}
	mean := func(n int64) Mean {
		v := math.Exp(2 * r.NormFloat64())
		return Mean{Visitors: n, Mean: 1 + r.NormFloat64()*3*math.Sqrt(v/float64(n)), Variance: v, Nonzero: n}
	}
	share := .5
	if kind == 2 {
		share = .1
	}
	return Stratum{Control: mean(nc), Treatment: mean(nt), SmallerShare: share}
}

// TestZOfDifference compares the score statistic with restricted estimates that maximize the likelihood on a grid that
// is refined.
func TestZOfDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		nt, nc := float64(10+r.IntN(500)), float64(10+r.IntN(500))
		tab := table{xt: float64(r.IntN(int(nt) + 1)), nt: nt, xc: float64(r.IntN(int(nc) + 1)), nc: nc}
		delta := 1.98*r.Float64() - .99
		term := func(x, p float64) float64 {
			if x == 0 {
				return 0
			}
			return x * math.Log(p)
		}
		logLikelihood := func(pc float64) float64 {
			pt := pc + delta
			return term(tab.xc, pc) + term(nc-tab.xc, 1-pc) + term(tab.xt, pt) + term(nt-tab.xt, 1-pt)
		}
		from, to := math.Max(0, -delta), math.Min(1, 1-delta)
		low, high, best := from, to, 0.0
		for range 12 {
			step, top := (high-low)/40, math.Inf(-1)
			for i := range 41 {
				if at := low + step*float64(i); logLikelihood(at) > top {
					best, top = at, logLikelihood(at)
				}
			}
			low, high = math.Max(from, best-step), math.Min(to, best+step)
		}
		pc, pt := best, best+delta
		v := (pt*(1-pt)/nt + pc*(1-pc)/nc) * (nt + nc) / (nt + nc - 1)
		want := (tab.observedDifference() - delta) / math.Sqrt(v)
		got := tab.zOfDifference(delta)
		check.That(t, v <= 1e-9 || math.Abs(got-want) <= 1e-5*math.Max(1, math.Abs(want)), "%+v at %v: %v, want %v",
			tab, delta, got, want)
	}
	got := (table{xt: 5, nt: 10, xc: 5, nc: 10}).zOfDifference(-1)
	check.That(t, math.IsInf(got, 1), "at -1: %v", got)
}

func TestNormalOfStudent(t *testing.T) {
	for _, nu := range []float64{3, 20, 1e4, 1e9, math.Inf(1)} {
		s := newStudent(nu)
		if math.IsInf(nu, 1) {
			s = student{nu: nu}
		}
		for _, z := range []float64{.01, 1, 2, 5} {
			got := s.equivalentZ(-s.quantile(normalSurvival(z)))
			check.That(t, math.Abs(got+z) <= 1e-9, "nu %v: %v, want %v", nu, got, -z)
		}
		last := 0.0
		for _, x := range []float64{1, 10, 30, 37, 39, 45, 1e3, 1e100, 1e200} {
			if z := s.equivalentZ(x); !(z > last && isFinite(z)) {
				t.Errorf("nu %v: z(%v) = %v after %v", nu, x, z, last)
			} else {
				last = z
			}
		}
	}
}

// TestOneStratum checks that the roots of z(e) are the closed-form ends of one contrast.
func TestOneStratum(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ends := 0
	for i := range 600 {
		stratum := randomStratum(r, i%3)
		one, reason := newStrata([]Stratum{stratum},
			i%2 == 0 && stratum.Control.observedValue() >= 0 && stratum.Treatment.observedValue() >= 0)
		if reason != "" {
			continue
		}
		roots := one
		roots.count++
		critical := 1.5 + 2*r.Float64()
		significant := math.Abs(one.z(0, onDifference)) >= critical
		for _, on := range []scale{onDifference, onLift} {
			want, missing := one.effectInterval(critical, significant, on)
			got, reason := roots.effectInterval(critical, significant, on)
			check.Equal(t, reason, missing, "%+v: reason", stratum)
			for _, end := range [][2]float64{{got.lower, want.lower}, {got.upper, want.upper}} {
				if end[0] == end[1] || math.IsNaN(end[0]) && math.IsNaN(end[1]) {
					continue
				}
				if ends++; !(math.Abs(end[0]-end[1]) <= 1e-7*math.Max(math.Abs(end[1]), want.upper-want.lower)) {
					t.Errorf("%+v critical %v lift %v: %+v, want %+v", stratum, critical, on, got, want)
				}
			}
		}
	}
	t.Logf("%d ends", ends)
}

// TestStrataDuality checks that intervals of several strata exclude 0 exactly if |z| reaches the critical value, and
// that |z| is the critical value at each end.
func TestStrataDuality(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 600 {
		all := make([]Stratum, 2+r.IntN(2))
		for j := range all {
			all[j] = randomStratum(r, i%3)
		}
		nonNegative := i%2 == 0
		for _, stratum := range all {
			nonNegative = nonNegative && stratum.Control.observedValue() >= 0 && stratum.Treatment.observedValue() >= 0
		}
		s, reason := newStrata(all, nonNegative)
		must.Equal(t, reason, "")
		critical := 2 + 2*r.Float64()
		significant := math.Abs(s.z(0, onDifference)) >= critical
		a, b := s.z(0, onDifference), s.z(0, onLift)
		check.That(t, math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(a)), "z of no difference %v and of no lift %v", a, b)
		for _, on := range []scale{onDifference, onLift} {
			in, _ := s.effectInterval(critical, significant, on)
			e := s.estimateEffect(on)
			if math.IsNaN(in.lower) {
				continue
			}
			check.That(t, math.Abs(s.z(e, on)) <= 1e-6, "estimate %v of %+v: z = %v", e, in, s.z(e, on))
			check.That(t, e >= in.lower, "estimate %v of %+v: z = %v", e, in, s.z(e, on))
			check.That(t, e <= in.upper, "estimate %v of %+v: z = %v", e, in, s.z(e, on))
			if excludes := in.lower > 0 || in.upper < 0; excludes != significant &&
				!(on == onLift && math.IsInf(in.upper, 1)) {
				t.Errorf("%+v: %+v, z %v, critical %v", all, in, s.z(0, on), critical)
			}
			for _, end := range []float64{in.lower, in.upper} {
				if isFinite(end) && math.Abs(end) > 1e-6 && !(end == -1 || end == 1) &&
					math.Abs(math.Abs(s.z(end, on))-critical) > 1e-5 {
					t.Errorf("z(%v) = %v, want %v", end, s.z(end, on), critical)
				}
			}
		}
	}
}

// TestStrataIgnoreChangesOverTime has two weeks without an effect and with different rates, between which the shares
// change. The week with few conversions has most of the treatment.
func TestStrataIgnoreChangesOverTime(t *testing.T) {
	s, _ := newStrata([]Stratum{
		{Control: Rate{9000, 900}, Treatment: Rate{1000, 100}},
		{Control: Rate{5000, 250}, Treatment: Rate{5000, 250}},
	}, true)
	if z := s.z(0, onDifference); math.Abs(z) > 1e-12 {
		t.Errorf("z = %v without an effect", z)
	}
	check.Equal(t, s.information, 900+2500, "I = %v of %v visitors", s.information, s.visitors)
	check.That(t, math.Abs(s.visitors-10_000*3400./900) <= 1e-9, "I = %v of %v visitors", s.information, s.visitors)
	together := newTable(Rate{14_000, 1150}, Rate{6000, 350})
	check.That(t, together.z() <= -5, "without strata z = %v", together.z())
}

func TestStrataScale(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 60 {
		all := []Stratum{randomStratum(r, 1+i%2), randomStratum(r, 1+i%2)}
		large := make([]Stratum, len(all))
		for j, s := range all {
			c, tr := s.Control.(Mean), s.Treatment.(Mean)
			c.Mean, tr.Mean, c.Variance, tr.Variance = 1e4*c.Mean, 1e4*tr.Mean, 1e8*c.Variance, 1e8*tr.Variance
			large[j] = Stratum{c, tr, s.SmallerShare}
		}
		a, _ := newStrata(all, true)
		b, _ := newStrata(large, true)
		for _, on := range []scale{onDifference, onLift} {
			by := 1e4
			if on == onLift {
				by = 1
			}
			x, _ := a.effectInterval(2.5, false, on)
			y, _ := b.effectInterval(2.5, false, on)
			d := math.Abs(x.lower*by-y.lower) / math.Abs(y.upper-y.lower)
			check.That(t, math.IsNaN(x.lower) && math.IsNaN(y.lower) || d <= 1e-8, "lift %v: %+v and %+v", on, x, y)
		}
	}
}

func TestWeakStrata(t *testing.T) {
	good := Stratum{Control: Rate{1000, 100}, Treatment: Rate{1000, 130}}
	few := Stratum{Control: Rate{1000, 100}, Treatment: Rate{99, 99}}
	with, _ := newStrata([]Stratum{few, good}, true)
	alone, _ := newStrata([]Stratum{good}, true)
	check.Equal(t, with.z(0, onLift), alone.z(0, onLift), "z with and without a stratum of few visitors")
	constant := Stratum{Control: Mean{Visitors: 100, Mean: 0}, Treatment: Mean{Visitors: 100, Mean: 0}}
	values := Stratum{
		Control:   Mean{Visitors: 100, Mean: 1, Variance: 1},
		Treatment: Mean{Visitors: 100, Mean: 2, Variance: 1},
	}
	both, reason := newStrata([]Stratum{constant, values}, true)
	single, _ := newStrata([]Stratum{values}, true)
	check.Equal(t, reason, "", "a stratum without variance: z = %v (%s)", both.z(0, onLift), reason)
	check.That(t, math.Abs(both.z(0, onLift)-single.z(0, onLift)/math.Sqrt2) <= 1e-12,
		"a stratum without variance: z = %v (%s)", both.z(0, onLift), reason)
	for _, test := range []struct {
		strata []Stratum
		reason Reason
	}{
		{nil, ReasonNoVisitors},
		{[]Stratum{few}, ReasonTooFewVisitors},
		{[]Stratum{constant}, ReasonZeroVariance},
		{[]Stratum{good, {Control: Rate{-1, 0}, Treatment: Rate{1, 0}}}, ReasonInvalidData},
		{[]Stratum{good, {Control: Rate{}, Treatment: Rate{}}}, ""},
		{[]Stratum{{Control: Rate{200, 1}, Treatment: Mean{Visitors: 200, Variance: 1}}}, ReasonInvalidData},
	} {
		_, reason := newStrata(test.strata, true)
		check.That(t, reason == test.reason, "%+v: %q, want %q", test.strata, reason, test.reason)
	}
}
