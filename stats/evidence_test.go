package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/schema/schematest/check"
)

// pairOf returns a period in which x of k converted visitors are in the treatment.
func pairOf(x, k int64, share float64) EvidencePeriod {
	return EvidencePeriod{Rate{1_000_000, k - x}, Rate{1_000_000, x}, share}
}

func TestLiftGrid(t *testing.T) {
	sum, logarithms, squares := 0., 0., 0.
	for _, g := range liftGrid {
		sum += g.weight
		logarithms += g.weight * math.Log1p(g.lift)
		squares += g.weight * math.Log1p(g.lift) * math.Log1p(g.lift)
	}
	check.Equal(t, len(liftGrid), 68)
	check.That(t, math.Abs(sum-1) < 1e-14, "the sum of the weights is %v", sum)
	check.That(t, math.Abs(logarithms) < 1e-14, "the mean of log(1+L) is %v", logarithms)
	want := (.05*.05 + .1*.1 + .2*.2 + .4*.4) / 4 // but for the tails beyond 4 standard deviations
	check.That(t, math.Abs(squares/want-1) < .002, "the variance of log(1+L) is %v, want %v", squares, want)
}

// naiveRateEvidence multiplies the coins of all periods, lift by lift, with 200 digits.
func naiveRateEvidence(periods []EvidencePeriod, count func(Rate) int64) float64 {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(700).SetFloat64(x) }
	product := func(a, b *big.Float) *big.Float { return number(0).Mul(a, b) }
	sum := number(0)
	for _, g := range liftGrid {
		ratio := number(g.weight)
		for _, s := range periods {
			one, share, lift := number(1), number(s.TreatmentShare), number(g.lift)
			below := number(0).Add(one, product(share, lift))
			p := number(0).Quo(product(share, number(0).Add(one, lift)), below)
			heads := number(0).Quo(p, share)
			tails := number(0).Quo(number(0).Sub(one, p), number(0).Sub(one, share))
			for range count(s.Treatment) {
				ratio = product(ratio, heads)
			}
			for range count(s.Control) {
				ratio = product(ratio, tails)
			}
		}
		sum.Add(sum, ratio)
	}
	e, _ := sum.Float64()
	return e
}

func TestRateEvidenceEqualsAProductOfCoins(t *testing.T) {
	for _, test := range []struct {
		name    string
		periods []EvidencePeriod
		others  bool
	}{
		{"nobody converted", []EvidencePeriod{pairOf(0, 0, .5)}, false},
		{"one", []EvidencePeriod{pairOf(1, 1, .5)}, false},
		{"25 at 90/10", []EvidencePeriod{pairOf(9, 25, .1)}, false},
		{"all in the treatment", []EvidencePeriod{pairOf(300, 300, .5)}, false},
		{"none in the treatment", []EvidencePeriod{pairOf(0, 300, .3)}, false},
		{"two periods", []EvidencePeriod{pairOf(30, 100, .5), pairOf(80, 600, .1)}, false},
		{"an empty period", []EvidencePeriod{pairOf(30, 100, .5), {TreatmentShare: .2}}, false},
		{"half", []EvidencePeriod{{Rate{100, 45}, Rate{100, 55}, .5}}, false},
		{"most", []EvidencePeriod{{Rate{100, 90}, Rate{100, 99}, .5}}, true},
		{"most of both periods", []EvidencePeriod{{Rate{100, 10}, Rate{100, 30}, .5}, {Rate{400, 390}, Rate{100, 99}, .2}}, true},
	} {
		count := func(r Rate) int64 { return r.Converted }
		if test.others {
			count = func(r Rate) int64 { return r.Visitors - r.Converted }
		}
		got := RateEvidence(test.periods)
		want := naiveRateEvidence(test.periods, count)
		check.That(t, math.Abs(got/want-1) < 1e-9, "%s: %v, want %v", test.name, got, want)
	}
	check.That(t, RateEvidence([]EvidencePeriod{pairOf(60, 80, .5)}) > 100, "60 of 80 are no evidence")
	check.That(t, RateEvidence([]EvidencePeriod{pairOf(40, 80, .5)}) < 1, "40 of 80 are evidence")
}

// TestExpectationOfRateEvidence adds E over all outcomes of up to 40 coins in one or two periods: without an effect the
// expectation is 1.
func TestExpectationOfRateEvidence(t *testing.T) {
	for _, share := range []float64{.5, .3, .1, .01} {
		for _, k := range []int64{1, 2, 7, 25, 40} {
			expectation := 0.
			for x := range k + 1 {
				p := distuv.Binomial{N: float64(k), P: share}.Prob(float64(x))
				expectation += p * RateEvidence([]EvidencePeriod{pairOf(x, k, share)})
			}
			check.That(t, math.Abs(expectation-1) < 1e-9, "share %v, %d converted: %v", share, k, expectation)
		}
	}
	expectation := 0.
	for x := range int64(13) {
		for y := range int64(21) {
			p := distuv.Binomial{N: 12, P: .5}.Prob(float64(x)) * distuv.Binomial{N: 20, P: .1}.Prob(float64(y))
			expectation += p * RateEvidence([]EvidencePeriod{pairOf(x, 12, .5), pairOf(y, 20, .1)})
		}
	}
	check.That(t, math.Abs(expectation-1) < 1e-9, "two periods: %v", expectation)
}

// TestExpectationOfMeanEvidence integrates E over a standard normal z.
func TestExpectationOfMeanEvidence(t *testing.T) {
	for _, se := range []float64{1, .5, .1} {
		for _, share := range []float64{.5, .1} {
			const step = .001
			expectation := 0.
			for z := -40.; z <= 40; z += step {
				e := MeanEvidence(PooledEffect{Value: z * se, StandardError: se, TreatmentShare: share})
				if density := distuv.UnitNormal.Prob(z); density > 0 {
					expectation += step * density * e
				}
			}
			check.That(t, math.Abs(expectation-1) < 1e-6, "se %v, share %v: %v", se, share, expectation)
		}
	}
}

// At many conversions the coin is nearly normal, so both kinds of evidence agree.
func TestMeanEvidenceEqualsThatOfRatesAtManyConversions(t *testing.T) {
	for _, test := range []struct {
		control, treatment Rate
		share              float64
	}{
		{Rate{500_000, 5000}, Rate{500_000, 5200}, .5},
		{Rate{500_000, 5000}, Rate{500_000, 4700}, .5},
		{Rate{900_000, 9000}, Rate{100_000, 1120}, .1},
	} {
		exact := RateEvidence([]EvidencePeriod{{test.control, test.treatment, test.share}})
		effect := NewPooledEffect([]Stratum{{test.control, test.treatment, 0}})
		about := MeanEvidence(effect)
		difference := math.Abs(math.Log(about) - math.Log(exact))
		check.That(t, difference < .05+.1*math.Abs(math.Log(exact)), "%v, want about %v", about, exact)
	}
	// The definition, at one effect: 0.06 with the standard error 0.02, half of the visitors.
	want := 0.
	for _, g := range liftGrid {
		theta := g.lift / (1 + g.lift/2)
		want += g.weight * math.Exp(theta*.06/.0004-theta*theta/2/.0004)
	}
	got := MeanEvidence(PooledEffect{Value: .06, StandardError: .02, TreatmentShare: .5})
	check.That(t, math.Abs(got/want-1) < 1e-12, "%v, want %v", got, want)
}

func TestWeakDataAreNoEvidence(t *testing.T) {
	for name, periods := range map[string][]EvidencePeriod{
		"no periods":              nil,
		"no visitors":             {{TreatmentShare: .5}},
		"no declared share":       {pairOf(60, 80, 0)},
		"all visitors":            {pairOf(60, 80, 1)},
		"a share that is unknown": {pairOf(60, 80, math.NaN())},
		"more than all converted": {{Rate{10, 20}, Rate{100, 0}, .5}},
		"negative counts":         {{Rate{100, -1}, Rate{100, 50}, .5}},
		"one period is wrong":     {pairOf(60, 80, .5), pairOf(60, 80, 2)},
	} {
		check.Equal(t, RateEvidence(periods), 1, "%s", name)
	}
	for name, effect := range map[string]PooledEffect{
		"a reason":         {Value: .1, StandardError: .01, TreatmentShare: .5, Reason: ReasonMeanUncertain},
		"nothing":          {},
		"no error":         {Value: .1, TreatmentShare: .5},
		"an unknown error": {Value: .1, StandardError: math.NaN(), TreatmentShare: .5},
		"an infinite one":  {Value: .1, StandardError: math.Inf(1), TreatmentShare: .5},
		"no number":        {Value: math.NaN(), StandardError: .01, TreatmentShare: .5},
		"no share":         {Value: .1, StandardError: .01},
	} {
		check.Equal(t, MeanEvidence(effect), 1, "%s", name)
	}
	check.Equal(t, RateEvidence([]EvidencePeriod{pairOf(900_000, 1_000_000, .5)}), math.MaxFloat64)
	check.Equal(t, MeanEvidence(PooledEffect{Value: 5, StandardError: 1e-4, TreatmentShare: .5}), math.MaxFloat64)
}

// TestEvidenceIsAlwaysValid reads the evidence of campaigns without an effect after each conversion, or on each day.
// That it ever reaches 20 has a probability of at most 1/20.
func TestEvidenceIsAlwaysValid(t *testing.T) {
	const runs = 1000
	most := .05 + 3*math.Sqrt(.05*.95/runs)
	for _, share := range []float64{.5, .1} {
		r := rand.New(rand.NewPCG(1, uint64(100*share))) //nolint:gosec // a simulation
		ever := 0.
		for range runs {
			for k, x := int64(1), int64(0); k <= 500; k++ {
				if r.Float64() < share {
					x++
				}
				if RateEvidence([]EvidencePeriod{pairOf(x, k, share)}) >= 20 {
					ever++
					break
				}
			}
		}
		check.That(t, ever/runs <= most, "rates, share %v: %v of the campaigns", share, ever/runs)

		ever = 0
		for range runs {
			if holdsOnADay(r, share) {
				ever++
			}
		}
		check.That(t, ever/runs <= most, "means, share %v: %v of the campaigns", share, ever/runs)
	}
}

// holdsOnADay reports whether the evidence of exponential values without an effect is 20 on one of 28 days.
func holdsOnADay(r *rand.Rand, share float64) bool {
	var sums [2]struct{ n, sum, squares float64 }
	for range 28 {
		for range 150 {
			s := &sums[0]
			if r.Float64() < share {
				s = &sums[1]
			}
			value := r.ExpFloat64()
			s.n, s.sum, s.squares = s.n+1, s.sum+value, s.squares+value*value
		}
		var samples [2]Sample
		for i, s := range sums {
			mean := s.sum / s.n
			variance := (s.squares - s.n*mean*mean) / (s.n - 1)
			samples[i] = Mean{Visitors: int64(s.n), Mean: mean, Variance: variance, Nonzero: -1}
		}
		if MeanEvidence(NewPooledEffect([]Stratum{{samples[0], samples[1], 0}})) >= 20 {
			return true
		}
	}
	return false
}
