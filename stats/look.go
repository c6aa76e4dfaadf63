package stats

import (
	"cmp"
	"math"
	"slices"
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
			s.points[i], s.reasons[i] = r.Point, cmp.Or(r.Reason, ReasonNoNewVisitors)
			if r.Critical != nil {
				s.critical[i] = *r.Critical
				if *r.Critical < largestCritical {
					s.reasons[i] = ""
				}
				b.restoreLook(r.Point.Information, SpentAlpha(r.Point.Tau, d.Level), *r.Critical)
			}
			continue
		}
		if s.reasons[i] = ReasonLevel100; d.Level > 0 {
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
	r, critical := LookResult{Point: s.points[look], Reason: c.weak}, s.critical[look]
	if reason = cmp.Or(reason, s.reasons[look]); critical > 0 {
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
	if d := r.SignificantDirection(); (d > 0 && chance > 1-alpha/2) || (d < 0 && chance < alpha/2) {
		return d
	}
	return 0
}

// IsWithin reports whether the interval of the lift lies inside ±margin, a fraction. For a treatment whose true lift is
// ±margin, the probability of this at any look is about Alpha/2.
func (r LookResult) IsWithin(margin float64) bool {
	in := r.Lift.Interval
	return in != nil && in[0] != nil && in[1] != nil && *in[0] > -margin && *in[1] < margin
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
					next.Treatment, extreme, next.Winner = t, size, direction > 0
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
