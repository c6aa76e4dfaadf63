package stats

import (
	"cmp"
	"math"
	"slices"
)

// Lifetime is how long an order stayed as it was: its age when it was cancelled or revised downwards, or else the age
// up to which it is known that it was not.
type Lifetime struct {
	Treated bool    // of the treatment; else of control
	Age     float64 // in any unit
	Amount  float64 // above 0; 1 if orders are counted
	Removed float64 // part of the amount that was taken off; 0: none
}

// LifetimeTest says whether orders change at different ages in two variations.
type LifetimeTest struct {
	Orders  int      `json:"orders"`  // of both variations
	Changed int      `json:"changed"` // of these, cancelled or revised downwards
	LogRank *float64 `json:"-"`       // the statistic over all ages; nil: no PValue
	Largest *float64 `json:"-"`       // the statistic at the age at which it is furthest from 0; nil: no PValue
	PValue  *float64 `json:"pValue"`  // of Largest; nil: no order changed at an age that orders of both variations had
}

// Later reports whether the orders of the treatment change later, or less, than those of control. Otherwise they change
// earlier or more.
func (l *LifetimeTest) Later() bool { return l.Largest != nil && *l.Largest < 0 }

// CompareLifetimes tests whether orders lose their amounts at the same rate at each age in control and treatment.
// Orders are at risk up to their age. At the ages a at which d(a) of the n(a) orders at risk change, let M(a) and Q(a)
// be the sums of the amounts at risk and of their squares, and p(a) and q(a) the treatment's parts of them. For the
// removed amounts r,
//
//	U(a) = Σ over the ages up to a: Σ r of the treatment - p Σ r of both
//	V    = Σ over all ages: Σ r² (q (1 - p)² + (1 - q) p²) (n - d)/(n - 1)
//	LogRank = U(∞)/sqrt(V),  Largest = U(a)/sqrt(V) where |U(a)| is largest
//
// If all amounts and removed amounts are 1, q = p, V is the hypergeometric variance, and LogRank is the log-rank test
// (Mantel 1966; Peto and Peto 1972). Money is weighed by what is at risk, so larger orders do not count as more
// returns.
//
// PValue is P(sup |B| >= |Largest|) for a Brownian motion B on [0, 1] (Gill 1980; Fleming, Harrington and O'Sullivan
// 1987, "Supremum Versions of the Log-Rank and Generalized Wilcoxon Statistics"). The supremum is used because the same
// number of orders that come back later cross: first too few, then too many, and LogRank ends near 0. The normal
// approximation is anticonservative if a small variation has few changes. Then |Largest| is reduced by
// γ (Largest² - 1)/6, where γ is the skewness of U in its direction (Cornish and Fisher 1938).
//
// Weak data: |Largest| is at most sqrt(Changed) at an even split, so 13 changes are the fewest with p < .001. Without
// a change at an age that both variations had, there is no PValue. Lifetimes without an amount above 0, or with an age
// that is not a number, are left out.
func CompareLifetimes(all []Lifetime) LifetimeTest {
	valid := slices.DeleteFunc(slices.Clone(all), func(l Lifetime) bool {
		hasAmount := l.Amount > 0 && !math.IsInf(l.Amount, 1)
		hasAges := !math.IsNaN(l.Age) && !math.IsNaN(l.Removed)
		return !hasAmount || !hasAges
	})
	slices.SortFunc(valid, func(a, b Lifetime) int { return cmp.Compare(a.Age, b.Age) })
	found, risk, sums := LifetimeTest{Orders: len(valid)}, atRisk{}, lifetimeSums{}
	for _, l := range valid {
		risk.add(l, 1)
	}
	for from, to := 0, 0; from < len(valid); from = to {
		for to = from; to < len(valid) && valid[to].Age == valid[from].Age; to++ {
			if valid[to].Removed > 0 {
				found.Changed++
			}
		}
		sums.addAge(valid[from:to], risk)
		for _, l := range valid[from:to] {
			risk.add(l, -1)
		}
	}
	if !(sums.variance > 0) || math.IsInf(sums.variance, 1) {
		return found
	}
	deviation := math.Sqrt(sums.variance)
	found.LogRank, found.Largest = new(sums.score/deviation), new(sums.largest/deviation)
	z := math.Abs(*found.Largest)
	skewness := math.Copysign(1, *found.Largest) * sums.third / (sums.variance * deviation)
	if z > 1 && skewness > 0 {
		z = max(1, z-skewness*(z*z-1)/6)
	}
	found.PValue = new(exceedsBrownian(z))
	return found
}

// atRisk are the orders that have reached an age unchanged.
type atRisk struct {
	orders          float64
	amounts, ofTest float64 // amounts of both variations, and of the treatment
	squares, tested float64 // their squares
}

func (r *atRisk) add(l Lifetime, sign float64) {
	r.orders += sign
	r.amounts += sign * l.Amount
	r.squares += sign * l.Amount * l.Amount
	if l.Treated {
		r.ofTest += sign * l.Amount
		r.tested += sign * l.Amount * l.Amount
	}
}

// lifetimeSums are the sums of CompareLifetimes up to an age.
type lifetimeSums struct {
	score, largest  float64
	variance, third float64 // third central moment
}

// addAge adds the lifetimes that end at an age.
func (s *lifetimeSums) addAge(ending []Lifetime, risk atRisk) {
	var changed, treated, removed, squares, third float64
	for _, l := range ending {
		if !(l.Removed > 0) {
			continue
		}
		r := min(l.Removed, l.Amount)
		changed++
		removed += r
		squares += r * r
		third += r * r * r
		if l.Treated {
			treated += r
		}
	}
	p := min(max(risk.ofTest/risk.amounts, 0), 1)
	q := min(max(risk.tested/risk.squares, 0), 1)
	const rounding = 1e-12 // of sums from which all orders of a variation were subtracted
	isCertain := p < rounding || p > 1-rounding
	if changed == 0 || isCertain || !(risk.orders > 1) {
		return
	}
	s.score += treated - p*removed
	if math.Abs(s.score) > math.Abs(s.largest) {
		s.largest = s.score
	}
	ties := (risk.orders - changed) / (risk.orders - 1)
	s.variance += squares * (q*(1-p)*(1-p) + (1-q)*p*p) * ties
	s.third += third * (q*(1-p)*(1-p)*(1-p) - (1-q)*p*p*p) * ties
}

// exceedsBrownian returns P(sup |B(t)| >= z, 0 <= t <= 1) of a Brownian motion B:
//
//	4 Σ (-1)^k Q((2k + 1) z) = 1 - 4/π Σ (-1)^k / (2k + 1) exp(-π² (2k + 1)² / (8 z²)),  k = 0, 1, …
//
// The first series converges fast for z >= 1, the second one below.
func exceedsBrownian(z float64) float64 {
	const terms = 8
	sum, sign := 0.0, 1.0
	for k := range terms {
		odd := float64(2*k + 1)
		if z >= 1 {
			sum += sign * 4 * normalSurvival(odd*z)
		} else {
			sum += sign * 4 / math.Pi / odd * math.Exp(-math.Pi*math.Pi*odd*odd/(8*z*z))
		}
		sign = -sign
	}
	if z >= 1 {
		return min(max(sum, 0), 1)
	}
	return min(max(1-sum, 0), 1)
}
