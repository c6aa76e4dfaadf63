package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestPriorOfManyVisitors compares the posterior with the product of two normal densities, which it approaches as the
// visitors increase.
func TestPriorOfManyVisitors(t *testing.T) {
	control, treatment := Rate{Visitors: 4_000_000, Converted: 200_000}, Rate{Visitors: 4_000_000, Converted: 203_000}
	o := Options{
		SignificanceLevel: 95, Methodology: MethodologyBayesian,
		Prior: &Prior{Mean: 0.01, StandardDeviation: 0.01},
	}
	c := mustSound(t, control, []Sample{treatment}, o)[0]
	p := 0.05
	se := math.Sqrt((1/p - 1) * 2 / 4e6)
	weight := 1/(se*se) + 1/(0.01*0.01)
	mean := (0.015/(se*se) + 0.01/(0.01*0.01)) / weight
	check.That(t, near(*c.Lift.Value, mean, 2e-3), "lift %v, observed %v; want %v, 0.015", *c.Lift.Value,
		*c.Lift.Observed, mean)
	check.Equal(t, *c.Lift.Observed, 0.015, "lift %v, observed %v; want %v, 0.015", *c.Lift.Value, *c.Lift.Observed,
		mean)
	if want := mean - 1.959964/math.Sqrt(weight); !near(*c.Lift.Interval[0], want, 1e-2) {
		t.Errorf("lower end %v, want %v", *c.Lift.Interval[0], want)
	}
}

// TestScoreOfLiftInvertsTheInterval checks that the score statistic is critical at the ends of the score interval of a
// lift.
func TestScoreOfLiftInvertsTheInterval(t *testing.T) {
	r := newRand(31)
	for range rounds(2000) {
		control := Rate{Visitors: 1 + r.Int64N(20_000)}
		treatment := Rate{Visitors: 1 + r.Int64N(20_000)}
		control.Converted, treatment.Converted = r.Int64N(control.Visitors+1), r.Int64N(treatment.Visitors+1)
		table := newTable(control, treatment)
		if z := table.zOfLift(0); math.Abs(z-table.z()) > 1e-9*math.Max(1, math.Abs(z)) {
			t.Errorf("%+v: z %v, want %v", table, z, table.z())
		}
		q := 0.5 + 3*r.Float64()
		in := table.liftInterval(q, math.Abs(table.z()) > q)
		for _, end := range []float64{in.lower, in.upper} {
			if end <= -1 || math.IsInf(end, 1) || math.Abs(end) < 1e-9 {
				continue
			}
			z := table.zOfLift(end)
			check.That(t, math.Abs(math.Abs(z)-q) <= 1e-6*q, "%+v: z at %v is %v, want ±%v", table, end, z, q)
		}
	}
}

// naivePosterior integrates the posterior of a lift by the midpoint rule.
type naivePosterior struct {
	lifts, weights []float64
}

func newNaivePosterior(l *lifts, from, to float64) naivePosterior {
	const cells = 200_000
	var p naivePosterior
	total := 0.0
	for i := range cells {
		x := from + (to-from)*(float64(i)+0.5)/cells
		w := math.Exp(-l.logDrop(x))
		p.lifts, p.weights = append(p.lifts, x), append(p.weights, w)
		total += w
	}
	for i := range p.weights {
		p.weights[i] /= total
	}
	return p
}

func (p naivePosterior) mean(f func(lift float64) float64) (sum float64) {
	for i, x := range p.lifts {
		sum += p.weights[i] * f(x)
	}
	return sum
}

func (p naivePosterior) below(x float64) float64 {
	return p.mean(func(lift float64) float64 {
		if lift < x {
			return 1
		}
		return 0
	})
}

// TestPriorEqualsNaiveIntegral compares the summary of posteriors with the midpoint rule: rates with and without
// conversions, means with positive and negative baselines.
func TestPriorEqualsNaiveIntegral(t *testing.T) {
	for _, test := range []struct {
		name               string
		control, treatment Sample
		prior              Prior
		from, to           float64
	}{
		{"rates", Rate{1000, 50}, Rate{1100, 70}, Prior{Mean: 0, StandardDeviation: 0.1}, -0.9, 0.9},
		{"no conversion in control", Rate{500, 0}, Rate{500, 7}, Prior{Mean: 0, StandardDeviation: 0.2}, -1, 1.6},
		{"no conversion in the treatment", Rate{500, 7}, Rate{500, 0}, Prior{Mean: 0, StandardDeviation: 0.4}, -1, 2.4},
		{"no conversion at all", Rate{500, 0}, Rate{500, 0}, Prior{Mean: 0.1, StandardDeviation: 0.1}, -0.7, 0.9},
		{"all converted", Rate{200, 190}, Rate{200, 200}, Prior{Mean: 0, StandardDeviation: 0.05}, -0.4, 0.4},
		{
			"a prior far from the data",
			Rate{100_000, 5000},
			Rate{100_000, 6000},
			Prior{Mean: -0.2, StandardDeviation: 0.03},
			-0.45, 0.25,
		},
		{"means", mean(4000, 2, 100), mean(4100, 2.3, 120), Prior{Mean: 0, StandardDeviation: 0.2}, -1.6, 1.6},
		{
			"a negative baseline", mean(4000, -2, 100), mean(4100, -1.7, 120),
			Prior{Mean: 0, StandardDeviation: 0.2},
			-1.6, 1.6,
		},
		{"uneven means", mean(9500, 2, 100), mean(500, 2.3, 20), Prior{Mean: 0, StandardDeviation: 0.2}, -1.6, 1.6},
	} {
		found, _ := newContrast(Stratum{test.control, test.treatment, 0}, false)
		l, ok := liftsOf(found, test.prior)
		if !ok {
			t.Fatal(test.name)
		}
		s, naive := newRule().summarizePosterior(&l, 0.05), newNaivePosterior(&l, test.from, test.to)
		fine := panels{rule: newRule(), points: l.panelEnds(deep)}
		fine.splitAt(0)
		fine.splitAt(l.kink)
		fine.divideEach(16)
		f := fine.summarizeLifts(&l, 0.05)
		for what, pair := range map[string][2]float64{
			"chance": {s.above, f.above}, "chance below": {s.below, f.below}, "mean": {s.mean, f.mean}, "loss": {s.loss, f.loss}, "gain": {s.gain, f.gain},
			"lower": {s.interval.lower, f.interval.lower}, "upper": {s.interval.upper, f.interval.upper},
		} {
			check.That(t, math.Abs(pair[0]-pair[1]) <= 1e-10*math.Abs(pair[1]), "%s: %s is %v, with narrow panels %v",
				test.name, what, pair[0], pair[1])
		}
		for what, pair := range map[string][2]float64{
			"chance": {s.above, 1 - naive.below(0)}, "mean": {s.mean, naive.mean(func(x float64) float64 { return x })},
			"loss":                    {s.loss, naive.mean(func(x float64) float64 { return math.Max(-x, 0) })},
			"gain":                    {s.gain, naive.mean(func(x float64) float64 { return math.Max(x, 0) })},
			"mass below the interval": {0.025, naive.below(s.interval.lower)}, "mass below its upper end": {0.975, naive.below(s.interval.upper)},
		} {
			check.That(t, math.Abs(pair[0]-pair[1]) <= 3e-4*math.Max(math.Abs(pair[1]), 0.01), "%s: %s is %v, want %v",
				test.name, what, pair[0], pair[1])
		}
	}
}

// TestMirroredBaselines checks that means with the opposite sign have the opposite lift.
func TestMirroredBaselines(t *testing.T) {
	o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.1}}
	up := mustSound(t, mean(4000, 2, 100), []Sample{mean(4100, 2.3, 120)}, o)[0]
	down := mustSound(t, mean(4000, -2, 100), []Sample{mean(4100, -2.3, 120)}, o)[0]
	a, b := *up.Bayesian.ChanceToBeatControl, *down.Bayesian.ChanceToBeatControl
	check.That(t, math.Abs(a+b-1) <= 1e-9, "chances %v and %v", a, b)
	a, b = *up.Lift.Value, *down.Lift.Value
	check.That(t, near(a, -b, 1e-9), "lifts %v and %v", a, b)
}

// TestJointLifts compares the chances to be best and to beat control, and the posterior means, with weighted random
// draws of the lifts from their priors and of u. No treatment is likelier to be best than to beat control.
func TestJointLifts(t *testing.T) {
	o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.1}}
	r := newRand(32)
	for range rounds(12) {
		control := Rate{Visitors: 2000 + r.Int64N(20_000)}
		control.Converted = control.Visitors / 20
		treatments, pairs := make([]Sample, 2+r.IntN(2)), make([]pair, 0, 3)
		for i := range treatments {
			n := 2000 + r.Int64N(20_000)
			treatments[i] = Rate{Visitors: n, Converted: n / (18 + r.Int64N(5))}
			pairs = append(pairs, newPair(control, treatments[i], newTable(control, treatments[i].(Rate)), ""))
		}
		compared := mustSound(t, control, treatments, o)
		drawn, beats, means := make([]float64, len(pairs)+1), make([]float64, len(pairs)), make([]float64, len(pairs))
		total := 0.0
		lifts := make([]float64, len(pairs))
		for range 200_000 {
			u, weight, best, most := r.NormFloat64(), 1.0, 0, 0.0
			for i, c := range pairs {
				lift, lambda := 0.1*r.NormFloat64(), c.contrast.controlCorrelation()
				lifts[i] = lift
				d := c.contrast.(table).zOfLift(lift) - lambda*u
				weight *= math.Exp(-d * d / 2 / (1 - lambda*lambda))
				if lift > most {
					best, most = i+1, lift
				}
			}
			drawn[best] += weight
			total += weight
			for i, lift := range lifts {
				if means[i] += weight * lift; lift > 0 {
					beats[i] += weight
				}
			}
		}
		got := []float64{*compared[0].Bayesian.ControlChanceToBeBest}
		sum := got[0]
		for _, c := range compared {
			got = append(got, *c.Bayesian.ChanceToBeBest)
			sum += *c.Bayesian.ChanceToBeBest
		}
		for i := range got {
			check.That(t, math.Abs(got[i]-drawn[i]/total) <= 0.02, "%v against %v: %d is best with %v, drawn %v",
				control, treatments, i, got[i], drawn[i]/total)
		}
		check.That(t, math.Abs(sum-1) <= 1e-9, "chances sum to %v", sum)
		for i, c := range compared {
			beat := *c.Bayesian.ChanceToBeatControl
			check.That(t, math.Abs(beat-beats[i]/total) <= 0.02, "%v against %v: %d beats control with %v, drawn %v; is best with %v", control, treatments, i, beat, beats[i]/total, *c.Bayesian.ChanceToBeBest)
			check.That(t, *c.Bayesian.ChanceToBeBest <= beat+1e-7, "%v against %v: %d beats control with %v, drawn %v; is best with %v", control, treatments, i, beat, beats[i]/total, *c.Bayesian.ChanceToBeBest)
			mean := *c.Lift.Value
			check.That(t, math.Abs(mean-means[i]/total) <= 0.003, "%v against %v: lift %d is %v, drawn %v", control,
				treatments, i, mean, means[i]/total)
		}
	}
}

// TestLongPriorIsCalibrated draws lifts from the prior and looks 20 times: of the treatments that are declared at a
// chance above .975, the share that is better must be what the chances said.
func TestLongPriorIsCalibrated(t *testing.T) {
	long(t)
	const trials, looks = 8000, 20
	for name, shop := range map[string]shop{"rate 5 %": {buyers: 0.05}, "revenue, 5 % buy": {buyers: 0.05, sigma: 1}} {
		r := newRand(33)
		o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.05}}
		said, was, declared := 0.0, 0, 0
		for range trials {
			lift := 0.05 * r.NormFloat64()
			better := shop
			better.buyers *= 1 + lift
			var c, x running
			for range looks {
				shop.look(r, &c, 10_000)
				better.look(r, &x, 10_000)
				compared := Compare(shop.sample(c), []Sample{shop.sample(x)}, o)[0].Bayesian
				if chance := *compared.ChanceToBeatControl; chance > 0.975 {
					said += chance
					declared++
					if lift > 0 {
						was++
					}
					break
				}
			}
		}
		share, mean := float64(was)/float64(declared), said/float64(declared)
		se := math.Sqrt(mean * (1 - mean) / float64(declared))
		t.Logf("%s: %d declared, said %.4f, was %.4f ± %.4f", name, declared, mean, share, se)
		check.That(t, math.Abs(share-mean) <= 3*se+0.003, "%s: said %.4f, was %.4f", name, mean, share)
	}
}
