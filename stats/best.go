package stats

import (
	"math"
	"slices"
)

// jointLifts returns the posterior of each pair's lift, and the chances of control and each treatment to be best, under
// the prior of the lifts. All z share the part u that control contributes:
//
//	z_i(L_i) | u ~ N(λ_i u, 1 - λ_i²),  u ~ N(0, 1)
//
// Thus lifts are independent given u. A treatment is best if its lift is the largest and above 0. The posterior of a
// lift uses all data: other treatments show whether control was lucky. If the pairs contradict each other so much that
// no u has a positive density, each posterior uses only its own pair, and no chance is known. A pair without a test has
// neither, and neither has one whose baseline is a mean of 0.
func (r *rule) jointLifts(pairs []pair, o Options) (posteriors []*lifts, best []*float64) {
	posteriors, best = make([]*lifts, len(pairs)), make([]*float64, len(pairs)+1)
	var arms []*lifts
	var lambdas []float64
	var places []int
	for i, c := range pairs {
		if c.contrast == nil {
			continue
		}
		l, ok := liftsOf(c.contrast, *o.Prior)
		if !ok {
			continue
		}
		posteriors[i] = &l
		arms, places = append(arms, &l), append(places, i+1)
		lambdas = append(lambdas, math.Min(alwaysValid(c.contrast).controlCorrelation(), largestLoading))
	}
	switch len(arms) {
	case 0:
		return posteriors, best
	case 1:
		s := r.summarizePosterior(arms[0], 0)
		best[0], best[places[0]] = numberOrNil(math.Min(s.below, 1)), numberOrNil(math.Min(s.above, 1))
		return posteriors, best
	}
	joint := newJointLifts(r, arms, lambdas)
	total := make([]float64, len(arms)+1)
	// If the data contradict the prior, u explains a part.
	const (
		beyond      = 6.5  // standard deviations, where the density is below 1e-9 of its maximum
		stepOfSigma = 0.45 // step in units of the smallest sigma, the scale on which the conditional lifts change
		mostSteps   = 3000 // if the data contradict the prior
	)
	low, high := 0.0, 0.0
	for i, arm := range arms {
		at := lambdas[i] * arm.z(arm.mode)
		low = math.Min(low, at)
		high = math.Max(high, at)
	}
	low, high = low-beyond, high+beyond
	// The integrand is analytic and vanishes at both ends, so equal steps have an error of about
	// exp(-20/stepOfSigma²).
	steps := int(math.Min((high-low)/joint.finest/stepOfSigma, mostSteps)) + 1
	for step := range steps + 1 {
		joint.addGiven(total, low+(high-low)*float64(step)/float64(steps))
	}
	sum := 0.0
	for _, t := range total {
		sum += t
	}
	if !(sum > 0) {
		return posteriors, best
	}
	best[0] = numberOrNil(total[0] / sum)
	for i, place := range places {
		best[place] = numberOrNil(total[i+1] / sum)
		// From now on, the posterior uses the data of all treatments. What the others know about u is its density times
		// the integrals of their densities, given u. The integrals have the density of u, see addGiven.
		o := &others{
			lambda: lambdas[i], sigma: joint.sigmas[i], u: joint.u, logWeight: make([]float64, len(joint.u)),
			exponents: make([]float64, len(joint.u)),
		}
		for k, u := range joint.u {
			o.logWeight[k] = float64(len(arms)-2) * 0.5 * u * u
			for other := range arms {
				if other != i {
					o.logWeight[k] += joint.logMasses[other][k]
				}
			}
		}
		arms[i].others = o
		arms[i].findMode()
	}
	return posteriors, best
}

// jointLifts has the priors and scores of the lifts of several treatments at the nodes of common panels.
type jointLifts struct {
	panels
	arms            []*lifts
	lambdas, sigmas []float64
	finest          float64     // smallest sigma
	at              []float64   // lift of each node
	weight          []float64   // of each node in an integral
	prior           [][]float64 // by arm and node: minus the logarithm
	z               [][]float64 // by arm and node
	values, below   [][]float64 // by arm and node, given u: density, and probability of a smaller lift
	products        []float64   // of the probabilities of the arms before one
	u               []float64   // the parts of control that were added
	logMasses       [][]float64 // by arm and u: logarithm of the integral of the values of the arm
	scale           float64     // see addGiven
}

func newJointLifts(r *rule, arms []*lifts, lambdas []float64) *jointLifts {
	const smallestSigma = 0.1 // bounds the number of panels; a control with 1 % of a pair's visitors has this sigma
	sigmas := make([]float64, len(arms))
	j := &jointLifts{
		arms: arms, lambdas: lambdas, sigmas: sigmas, finest: 1, logMasses: make([][]float64, len(arms)),
		scale: math.Inf(-1),
	}
	for i := range arms {
		sigmas[i] = math.Sqrt((1 - lambdas[i]) * (1 + lambdas[i]))
		j.finest = math.Min(j.finest, math.Max(sigmas[i], smallestSigma))
	}
	ends := make([][]float64, len(arms))
	for i, l := range arms {
		ends[i] = l.panelEnds(shallow)
	}
	j.panels = panels{rule: r, points: commonEnds(ends)}
	j.splitAt(0)
	for i := range arms {
		j.splitAt(arms[i].kink)
	}
	j.divideEach(int(math.Ceil(1 / j.finest)))
	for panel := range j.panelCount() {
		for i := range order {
			x, half := j.nodeAt(panel, i)
			j.at = append(j.at, x)
			j.weight = append(j.weight, half*r.weights[i])
		}
	}
	for _, arm := range arms {
		prior, z := arm.scoresAt(j.at)
		j.prior = append(j.prior, prior)
		j.z = append(j.z, z)
		j.values = append(j.values, make([]float64, len(j.at)))
		j.below = append(j.below, make([]float64, len(j.at)))
	}
	j.products = make([]float64, len(arms)+1)
	return j
}

// commonEnds returns the ends of panels that are everywhere as narrow as the narrowest of several lists of panels.
func commonEnds(lists [][]float64) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, ends := range lists {
		low = math.Min(low, ends[0])
		high = math.Max(high, ends[len(ends)-1])
	}
	common := []float64{low}
	at := make([]int, len(lists)) // in each list, the first end above x
	for x := low; x < high; common = append(common, x) {
		next := high
		for i, ends := range lists {
			for at[i] < len(ends) && ends[at[i]] <= x {
				at[i]++
			}
			switch at[i] {
			case len(ends):
			case 0:
				next = math.Min(next, ends[0])
			default:
				next = math.Min(next, x+ends[at[i]]-ends[at[i]-1])
			}
		}
		if !(next > x) {
			break
		}
		x = next
	}
	return common
}

// scoresAt returns, for each lift, minus the logarithm of the prior and z. A lift that is not possible has no score.
func (l *lifts) scoresAt(lifts []float64) (prior, z []float64) {
	prior = make([]float64, len(lifts))
	z = make([]float64, len(lifts))
	for k, x := range lifts {
		if x < l.from {
			prior[k] = math.Inf(1)
			continue
		}
		d := (x - l.prior.Mean) / l.prior.StandardDeviation
		prior[k] = 0.5 * d * d
		z[k] = l.z(x)
	}
	return prior, z
}

// divideEach divides each panel into parts.
func (p *panels) divideEach(parts int) {
	ends := p.points
	p.points = nil
	for i := 1; i < len(ends); i++ {
		a, b := ends[i-1], ends[i]
		for k := range parts {
			p.points = append(p.points, a+(b-a)*float64(k)/float64(parts))
		}
	}
	p.points = append(p.points, ends[len(ends)-1])
}

// addGiven adds the probabilities that control and each arm are best, given u, times the density of u. By
//
//	N(z; λ u, σ²) N(u; 0, 1) = N(z; 0, 1) N(u; λ z, σ²)
//
// the values of each of the m arms include the density of u. So m - 1 factors exp(u²/2) remain. The values are divided
// by the largest one of the arm, because all of them may underflow. j.scale is the logarithm of the divisor of total.
func (j *jointLifts) addGiven(total []float64, u float64) {
	j.u = append(j.u, u)
	part := make([]float64, len(total))
	part[0] = 1
	scale := float64(len(j.arms)-1) * 0.5 * u * u
	for i := range j.arms {
		largest := j.setValues(i, u)
		negative, mass := j.setBelow(i)
		part[0] *= negative
		j.logMasses[i] = append(j.logMasses[i], largest+math.Log(mass))
		scale += largest
	}
	for k, x := range j.at {
		if x < 0 {
			continue
		}
		before := j.weight[k]
		for i := range j.arms {
			j.products[i] = before
			before *= j.below[i][k]
		}
		after := 1.0
		for i := len(j.arms) - 1; i >= 0; i-- {
			part[i+1] += j.products[i] * j.values[i][k] * after
			after *= j.below[i][k]
		}
	}
	largest := slices.Max(part)
	if !(largest > 0) {
		return
	}
	scale += math.Log(largest)
	if scale > j.scale {
		for i := range total {
			total[i] *= math.Exp(j.scale - scale)
		}
		j.scale = scale
	}
	for i := range part {
		total[i] += part[i] / largest * math.Exp(scale-j.scale)
	}
}

// setValues sets the values of an arm given u, divided by the largest, and returns the logarithm of the largest.
func (j *jointLifts) setValues(arm int, u float64) float64 {
	values, z := j.values[arm], j.z[arm]
	largest := -math.MaxFloat64
	for k := range j.at {
		d := (u - j.lambdas[arm]*z[k]) / j.sigmas[arm]
		values[k] = j.arms[arm].peak - j.prior[arm][k] - 0.5*z[k]*z[k] - 0.5*d*d
		largest = math.Max(largest, values[k])
	}
	for k, exponent := range values {
		values[k] = math.Exp(exponent - largest)
	}
	return largest
}

// setBelow sets the integral of the values of an arm below each node. It returns the integrals below a lift of 0, and
// of all values.
func (j *jointLifts) setBelow(arm int) (negative, mass float64) {
	for panel := range j.panelCount() {
		half := (j.points[panel+1] - j.points[panel]) / 2
		values := j.values[arm][panel*order:]
		inPanel := 0.0
		for at := range order {
			inside := 0.0
			for l := range order {
				inside += j.rule.partial[at][l] * values[l]
			}
			j.below[arm][panel*order+at] = math.Max(mass+half*inside, 0)
			inPanel += j.rule.weights[at] * values[at]
		}
		mass += half * inPanel
		if j.points[panel+1] <= 0 {
			negative = mass
		}
	}
	return negative, mass
}
