package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

func even(n, xc, xt int64) []Stratum {
	return []Stratum{{Control: Rate{n, xc}, Treatment: Rate{n, xt}}}
}

// looked has looks that are analyzed one after the other.
type looked struct {
	design LookDesign
	points []LookPoint
	known  map[int]LookResult
	*LookSequence
}

func newLooked(alpha float64, shares ...float64) *looked {
	return &looked{design: NewLookDesign(alpha, shares)}
}

func (l *looked) Analyze(tau float64, strata []Stratum, nonNegative bool) LookResult {
	l.points = append(l.points, LookPoint{tau, LookInformation(strata, nonNegative)})
	l.LookSequence = l.design.NewSequence(l.points, l.known)
	return l.AnalyzeLook(len(l.points)-1, strata, nonNegative)
}

func (l *looked) PValue(r LookResult) *float64 { return l.LookSequence.PValue(len(l.points)-1, r) }

// TestPValueOfALook has the figures of the specification: z = 2.5 at look 4.
func TestPValueOfALook(t *testing.T) {
	for _, test := range []struct {
		shares []float64
		want   float64
	}{{[]float64{1, 1}, .01548}, {[]float64{1, 1, 1, 1}, .04147}} {
		var month []LookPoint
		for week := range 4 {
			month = append(month, LookPoint{Tau: float64(week+1) / 4, Information: float64(week + 1)})
		}
		critical, z := 2.0, 2.5
		p := NewLookDesign(.05, test.shares).NewSequence(month, nil).PValue(3,
			LookResult{Critical: &critical, Z: &z, Significant: true})
		equal(t, []float64{*p}, []float64{test.want}, 1e-5)
	}
}

func TestAnalyze(t *testing.T) {
	s := newLooked(.05, 1, 1)
	first := s.Analyze(.25, even(2000, 200, 240), true)
	check.That(t, !first.Significant, "look 1: %+v", first)
	check.Equal(t, first.Reason, "", "look 1: %+v", first)
	check.That(t, math.Abs(*first.Critical-3.1703) <= 1e-4, "look 1: %+v", first)
	check.Equal(t, first.Point.Information, 1000, "look 1: %+v", first)
	if p := s.PValue(first); !(*p > .05) {
		t.Errorf("look 1: p = %v", *p)
	}
	idle := s.Analyze(.5, even(2000, 200, 300), true)
	check.That(t, idle.Critical == nil, "without new visitors: %+v", idle)
	check.That(t, !idle.Significant, "without new visitors: %+v", idle)
	check.Equal(t, idle.Reason, ReasonNoNewVisitors, "without new visitors: %+v", idle)
	check.That(t, s.PValue(idle) == nil, "without new visitors: %+v", idle)
	check.That(t, idle.Difference.Value != nil, "without new visitors: %+v", idle)
	check.That(t, idle.Difference.Interval == nil, "without new visitors: %+v", idle)
	last := s.Analyze(1, even(8000, 800, 930), true)
	p := s.PValue(last)
	check.That(t, last.Significant, "look 3: %+v p = %v", last, *p)
	check.Equal(t, last.SignificantDirection(), 1, "look 3: %+v p = %v", last, *p)
	check.That(t, *p < .05, "look 3: %+v p = %v", last, *p)
	check.That(t, *last.Lift.Interval[0] > 0, "look 3: %+v p = %v", last, *p)
	check.That(t, last.Difference.Interval.Excludes(0), "look 3: %+v p = %v", last, *p)
	// The interval is that of a single test at the tail of the critical value.
	want := newTable(Rate{8000, 800}, Rate{8000, 930}).differenceBounds(*last.Critical, true)
	check.Equal(t, *last.Difference.Interval[0], want.lower, "%+v, want %+v", *last.Difference.Interval, want)
	check.Equal(t, *last.Difference.Interval[1], want.upper, "%+v, want %+v", *last.Difference.Interval, want)
}

// TestAnalyzeOfLedger checks that a sequence of restored rows continues like the original.
func TestAnalyzeOfLedger(t *testing.T) {
	design := NewLookDesign(.05, []float64{2, 1, 1})
	original, known := &looked{design: design}, map[int]LookResult{}
	for week := int64(1); week <= 6; week++ {
		strata := even(1000*week, 100*week, 112*week)
		if week == 1 {
			strata = even(50, 5, 6) // has no critical value
		}
		want := original.Analyze(float64(week)/4, strata, true)
		restored := &looked{design: design, points: make([]LookPoint, len(known)), known: known}
		got := restored.Analyze(float64(week)/4, strata, true)
		check.That(t, reflect.DeepEqual(got, want), "week %d: %+v, want %+v", week, got, want)
		check.That(t, reflect.DeepEqual(restored.PValue(got), original.PValue(want)), "week %d: %+v, want %+v", week,
			got, want)
		known[len(known)] = want
	}
}

func TestNothingSpent(t *testing.T) {
	s := newLooked(.05, 1, 1)
	s.Analyze(1, even(1000, 100, 100), true)
	r := s.Analyze(1, even(2000, 200, 900), true)
	check.Equal(t, *r.Critical, largestCritical, "%+v", r)
	check.That(t, !r.Significant, "%+v", r)
	check.Equal(t, r.Reason, ReasonNoAlphaSpent, "%+v", r)
	check.That(t, r.Difference.Interval == nil, "%+v", r)
	check.That(t, *s.PValue(r) >= .05, "%+v", r)
	s = newLooked(0, 1, 1)
	if r := s.Analyze(1, even(1000, 100, 900), true); r.Critical != nil || r.Significant ||
		r.Reason != ReasonLevel100 || r.Difference.Value == nil || s.PValue(r) != nil {
		t.Errorf("level 100: %+v", r)
	}
	s = newLooked(.05)
	constant := Mean{Visitors: 200, Mean: 1}
	if r := s.Analyze(1, []Stratum{{Control: constant, Treatment: constant}}, true); r.Critical == nil || r.Z != nil ||
		r.Significant || r.Reason != ReasonZeroVariance {
		t.Errorf("no variance: %+v", r)
	}
}

// TestLookDuality checks that the p-value, the interval and the significance of random looks agree, and that every
// number is finite.
func TestLookDuality(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	significant := 0
	for i := range 60 {
		design := NewLookDesign(.05, [][]float64{{1, 1}, {1, 1, 1}}[i%2])
		s := &looked{design: design}
		for look := range 3 {
			all := []Stratum{randomStratum(r, i%3), randomStratum(r, i%3)}
			result := s.Analyze(float64(look+1)/3, all[:1+i%2], i%3 == 0)
			p := s.PValue(result)
			if result.Significant {
				significant++
			}
			switch {
			case p == nil:
			case (*p < .05) != result.Significant:
				t.Errorf("p = %v, significant %v", *p, result.Significant)
			case result.Difference.Interval.Excludes(0) != result.Significant:
				t.Errorf("%+v, significant %v", result.Difference.Interval, result.Significant)
			}
			for _, x := range []*float64{p, result.Z, result.Difference.Value, result.Lift.Value} {
				if x != nil && !isFinite(*x) {
					t.Errorf("%v", *x)
				}
			}
		}
	}
	t.Logf("%d looks of 180 are significant", significant)
}

// TestErrorRateOfStrata simulates experiments without an effect whose shares change at half time, with rates that
// change as well.
func TestErrorRateOfStrata(t *testing.T) {
	tier.OnlyLong(t)
	r := rand.New(rand.NewPCG(11, 12))
	const experiments = 1500
	binomial := func(n int64, p float64) int64 {
		mean := float64(n) * p
		return max(0, min(n, int64(math.Round(mean+r.NormFloat64()*math.Sqrt(mean*(1-p))))))
	}
	wrong := 0
	for range experiments {
		s := newLooked(.05, 1, 1)
		var sums [2][4]int64
		for week := range 4 {
			sizes, rate, period := [2]int64{9000, 1000}, .1, week/2
			if period == 1 {
				sizes, rate = [2]int64{5000, 5000}, .05
			}
			for arm, n := range sizes {
				sums[period][2*arm] += n
				sums[period][2*arm+1] += binomial(n, rate)
			}
			var all []Stratum
			for _, x := range sums {
				all = append(all, Stratum{Control: Rate{x[0], x[1]}, Treatment: Rate{x[2], x[3]}})
			}
			if s.Analyze(float64(week+1)/4, all, true).Significant {
				wrong++
				break
			}
		}
	}
	if got, limit := float64(wrong)/experiments, .0475+3*math.Sqrt(.0475*.9525/experiments); got > limit ||
		got < .0475-3*math.Sqrt(.0475*.9525/experiments) {
		t.Errorf("error rate %.4f, limit %.4f", got, limit)
	} else {
		t.Logf("error rate %.4f", got)
	}
}

func TestDirections(t *testing.T) {
	z := 3.0
	above := LookResult{Z: &z, Significant: true}
	for _, test := range []struct {
		chance float64
		want   int
	}{{.99, 1}, {.97, 0}, {.01, 0}} {
		check.Equal(t, above.BayesianDirection(test.chance, .05), test.want, "chance %v", test.chance)
	}
	z = -3
	check.Equal(t, above.SignificantDirection(), -1, "below control")
	check.Equal(t, above.BayesianDirection(.01, .05), -1, "below control")
	check.Equal(t, above.BayesianDirection(.03, .05), 0, "below control")
	check.Equal(t, (LookResult{Z: &z}).SignificantDirection(), 0, "not significant")
}

func TestWithin(t *testing.T) {
	s := newLooked(.05, 1, 1)
	r := s.Analyze(1, even(100_000, 10_000, 10_010), true)
	if !r.IsWithin(.05) || r.IsWithin(.02) || (LookResult{}).IsWithin(1) {
		t.Errorf("%+v", *r.Lift.Interval[0])
	}
}

// TestExtremeLooks checks that looks of extreme data have finite numbers or none, with a reason, and return.
func TestExtremeLooks(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	count := func() int64 { return []int64{0, 1, 99, 100, 101, 5000, 1e6, largestCount}[r.IntN(8)] }
	size := func() float64 {
		return []float64{0, 1e-300, 1e-9, 1, 1e9, 1e150, -1, -1e-9, -1e150}[r.IntN(9)]
	}
	sample := func(rate bool) Sample {
		n := count()
		if rate {
			return Rate{n, []int64{0, 1, n / 2, n - 1, n}[r.IntN(5)]}
		}
		return Mean{Visitors: n, Mean: size(), Variance: math.Abs(size()), Nonzero: -1}
	}
	for i := range 4000 {
		all := make([]Stratum, 1+r.IntN(3))
		for j := range all {
			all[j] = Stratum{sample(i%2 == 0), sample(i%2 == 0), []float64{0, .1, .5}[r.IntN(3)]}
		}
		s := newLooked(.05, 1, 1)
		result := s.Analyze(.5+r.Float64(), all, r.IntN(2) == 0)
		harm := Margin{Relative: .1, Down: r.IntN(2) == 0}.HarmBound(all, true,
			HarmRule{Alpha: .05, Treatments: 1, Guardrails: 1})
		numbers := []*float64{result.Critical, result.Z, result.Difference.Value, result.Lift.Value, harm.Upper}
		for _, in := range []*Interval{result.Difference.Interval, result.Lift.Interval} {
			if in != nil {
				numbers = append(numbers, in[0], in[1])
				if in[0] != nil && in[1] != nil && *in[0] > *in[1] {
					t.Errorf("%+v: interval %v to %v", all, *in[0], *in[1])
				}
			}
		}
		for _, x := range numbers {
			if x != nil && !isFinite(*x) {
				t.Errorf("%+v: %v", all, *x)
			}
		}
		check.That(t, (result.Reason != "" || result.Critical != nil && result.Z != nil), "%+v: no reason in %+v", all,
			result)
		check.That(t, (result.Difference.Reason != "" || result.Difference.Interval != nil), "%+v: no reason in %+v",
			all, result)
		check.That(t, (result.Lift.Reason != "" || result.Lift.Interval != nil && result.Lift.Value != nil), "%+v: no reason in %+v", all, result)
	}
}

func TestHarmAtLevel100(t *testing.T) {
	rule := HarmRule{Treatments: 1, Guardrails: 1, PlannedVisitors: 20_000}
	h := (Margin{Relative: .1}).HarmBound(even(1000, 100, 1), true, rule)
	check.That(t, !h.Below, "level 100: %+v", h)
	check.Equal(t, h.Reason, ReasonLevel100, "level 100: %+v", h)
}

// TestHarmBound checks the bound of a mean, d + k SE, with the critical value k of a sequence whose two sides have
// twice the error rate.
func TestHarmBound(t *testing.T) {
	control := Mean{Visitors: 4000, Mean: 10, Variance: 100, Nonzero: 4000}
	treatment := Mean{Visitors: 4000, Mean: 9, Variance: 100, Nonzero: 4000}
	h := Margin{Absolute: .1}.HarmBound([]Stratum{{Control: control, Treatment: treatment}}, true,
		HarmRule{Alpha: .05, Treatments: 2, Guardrails: 3})
	a := 2 * .1 * .05 / (2 * 4)
	rho2 := (-2*math.Log(a) + math.Log(1-2*math.Log(a))) / 5000
	k := math.Sqrt((8000*rho2 + 1) / (8000 * rho2) * math.Log((8000*rho2+1)/(a*a)))
	want := -1 + k*math.Sqrt(.05)
	check.That(t, math.Abs(*h.Upper-want) <= 1e-9, "%v, want %v", *h.Upper, want)
}
