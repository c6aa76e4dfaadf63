// Package effects estimates true effects. Of the variations that win, chance has helped more than it has hurt, so their
// observed effects are too large. Many experiments together show how large true effects are, and with that each effect
// can be corrected: an empirical Bayes model whose parameters are integrated, not estimated. It knows no store.
package effects

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// The model. The effect of a treatment is relative to the mean of its pair, see stats.PooledEffect:
//
//	y_i | theta_i ~ N(theta_i, se_i²)
//	theta_i ~ Σ_j w_j N(mu, (r_j tau)²)         a shape; Σ w_j r_j² = 1, so tau is the standard deviation
//
// Sums over a grid of tau, shape and mu replace the integrals. A stopping rule changes no likelihood, so looks need no
// correction (Berger and Wolpert 1988). Without a campaign, the prior of the grid speaks: effects of about 3 % at a
// minimum effect of 20 %.

// shape is a mixture of normals with the variance 1: probabilities, and standard deviations.
type shape struct {
	weight               float64 // prior
	probability, spreads [2]float64
}

// The shapes say how true effects differ: alike, with heavy tails, or mostly nothing and some large ones.
var shapes = [...]shape{
	{.5, [2]float64{1, 0}, [2]float64{1, 0}},
	{.25, [2]float64{.85, .15}, [2]float64{.6, math.Sqrt((1 - .85*.6*.6) / .15)}},
	{.25, [2]float64{.8, .2}, [2]float64{.05, math.Sqrt((1 - .8*.05*.05) / .2)}},
}

// The grid of tau, in minimum effects, and its lognormal prior. They are chosen so that the stated and the true worth
// of programmes agree over a wide range of true effects, see docs/benchmarks/programme.md.
const (
	leastTau, mostTau, numberOfTaus = 1. / 64, 4., 24
	medianTau, spreadOfLogTau       = .15, 1.
)

// means are the grid of mu, in tau, and its prior: ideas may be good or bad on average.
var means = []struct{ of, weight float64 }{{-.6, .06}, {-.3, .24}, {0, .4}, {.3, .24}, {.6, .06}}

// point is a point of the grid.
type point struct {
	tau, mu float64
	shape   *shape
	prior   float64
}

// normal is a part of a mixture of normals.
type normal struct{ weight, mean, deviation float64 }

// Fit is what the campaigns of a pool say about the true effects of their treatments.
type Fit struct {
	mde       float64
	grid      []point
	posterior []float64   // of the grid
	mean      [][]float64 // of the true effect, by point and treatment
	variance  [][]float64
	Effects   []stats.PooledEffect // of all treatments, in order
	campaign  []int                // of each treatment
	first     [][]int              // treatments of each campaign
	nodes     [][][]float64        // weights of the errors of control, by point and campaign
}

// NewFit returns the fit of campaigns, each with the effects of its treatments. mde is the median minimum effect of the
// campaigns, as a fraction. The effects of a campaign share the error of its control.
func NewFit(mde float64, campaigns [][]stats.PooledEffect) *Fit {
	// The grid for the minimum effect.
	f := &Fit{mde: mde}
	sum := 0.0
	for i := range shapes {
		for k := range numberOfTaus {
			tau := leastTau * math.Pow(mostTau/leastTau, float64(k)/(numberOfTaus-1))
			z := math.Log(tau/medianTau) / spreadOfLogTau
			for _, m := range means {
				p := point{tau * mde, m.of * tau * mde, &shapes[i], shapes[i].weight * math.Exp(-z*z/2) * m.weight}
				f.grid = append(f.grid, p)
				sum += p.prior
			}
		}
	}
	for i := range f.grid {
		f.grid[i].prior /= sum
	}

	// The campaigns at each of its points.
	for i, effects := range campaigns {
		var own []int
		for _, e := range effects {
			own = append(own, len(f.Effects))
			f.Effects, f.campaign = append(f.Effects, e), append(f.campaign, i)
		}
		f.first = append(f.first, own)
	}
	logs := make([]float64, len(f.grid))
	for g := range f.grid {
		f.mean, f.variance = append(f.mean, make([]float64, len(f.Effects))),
			append(f.variance, make([]float64, len(f.Effects)))
		f.nodes = append(f.nodes, make([][]float64, len(campaigns)))
		logs[g] = math.Log(f.grid[g].prior)
		for i := range campaigns {
			logs[g] += f.addCampaign(g, i)
		}
	}
	f.posterior = normalize(logs)
	return f
}

// addCampaign computes the moments of the true effects of a campaign at a point of the grid, and returns the log of the
// likelihood of the campaign.
func (f *Fit) addCampaign(g, campaign int) float64 {
	treatments := f.first[campaign]
	nodes := controlNodes(len(treatments))
	logs := make([]float64, len(nodes))
	first, second := make([]float64, len(nodes)*len(treatments)), make([]float64, len(nodes)*len(treatments))
	for q, u := range nodes {
		logs[q] = -u * u / 2
		for k, i := range treatments {
			parts, log := f.partsGiven(g, i, u)
			logs[q] += log
			first[q*len(treatments)+k], second[q*len(treatments)+k] = momentsOf(parts[:])
		}
	}
	log := logOfSum(logs)
	weights := normalize(logs)
	f.nodes[g][campaign] = weights
	for k, i := range treatments {
		m, s := 0.0, 0.0
		for q, w := range weights {
			m, s = m+w*first[q*len(treatments)+k], s+w*second[q*len(treatments)+k]
		}
		f.mean[g][i] = m
		f.variance[g][i] = max(s-m*m, 0)
	}
	return log
}

// momentsOf returns the mean and the mean of squares of a mixture.
func momentsOf(parts []normal) (mean, square float64) {
	for _, p := range parts {
		mean += p.weight * p.mean
		square += p.weight * (p.mean*p.mean + p.deviation*p.deviation)
	}
	return mean, square
}

// controlNodes returns the errors of control over which a campaign of several treatments is summed, in standard
// deviations: equal steps, whose normal weights beyond 4 are negligible.
func controlNodes(treatments int) []float64 {
	const n, most = 25, 4.
	if treatments < 2 {
		return []float64{0}
	}
	nodes := make([]float64, n)
	for i := range nodes {
		nodes[i] = most * (2*float64(i)/(n-1) - 1)
	}
	return nodes
}

// partsGiven returns the posterior of the true effect of a treatment at a point of the grid, given the error of
// control, and the log of its likelihood up to a constant. If a campaign has one treatment, control's error is part of
// the standard error.
func (f *Fit) partsGiven(g, treatment int, control float64) (parts [2]normal, log float64) {
	e, p := &f.Effects[treatment], &f.grid[g]
	own := e.StandardError * e.StandardError
	y := e.Value
	if len(f.first[f.campaign[treatment]]) > 1 {
		own, y = own-e.Shared*e.Shared, y-e.Shared*control
	}
	var logs [2]float64
	for j, probability := range p.shape.probability {
		spread := p.shape.spreads[j] * p.tau
		v, d := spread*spread+own, y-p.mu
		logs[j] = math.Log(probability) - d*d/(2*v) - math.Log(v)/2
		keep := spread * spread / v
		parts[j] = normal{0, p.mu + keep*d, math.Sqrt(keep * own)}
	}
	log = logOfSum(logs[:])
	for j := range parts {
		parts[j].weight = math.Exp(logs[j] - log)
	}
	return parts, log
}

// logOfSum returns the log of the sum of exponentials.
func logOfSum(logs []float64) float64 {
	most := slices.Max(logs)
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - most)
	}
	return most + math.Log(sum)
}

// normalize replaces logs by their exponentials, which add up to 1.
func normalize(logs []float64) []float64 {
	log := logOfSum(logs)
	for i := range logs {
		logs[i] = math.Exp(logs[i] - log)
	}
	return logs
}

// Level is the level of all intervals of a worth, whatever the level of a campaign: one number for a programme.
const Level = .9

// Expected is the posterior of a number: its mean, an interval at Level, and the chance that it is above 0. Of a true
// effect, Small is the probability that it is below SmallPart of the minimum effect: that it is harm or nothing. A true
// effect of exactly 0 is never found, so the probability that it is at or below 0 counts half of these only.
type Expected struct{ Mean, Lower, Upper, Chance, Small float64 }

// SmallPart is the part of the minimum effect below which an effect is harm or nothing.
const SmallPart = .1

// negligible is the weight below which a part of a mixture is left out.
const negligible = 1e-12

// TrueEffect returns the posterior of the true effect of a treatment, counted over all campaigns in order.
func (f *Fit) TrueEffect(treatment int) Expected {
	var mixture []normal
	campaign := f.campaign[treatment]
	nodes := controlNodes(len(f.first[campaign]))
	for g, w := range f.posterior {
		if w < negligible {
			continue
		}
		for q, of := range f.nodes[g][campaign] {
			parts, _ := f.partsGiven(g, treatment, nodes[q])
			for _, p := range parts {
				if p.weight *= w * of; p.weight >= negligible {
					mixture = append(mixture, p)
				}
			}
		}
	}
	e := expectedOf(mixture)
	e.Small = shareBelow(mixture, SmallPart*f.mde)
	return e
}

// Total returns the posterior of Σ a_i theta_i. Given a point of the grid, campaigns are independent, and the sum is
// taken as normal with its exact mean and variance. At most one treatment of a campaign may have a factor other than 0.
func (f *Fit) Total(factors []float64) Expected {
	var mixture []normal
	for g, w := range f.posterior {
		m, v := 0.0, 0.0
		for i, a := range factors {
			m, v = m+a*f.mean[g][i], v+a*a*f.variance[g][i]
		}
		mixture = append(mixture, normal{w, m, math.Sqrt(v)})
	}
	return expectedOf(mixture)
}

// TypicalEffect returns the posterior of tau, the standard deviation of true effects, and MeanEffect that of mu. Their
// intervals are points of the grid.
func (f *Fit) TypicalEffect() Expected { return f.onGrid(func(p *point) float64 { return p.tau }) }

// MeanEffect returns the posterior of the mean of true effects.
func (f *Fit) MeanEffect() Expected { return f.onGrid(func(p *point) float64 { return p.mu }) }

func (f *Fit) onGrid(of func(*point) float64) Expected {
	order := make([]int, len(f.grid))
	for g := range order {
		order[g] = g
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(of(&f.grid[a]), of(&f.grid[b]))
	})
	var e Expected
	below := 0.0
	tail := (1 - Level) / 2
	for _, g := range order {
		x := of(&f.grid[g])
		w := f.posterior[g]
		e.Mean += w * x
		if x > 0 {
			e.Chance += w
		}
		before := below
		below += w
		if before < tail && below >= tail {
			e.Lower = x
		}
		if before < 1-tail && below >= 1-tail {
			e.Upper = x
		}
	}
	return e
}

// expectedOf returns the mean, the interval and the chance of a mixture of normals.
func expectedOf(mixture []normal) Expected {
	var e Expected
	total, second := 0.0, 0.0
	for _, p := range mixture {
		total += p.weight
	}
	for i := range mixture {
		mixture[i].weight /= total
	}
	e.Mean, second = momentsOf(mixture)
	deviation := math.Sqrt(max(second-e.Mean*e.Mean, 0))
	if deviation == 0 {
		return Expected{Mean: e.Mean, Lower: e.Mean, Upper: e.Mean, Chance: (1 + math.Copysign(1, e.Mean)) / 2}
	}
	const tail = (1 - Level) / 2
	e.Lower, e.Upper = quantileOf(mixture, tail, e.Mean, deviation), quantileOf(mixture, 1-tail, e.Mean, deviation)
	e.Chance = max(1-shareBelow(mixture, 0), 0) // weights add up to 1 only up to rounding
	return e
}

func shareBelow(mixture []normal, x float64) float64 {
	below := 0.0
	for _, p := range mixture {
		if p.deviation == 0 {
			if p.mean < x {
				below += p.weight
			}
			continue
		}
		below += p.weight * math.Erfc((p.mean-x)/p.deviation/math.Sqrt2) / 2
	}
	return below
}

// quantileOf returns a quantile of a mixture with a mean and a standard deviation, by Newton's method. By Chebyshev, it
// is less than 5 standard deviations from the mean. Where a step would leave what is known to contain the quantile, or
// is not half of the last one, it halves that interval.
func quantileOf(mixture []normal, p, mean, deviation float64) float64 {
	low, high := mean-5*deviation, mean+5*deviation
	x := mean
	last := math.Inf(1)
	const most = 200 // far more than halving takes
	for range most {
		below := shareBelow(mixture, x)
		if below < p {
			low = x
		} else {
			high = x
		}
		density := 0.0 // of the parts that have a deviation
		for _, p := range mixture {
			if p.deviation > 0 {
				z := (x - p.mean) / p.deviation
				density += p.weight * math.Exp(-z*z/2) / (p.deviation * math.Sqrt(2*math.Pi))
			}
		}
		next := x + (p-below)/density
		if !(next > low && next < high) || math.Abs(next-x) > last/2 {
			next = low + (high-low)/2
		}
		last = math.Abs(next - x)
		x = next
		if last <= 1e-12*deviation {
			break
		}
	}
	return x
}

// WinRate is the share of variations that win. Observed counts all, Expected those that are truly better.
type WinRate struct {
	Observed float64 `json:"observed"`
	Expected float64 `json:"expected"`
}

// WinRate returns how often the next treatment is found to be better, given the power at each lift, and how often
// rightly. Both are means over its true effect. gain is the mean lift if those that are found are shipped and the
// others are dropped: the sum of P(lift) power(lift) lift.
func (f *Fit) WinRate(powerAt func(lift float64) float64) (rate WinRate, gain float64) {
	var mixture []normal
	for g, w := range f.posterior {
		for j, probability := range f.grid[g].shape.probability {
			p := &f.grid[g]
			mixture = append(mixture, normal{w * probability, p.mu, p.shape.spreads[j] * p.tau})
		}
	}
	// Steps grow with the lift: few true effects are large, but these gain most.
	const steps, widest = 80, 60 // widest in typical effects
	typical := f.TypicalEffect().Mean
	liftAt := func(i float64) float64 { return typical * math.Sinh(i/steps*math.Asinh(widest)) }
	below := 0.0
	for i := -steps; i < steps; i++ {
		up := shareBelow(mixture, liftAt(float64(i+1)))
		if i == steps-1 {
			up = 1
		}
		lift := liftAt(float64(i) + .5)
		found := (up - below) * powerAt(lift)
		below = up
		rate.Observed += found
		gain += found * lift
		if i >= 0 {
			rate.Expected += found
		}
	}
	return rate, gain
}

// PastTest is a test of which only the effects are known.
type PastTest struct {
	Name    string
	Effects []stats.PooledEffect // by treatment
	Shipped int                  // number of the shipped treatment, from 1; 0: none
}

// Past is what past tests say about each other, in lifts. Their visitors a month are not known.
type Past struct {
	Pool  PoolSummary `json:"pool"`
	Total *PastTotal  `json:"total"` // of the shipped treatments; null: none is known
	Items []PastItem  `json:"items"`
}

// PastTotal is the sum of the lifts of the shipped treatments whose lift is known.
type PastTotal struct {
	Sum
	Shipped      int      `json:"shipped"`
	Exaggeration *float64 `json:"exaggeration"` // observed / expected; null: the expected sum is not above 0
	// expected number whose true effect is below a tenth of the minimum effect
	HarmOrNothing float64 `json:"harmOrNothing"`
}

// PastItem is a treatment of a past test.
type PastItem struct {
	Name      string       `json:"name"`
	Treatment int          `json:"treatment"` // from 1
	Shipped   bool         `json:"shipped"`
	Observed  *float64     `json:"observed"` // lift
	Expected  *Estimate    `json:"expected"` // lift
	Chance    *float64     `json:"chance"`   // that the true effect is above 0
	Reason    stats.Reason `json:"reason,omitempty"`
}

// NewPast returns what tests say about each other. mde is the minimum effect, as a fraction. Tests with too few
// visitors say nothing.
func NewPast(mde float64, tests []PastTest) *Past {
	p := &Past{Items: []PastItem{}}
	var fitted [][]stats.PooledEffect
	var numbers []int // of the fitted treatment of each item; -1: none
	n := 0
	for _, t := range tests {
		var own []stats.PooledEffect
		for i := range t.Effects {
			e := &t.Effects[i]
			item := PastItem{Name: t.Name, Treatment: i + 1, Shipped: t.Shipped == i+1, Reason: e.Reason}
			number := -1
			if e.Reason == "" {
				item.Observed = ObservedLift(e)
				number = n
				own = append(own, *e)
				n++
			}
			p.Items, numbers = append(p.Items, item), append(numbers, number)
		}
		if len(own) > 0 {
			fitted = append(fitted, own)
		}
	}
	fit := NewFit(mde, fitted)
	p.Pool = fit.Summary()
	factors := make([]float64, n)
	var total PastTotal
	for i := range p.Items {
		item := &p.Items[i]
		number := numbers[i]
		if number < 0 {
			continue
		}
		e := fit.TrueEffect(number)
		item.Expected = ExpectedLift(e, &fit.Effects[number])
		item.Chance = &e.Chance
		switch {
		case item.Observed == nil:
			item.Reason = stats.ReasonBaselineZero
		case item.Expected == nil:
			item.Reason = stats.ReasonBaselineNotDistinguishable
		}
		if item.Shipped && item.Reason == "" {
			// An effect is relative to the mean of its test, and a lift to control.
			factors[number] = 1
			if e.Mean != 0 {
				factors[number] = item.Expected.Value / e.Mean
			}
			total.Shipped++
			total.Observed += *item.Observed
			total.HarmOrNothing += e.Small
		}
	}
	if total.Shipped > 0 {
		e := fit.Total(factors)
		total.Expected = e.Mean
		total.Interval = [2]float64{e.Lower, e.Upper}
		if e.Mean > 0 {
			total.Exaggeration = new(total.Observed / e.Mean)
		}
		p.Total = &total
	}
	return p
}

// PoolSummary says how much a pool knows.
type PoolSummary struct {
	Campaigns     int      `json:"campaigns"` // from which the typical effect is known
	TypicalEffect Estimate `json:"typicalEffect"`
	MeanEffect    Estimate `json:"meanEffect"` // of the ideas
	Anchor        float64  `json:"anchor"`     // the typical effect that is assumed without campaigns
}

// Summary says how much the campaigns of a fit say.
func (f *Fit) Summary() PoolSummary {
	return PoolSummary{
		Campaigns: len(f.first), TypicalEffect: EstimateOf(f.TypicalEffect(), Unscaled),
		MeanEffect: EstimateOf(f.MeanEffect(), Unscaled), Anchor: medianTau * f.mde,
	}
}

// Estimate is a number with its interval at Level.
type Estimate struct {
	Value    float64    `json:"value"`
	Interval [2]float64 `json:"interval"`
}

// Sum is a sum as observed and as expected, with the interval of the true sum.
type Sum struct {
	Observed float64    `json:"observed"`
	Expected float64    `json:"expected"`
	Interval [2]float64 `json:"interval"`
}

// Unscaled returns a number as it is.
func Unscaled(x float64) float64 { return x }

// EstimateOf returns the mean and the interval of a posterior, on another scale.
func EstimateOf(e Expected, scale func(float64) float64) Estimate {
	return Estimate{scale(e.Mean), [2]float64{scale(e.Lower), scale(e.Upper)}}
}

// ObservedLift returns the observed lift; nil: the mean of control is not above 0.
func ObservedLift(effect *stats.PooledEffect) *float64 {
	if lift, exists := effect.Lift(effect.Value); exists {
		return &lift
	}
	return nil
}

// ExpectedLift returns the lift of a true effect; nil: the mean of control may not be above 0.
func ExpectedLift(e Expected, effect *stats.PooledEffect) *Estimate {
	lower, _ := effect.Lift(e.Lower)
	mean, _ := effect.Lift(e.Mean)
	upper, exists := effect.Lift(e.Upper)
	if !exists {
		return nil
	}
	return &Estimate{mean, [2]float64{lower, upper}}
}

// LiftInWords says what lift is expected.
func (e *Estimate) LiftInWords() string {
	inPercent := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	return fmt.Sprintf("Expected a lift of %s.", e.InWords(inPercent))
}

// InWords writes an estimate with its interval.
func (e *Estimate) InWords(write func(float64) string) string {
	return fmt.Sprintf("%s (%.0f %% interval %s to %s)", write(e.Value), 100*Level, write(e.Interval[0]),
		write(e.Interval[1]))
}

// InWords says how large effects typically are here. of is the word for what the pool is made of.
func (pool *PoolSummary) InWords(metric, of string) string {
	in := func(x float64) string { return "±" + wording.FormatPercent(x, 1, false) }
	if pool.Campaigns == 0 {
		return fmt.Sprintf("No %s is known yet: an experiment is assumed to change %s by %s.", of, metric,
			in(pool.TypicalEffect.Value))
	}
	text := fmt.Sprintf("An experiment here typically changes %s by %s (from %s", metric,
		in(pool.TypicalEffect.Value), wording.CountNoun(pool.Campaigns, of))
	if pool.Campaigns < leastPool {
		text += fmt.Sprintf("; %s is assumed without any", in(pool.Anchor))
	}
	return text + ")."
}

// leastPool is the number of campaigns from which their effects say more than the assumption before them.
const leastPool = 5
