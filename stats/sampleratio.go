package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// MismatchAlpha is the p-value below which a sample ratio mismatch is reported (Fabijan et al., KDD 2019).
const MismatchAlpha = 0.001

// Split is the planned division of traffic: Control percent to control, and the rest to the variations in proportion to
// their weights.
type Split struct {
	Control    float64
	Variations []float64
}

// ExpectedShares returns the shares, control first, in [0, 1] with sum 1. It returns nil if the split is invalid: a
// percentage outside 0..100, a negative weight, or a remainder without a variation to take it.
func (s Split) ExpectedShares() []float64 {
	total := 0.0
	for _, weight := range s.Variations {
		if !(weight >= 0) || math.IsInf(weight, 1) {
			return nil
		}
		total += weight
	}
	isShare := s.Control >= 0 && s.Control <= 100
	isLost := total <= 0 && s.Control < 100 // what control leaves has no variation
	if !isShare || isLost || math.IsInf(total, 1) {
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

// SampleRatioCheck compares the observed visitors with the expected ones. Expected has numbers of visitors, control
// first, under the best fitting division that the split may represent. If the p-value is not reliable, PValue is nil
// and Reason is set.
type SampleRatioCheck struct {
	PValue   *float64  `json:"pValue"`
	Expected []float64 `json:"expected"`
	Observed []int64   `json:"observed"`
	Mismatch bool      `json:"mismatch"`
	Reason   Reason    `json:"reason,omitempty"`

	LogFactor float64 `json:"-"` // ln B, see SampleRatioMismatch; it also orders p-values that underflow
}

// SharePeriod has the visitors of a period with one split of traffic, control first. Visitors must be counted by their
// first variation, before any exclusion.
type SharePeriod struct {
	Split    Split
	Observed []int64
}

// SampleRatioMismatch tests the visitors against the shares. The test is valid however often it is read: the
// probability that a fair split ever has p < .001 is at most .001. Expected and Observed are added up over all periods.
// The p-value is min(1, 1/B), where B is the mean over C = 30, 300, 3000 and 30,000 of the products over all periods of
//
//	Γ(C)/Γ(C + n) Π Γ(C θi + xi) / (Γ(C θi) θi^xi)
//
// for n visitors, xi of them in variation i with the expected share θi > 0. The product is the Bayes factor of a
// Dirichlet prior C θ against θ. A small C finds the large deviations of small samples, and a large C the small
// deviations of large ones. The mean of Bayes factors is as valid as each of them.
//
// Integer percentages cannot express thirds. So the factor of a period is the smallest over the given shares and over
// the splits near them that Split.possibleShares returns. A p-value below .001 is a mismatch.
//
// See Lindon and Malek (2022), "Anytime-Valid Inference for Multinomial Count Data".
func SampleRatioMismatch(periods []SharePeriod) SampleRatioCheck {
	check := SampleRatioCheck{Reason: ReasonTooFewVariations}
	var factors [len(mismatchPriors)]float64 // logarithms, by prior
	for _, period := range periods {
		shares := period.Split.ExpectedShares()
		if !period.isValid(shares) {
			return SampleRatioCheck{Reason: ReasonInvalidData}
		}
		if check.Observed == nil {
			check.Observed = make([]int64, len(shares))
			check.Expected = make([]float64, len(shares))
		}
		if len(shares) != len(check.Observed) {
			return SampleRatioCheck{Reason: ReasonInvalidData}
		}
		total, used := 0.0, 0
		for i, n := range period.Observed {
			check.Observed[i] += n
			if shares[i] > 0 {
				total += float64(n)
				used++
			}
		}
		if used > 1 {
			check.Reason = ""
		}
		for i, share := range period.addFactors(&factors, shares, total) {
			check.Expected[i] += share * total
		}
	}
	check.LogFactor = logSum(factors[:]) - math.Log(float64(len(factors)))
	if check.Reason == "" {
		p := math.Min(1, math.Exp(-check.LogFactor))
		check.PValue = &p
		check.Mismatch = p < MismatchAlpha
	}
	return check
}

// isValid reports whether a period has a number of visitors for each share.
func (p *SharePeriod) isValid(shares []float64) bool {
	isNegative := func(n int64) bool { return n < 0 }
	return shares != nil && len(shares) == len(p.Observed) && !slices.ContainsFunc(p.Observed, isNegative)
}

// addFactors adds, for each prior, the smallest factor of the shares that the split may represent. It returns the
// shares that fit best.
func (p *SharePeriod) addFactors(factors *[len(mismatchPriors)]float64, shares []float64, total float64) []float64 {
	best := shares
	candidates := p.Split.possibleShares(shares)
	for k, prior := range mismatchPriors {
		least := math.Inf(1)
		for _, candidate := range candidates {
			if b := logBayesFactor(p.Observed, candidate, total, prior); b < least {
				least = b
				best = candidate
			}
		}
		factors[k] += least
	}
	return best
}

// WithSegments returns the check with half of the error budget, where the split of segments has the other half:
// the p-value is min(1, 2/B), as B/2 is at most LogEvidenceOfSegments.
func (c SampleRatioCheck) WithSegments() SampleRatioCheck {
	if c.PValue != nil {
		p := math.Min(1, 2*math.Exp(-c.LogFactor))
		c.PValue = &p
		c.Mismatch = p < MismatchAlpha
	}
	return c
}

// SegmentsOfAttribute is the number of values of an attribute whose split is tested: those that appear first.
const SegmentsOfAttribute = 50

// LogEvidenceOfSegments returns ln E, the evidence against the shares of all visitors and of segments of them:
//
//	E = B/2 + 1/2 · mean over attributes of (Σ w_j B_j + 1 - Σ w_j),  w_j = 1/(j H),  H = Σ 1/j over j = 1..50
//
// all is ln B of all visitors. attributes has ln B of each value of each attribute, in the order in which the values
// appeared; only the first SegmentsOfAttribute count. A value that has not appeared yet has B = 1 and a fixed weight,
// so the probability that E is ever at least 1000 with fair splits is at most .001, however often it is read and
// however the parts depend on each other (Ville 1939; Vovk and Wang 2021).
func LogEvidenceOfSegments(all float64, attributes [][]float64) float64 {
	if len(attributes) == 0 {
		return all - math.Ln2
	}
	terms := []float64{all}
	for _, values := range attributes {
		rest := 1.0
		for j, b := range values[:min(len(values), SegmentsOfAttribute)] {
			weight := 1 / (float64(j+1) * segmentsHarmonic)
			terms = append(terms, b+math.Log(weight/float64(len(attributes))))
			rest -= weight
		}
		if len(values) < SegmentsOfAttribute {
			terms = append(terms, math.Log(rest/float64(len(attributes))))
		}
	}
	return logSum(terms) - math.Ln2
}

// segmentsHarmonic is Σ 1/j over j = 1..SegmentsOfAttribute.
var segmentsHarmonic = func() (sum float64) {
	for j := 1; j <= SegmentsOfAttribute; j++ {
		sum += 1 / float64(j)
	}
	return sum
}()

// mismatchPriors are the total counts of the Dirichlet priors. The split of the largest sample decides which shares are
// best, so the largest count is the last.
var mismatchPriors = [...]float64{30, 300, 3000, 30_000}

// logSum returns ln of the sum of the numbers with the given logarithms.
func logSum(logs []float64) float64 {
	most := slices.Max(logs)
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - most)
	}
	return most + math.Log(sum)
}

// logBayesFactor returns ln of the Bayes factor of one period, one split and one prior.
func logBayesFactor(observed []int64, shares []float64, total, prior float64) float64 {
	logRatio := func(from, more float64) float64 { // ln Γ(from + more) / Γ(from)
		above, _ := math.Lgamma(from + more)
		below, _ := math.Lgamma(from)
		return above - below
	}
	sum := -logRatio(prior, total)
	for i, share := range shares {
		if x := float64(observed[i]); share > 0 {
			sum += logRatio(prior*share, x) - x*math.Log(share)
		}
	}
	return sum
}

// possibleShares returns the given shares and every division that they may represent, each once.
func (s Split) possibleShares(shares []float64) [][]float64 {
	all := [][]float64{shares}
	add := func(division []float64) {
		isSame := func(other []float64) bool { return slices.Equal(other, division) }
		if !slices.ContainsFunc(all, isSame) {
			all = append(all, division)
		}
	}
	for _, division := range nearDivisions(shares) {
		add(division)
	}
	if s.Control <= 0 || s.Control >= 100 {
		return all
	}
	rest := 1 - shares[0]
	for _, inner := range nearDivisions(scaleShares(shares[1:], 1/rest)) {
		add(append([]float64{shares[0]}, scaleShares(inner, rest)...))
	}
	return all
}

// nearDivisions returns the splits into multiples of 1/m, for m up to 12, that are near all shares. A share is at most
// half a percentage point from its exact value because of rounding, or a whole point if another share is nearly equal:
// one of several equal shares may include the rounding remainder. Each division is returned once.
func nearDivisions(shares []float64) [][]float64 {
	const slack = 1e-9
	tolerances := make([]float64, len(shares))
	for i, share := range shares {
		tolerances[i] = 0.005 + slack
		for j, other := range shares {
			if j != i && other > 0 && math.Abs(other-share) <= 0.015+slack {
				tolerances[i] = 0.01 + slack
			}
		}
	}
	var found [][]float64
	division := make([]float64, len(shares))
	isFound := func(other []float64) bool { return slices.Equal(other, division) }
	for parts := 2; parts <= 12; parts++ {
		left := parts
		for i, share := range shares {
			if share == 0 {
				continue
			}
			k := math.Round(share * float64(parts))
			division[i] = k / float64(parts)
			left -= int(k)
			if k < 1 || math.Abs(division[i]-share) > tolerances[i] {
				left = -1
				break
			}
		}
		if left == 0 && !slices.ContainsFunc(found, isFound) {
			found = append(found, slices.Clone(division))
		}
	}
	return found
}

func scaleShares(shares []float64, by float64) []float64 {
	out := make([]float64, len(shares))
	for i, share := range shares {
		out[i] = share * by
	}
	return out
}

// IsLeak reports whether a variation that must not get traffic has too many visitors for stray requests: more than 5
// and more than 0.01 % of the total. Such a variation has a share of 0, or is unknown to the campaign.
func IsLeak(visitors, total int64) bool {
	return float64(visitors) > math.Max(5, 0.0001*float64(total))
}

// ShareComparison compares the shares of some visitors, such as multi-exposed or automated ones, among those of each
// variation. PValue is the p-value of the hypothesis that the share is equal in all variations. It is nil if Reason is
// set. Differ is true if the shares differ at p < 0.001.
type ShareComparison struct {
	PValue *float64 `json:"pValue"`
	Differ bool     `json:"-"`
	Reason Reason   `json:"reason,omitempty"`
}

// CompareShares tests whether the share of some visitors differs between variations, by the chi-square of homogeneity
//
//	chi² = Σ (x_i - n_i p)² / (n_i p (1-p)),  p = Σ x_i / Σ n_i
//
// over the variations with visitors. The degrees of freedom are the number of these variations minus one. Both
// arguments count visitors by their first variation, and all includes those in some. If an expected count is below 5,
// there is no p-value.
func CompareShares(some, all []int64) ShareComparison {
	if len(some) != len(all) {
		return ShareComparison{Reason: ReasonInvalidData}
	}
	counted := 0.0
	total := 0.0
	cells := 0
	smallest := math.Inf(1)
	for i, n := range all {
		if some[i] < 0 || some[i] > n {
			return ShareComparison{Reason: ReasonInvalidData}
		}
		if n > 0 {
			cells++
			counted += float64(some[i])
			total += float64(n)
			smallest = math.Min(smallest, float64(n))
		}
	}
	if total == 0 {
		return ShareComparison{Reason: ReasonNoVisitors}
	}
	p := counted / total
	const minimumExpected = 5 // count of a cell for which the chi-square distribution is valid (Cochran, 1954)
	switch {
	case cells < 2:
		return ShareComparison{Reason: ReasonTooFewVariations}
	case smallest*math.Min(p, 1-p) < minimumExpected:
		return ShareComparison{Reason: ReasonTooFewVisitors}
	}
	chi2 := 0.0
	for i, n := range all {
		if n > 0 {
			d := float64(some[i]) - float64(n)*p
			chi2 += d / (float64(n) * p * (1 - p)) * d
		}
	}
	differ := chiSquareSurvival(chi2, cells-1)
	return ShareComparison{PValue: numberOrNil(differ), Differ: differ < MismatchAlpha}
}

// chiSquareSurvival returns P(X > x) for a chi-square distribution with the given degrees of freedom.
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
