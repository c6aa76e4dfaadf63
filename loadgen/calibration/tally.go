package calibration

import "slices"

// The metrics that experiments are compared on.
const (
	goalConversionRate = "goalConversionRate"
	valuePerVisitor    = "valuePerVisitor"
)

var metrics = []string{goalConversionRate, valuePerVisitor}

// cellKey is what is counted together.
type cellKey struct {
	rule   rule
	metric string
	shape  string
}

// tally counts experiments, of which each is one draw: a report with several
// variations errs when it errs in any of them.
type tally struct {
	null struct {
		experiments, significant, decided                       int // in any variation
		looked, anyLook, anyDecided, sequential, sequentialRule int // at any look
	}
	effect struct {
		experiments, significant, decided, wrongSign int
	}
	all struct { // with and without an effect, whose intervals cover in every variation
		experiments, difference, improvement                int
		looked, sequentialDifference, sequentialImprovement int // at every look
	}
}

// count adds what a report said of an experiment.
func (t *tally) count(e *experiment, metric string, r *reading) {
	cover := func(of []comparison, difference, improvement func(*comparison) bounds) (differences, improvements bool) {
		differences, improvements = true, true
		for i := range of {
			d, up := e.truth(metric, of[i].variation)
			differences = differences && difference(&of[i]).covers(d)
			improvements = improvements && improvement(&of[i]).covers(up)
		}
		return differences, improvements
	}
	t.all.experiments++
	differences, improvements := cover(r.final,
		func(c *comparison) bounds { return c.difference }, func(c *comparison) bounds { return c.improvement })
	tick(&t.all.difference, differences)
	tick(&t.all.improvement, improvements)
	if len(r.looks) > 0 {
		t.all.looked++
		differences, improvements = cover(slices.Concat(r.looks...),
			func(c *comparison) bounds { return c.sequentialDifference }, func(c *comparison) bounds { return c.sequentialImprovement })
		tick(&t.all.sequentialDifference, differences)
		tick(&t.all.sequentialImprovement, improvements)
	}
	if e.effect {
		t.countEffect(e, r)
	} else {
		t.countNull(r)
	}
}

func (t *tally) countNull(r *reading) {
	n := &t.null
	n.experiments++
	tick(&n.significant, anyOf(r.final, func(c comparison) bool { return c.significant }))
	tick(&n.decided, anyOf(r.final, func(c comparison) bool { return c.decided }))
	if len(r.looks) == 0 {
		return
	}
	n.looked++
	looks := slices.Concat(r.looks...)
	tick(&n.anyLook, anyOf(looks, func(c comparison) bool { return c.significant }))
	tick(&n.anyDecided, anyOf(looks, func(c comparison) bool { return c.decided }))
	tick(&n.sequential, anyOf(looks, func(c comparison) bool { return c.sequential }))
	tick(&n.sequentialRule, anyOf(looks, func(c comparison) bool { return c.sequential && c.decided }))
}

// countEffect judges the variations that have one.
func (t *tally) countEffect(e *experiment, r *reading) {
	n := &t.effect
	n.experiments++
	affected := func(c comparison) bool { return e.shape.lifts[c.variation] != 0 }
	tick(&n.significant, anyOf(r.final, func(c comparison) bool { return affected(c) && c.significant }))
	tick(&n.decided, anyOf(r.final, func(c comparison) bool { return affected(c) && c.decided }))
	tick(&n.wrongSign, anyOf(r.final, func(c comparison) bool {
		return affected(c) && c.significant && c.value != nil && *c.value*e.shape.lifts[c.variation] < 0
	}))
}

func anyOf(of []comparison, is func(comparison) bool) bool {
	for _, c := range of {
		if is(c) {
			return true
		}
	}
	return false
}

func tick(count *int, when bool) {
	if when {
		*count++
	}
}
