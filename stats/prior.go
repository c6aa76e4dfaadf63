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
		l.z = c.zOfLift
		l.from = -1
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
	z := l.z(lift)
	o := l.others
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
		step := (high - low) / grid
		best := low
		least := l.minusLog(low)
		for k := 1; k <= grid; k++ {
			if at := l.minusLog(low + float64(k)*step); at < least {
				best = low + float64(k)*step
				least = at
			}
		}
		low = math.Max(best-step, low)
		high = math.Min(best+step, high)
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
	x := l.mode
	width := widest * l.prior.StandardDeviation
	const mostPanels = 400 // ten suffice for usual data
	for at := 0.0; at < deepest && len(points) < mostPanels; {
		next := math.Max(x+direction*width, l.from)
		if next == x {
			break
		}
		middle, end := l.logDrop(x+(next-x)/2), l.logDrop(next)
		bend := 4 * math.Abs(at-2*middle+end)
		rise := math.Abs(end - at)
		if !(bend <= widest*widest && rise <= steepest) {
			width /= 2
			continue
		}
		x = next
		at = end
		points = append(points, next)
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
	values := make([]float64, p.panelCount()*order)
	total := 0.0 // the density at every node, and its mass
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
			s.mean += w * x
			if x < 0 {
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
			half := (x - a) / 2
			sum := 0.0
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

// bayesianComparison returns the comparison of one pair under the given posterior of the lift. Values and losses are
// posterior means, and intervals are equal-tailed credible intervals. If the mean of control is 0, no visitor of
// control converted, and there are neither losses nor differences. There is no correction for several treatments.
func (c pair) bayesianComparison(r *rule, l *lifts, o Options) Comparison {
	alpha := o.pointAlpha()
	baseline := math.Abs(c.control.observedValue())
	reason := Reason("")
	p := r.summarizePosterior(l, alpha)
	if baseline == 0 {
		baseline = math.NaN()
		reason = ReasonBaselineZero
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
