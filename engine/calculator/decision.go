package calculator

import (
	"slices"

	"lifthouse/stats"
)

// look holds the comparisons of the variations at one time. Samples have control
// first.
type look struct {
	isPlanned   bool
	variations  []Variation // in the order of the input
	samples     []stats.Sample
	comparisons []stats.Comparison
	conclusion  stats.Conclusion
}

// decision is what the looks decided.
type decision struct {
	today      *look
	planned    *look // may be today; nil: not given
	inForce    *look // whose conclusion is in force
	conclusion stats.Conclusion
}

// decide decides over the planned look, if it is given, and then today's. The first
// look with a winner or a loser decides, and only a winner may follow a loser, as in
// stats.Decide. That function finds the planned look by plannedVisitors, which here
// may be missing: the input states which look is the planned one.
//
// A sample ratio mismatch makes the conclusion invalid, whenever it was drawn.
func (q *Input) decide(order []int, mismatch bool) *decision {
	d := &decision{}
	if q.PlannedLook != nil {
		d.planned = q.look(q.PlannedLook, order, true, mismatch)
	}
	if d.planned != nil && slices.EqualFunc(q.PlannedLook, q.Variations, sameSums) {
		d.today = d.planned
	} else {
		d.today = q.look(q.Variations, order, false, mismatch)
	}
	d.inForce = d.today
	if d.planned.stays(d.today) {
		d.inForce = d.planned
	}
	d.conclusion = d.inForce.conclusion
	if d.planned != nil && d.today != d.planned {
		d.today.keep(d.planned)
	}
	return d
}

func sameSums(a, b Variation) bool {
	return a.Visitors == b.Visitors && a.Converted == b.Converted && a.Mean == b.Mean && a.Variance == b.Variance
}

// look compares the variations at one time.
func (q *Input) look(variations []Variation, order []int, isPlanned, mismatch bool) *look {
	l := &look{isPlanned: isPlanned, variations: variations}
	for _, i := range order {
		l.samples = append(l.samples, q.sample(&variations[i]))
	}
	o := q.options(variations, order)
	o.PlannedLook = isPlanned
	l.comparisons = stats.Compare(l.samples[0], l.samples[1:], o)
	evidence := stats.Evidence{Comparisons: l.comparisons, SampleRatioMismatch: mismatch}
	if q.PlannedLook != nil {
		evidence.Pending = stats.ReasonPlannedLookInconclusive
	}
	l.conclusion = stats.Conclude(evidence)
	return l
}

// stays reports whether the conclusion of a look is in force at a later one.
func (l *look) stays(later *look) bool {
	switch {
	case l == nil || l.conclusion.Index < 0:
		return false
	case l.conclusion.Status == stats.StatusWinner:
		return true
	}
	return later.conclusion.Status != stats.StatusWinner || later.conclusion.Index == l.conclusion.Index
}

// keep marks the verdicts that were conclusive at the planned look, and are still the
// same, as conclusive.
func (l *look) keep(planned *look) {
	for i := range l.conclusion.Conclusive {
		if planned.conclusion.Conclusive[i] && planned.comparisons[i].Verdict == l.comparisons[i].Verdict {
			l.conclusion.Conclusive[i] = true
		}
	}
}

func (q *Input) sample(v *Variation) stats.Sample {
	if q.Metric == MetricBinary {
		return stats.Rate{Visitors: v.Visitors, Converted: v.Converted}
	}
	return stats.Mean{Visitors: v.Visitors, Mean: v.Mean, Variance: v.Variance, Nonzero: -1}
}
