package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
)

// lifetimesOf parses ages of one variation; + marks an order that is known to be unchanged up to its age.
func lifetimesOf(t *testing.T, treated bool, ages string) (all []Lifetime) {
	t.Helper()
	for text := range strings.FieldsSeq(ages) {
		number, unchanged := strings.CutSuffix(text, "+")
		age, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		l := Lifetime{Treated: treated, Age: age, Amount: 1, Removed: 1}
		if unchanged {
			l.Removed = 0
		}
		all = append(all, l)
	}
	return all
}

// TestLogRankOfPublishedData compares the test with published results: remission times of Freireich et al. (1963) and
// survival of aml of Miller (1997), as survdiff of the R package survival has them, and of Stablein and Koutrouvelis
// (1985) as in Klein and Moeschberger (2003), Survival Analysis, example 7.9.
func TestLogRankOfPublishedData(t *testing.T) {
	for _, of := range []struct {
		name, control, treatment   string
		changed                    int
		chiSquared, largest, above float64 // above: P(sup |B| > largest); 0: not published
	}{
		{
			"6-MP", "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23",
			"6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+", 30, 16.793, 0, 0,
		},
		{
			"aml", "5 5 8 8 12 16+ 23 27 30 33 43 45", "9 13 13+ 18 23 28+ 31 34 45+ 48 161+",
			18, 3.396, 0, 0,
		},
		{
			"chemotherapy without and with radiotherapy",
			"1 63 105 129 182 216 250 262 301 301 342 354 356 358 380 383 383 388 394 408 460 489 499 523 524 535 562 " +
				"569 675 676 748 778 786 797 955 968 1000 1245 1271 1420 1551 1694 2363 2754+ 2950+",
			"17 42 44 48 60 72 74 95 103 108 122 144 167 170 183 185 193 195 197 208 234 235 254 307 315 401 445 464 " +
				"484 528 542 547 577 580 795 855 1366 1577 2060 2412+ 2486+ 2796+ 2802+ 2934+ 2988+",
			82, 0.23, 2.20, 0.053,
		},
	} {
		found := CompareLifetimes(append(lifetimesOf(t, false, of.control), lifetimesOf(t, true, of.treatment)...))
		check.Equal(t, found.Changed, of.changed, "%s: changed", of.name)
		chi := *found.LogRank * *found.LogRank
		check.That(t, math.Abs(chi-of.chiSquared) < 0.005, "%s: chi squared %.4f, published %g",
			of.name, chi, of.chiSquared)
		if of.above == 0 {
			continue
		}
		check.That(t, math.Abs(*found.Largest-of.largest) < 0.005, "%s: largest %.4f, published %g",
			of.name, *found.Largest, of.largest)
		p := exceedsBrownian(of.largest)
		check.That(t, math.Abs(p-of.above) < 0.003, "%s: p %.4f, published %g", of.name, p, of.above)
	}
}

// TestSupremumOfBrownianMotion compares the distribution with the published quantiles (Klein and Moeschberger, table
// C.5), and both series with each other.
func TestSupremumOfBrownianMotion(t *testing.T) {
	for z, want := range map[float64]float64{1.96: 0.1, 2.2414: 0.05, 2.8070: 0.01, 3.4808: 0.001} {
		p := exceedsBrownian(z)
		check.That(t, math.Abs(p-want) < 0.01*want, "P(sup > %g) = %g, published %g", z, p, want)
	}
	below, above := exceedsBrownian(math.Nextafter(1, 0)), exceedsBrownian(1)
	check.That(t, math.Abs(below-above) < 1e-12, "at 1: %.15f and %.15f", below, above)
	check.Equal(t, exceedsBrownian(0), 1, "at 0")
}

// naiveLifetimes computes the sums of CompareLifetimes at each age from all orders at risk.
func naiveLifetimes(all []Lifetime) (score, largest, variance float64) {
	ages := map[float64]bool{}
	for _, l := range all {
		ages[l.Age] = true
	}
	var sorted []float64
	for age := range ages {
		sorted = append(sorted, age)
	}
	slices.Sort(sorted)
	for _, age := range sorted {
		var n, d, money, tested, squares, testedSquares, removed, testedRemoved, removedSquares float64
		for _, l := range all {
			if l.Age < age {
				continue
			}
			n++
			money += l.Amount
			squares += l.Amount * l.Amount
			r := 0.0
			if l.Age == age {
				r = l.Removed
			}
			removed += r
			removedSquares += r * r
			if r > 0 {
				d++
			}
			if l.Treated {
				tested += l.Amount
				testedSquares += l.Amount * l.Amount
				testedRemoved += r
			}
		}
		if d == 0 || n < 2 || tested == 0 || tested == money {
			continue
		}
		p, q := tested/money, testedSquares/squares
		score += testedRemoved - p*removed
		if math.Abs(score) > math.Abs(largest) {
			largest = score
		}
		variance += removedSquares * (q*(1-p)*(1-p) + (1-q)*p*p) * (n - d) / (n - 1)
	}
	return score, largest, variance
}

// TestLifetimesEqualANaiveComputation compares weighted tests of random orders with sums over all orders at each age.
func TestLifetimesEqualANaiveComputation(t *testing.T) {
	r := newRand(76)
	for range 200 {
		var all []Lifetime
		for range r.IntN(60) {
			l := Lifetime{Treated: r.IntN(3) == 0, Age: float64(r.IntN(20)), Amount: 1 + float64(r.IntN(100))}
			if r.IntN(2) == 0 {
				l.Removed = l.Amount * float64(r.IntN(3)) / 2
			}
			all = append(all, l)
		}
		score, largest, variance := naiveLifetimes(all)
		found := CompareLifetimes(all)
		if variance == 0 {
			check.That(t, found.PValue == nil, "p %v without a change", found.PValue)
			continue
		}
		deviation := math.Sqrt(variance)
		score, largest = score/deviation, largest/deviation
		check.That(t, math.Abs(*found.LogRank-score) < 1e-9, "log-rank %g, naive %g", *found.LogRank, score)
		check.That(t, math.Abs(*found.Largest-largest) < 1e-9, "largest %g, naive %g", *found.Largest, largest)
	}
}

// TestWeakLifetimes has data from which nothing follows.
func TestWeakLifetimes(t *testing.T) {
	order := Lifetime{Age: 3, Amount: 1, Removed: 1}
	treated := order
	treated.Treated = true
	unchanged := treated
	unchanged.Removed = 0
	for name, all := range map[string][]Lifetime{
		"none":               nil,
		"of control only":    {order, order},
		"unchanged":          {unchanged, {Age: 2, Amount: 1}},
		"at different ages":  {{Age: 1, Amount: 1}, treated},
		"without an amount":  {{Age: 1, Removed: 1}, {Treated: true, Age: 1, Amount: math.NaN(), Removed: 1}},
		"at no age":          {{Age: math.NaN(), Amount: 1, Removed: 1}, treated},
		"of infinite amount": {{Age: 3, Amount: math.Inf(1), Removed: 1}, treated},
	} {
		found := CompareLifetimes(all)
		check.That(t, found.PValue == nil, "%s: p %v", name, found.PValue)
	}
	var all []Lifetime
	for i := range 100 {
		all = append(all, Lifetime{Treated: i%2 == 0, Age: 100, Amount: 1})
	}
	for i := range 12 {
		all = append(all, Lifetime{Age: float64(i), Amount: 1, Removed: 1})
	}
	found := CompareLifetimes(all)
	check.That(t, *found.PValue > 0.001, "12 changes, all of control: p %g", *found.PValue)
	check.That(t, found.Later(), "the orders of the treatment change later")
}

// TestLifetimesHoldTheirLevel draws orders without a difference: even and uneven splits, few changes and many, and
// amounts that differ much between orders and between variations. At most .1 % of the tests have p < .001.
func TestLifetimesHoldTheirLevel(t *testing.T) {
	const draws = 6000
	for _, of := range []struct {
		orders         int
		share, changes float64
		amounts        bool
		larger         float64 // amounts of the treatment
	}{
		{100, 0.5, 0.2, false, 1},
		{1000, 0.5, 0.1, false, 1},
		{400, 0.05, 0.1, false, 1},
		{2000, 0.05, 0.2, false, 1},
		{2000, 0.95, 0.05, false, 1},
		{500, 0.5, 0.2, true, 1},
		{500, 0.5, 0.2, true, 1.5},
		{1000, 0.1, 0.2, true, 1.3},
	} {
		r, alarms := rand.New(rand.NewPCG(76, uint64(of.orders))), 0
		all := make([]Lifetime, of.orders)
		for range draws / max(of.orders/250, 1) {
			for i := range all {
				l := Lifetime{Treated: r.Float64() < of.share, Age: 28 * r.Float64(), Amount: 1}
				if of.amounts {
					l.Amount = math.Exp(r.NormFloat64())
				}
				if l.Treated {
					l.Amount *= of.larger
				}
				if at := 10 * r.ExpFloat64(); r.Float64() < of.changes && at < l.Age {
					l.Age, l.Removed = at, l.Amount
				}
				all[i] = l
			}
			if p := CompareLifetimes(all).PValue; p != nil && *p < 0.001 {
				alarms++
			}
		}
		n := float64(draws / max(of.orders/250, 1))
		most := 0.001*n + 3*math.Sqrt(0.001*n)
		check.That(t, float64(alarms) <= most, "%+v: %d alarms of %g", of, alarms, n)
	}
}
