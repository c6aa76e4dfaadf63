package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const (
	// mismatchAlpha is the p-value below which a sample ratio mismatch is alarmed:
	// rare enough to be looked at on every report (Fabijan et al., KDD 2019).
	mismatchAlpha = 0.001
	// minimumExpected is the expected count of a cell from which the chi-square
	// distribution holds (Cochran, 1954).
	minimumExpected = 5
	// largestParts is the finest equal division that shares written in integer
	// percent may stand for.
	largestParts = 12
	// leakVisitors and leakShare bound the traffic that stray requests may bring
	// to a variation that should get none.
	leakVisitors = 5
	leakShare    = 0.0001
)

// Split is how traffic is meant to be divided: Control percent to control, the
// rest over the variations by their weights.
type Split struct {
	Control    float64
	Variations []float64
}

// Expected returns the shares, control first, in [0, 1] with sum 1; nil where the
// split makes no sense: a percentage outside 0..100, a negative weight, or a
// remainder that no variation takes.
func (s Split) Expected() []float64 {
	total := 0.0
	for _, weight := range s.Variations {
		if !(weight >= 0) || math.IsInf(weight, 1) {
			return nil
		}
		total += weight
	}
	if !(s.Control >= 0 && s.Control <= 100) || (total <= 0 && s.Control < 100) || math.IsInf(total, 1) {
		return nil
	}
	shares := make([]float64, 1, 1+len(s.Variations))
	shares[0] = s.Control / 100
	for _, weight := range s.Variations {
		share := 0.0
		if total > 0 {
			share = weight / total * (1 - shares[0])
		}
		shares = append(shares, share)
	}
	return shares
}

// SampleRatioCheck compares the visitors that came with those that should have.
// Expected are visitors, control first, by the division that fits best among
// those the split may mean. PValue is nil, with the Reason, where it cannot be
// trusted.
type SampleRatioCheck struct {
	PValue   *float64
	Expected []float64
	Observed []int64
	Mismatch bool
	Reason   Reason
}

// SampleRatio tests the observed visitors, control first, against the split, by
//
//	chi² = Σ (observed - expected)² / expected
//
// over the variations with a share above 0, with one degree of freedom less than
// those. Visitors must be counted before any exclusion, by their first variation.
// Integer percentages cannot say thirds: the p-value is the largest over the
// shares as given and over every split into multiples of 1/m, m <= 12, within half
// a point of each given share, or within one point of a share that lies within 1.5
// points of another; both of all traffic, and of the variations' part of it. A
// p-value below 0.001 is a mismatch. Fewer than 100 visitors, or an expected count
// below 5, give no p-value.
//
// See Fabijan et al. (2019), "Diagnosing Sample Ratio Mismatch".
func SampleRatio(observed []int64, split Split) SampleRatioCheck {
	check := SampleRatioCheck{Observed: observed}
	shares := split.Expected()
	if shares == nil || len(shares) != len(observed) {
		check.Reason = ReasonInvalidData
		return check
	}
	total, cells := 0.0, 0
	for i, n := range observed {
		if n < 0 {
			check.Reason = ReasonInvalidData
			return check
		}
		if shares[i] > 0 {
			total += float64(n)
			cells++
		}
	}
	check.Expected = scaled(shares, total)
	if cells < 2 {
		check.Reason = ReasonTooFewVariations
		return check
	}
	for _, expected := range check.Expected {
		if total < minimumVisitors || (expected > 0 && expected < minimumExpected) {
			check.Reason = ReasonTooFewVisitors
			return check
		}
	}
	best := -1.0
	for _, candidate := range split.meanings(shares) {
		expected := scaled(candidate, total)
		if p := goodnessOfFit(observed, expected); p > best {
			best, check.Expected = p, expected
		}
	}
	check.PValue = number(best)
	check.Mismatch = best < mismatchAlpha
	return check
}

// meanings returns the shares as given and every division they may stand for.
func (s Split) meanings(shares []float64) [][]float64 {
	all := append([][]float64{shares}, divisions(shares)...)
	if s.Control <= 0 || s.Control >= 100 {
		return all
	}
	rest := 1 - shares[0]
	for _, inner := range divisions(scaled(shares[1:], 1/rest)) {
		all = append(all, append([]float64{shares[0]}, scaled(inner, rest)...))
	}
	return all
}

// divisions returns the splits into multiples of 1/m near all of the shares.
func divisions(shares []float64) [][]float64 {
	var found [][]float64
	for parts := 2; parts <= largestParts; parts++ {
		division := make([]float64, len(shares))
		left := parts
		for i, share := range shares {
			if share == 0 {
				continue
			}
			k := math.Round(share * float64(parts))
			division[i] = k / float64(parts)
			left -= int(k)
			if k < 1 || math.Abs(division[i]-share) > tolerance(shares, i) {
				left = -1
				break
			}
		}
		if left == 0 {
			found = append(found, division)
		}
	}
	return found
}

// tolerance is how far a share may lie from its exact value: half a point by
// rounding, a whole one where the remainder was given to one of several equals.
func tolerance(shares []float64, i int) float64 {
	const slack = 1e-9
	for j, other := range shares {
		if j != i && other > 0 && math.Abs(other-shares[i]) <= 0.015+slack {
			return 0.01 + slack
		}
	}
	return 0.005 + slack
}

// goodnessOfFit returns the p-value of the chi-square over expected cells above 0.
func goodnessOfFit(observed []int64, expected []float64) float64 {
	chi2, cells := 0.0, 0
	for i, e := range expected {
		if e > 0 {
			d := float64(observed[i]) - e
			chi2 += d / e * d
			cells++
		}
	}
	return chiSquareSurvival(chi2, cells-1)
}

// chiSquareSurvival returns P(X > x) for a chi-square of so many degrees of
// freedom.
func chiSquareSurvival(x float64, degrees int) float64 {
	switch {
	case x <= 0 || degrees < 1:
		return 1
	case math.IsInf(x, 1):
		return 0
	case degrees == 1:
		return math.Erfc(math.Sqrt(x / 2))
	}
	return mathext.GammaIncRegComp(float64(degrees)/2, x/2)
}

func scaled(shares []float64, by float64) []float64 {
	out := make([]float64, len(shares))
	for i, share := range shares {
		out[i] = share * by
	}
	return out
}

// Leak reports whether visitors of a variation with a share of 0, or of one that
// the campaign does not know, are too many for stray requests: more than 5 and
// more than 0.01 % of the total.
func Leak(visitors, total int64) bool {
	return float64(visitors) > math.Max(leakVisitors, leakShare*float64(total))
}
