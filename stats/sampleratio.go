package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const (
	// mismatchAlpha is the p-value below which a sample ratio mismatch is
	// reported. It is small enough for a check on every report (Fabijan et al.,
	// KDD 2019).
	mismatchAlpha = 0.001
	// minimumExpected is the minimum expected count of a cell for which the
	// chi-square distribution is valid (Cochran, 1954).
	minimumExpected = 5
	// largestParts is the largest m of the divisions into multiples of 1/m that
	// shares in integer percent may represent.
	largestParts = 12
	// leakVisitors and leakShare bound the traffic that stray requests may
	// bring to a variation that must not get any.
	leakVisitors = 5
	leakShare    = 0.0001
)

// Split is the planned division of traffic: Control percent to control, and the
// rest to the variations in proportion to their weights.
type Split struct {
	Control    float64
	Variations []float64
}

// Expected returns the shares, control first, in [0, 1] with sum 1. It returns
// nil if the split is invalid: a percentage outside 0..100, a negative weight,
// or a remainder without a variation to take it.
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

// SampleRatioCheck compares the observed visitors with the expected ones.
// Expected are numbers of visitors, control first, by the division that fits
// best among those that the split may represent. If the p-value is not
// reliable, PValue is nil and Reason is set.
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
// over the variations with a share above 0. The degrees of freedom are the
// number of these variations minus one. Visitors must be counted before any
// exclusion, by their first variation.
//
// Integer percentages cannot express thirds. So the p-value is the largest over
// the given shares and over every split into multiples of 1/m, m <= 12, near
// them. A split is near if each share is within half a percentage point of the
// given one. If a given share lies within 1.5 points of another, its tolerance
// is one point. Such splits are tried for all traffic, and for the traffic of
// the variations without control.
//
// A p-value below 0.001 is a mismatch. With fewer than 100 visitors, or an
// expected count below 5, there is no p-value.
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
		if total < MinimumVisitors || (expected > 0 && expected < minimumExpected) {
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

// meanings returns the given shares and every division that they may represent.
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

// divisions returns the splits into multiples of 1/m that are near all shares.
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

// tolerance returns the maximum distance of a share from its exact value. It is
// half a percentage point because of rounding. It is a whole point if another
// share is nearly equal, because one of several equal shares may include the
// remainder.
func tolerance(shares []float64, i int) float64 {
	const slack = 1e-9
	for j, other := range shares {
		if j != i && other > 0 && math.Abs(other-shares[i]) <= 0.015+slack {
			return 0.01 + slack
		}
	}
	return 0.005 + slack
}

// goodnessOfFit returns the p-value of the chi-square over the cells whose
// expected count is above 0.
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

// chiSquareSurvival returns P(X > x) for a chi-square distribution with the
// given degrees of freedom.
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

// Leak reports whether a variation that must not get traffic has too many
// visitors for stray requests: more than 5 and more than 0.01 % of the total.
// Such a variation has a share of 0, or is unknown to the campaign.
func Leak(visitors, total int64) bool {
	return float64(visitors) > math.Max(leakVisitors, leakShare*float64(total))
}
