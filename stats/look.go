package stats

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"
)

// Status is the conclusion of a report.
type Status string

// The statuses. The zero value is none of them.
const (
	StatusWinner           Status = "winner"
	StatusLoser            Status = "loser"
	StatusInconclusive     Status = "inconclusive"
	StatusInsufficientData Status = "insufficientData"
	StatusInvalid          Status = "invalid"
)

// LookDesign holds the error budgets that all looks of a campaign share.
type LookDesign struct {
	// Alpha is the error budget for all looks and all treatments.
	Alpha float64
	// Level is the error budget of one comparison, at which all comparisons together have the budget Alpha.
	Level float64

	treatments family
}

// NewLookDesign returns the design for an error budget alpha, in [0, 1), and the shares of traffic at the first view,
// control first, in any unit. With several treatments with a share, the level is twice the tail of Dunnett's critical
// value:
//
//	level = 2 Q(c),  P(max |Z_i| > c) = alpha,  corr(Z_i, Z_j) = λi λj,
//	λi = sqrt(share_i / (share_i + share_control)).
func NewLookDesign(alpha float64, shares []float64) LookDesign {
	var lambdas []float64
	for i, share := range shares {
		if i > 0 && share > 0 && shares[0] > 0 {
			lambdas = append(lambdas, math.Sqrt(share/(share+shares[0])))
		}
	}
	d := LookDesign{Alpha: alpha, Level: alpha, treatments: family{size: len(lambdas)}}
	if len(lambdas) > 1 && alpha > 0 {
		d.treatments.loadings = newLoadings(lambdas)
		d.Level = 2 * normalSurvival(d.treatments.criticalValue(alpha))
	}
	return d
}

// LookSequence has the critical values of all looks at one comparison of a treatment with control, in order. They
// depend only on the numbers of visitors. A LookSequence may be used concurrently.
type LookSequence struct {
	design   LookDesign
	points   []LookPoint
	critical []float64 // 0: none
	reasons  []Reason  // why there is none
	ladder   *ladder
}

// NewSequence returns the critical values of looks, in about 0.1 ms per look. known has the results of earlier looks,
// by index; their times, information and critical values do not change.
func (d LookDesign) NewSequence(looks []LookPoint, known map[int]LookResult) *LookSequence {
	s := &LookSequence{
		design: d, points: slices.Clone(looks), critical: make([]float64, len(looks)),
		reasons: make([]Reason, len(looks)),
	}
	var b boundary
	for i, look := range looks {
		if r, is := known[i]; is {
			s.points[i] = r.Point
			s.reasons[i] = cmp.Or(r.Reason, ReasonNoNewVisitors)
			if r.Critical != nil {
				s.critical[i] = *r.Critical
				if *r.Critical < largestCritical {
					s.reasons[i] = ""
				}
				b.restoreLook(r.Point.Information, SpentAlpha(r.Point.Tau, d.Level), *r.Critical)
			}
			continue
		}
		s.reasons[i] = ReasonLevel100
		if d.Level > 0 {
			s.critical[i], s.reasons[i] = b.addLook(look.Information, SpentAlpha(look.Tau, d.Level))
		}
	}
	s.ladder = &ladder{looks: s.points}
	return s
}

// PValue returns the p-value of a look, whose result must be r. It is the alpha at which the same looks would make r
// just significant, in [1e-12, 1]. It is below Alpha exactly if r is significant. It is nil if the look has no critical
// value or no statistic. The first call takes about 3 ms for each look.
func (s *LookSequence) PValue(look int, r LookResult) *float64 {
	if r.Critical == nil || r.Z == nil {
		return nil
	}
	p := s.ladder.pValue(look, *r.Z)
	if all := s.design.treatments; all.size > 1 { // the probability that any |Z_i| is above the normal quantile of p/2
		p = math.Max(p, math.Min(1, all.exceedanceProbability(normalQuantile(p/2))))
	}
	if r.Significant {
		return numberOrNil(math.Min(p, s.design.Alpha*(1-1e-12)))
	}
	return numberOrNil(math.Max(p, s.design.Alpha))
}

// LookResult is the result of a comparison at one look. Z is the statistic of the hypothesis of no effect, positive if
// the treatment is above control. Critical is the critical value of |Z|. The intervals of all looks and all treatments
// together cover the effects with probability 1 - Alpha. Reason is set if Critical or Z is nil, or if the data are
// weak. The reasons of the effects explain a missing value or end.
type LookResult struct {
	Point       LookPoint
	Critical    *float64
	Z           *float64
	Difference  Effect
	Lift        Effect
	Significant bool
	Reason      Reason
}

// AnalyzeLook returns the result of a look from its strata, which must include all its visitors. NonNegative reports
// whether values are never below zero. At a level of 0 nothing is significant.
func (s *LookSequence) AnalyzeLook(look int, strata []Stratum, nonNegative bool) LookResult {
	c, reason := newStrata(strata, nonNegative)
	r := LookResult{Point: s.points[look], Reason: c.weak}
	critical := s.critical[look]
	reason = cmp.Or(reason, s.reasons[look])
	if critical > 0 {
		r.Critical = &critical
	}
	if reason != "" {
		r.Reason, r.Difference.Reason, r.Lift.Reason = reason, reason, reason
	}
	if len(c.contrasts) == 0 {
		return r
	}
	z := c.z(0, onDifference)
	r.Z = numberOrNil(z)
	r.Difference.Value, r.Lift.Value = numberOrNil(c.estimateEffect(onDifference)),
		numberOrNil(c.estimateEffect(onLift))
	if reason != "" {
		return r
	}
	r.Significant = math.Abs(z) >= critical
	r.Difference.Interval, r.Difference.Reason = shownInterval(c.effectInterval(critical, r.Significant, onDifference))
	r.Lift.Interval, r.Lift.Reason = shownInterval(c.effectInterval(critical, r.Significant, onLift))
	return r
}

// SignificantDirection returns 1 if the treatment is significantly above control at this look, -1 if it is below, and 0
// otherwise.
func (r LookResult) SignificantDirection() int {
	switch {
	case !r.Significant:
		return 0
	case *r.Z > 0:
		return 1
	}
	return -1
}

// BayesianDirection returns SignificantDirection if the chance to beat control agrees, and 0 otherwise. The chance must
// be above 1 - alpha/2 for 1, or below alpha/2 for -1. The chance alone, read at every look, has an error rate of .10
// to .125 with three treatments.
func (r LookResult) BayesianDirection(chance, alpha float64) int {
	d := r.SignificantDirection()
	isBetter := d > 0 && chance > 1-alpha/2
	isWorse := d < 0 && chance < alpha/2
	if isBetter || isWorse {
		return d
	}
	return 0
}

// IsWithin reports whether the interval of the lift lies inside ±margin, a fraction. For a treatment whose true lift is
// ±margin, the probability of this at any look is about Alpha/2.
func (r LookResult) IsWithin(margin float64) bool {
	in := r.Lift.Interval
	if in == nil || in[0] == nil || in[1] == nil {
		return false
	}
	return *in[0] > -margin && *in[1] < margin
}

// Finding is the result of a look for a treatment: the significant direction, and the difference.
type Finding struct {
	Direction  int
	Difference float64
}

// Outcome is the winner or the loser that a look found. Look and Treatment are indexes.
type Outcome struct {
	Look, Treatment int
	Winner          bool
}

// ConcludeLooks returns the outcome of all looks, or nil. Looks are in order, each with one finding per treatment. The
// first significant look concludes. Its significant treatment furthest above control wins, or else the one furthest
// below control loses. Later looks do not withdraw the outcome. Only a later win of another treatment replaces a loser.
func ConcludeLooks(looks [][]Finding) *Outcome {
	var found *Outcome
	for i, findings := range looks {
		next := Outcome{Look: i, Treatment: -1}
		extreme := 0.0
		for _, direction := range []int{1, -1} {
			for t, f := range findings {
				size := f.Difference * float64(direction)
				if f.Direction == direction && (next.Treatment < 0 || size > extreme) {
					next.Treatment = t
					extreme = size
					next.Winner = direction > 0
				}
			}
			if next.Treatment >= 0 {
				break
			}
		}
		switch {
		case next.Treatment < 0:
		case found == nil:
			found = &next
		case !found.Winner && next.Winner && next.Treatment != found.Treatment:
			return &next
		}
	}
	return found
}

// SpentAlpha returns the part of the error budget alpha that is spent by the time tau. The plan ends at tau = 1:
//
//	.95 alpha (1 - e^(4 tau)) / (1 - e^4)       for tau <= 1
//	.95 alpha + .05 alpha (1 - 1/tau)           for tau > 1
//
// It is 0 for a tau or an alpha that is not above 0. It increases to alpha as tau increases.
//
// See Hwang, Shih and DeCani (1990) with gamma = -4.
func SpentAlpha(tau, alpha float64) float64 {
	switch {
	case !(tau > 0) || !(alpha > 0):
		return 0
	case tau <= 1:
		return 0.95 * alpha * math.Expm1(4*tau) / math.Expm1(4)
	}
	return alpha * (1 - 0.05/tau)
}

const (
	// leastGain is the minimum ratio of a look's information to the information of the last computed look. Below it,
	// the look has no critical value, because a quadrature over boundaryNodes cannot resolve the step.
	leastGain = 1.001
	// largestCritical is the critical value where nothing is spent.
	largestCritical = 9
	// widestPath bounds the quadrature in units of |Z|. Paths beyond it have a probability below 1e-16.
	widestPath    = 8.5
	boundaryNodes = 200
)

// LookPoint is one look of a comparison. Tau is its time (see SpentAlpha). Information is I = nc nt / (nc + nt), added
// up over the periods of shares (see Stratum). Only the ratios of I matter. I is 0 if the look has too few visitors.
type LookPoint struct {
	Tau, Information float64
}

// boundary computes the critical values of a symmetric two-sided group sequential test, one look after another. The
// zero value has no looks. A copy is independent of the original. The critical value c of look k solves
//
//	P(|Z_j| < c_j for all j < k and |Z_k| >= c_k) = spent_k - spent_(k-1)
//
// if there is no effect, where corr(Z_i, Z_j) = sqrt(I_i / I_j) for i < j. A look takes about 0.1 ms.
//
// See Lan and DeMets (1983); Armitage, McPherson and Rowe (1969); Jennison and Turnbull (2000), chapter 19.
type boundary struct {
	paths                 paths   // before the last look
	information, critical float64 // of the last look
	spent                 float64
}

// addLook adds a look and returns its critical value in (0, 9]. The argument spent is the part of the budget that is
// spent up to and including this look. The value is 9, with ReasonNoAlphaSpent, if the look itself spends less than
// 1e-13.
//
// It returns 0 if the look has no critical value. The reason is ReasonTooFewVisitors if its information is 0, or
// ReasonNoNewVisitors if its information grew by less than .1 %. The next look then gets its spending.
func (b *boundary) addLook(information, spent float64) (critical float64, reason Reason) {
	switch {
	case !(information > 0) || math.IsInf(information, 1):
		return 0, ReasonTooFewVisitors
	case information < leastGain*b.information:
		return 0, ReasonNoNewVisitors
	}
	b.passLastLook()
	critical, reason = largestCritical, ReasonNoAlphaSpent
	if spending := spent - b.spent; spending >= 1e-13 {
		excess := func(c float64) float64 {
			return math.Log(2 * b.paths.probabilityAbove(information, c*math.Sqrt(information), 0) / spending)
		}
		low, high := excess(0), excess(largestCritical)
		switch {
		case !(low > 0): // more than is left
			critical = math.SmallestNonzeroFloat64
			reason = ""
		case high < 0:
			critical = findRoot(excess, bracket{0, largestCritical, low, high}, 1e-14)
			reason = ""
		}
	}
	b.restoreLook(information, spent, critical)
	return critical, reason
}

// restoreLook adds a look whose critical value is known. A look that addLook would not compute is ignored.
func (b *boundary) restoreLook(information, spent, critical float64) {
	isGain := information > 0 && information >= leastGain*b.information
	if !isGain || !(critical > 0) || math.IsInf(information, 1) {
		return
	}
	b.passLastLook()
	b.information, b.critical, b.spent = information, critical, spent
}

// passLastLook computes the paths that stayed within the bounds at the last look, which only a further look needs.
func (b *boundary) passLastLook() {
	if b.information > b.paths.information {
		b.paths = b.paths.pathsWithin(b.information, -b.critical, b.critical)
	}
}

// ladder has the boundaries of one comparison at ladderLevels levels, descending from .999 to 1e-12. A level is
// computed when a p-value needs it.
type ladder struct {
	looks []LookPoint
	mu    sync.Mutex // protects the following
	steps [ladderLevels]struct {
		boundary boundary
		critical []float64 // of the first looks
	}
}

const ladderLevels = 40

// levelAt returns a level. The normal quantiles of the levels have equal distances.
func (l *ladder) levelAt(i int) float64 {
	first, last := normalQuantile(0.999), normalQuantile(1e-12)
	return normalSurvival(first + (last-first)*float64(i)/(ladderLevels-1))
}

// criticalValue returns the critical value of a look at a level. The caller holds the lock.
func (l *ladder) criticalValue(look, i int) float64 {
	step := &l.steps[i]
	for n := len(step.critical); n <= look; n++ {
		c, _ := step.boundary.addLook(l.looks[n].Information, SpentAlpha(l.looks[n].Tau, l.levelAt(i)))
		step.critical = append(step.critical, c)
	}
	return step.critical[look]
}

// pValue returns the level at which the critical value of a look is |z|. It is 1 if the look is not significant at
// .999, has no critical value, or spends nothing.
//
// ln a is interpolated between the nearest levels by a polynomial in the critical value. The relative error is below
// 1e-6 for a p-value from 1e-9 to .1, and below 3e-5 for a larger one.
func (l *ladder) pValue(look int, z float64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	const order = 6
	z = math.Abs(z)
	at := sort.Search(ladderLevels, func(i int) bool { return l.criticalValue(look, i) >= z })
	first := max(0, min(at-order/2, ladderLevels-order))
	for first > 0 && l.criticalValue(look, first+order-1) >= largestCritical {
		first--
	}
	var critical, logs []float64
	for i := first; i < first+order; i++ {
		if c := l.criticalValue(look, i); c > 0 && c < largestCritical {
			critical, logs = append(critical, c), append(logs, math.Log(l.levelAt(i)))
		}
	}
	switch last := len(critical) - 1; {
	case last < 0 || z < critical[0]:
		return 1
	case z > critical[last]:
		return math.Exp(logs[last])
	}
	for width := 1; width < len(critical); width++ { // Neville's method
		for i := range len(critical) - width {
			logs[i] += (z - critical[i]) / (critical[i+width] - critical[i]) * (logs[i+1] - logs[i])
		}
	}
	return math.Exp(logs[0])
}

// paths is the distribution of the score S = Z sqrt(I) at the last look, if there is no effect. It includes only the
// paths that stayed within the bounds at all looks. Each node has the density times its quadrature weight. Nodes are in
// ascending order. The zero value has no looks: S is 0.
type paths struct {
	information float64
	at, mass    []float64
	symmetric   bool
}

// probabilityAbove returns the probability that a path stays within the bounds at all looks so far, and has a score
// above the bound at the next look. Theta is the drift: the score has the mean theta I. The drift multiplies the
// probability of a path that ends in s by exp(theta s - theta² I/2).
func (p paths) probabilityAbove(information, bound, theta float64) float64 {
	at, mass := p.nodesAndMasses()
	gain := information - p.information
	sd := math.Sqrt(gain)
	sum := 0.0
	for j, y := range at {
		m := mass[j]
		if theta != 0 {
			m *= math.Exp(theta * (y - theta*p.information/2))
		}
		sum += m * normalSurvival((bound-y-theta*gain)/sd)
	}
	return sum
}

// pathsWithin returns the paths that are also between two bounds of Z at the next look.
func (p paths) pathsWithin(information, lower, upper float64) paths {
	const farthest = 9 // standard deviations of a step
	root := math.Sqrt(information)
	low, high := root*math.Max(lower, -widestPath), root*math.Min(upper, widestPath)
	at, mass := p.nodesAndMasses()
	next := paths{
		information: information, symmetric: lower == -upper && (p.symmetric || p.at == nil),
		at: make([]float64, boundaryNodes), mass: make([]float64, boundaryNodes),
	}
	nodes, weights := legendreNodes()
	sd := math.Sqrt(information - p.information)
	exponent := -0.5 / (sd * sd)
	first := 0
	for i, node := range nodes {
		x := low + (high-low)/2*(1+node)
		next.at[i] = x
		if mirror := boundaryNodes - 1 - i; next.symmetric && mirror < i {
			next.at[i] = -next.at[mirror]
			next.mass[i] = next.mass[mirror]
			continue
		}
		for first < len(at) && at[first] < x-farthest*sd {
			first++
		}
		sum := 0.0
		for j := first; j < len(at) && at[j] <= x+farthest*sd; j++ {
			step := x - at[j]
			sum += mass[j] * math.Exp(exponent*step*step)
		}
		next.mass[i] = sum / (sd * math.Sqrt(2*math.Pi)) * weights[i] * (high - low) / 2
	}
	return next
}

func (p paths) nodesAndMasses() (at, mass []float64) {
	if p.at == nil {
		return []float64{0}, []float64{1}
	}
	return p.at, p.mass
}

// legendreNodes returns the nodes of a Gauss-Legendre rule on [-1, 1], ascending, and their weights.
var legendreNodes = sync.OnceValues(func() (at, weights []float64) {
	at, weights = make([]float64, boundaryNodes), make([]float64, boundaryNodes)
	quad.Legendre{}.FixedLocations(at, weights, -1, 1)
	slices.Reverse(at) // the weights are symmetric
	return at, weights
})

// SimultaneousCritical returns the critical value c at which a curve of cumulative metrics of one cohort stays within
// its band at all points together with probability 1 - alpha, if there is no effect:
//
//	P(|Z_a| <= c for all a) = 1 - alpha,  corr(Z_a, Z_b) = sqrt(I_a / I_b) for a < b.
//
// information has I of the points, which must not decrease: p/(1 - p) for a rate p, because each converted visitor
// stays converted, and the variance of the totals for a mean, which is an approximation if visitors buy again. Only
// ratios matter. A point whose information grew by less than .1 % adds nothing. Without a point with information, or at
// an alpha outside (0, 1), it returns the critical value of a single comparison. It takes about 1 ms a point.
//
// This is the constant boundary of Pocock (1977), by the recursion of Armitage, McPherson and Rowe (1969).
func SimultaneousCritical(information []float64, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1) {
		return math.Inf(1)
	}
	excess := func(c float64) float64 {
		var p paths
		crossed := 0.0
		for _, i := range information {
			if !(i >= leastGain*p.information && i > 0) || math.IsInf(i, 1) {
				continue
			}
			crossed += 2 * p.probabilityAbove(i, c*math.Sqrt(i), 0)
			p = p.pathsWithin(i, -c, c)
		}
		return math.Log(crossed / alpha)
	}
	return solveCritical(excess, alpha, max(len(information), 1), 1e-6)
}
