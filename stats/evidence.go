package stats

import "math"

// EvidencePeriod has the visitors of a pair whose first view is in one period of equal shares.
type EvidencePeriod struct {
	Control, Treatment Rate
	TreatmentShare     float64 // declared share of the treatment among the visitors of the pair, in (0, 1)
}

// RateEvidence returns the evidence that the rates of a treatment and of control differ, as an e-value: how many times
// more likely the data are under effects of usual sizes than without an effect. Without an effect, and with the
// declared shares, its expectation is at most 1, for any number of conversions.
//
// Given who converted, the variation of each converted visitor is a coin that shows the treatment with the declared
// share, whatever the rate is. A lift L changes the coin:
//
//	p_s(L) = π_s (1+L) / (1 + π_s L)
//	E = Σ_L g(L) Π_s (p_s(L)/π_s)^x_s ((1-p_s(L))/(1-π_s))^(k_s-x_s)
//	  = Σ_L g(L) (1+L)^x / Π_s (1 + π_s L)^k_s,  x = Σ x_s
//
// where s are the periods, x_s of k_s converted visitors are in the treatment, π_s is the declared share, and g are the
// weights of 68 lifts, see liftGrid. If more than half of all visitors converted, the others are counted instead, and L
// is the lift of their rate: there are fewer of them, and they have more information.
//
// Conversions only add coins, so E is a nonnegative martingale. By Ville's inequality, without an effect, E ever
// reaches c with probability at most 1/c, as long as the same visitors are counted. Unconverted visitors may still
// convert, so their E is valid at one time, and over time only where conversions are final.
//
// It is not for the share of converted among converted visitors: if the variations differ in the latter, the coin of
// the former does not show the declared share. MeanEvidence of their pooled effect is.
//
// E is 1 without converted visitors, and if numbers contradict each other or a share is not in (0, 1). It is at most
// math.MaxFloat64.
//
// See Robbins (1970), Annals of Mathematical Statistics 41, for mixtures; Vovk and Wang (2021), Annals of Statistics
// 49, for e-values; Lindon and Malek (2022) for the coin.
func RateEvidence(periods []EvidencePeriod) float64 {
	var visitors, converted int64
	for _, s := range periods {
		isCounted := s.Control.checkCounts() && s.Treatment.checkCounts()
		if !isCounted || !(s.TreatmentShare > 0 && s.TreatmentShare < 1) {
			return 1
		}
		visitors += s.Control.Visitors + s.Treatment.Visitors
		converted += s.Control.Converted + s.Treatment.Converted
	}
	countsOthers := converted > visitors-converted
	return mixEvidence(func(lift float64) (logarithm float64) {
		for _, s := range periods {
			x, k := s.Treatment.Converted, s.Treatment.Converted+s.Control.Converted
			if countsOthers {
				k = s.Control.Visitors + s.Treatment.Visitors - k
				x = s.Treatment.Visitors - x
			}
			logarithm += float64(x)*math.Log1p(lift) - float64(k)*math.Log1p(s.TreatmentShare*lift)
		}
		return logarithm
	})
}

// checkCounts reports whether the counts of a rate are possible. Without visitors, they are.
func (r Rate) checkCounts() bool {
	reason := r.checkData()
	return reason == "" || reason == ReasonNoVisitors
}

// MeanEvidence is RateEvidence for means and ratios, from the pooled effect y with the standard error se:
//
//	θ(L) = L / (1 + πL)
//	E = Σ_L g(L) exp(θ y/se² - θ²/(2 se²))
//
// where π is the share of the treatment's visitors in the pair, and θ is the effect relative to the mean of the pair at
// the lift L. Without an effect its expectation is 1 if y is normal with the standard error se, which holds
// asymptotically: callers require values from 100 visitors of each variation.
//
// E is 1 if the pooled effect is unknown, for its reason. It is at most math.MaxFloat64.
//
// See Robbins (1970), and Howard et al. (2021), Annals of Statistics 49.
func MeanEvidence(e PooledEffect) float64 {
	isKnown := e.Reason == "" && isFinite(e.Value) && e.StandardError > 0
	isShare := e.TreatmentShare > 0 && e.TreatmentShare < 1
	if !isKnown || !isShare {
		return 1
	}
	z := e.Value / e.StandardError
	return mixEvidence(func(lift float64) float64 {
		expected := lift / (1 + e.TreatmentShare*lift) / e.StandardError // of z
		return expected*z - expected*expected/2
	})
}

// weightedLift is a lift and its weight.
type weightedLift struct{ lift, weight float64 }

// liftGrid has the lifts of alternatives and their weights g, with the sum 1: the mean of four lognormal distributions
// of 1+L with the median 1 and the standard deviations .05, .1, .2 and .4 of its logarithm. Each has 17 lifts, from -4
// to 4 standard deviations.
var liftGrid = func() (grid []weightedLift) {
	const (
		half = 8 // lifts on each side of 0
		most = 4 // standard deviations
	)
	spreads := []float64{.05, .1, .2, .4}
	total := 0.
	for i := -half; i <= half; i++ {
		total += math.Exp(-squareOf(most*float64(i)/half) / 2)
	}
	for _, spread := range spreads {
		for i := -half; i <= half; i++ {
			z := most * float64(i) / half
			weight := math.Exp(-z*z/2) / total / float64(len(spreads))
			grid = append(grid, weightedLift{math.Expm1(spread * z), weight})
		}
	}
	return grid
}()

func squareOf(x float64) float64 { return x * x }

// mixEvidence returns the mean of likelihood ratios over the grid of lifts, given their logarithms.
func mixEvidence(logRatio func(lift float64) float64) float64 {
	logarithms := make([]float64, len(liftGrid))
	largest := math.Inf(-1)
	for i, g := range liftGrid {
		logarithms[i] = logRatio(g.lift)
		largest = math.Max(largest, logarithms[i])
	}
	if !isFinite(largest) {
		return 1
	}
	sum, weights := 0., 0. // the weights have the sum 1, but for rounding
	for i, g := range liftGrid {
		sum += g.weight * math.Exp(logarithms[i]-largest)
		weights += g.weight
	}
	return math.Min(math.Exp(largest+math.Log(sum/weights)), math.MaxFloat64)
}
