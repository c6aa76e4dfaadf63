package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// minimumExpected is the minimum expected count of a cell for which the
// chi-square distribution is valid (Cochran, 1954).
const minimumExpected = 5

// MultipleExposures describes the visitors who were exposed to more than one
// variation. PValue is the p-value of the hypothesis that their share of the
// visitors is equal in all variations. It is nil if Reason is set. Skewed is
// true if the shares differ at p < 0.001.
type MultipleExposures struct {
	PValue *float64
	Skewed bool
	Reason Reason
}

// MultipleExposureSkew tests whether the share of multi-exposed visitors
// differs between variations, by the chi-square of homogeneity
//
//	chi² = Σ (x_i - n_i p)² / (n_i p (1-p)),  p = Σ x_i / Σ n_i
//
// over the variations with visitors. The degrees of freedom are the number of these variations
// minus one. Both arguments count visitors by their first variation, and visitors includes the
// multi-exposed visitors. If an expected count is below 5, there is no p-value.
func MultipleExposureSkew(multiExposed, visitors []int64) MultipleExposures {
	if len(multiExposed) != len(visitors) {
		return MultipleExposures{Reason: ReasonInvalidData}
	}
	crossed, total, cells, smallest := 0.0, 0.0, 0, math.Inf(1)
	for i, n := range visitors {
		if multiExposed[i] < 0 || multiExposed[i] > n {
			return MultipleExposures{Reason: ReasonInvalidData}
		}
		if n > 0 {
			cells++
			crossed += float64(multiExposed[i])
			total += float64(n)
			smallest = math.Min(smallest, float64(n))
		}
	}
	if total == 0 {
		return MultipleExposures{Reason: ReasonNoVisitors}
	}
	p := crossed / total
	switch {
	case cells < 2:
		return MultipleExposures{Reason: ReasonTooFewVariations}
	case smallest*math.Min(p, 1-p) < minimumExpected:
		return MultipleExposures{Reason: ReasonTooFewVisitors}
	}
	chi2 := 0.0
	for i, n := range visitors {
		if n > 0 {
			d := float64(multiExposed[i]) - float64(n)*p
			chi2 += d / (float64(n) * p * (1 - p)) * d
		}
	}
	differ := chiSquareSurvival(chi2, cells-1)
	return MultipleExposures{PValue: numberOrNil(differ), Skewed: differ < MismatchAlpha}
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
