package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

// rounds returns the number of random inputs for a property.
func rounds(full int) int {
	return tier.Of(full/20, full)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 20261)) }

var levels = []int{80, 90, 95, 99}

// randomRate draws visitors log-uniformly up to 10⁷ and a rate of any size, often at an edge.
func randomRate(r *rand.Rand) Rate {
	n := int64(math.Exp(r.Float64()*16)) + r.Int64N(3)
	n = max(n, 1)
	rate := math.Exp(-8 * r.Float64())
	switch r.IntN(8) {
	case 0:
		return Rate{Visitors: n}
	case 1:
		return Rate{Visitors: n, Converted: n}
	case 2:
		return Rate{Visitors: n, Converted: min(n, r.Int64N(6))}
	case 3:
		return Rate{Visitors: n, Converted: n - min(n, r.Int64N(6))}
	}
	return Rate{Visitors: n, Converted: int64(float64(n) * rate)}
}

// randomRival draws a rate near another, so that p-values of any size occur.
func randomRival(r *rand.Rand, other Rate) Rate {
	rival := randomRate(r)
	if r.IntN(2) == 0 {
		p := float64(other.Converted)/float64(other.Visitors) +
			2*r.NormFloat64()*math.Sqrt(other.variance()/float64(rival.Visitors))
		rival.Converted = min(max(int64(p*float64(rival.Visitors)), 0), rival.Visitors)
	}
	return rival
}

func randomMean(r *rand.Rand) Mean {
	m := Mean{
		Visitors: int64(math.Exp(r.Float64()*16)) + 2, Nonzero: r.Int64N(100) - 1,
		Mean: r.NormFloat64() * math.Exp(12*r.Float64()-6), Variance: math.Exp(30*r.Float64() - 15),
	}
	switch r.IntN(12) {
	case 0:
		m.Variance = 0
	case 1:
		m.Mean = 0
	}
	return m
}

func randomRivalMean(r *rand.Rand, other Mean) Mean {
	rival := randomMean(r)
	if r.IntN(2) == 0 {
		rival.Variance = other.Variance * math.Exp(2*r.NormFloat64())
		rival.Mean = other.Mean + 2*r.NormFloat64()*math.Sqrt(other.varianceOfMean()+rival.varianceOfMean())
	}
	return rival
}

func randomOptions(r *rand.Rand) Options {
	return Options{
		SignificanceLevel: levels[r.IntN(len(levels))],
		NonNegative:       r.IntN(2) == 0,
		Prior:             &Prior{Mean: r.NormFloat64() / 10, StandardDeviation: math.Exp(-6 * r.Float64())},
	}
}

func TestRatesAreDual(t *testing.T) {
	r := newRand(1)
	for range rounds(100_000) {
		control := randomRate(r)
		mustSound(t, control, []Sample{randomRival(r, control)}, randomOptions(r))
	}
}

func TestMeansAreDual(t *testing.T) {
	r := newRand(2)
	for range rounds(100_000) {
		control, o := randomMean(r), randomOptions(r)
		treatment := randomRivalMean(r, control)
		if o.NonNegative {
			control.Mean, treatment.Mean = math.Abs(control.Mean), math.Abs(treatment.Mean)
		}
		mustSound(t, control, []Sample{treatment}, o)
	}
}

func TestFamiliesAreDual(t *testing.T) {
	r := newRand(3)
	for i := range rounds(3000) {
		size, o := 2+r.IntN(19), randomOptions(r)
		if i%3 > 0 {
			size = 2 + r.IntN(3)
		}
		var control Sample
		treatments := make([]Sample, size)
		if r.IntN(2) == 0 {
			c := randomRate(r)
			control = c
			for j := range treatments {
				treatments[j] = randomRival(r, c)
			}
		} else {
			c := randomMean(r)
			control = c
			for j := range treatments {
				treatments[j] = randomRivalMean(r, c)
			}
		}
		mustSound(t, control, treatments, o)
	}
}

func TestPosteriorsAreDual(t *testing.T) {
	r := newRand(4)
	for range rounds(3000) {
		o := randomOptions(r)
		o.Methodology = MethodologyBayesian
		rate := randomRate(r)
		mustSound(t, rate, []Sample{randomRival(r, rate)}, o)
		mean := randomMean(r)
		mustSound(t, mean, []Sample{randomRivalMean(r, mean)}, o)
	}
}

// TestEdgeOfSignificance checks that the p-value decides even if it is very close to alpha, and that both intervals
// agree with it.
func TestEdgeOfSignificance(t *testing.T) {
	r := newRand(5)
	for range rounds(20_000) {
		o := randomOptions(r)
		o.Shares = []float64{1, 1}
		alpha := o.Alpha()
		control, treatment := randomMean(r), randomMean(r)
		if control.Mean == 0 || (control.Variance == 0 && treatment.Variance == 0) {
			continue
		}
		w, _ := newContrast(Stratum{control, treatment, SmallerShare(o.Shares, 0)}, o.NonNegative)
		off := []float64{-1e-6, 1e-6, -1e-9, 1e-9, -1e-12, 1e-12, 0}[r.IntN(7)]
		q := quantileOf(w, alpha/2*(1+off))
		treatment.Mean = control.Mean + math.Copysign(q*w.(welch).standardError(), r.NormFloat64())
		c := mustSound(t, control, []Sample{treatment}, o)[0]
		// The mean is rounded, which changes p by the same relative amount.
		blurred := math.Abs(control.Mean) > 1e6*w.(welch).standardError()
		if math.Abs(off) == 1e-6 && !blurred && c.Significant != (off < 0) {
			t.Errorf("p = %v at alpha %v (1%+g): significant %v", *c.Frequentist.PValue, alpha, off, c.Significant)
		}
	}
}

// TestEdgeOfFamilies checks the edge for families: one of several treatments is exactly at the critical value.
func TestEdgeOfFamilies(t *testing.T) {
	r := newRand(6)
	for range rounds(600) {
		o := randomOptions(r)
		control := randomMean(r)
		control.Variance = 1 + r.Float64()
		pairs := make([]pair, 2+r.IntN(4))
		treatments := make([]Sample, len(pairs))
		o.Shares = slices.Repeat([]float64{1}, 1+len(pairs))
		for i := range treatments {
			rival := Mean{Visitors: 100 + r.Int64N(10000), Mean: control.Mean, Variance: 1 + r.Float64(), Nonzero: -1}
			treatments[i] = rival
			pairs[i].contrast, _ = newContrast(Stratum{control, rival, SmallerShare(o.Shares, i)}, o.NonNegative)
		}
		f := newFamily(pairs, o.Alpha())
		off := []float64{-1e-6, 1e-6, -1e-9, 1e-9, -1e-11, 1e-11, 0}[r.IntN(7)]
		w := pairs[0].contrast.(welch)
		edge := treatments[0].(Mean)
		edge.Mean += w.student.quantile(f.tail*(1+off)) * w.standardError()
		treatments[0] = edge
		mustSound(t, control, treatments, o)
	}
}

func TestSwapMirrorsRates(t *testing.T) {
	r := newRand(7)
	for range rounds(20_000) {
		a := randomRate(r)
		b := randomRival(r, a)
		o := randomOptions(r)
		there, back := Compare(a, []Sample{b}, o)[0], Compare(b, []Sample{a}, o)[0]
		mirrored(t, "difference", there.Difference.Interval, back.Difference.Interval,
			func(x float64) float64 { return -x })
		mirrored(t, "lift", there.Lift.Interval, back.Lift.Interval, func(x float64) float64 { return 1/(1+x) - 1 })
		check.Equal(t, *there.Frequentist.PValue, *back.Frequentist.PValue,
			"p of %v and %v changes when they are swapped", a, b)
		check.Equal(t, there.Significant, back.Significant, "p of %v and %v changes when they are swapped", a, b)
	}
}

func TestSwapMirrorsMeans(t *testing.T) {
	r := newRand(8)
	for range rounds(20_000) {
		a := randomMean(r)
		b := randomRivalMean(r, a)
		if a.Variance == 0 && b.Variance == 0 {
			continue
		}
		o := randomOptions(r)
		there, back := Compare(a, []Sample{b}, o)[0], Compare(b, []Sample{a}, o)[0]
		mirrored(t, "difference", there.Difference.Interval, back.Difference.Interval,
			func(x float64) float64 { return -x })
		check.That(t, near(*there.Frequentist.PValue, *back.Frequentist.PValue, 1e-10),
			"p of %v and %v changes when they are swapped", a, b)
	}
}

// mirrored compares an interval with the image of another under a decreasing map.
func mirrored(t *testing.T, what string, a, b *Interval, image func(float64) float64) {
	t.Helper()
	if a == nil || b == nil {
		check.Equal(t, a, b, "%s: intervals", what)
		return
	}
	lower, upper := ends(a)
	l, u := ends(b)
	for _, pair := range [][2]float64{{lower, image(u)}, {upper, image(l)}} {
		size := math.Max(1e-9, math.Min(math.Abs(lower), math.Abs(upper)))
		check.That(t,
			near(pair[0], pair[1], 1e-8) || math.Abs(pair[0]-pair[1]) < 1e-8*size || pair[0] > 1e9 && pair[1] > 1e9,
			"%s: [%v, %v] does not mirror [%v, %v]", what, lower, upper, l, u)
	}
}

func near(a, b, tolerance float64) bool {
	return a == b || math.Abs(a-b) <= tolerance*math.Max(math.Abs(a), math.Abs(b)) || math.Abs(a-b) < 1e-250
}

// TestScaleInvariance checks that a change of a value's unit changes differences by that factor, and nothing else. The
// factor is a power of two, so that rounding is the same.
func TestScaleInvariance(t *testing.T) {
	r := newRand(10)
	for range rounds(10_000) {
		a := randomMean(r)
		b := randomRivalMean(r, a)
		o := randomOptions(r)
		unit := math.Ldexp(1, r.IntN(120)-60)
		scale := func(m Mean) Mean {
			m.Mean, m.Variance = m.Mean*unit, m.Variance*unit*unit
			return m
		}
		plain, scaled := Compare(a, []Sample{b}, o)[0], Compare(scale(a), []Sample{scale(b)}, o)[0]
		check.Equal(t, plain.Verdict, scaled.Verdict, "verdict of %v and %v changes with the unit", a, b)
		check.Equal(t, plain.Significant, scaled.Significant, "verdict of %v and %v changes with the unit", a, b)
		if plain.Frequentist.PValue == nil {
			continue
		}
		check.Equal(t, *plain.Frequentist.PValue, *scaled.Frequentist.PValue, "p of %v and %v in another unit", a, b)
		same(t, plain.Lift.Interval, scaled.Lift.Interval, 1)
		same(t, plain.Difference.Interval, scaled.Difference.Interval, unit)
	}
}

func same(t *testing.T, a, b *Interval, unit float64) {
	t.Helper()
	if (a == nil) != (b == nil) {
		t.Error("one interval of two")
		return
	}
	if a == nil {
		return
	}
	lower, upper := ends(a)
	l, u := ends(b)
	check.That(t, near(lower*unit, l, 1e-12), "[%v, %v] times %v is not [%v, %v]", lower, upper, unit, l, u)
	check.That(t, near(upper*unit, u, 1e-12), "[%v, %v] times %v is not [%v, %v]", lower, upper, unit, l, u)
}

// randomPair returns control and a treatment.
func randomPair(r *rand.Rand, rates bool) (control, treatment Sample) {
	if rates {
		rate := randomRate(r)
		return rate, randomRival(r, rate)
	}
	mean := randomMean(r)
	return mean, randomRivalMean(r, mean)
}

// TestIntervalsNest checks that the interval of a higher level contains that of a lower level.
func TestIntervalsNest(t *testing.T) {
	r := newRand(11)
	for i := range rounds(20_000) {
		o := randomOptions(r)
		a, b := randomPair(r, i%2 == 0)
		if i%100 == 0 {
			o.Methodology = MethodologyBayesian
		}
		var last Comparison
		for j, level := range levels {
			o.SignificanceLevel = level
			c := Compare(a, []Sample{b}, o)[0]
			if j > 0 {
				nests(t, last.Difference.Interval, c.Difference.Interval)
				nests(t, last.Lift.Interval, c.Lift.Interval)
				check.That(t, !c.Significant || last.Significant, "%v and %v are significant at %d and not below", a, b,
					level)
			}
			last = c
		}
	}
}

// nests checks that outer contains inner, except for rounding. A missing interval at a higher level contains
// everything.
func nests(t *testing.T, inner, outer *Interval) {
	t.Helper()
	if inner == nil || outer == nil {
		check.That(t, inner != nil || outer == nil, "only the higher level has an interval")
		return
	}
	lower, upper := ends(inner)
	l, u := ends(outer)
	slack := 1e-9 * (math.Abs(lower) + math.Min(math.Abs(upper), 1e300))
	check.That(t, l <= lower+slack, "[%v, %v] does not contain [%v, %v]", l, u, lower, upper)
	check.That(t, u >= upper-slack, "[%v, %v] does not contain [%v, %v]", l, u, lower, upper)
}

// TestIntervalsContainTheObserved checks that every interval contains the observed value.
func TestIntervalsContainTheObserved(t *testing.T) {
	r := newRand(12)
	for i := range rounds(20_000) {
		a, b := randomPair(r, i%2 == 0)
		c := Compare(a, []Sample{b}, Options{SignificanceLevel: levels[r.IntN(4)]})[0]
		for _, e := range []Effect{c.Difference, c.Lift} {
			if e.Value == nil || e.Interval == nil {
				continue
			}
			lower, upper := ends(e.Interval)
			slack := 1e-9 * math.Abs(*e.Value)
			check.That(t, *e.Value >= lower-slack, "%v and %v: %v is outside [%v, %v]", a, b, *e.Value, lower, upper)
			check.That(t, *e.Value <= upper+slack, "%v and %v: %v is outside [%v, %v]", a, b, *e.Value, lower, upper)
		}
	}
}

// TestStricterIntervalsContainOthers compares intervals at a level with those of the same method at a stricter critical
// value, for rates and means and for both methodologies: the stricter ones contain the others.
func TestStricterIntervalsContainOthers(t *testing.T) {
	r := newRand(31)
	prior := &Prior{StandardDeviation: .1}
	for range rounds(4000) {
		var control, treatment Sample
		if rate := randomRate(r); r.IntN(2) == 0 {
			control, treatment = rate, randomRival(r, rate)
		} else {
			control, treatment = randomMean(r), randomMean(r)
		}
		o := Options{SignificanceLevel: levels[r.IntN(len(levels))]}
		if r.IntN(2) == 0 {
			o.Methodology, o.Prior = MethodologyBayesian, prior
		}
		stricter := o
		stricter.Critical = normalQuantile(o.Alpha()/2) * (1 + r.Float64())
		level := Compare(control, []Sample{treatment}, o)[0]
		strict := Compare(control, []Sample{treatment}, stricter)[0]
		for name, pair := range map[string][2]*Interval{
			"difference": {strict.Difference.Interval, level.Difference.Interval},
			"lift":       {strict.Lift.Interval, level.Lift.Interval},
		} {
			if pair[0] == nil || pair[1] == nil {
				continue
			}
			check.That(t, containsInterval(pair[0], pair[1]), "%s: %v does not contain %v\n%+v, %+v, %+v", name,
				*pair[0], *pair[1], control, treatment, stricter)
		}
	}
}

// containsInterval reports whether an interval contains another one, apart from rounding.
func containsInterval(outer, inner *Interval) bool {
	isBeyond := func(a, b *float64) bool { // a is at least as far down as b
		switch {
		case a == nil:
			return true
		case b == nil:
			return false
		}
		return *a <= *b+1e-9*math.Abs(*b)
	}
	negated := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		return new(-*x)
	}
	return isBeyond(outer[0], inner[0]) && isBeyond(negated(outer[1]), negated(inner[1]))
}
