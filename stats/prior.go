package stats

import (
	"math"
	"slices"
)

// Prior is a normal prior of the lift, as a fraction.
type Prior struct {
	Mean              float64 `json:"mean"`
	StandardDeviation float64 `json:"standardDeviation"`
	Campaigns         *int    `json:"campaigns,omitempty"` // past ones from which it was learned; nil: it is declared
}

// lifts is the posterior of the lift L of a pair:
//
//	posterior(L) ∝ N(L; mean, sd²) exp(-z(L)²/2)
//
// where z(L) is the score statistic of the hypothesis that the lift is L. Unlike an approximation of the observed lift
// by a normal distribution, it is defined without conversions in control, and agrees with the test of a rate.
type lifts struct {
	prior      Prior
	z          func(lift float64) float64
	from       float64 // end of the support
	kink       float64 // where z has a kink, if every visitor of a variation converted; otherwise 0
	mode, peak float64 // where the posterior is largest, and minus its logarithm there
	others     *others // information of other treatments about control; nil: there is one treatment
	observed   float64 // lift
}

// others is the information of the other treatments about u, the part of z that control contributes. It has a weight
// for each of equally spaced values of u. The likelihood of z is then
//
//	Σ_k w_k exp(-((z - λ u_k) / σ)²/2)
//
// instead of exp(-z²/2). Both are equal if each weight is a constant times the density of u.
type others struct {
	lambda, sigma float64
	u, logWeight  []float64
	exponents     []float64 // scratch
}

// liftsOf returns the posterior of the lift of a pair, or false if its baseline is a mean of 0.
func liftsOf(c contrast, prior Prior) (lifts, bool) {
	l := lifts{prior: prior, from: math.Inf(-1)}
	observed := c.estimateEffect(onLift)
	switch c := alwaysValid(c).(type) {
	case table:
		l.z, l.from = c.zOfLift, -1
		switch all := (c.xt + c.xc) / c.totalVisitors(); {
		case c.xt == c.nt:
			l.kink = 1/all - 1
		case c.xc == c.nc:
			l.kink = all - 1
		}
		if c.xc == 0 {
			observed = math.Inf(1)
		}
		if c.xc == 0 && c.xt == 0 {
			observed = prior.Mean
		}
	case welch:
		if c.mc == 0 {
			return lifts{}, false
		}
		l.z = c.zOfLift
	case strata:
		isZero := func(c contrast) bool {
			mean, ok := c.(interface{ baseline() float64 })
			return ok && mean.baseline() == 0
		}
		if c.mixed || slices.ContainsFunc(c.contrasts, isZero) {
			return lifts{}, false
		}
		l.z = func(lift float64) float64 { return c.z(lift, onLift) }
		if _, rate := c.contrasts[0].(table); rate {
			l.from = -1
		}
		if math.IsNaN(observed) {
			observed = prior.Mean
		}
	}
	l.observed = observed
	l.findMode()
	return l, true
}

// zOfLift returns the score statistic of pt = r pc with r = 1 + lift. The restricted estimate of pc is the smaller root
// of
//
//	N r pc² - (r nt + xt + nc + r xc) pc + xt + xc = 0
//
// See Miettinen and Nurminen (1985), equations 10 to 12.
func (t table) zOfLift(lift float64) float64 {
	r := math.Max(1+lift, 0)
	a, b, c := t.totalVisitors()*r, r*(t.nt+t.xc)+t.xt+t.nc, t.xt+t.xc
	pc := 2 * c / (b + math.Sqrt(math.Max(b*b-4*a*c, 0)))
	pt := math.Min(r*pc, 1)
	d := t.xt/t.nt - r*t.xc/t.nc
	variance := (pt*(1-pt)/t.nt + r*r*pc*(1-pc)/t.nc) * t.totalVisitors() / (t.totalVisitors() - 1)
	if variance <= 0 {
		if d == 0 {
			return 0
		}
		return math.Copysign(math.Inf(1), d)
	}
	return d / math.Sqrt(variance)
}

// zOfLift returns (d - L |mc|) / sqrt(st + (mt/mc)² sc) with the mt of the lift.
func (m means) zOfLift(lift float64) float64 {
	ratio := 1 + math.Copysign(lift, lift*m.mc)
	return (m.observedDifference() - lift*math.Abs(m.mc)) / math.Sqrt(m.st+ratio*ratio*m.sc)
}

// minusLog returns minus the logarithm of the posterior up to a constant.
func (l *lifts) minusLog(lift float64) float64 {
	at := (lift - l.prior.Mean) / l.prior.StandardDeviation
	return 0.5*at*at + l.minusLogLikelihood(lift)
}

// minusLogLikelihood returns minus the logarithm of the likelihood up to a constant. With others, it is never below
// minus the logarithm of the sum of their weights.
func (l *lifts) minusLogLikelihood(lift float64) float64 {
	z, o := l.z(lift), l.others
	switch {
	case o == nil:
		return 0.5 * z * z
	case math.IsInf(z, 0) || len(o.u) == 0:
		return math.Inf(1)
	}
	const negligible = 45 // of an exponent below the largest one
	largest := math.Inf(-1)
	for k, u := range o.u {
		d := (z - o.lambda*u) / o.sigma
		o.exponents[k] = o.logWeight[k] - 0.5*d*d
		if o.exponents[k] > largest {
			largest = o.exponents[k]
		}
	}
	sum := 0.0
	for _, exponent := range o.exponents {
		if exponent > largest-negligible {
			sum += math.Exp(exponent - largest)
		}
	}
	return -largest - math.Log(sum)
}

// findMode sets the mode. With one treatment, the mode is at most |z| prior standard deviations from the prior mean,
// where z is the score at the prior mean. It lies between the prior mean and the observed lift, except if the means of
// the pair differ in sign: then z² may decrease away from the observed lift.
func (l *lifts) findMode() {
	const farthest = 1e6 // if the likelihood at the mean is 0
	least := 0.0
	if o := l.others; o != nil { // a lower bound of minusLog
		least = -slices.Max(append(slices.Clip(o.logWeight), math.Inf(-1))) - math.Log(float64(max(len(o.u), 1)))
	}
	reach := l.prior.StandardDeviation * math.Min(math.Sqrt(2*math.Max(l.minusLogLikelihood(l.prior.Mean)-least, 0)),
		farthest)
	ends := []float64{
		l.prior.Mean - reach, l.prior.Mean,
		math.Max(math.Min(l.observed, l.prior.Mean+reach), l.prior.Mean-reach), l.prior.Mean + reach,
	}
	slices.Sort(ends)
	l.mode = math.Max(l.prior.Mean, l.from)
	for i := 1; i < len(ends); i++ {
		// A grid, and a golden-section search around its best point. If rounding errors of z at extreme counts mislead
		// the search, the best point of the grid counts.
		const grid, golden = 64, 0.6180339887498949
		low, high := math.Max(ends[i-1], l.from), math.Max(ends[i], l.from)
		step, best, least := (high-low)/grid, low, l.minusLog(low)
		for k := 1; k <= grid; k++ {
			if at := l.minusLog(low + float64(k)*step); at < least {
				best, least = low+float64(k)*step, at
			}
		}
		low, high = math.Max(best-step, low), math.Min(best+step, high)
		for range 60 {
			a, b := high-golden*(high-low), low+golden*(high-low)
			if l.minusLog(a) < l.minusLog(b) {
				high = b
			} else {
				low = a
			}
		}
		if found := (low + high) / 2; l.minusLog(found) < least {
			best = found
		}
		if l.minusLog(best) < l.minusLog(l.mode) {
			l.mode = best
		}
	}
	l.peak = l.minusLog(l.mode)
}

func (l *lifts) logDrop(lift float64) float64 {
	if !(lift >= l.from) {
		return math.Inf(1)
	}
	return l.minusLog(lift) - l.peak
}

func (l *lifts) panelEnds(deepest float64) []float64 {
	points := l.walkPanels(-1, deepest)
	slices.Reverse(points)
	return append(append(points, l.mode), l.walkPanels(1, deepest)...)
}

// walkPanels returns the ends of the panels from the mode in a direction. On each panel, the logarithm of the density
// is nearly a parabola, judged by its values at the ends and in the middle.
func (l *lifts) walkPanels(direction, deepest float64) (points []float64) {
	x, width := l.mode, widest*l.prior.StandardDeviation
	const mostPanels = 400 // ten suffice for usual data
	for at := 0.0; at < deepest && len(points) < mostPanels; {
		next := math.Max(x+direction*width, l.from)
		if next == x {
			break
		}
		middle, end := l.logDrop(x+(next-x)/2), l.logDrop(next)
		bend, rise := 4*math.Abs(at-2*middle+end), math.Abs(end-at)
		if !(bend <= widest*widest && rise <= steepest) {
			width /= 2
			continue
		}
		x, at, points = next, end, append(points, next)
		if bend < widest*widest/4 && rise < steepest/2 {
			width *= 2
		}
	}
	return points
}

// liftSummary has the integrals of a posterior of the lift.
type liftSummary struct {
	below, above float64 // P(L < 0), P(L > 0)
	mean         float64 // E[L]
	loss, gain   float64 // E[(-L)+], E[L+]
	interval     bounds  // equal-tailed
}

// summarizePosterior returns the integrals of the posterior, and its interval at alpha unless alpha is 0.
func (r *rule) summarizePosterior(l *lifts, alpha float64) liftSummary {
	p := panels{rule: r, points: l.panelEnds(deep)}
	if p.panelCount() < 1 {
		s := liftSummary{ // narrower than the digits of its mode
			mean: l.mode, loss: math.Max(-l.mode, 0), gain: math.Max(l.mode, 0),
			interval: bounds{l.mode, l.mode},
		}
		switch {
		case l.mode < 0:
			s.below = 1
		case l.mode > 0:
			s.above = 1
		default:
			s.below, s.above = 0.5, 0.5
		}
		return s
	}
	p.splitAt(0)
	p.splitAt(l.kink)
	return p.summarizeLifts(l, alpha)
}

func (p panels) summarizeLifts(l *lifts, alpha float64) liftSummary {
	values, total := make([]float64, p.panelCount()*order), 0.0 // the density at every node, and its mass
	for panel := range p.panelCount() {
		mass := 0.0
		for i := range order {
			x, _ := p.nodeAt(panel, i)
			if drop := l.logDrop(x); drop < 700 {
				v := math.Exp(-drop)
				values[panel*order+i] = v
				mass += p.rule.weights[i] * v
			}
		}
		total += mass * (p.points[panel+1] - p.points[panel]) / 2
	}
	for i := range values {
		if total > 0 {
			values[i] /= total
		}
	}
	var s liftSummary
	for panel := range p.panelCount() {
		for i := range order {
			x, half := p.nodeAt(panel, i)
			w := half * p.rule.weights[i] * values[panel*order+i]
			if s.mean += w * x; x < 0 {
				s.below += w
				s.loss -= w * x
			} else {
				s.above += w
				s.gain += w * x
			}
		}
	}
	if alpha > 0 {
		s.interval = bounds{
			lower: p.densityQuantile(l, values, alpha/2), upper: p.densityQuantile(l, values, 1-alpha/2),
		}
	}
	return s
}

// splitAt divides the panel that contains x there.
func (p *panels) splitAt(x float64) {
	for i := 1; i < len(p.points); i++ {
		if p.points[i-1] < x && x < p.points[i] {
			p.points = append(p.points[:i], append([]float64{x}, p.points[i:]...)...)
			return
		}
	}
}

// densityQuantile returns the x below which the density has the given mass.
func (p panels) densityQuantile(l *lifts, values []float64, mass float64) float64 {
	var scale float64 // of values against exp(-drop)
	for k, v := range values {
		if x, _ := p.nodeAt(k/order, k%order); v > 0 {
			if drop := l.logDrop(x); drop < 1 {
				scale = v * math.Exp(drop)
				break
			}
		}
	}
	before := 0.0
	for panel := range p.panelCount() {
		a, b := p.points[panel], p.points[panel+1]
		below := func(x float64) float64 {
			half, sum := (x-a)/2, 0.0
			for i := range order {
				sum += p.rule.weights[i] * math.Exp(-l.logDrop(a+half*(1+p.rule.nodes[i])))
			}
			return before + scale*half*sum
		}
		through := below(b)
		if through >= mass {
			return findRoot(func(x float64) float64 { return below(x) - mass },
				bracket{a, b, before - mass, through - mass}, 1e-12)
		}
		before = through
	}
	return p.points[len(p.points)-1]
}

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
		low, high = math.Min(low, at), math.Max(high, at)
	}
	low, high = low-beyond, high+beyond
	// The integrand is analytic and vanishes at both ends, so equal steps have an error of about exp(-20/stepOfSigma²).
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
	// The panels are everywhere as narrow as the narrowest panel of the posteriors.
	knots := make([][]float64, len(arms))
	low, high := math.Inf(1), math.Inf(-1)
	for i, l := range arms {
		knots[i] = l.panelEnds(shallow)
		low, high = math.Min(low, knots[i][0]), math.Max(high, knots[i][len(knots[i])-1])
	}
	points, at := []float64{low}, make([]int, len(arms))
	for x := low; x < high; points = append(points, x) {
		next := high
		for i, k := range knots {
			for at[i] < len(k) && k[at[i]] <= x {
				at[i]++
			}
			switch at[i] {
			case len(k):
			case 0:
				next = math.Min(next, k[0])
			default:
				next = math.Min(next, x+k[at[i]]-k[at[i]-1])
			}
		}
		if !(next > x) {
			break
		}
		x = next
	}
	j.panels = panels{rule: r, points: points}
	j.splitAt(0)
	for i := range arms {
		j.splitAt(arms[i].kink)
	}
	j.divideEach(int(math.Ceil(1 / j.finest)))
	for panel := range j.panelCount() {
		for i := range order {
			x, half := j.nodeAt(panel, i)
			j.at, j.weight = append(j.at, x), append(j.weight, half*r.weights[i])
		}
	}
	for i := range arms {
		prior, z := make([]float64, len(j.at)), make([]float64, len(j.at))
		for k, x := range j.at {
			if x < arms[i].from {
				prior[k] = math.Inf(1)
				continue
			}
			d := (x - arms[i].prior.Mean) / arms[i].prior.StandardDeviation
			prior[k], z[k] = 0.5*d*d, arms[i].z(x)
		}
		j.prior, j.z = append(j.prior, prior), append(j.z, z)
		j.values, j.below = append(j.values, make([]float64, len(j.at))), append(j.below, make([]float64, len(j.at)))
	}
	j.products = make([]float64, len(arms)+1)
	return j
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
	part, scale := make([]float64, len(total)), float64(len(j.arms)-1)*0.5*u*u
	part[0] = 1
	for i := range j.arms {
		largest := -math.MaxFloat64
		for k := range j.at {
			d := (u - j.lambdas[i]*j.z[i][k]) / j.sigmas[i]
			j.values[i][k] = j.arms[i].peak - j.prior[i][k] - 0.5*j.z[i][k]*j.z[i][k] - 0.5*d*d
			largest = math.Max(largest, j.values[i][k])
		}
		for k, exponent := range j.values[i] {
			j.values[i][k] = math.Exp(exponent - largest)
		}
		// the integral of the values below each node, and below a lift of 0
		negative, mass := 0.0, 0.0
		for panel := range j.panelCount() {
			half := (j.points[panel+1] - j.points[panel]) / 2
			values, inPanel := j.values[i][panel*order:], 0.0
			for at := range order {
				inside := 0.0
				for l := range order {
					inside += j.rule.partial[at][l] * values[l]
				}
				j.below[i][panel*order+at] = math.Max(mass+half*inside, 0)
				inPanel += j.rule.weights[at] * values[at]
			}
			if mass += half * inPanel; j.points[panel+1] <= 0 {
				negative = mass
			}
		}
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

// bayesianComparison returns the comparison of one pair under the given posterior of the lift. Values and losses are
// posterior means, and intervals are equal-tailed credible intervals. If the mean of control is 0, no visitor of
// control converted, and there are neither losses nor differences. There is no correction for several treatments.
func (c pair) bayesianComparison(r *rule, l *lifts, o Options) Comparison {
	alpha, baseline, reason := o.Alpha(), math.Abs(c.control.observedValue()), Reason("")
	p := r.summarizePosterior(l, alpha)
	if baseline == 0 {
		baseline, reason = math.NaN(), ReasonBaselineZero
	}
	out := Comparison{
		Bayesian: &Bayesian{
			ChanceToBeatControl: numberOrNil(math.Min(p.above, 1)),
			ExpectedLoss:        numberOrNil(baseline * p.loss),
			ExpectedLossControl: numberOrNil(baseline * p.gain),
			Prior:               o.Prior,
			Reason:              reason,
		},
		Difference: Effect{
			Value:    numberOrNil(baseline * p.mean),
			Observed: numberOrNil(c.contrast.estimateEffect(onDifference)),
		},
		Lift:        Effect{Value: numberOrNil(p.mean), Observed: numberOrNil(c.contrast.estimateEffect(onLift))},
		Significant: math.Min(p.below, p.above) < alpha/2,
	}
	if alpha == 0 {
		out.Difference.Reason, out.Lift.Reason = ReasonLevel100, ReasonLevel100
	} else {
		lower := endOnSide(p.interval.lower, smallestEffect, p.below < alpha/2)
		upper := -endOnSide(-p.interval.upper, smallestEffect, p.above < alpha/2)
		// The ends of an interval narrower than their last digit may be in descending order.
		lifts := bounds{lower: math.Min(lower, upper), upper: math.Max(lower, upper)}
		differences := bounds{lower: baseline * lifts.lower, upper: baseline * lifts.upper}
		out.Difference.Interval, out.Difference.Reason = shownInterval(differences, reason)
		out.Lift.Interval, out.Lift.Reason = shownInterval(lifts, "")
	}
	c.setVerdict(&out, o)
	if out.Significant && (p.above > p.below) != (c.statistic > 0) && out.Verdict != VerdictInsufficientData {
		// There are so few conversions that the prior outweighs them.
		out.Verdict = VerdictInconclusive
		out.Reasons = append(out.Reasons, ReasonTooFewConversions)
	}
	return out
}
