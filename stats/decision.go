package stats

import "cmp"

// Look is what is known at the end of a full day.
type Look struct {
	Samples     []Sample // control first
	Visitors    int64    // over all variations
	NonNegative bool     // see Options
}

// DecisionPlan decides which look is the planned one. It must be fixed before the
// first visitor.
type DecisionPlan struct {
	Shares        []float64 // of the traffic, control first
	MinimumEffect float64   // a lift, as a fraction
	Power         float64   // in (0, 1)
	Capped        bool      // the values of visitors are capped
}

// Decision is what the looks decided. PlannedLook is the index of the planned look,
// or -1 if it is not reached. AtPlannedLook has the comparisons of that look.
// Required is the planned number of visitors at the planned look, or else at the last
// look; nil, with a Reason, if it is not known. Decided is the decision in force; nil
// if there is none.
type Decision struct {
	PlannedLook   int
	AtPlannedLook []Comparison
	Required      *int64
	Reason        Reason
	Decided       *Decided
}

// Decided is a winner or a loser that was named at a look.
type Decided struct {
	Look        int
	PlannedLook bool // decided at the planned look, not by the confidence sequence
	Conclusion  Conclusion
	Comparisons []Comparison
}

// Decide goes through the looks of a campaign in order. The planned look is the first
// one at which the required sample is reached. The first look with a winner or a loser
// decides, and later looks do not take it back. Only a winner may follow a loser.
//
// The probability that any look names a winner or a loser, if no treatment has an
// effect, is at most alpha, for any number of looks.
//
// The required sample is o.PlannedVisitors. Without it, rates and capped means have that
// of Power with the data of each look. Other means have none, with
// ReasonNoPlannedSample: the
// variance of early days would place the look at day 2 to 4 of 12, where the power is
// .13 to .77.
func Decide(looks []Look, plan DecisionPlan, o Options) Decision {
	d := Decision{PlannedLook: -1}
	size := sampleSize{plan: plan, o: o}
	if len(looks) == 0 {
		d.Required, d.Reason = size.at(Look{})
	}
	for i, look := range looks {
		o.NonNegative = look.NonNegative
		o.PlannedLook = false
		if d.PlannedLook < 0 {
			d.Required, d.Reason = size.at(look)
			o.PlannedLook = d.Required != nil && look.Visitors >= *d.Required
		}
		d.add(i, look, o)
	}
	return d
}

// add adds a look.
func (d *Decision) add(i int, look Look, o Options) {
	if len(look.Samples) < 2 {
		return
	}
	control, treatments := look.Samples[0], look.Samples[1:]
	final := d.Decided != nil && d.Decided.Conclusion.Status == StatusWinner
	switch {
	case o.PlannedLook:
		d.PlannedLook = i
	case final || !AnySignificant(control, treatments, o):
		return
	}
	comparisons := Compare(control, treatments, o)
	if o.PlannedLook {
		d.AtPlannedLook = comparisons
	}
	c := Conclude(Evidence{Comparisons: comparisons})
	if !final && d.mayFollow(c) {
		d.Decided = &Decided{Look: i, PlannedLook: o.PlannedLook, Conclusion: c, Comparisons: comparisons}
	}
}

// mayFollow reports whether a conclusion replaces the present one.
func (d *Decision) mayFollow(c Conclusion) bool {
	switch {
	case c.Status != StatusWinner && c.Status != StatusLoser:
		return false
	case d.Decided == nil:
		return true
	}
	before := d.Decided.Conclusion
	return before.Status == StatusLoser && c.Status == StatusWinner && before.Index != c.Index
}

// sampleSize returns the required number of visitors at each look. The critical value
// of the family is the same at all looks.
type sampleSize struct {
	plan   DecisionPlan
	o      Options
	sizing *sizing
}

func (s *sampleSize) at(look Look) (*int64, Reason) {
	if s.o.PlannedVisitors > 0 {
		planned := s.o.PlannedVisitors
		return &planned, ""
	}
	if len(look.Samples) < 2 {
		return nil, ReasonNoVisitors
	}
	control := look.Samples[0]
	if _, rate := control.(Rate); !rate && !s.plan.Capped {
		return nil, ReasonNoPlannedSample
	}
	if s.sizing == nil {
		found, reason := newSizing(Plan{Control: control, Shares: s.plan.Shares, MinimumEffect: s.plan.MinimumEffect, Power: s.plan.Power}, s.o)
		if reason != "" {
			return nil, reason
		}
		s.sizing = &found
	}
	s.sizing.mean, s.sizing.variance = control.value(), control.variance()
	if s.sizing.mean == 0 {
		return nil, ReasonBaselineZero
	}
	vt, reason := s.sizing.lifted(s.plan.MinimumEffect)
	if reason != "" {
		return nil, reason
	}
	required, ok := s.sizing.required(s.plan.MinimumEffect, vt)
	if !ok {
		return nil, cmp.Or(reason, ReasonBaselineNotDistinguishable)
	}
	return &required, ""
}
