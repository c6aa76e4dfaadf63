package calibration

import "slices"

// The compared metrics.
const (
	goalConversionRate = "goalConversionRate"
	valuePerVisitor    = "valuePerVisitor"
)

var metrics = []string{goalConversionRate, valuePerVisitor}

// tallyKey identifies a tally.
type tallyKey struct {
	rule   rule
	metric string
	shape  string
}

// tally counts experiments. An experiment with several variations has an error
// if any of its variations has the error.
type tally struct {
	// Experiments without an effect: errors in any variation, and at any look.
	null struct {
		experiments, significant, decided                                    int
		withLooks, anyLook, anyLookDecided, sequential, sequentialAndDecided int
	}
	// Experiments with an effect.
	effect struct {
		experiments, significant, decided, wrongSign int
	}
	// All experiments: intervals that cover the truth in all variations, and at
	// all looks.
	all struct {
		experiments, difference, improvement                   int
		withLooks, sequentialDifference, sequentialImprovement int
	}
}

// add adds the results of an experiment.
func (t *tally) add(e *experiment, metric string, r *results) {
	cover := func(comparisons []comparison, difference, improvement func(*comparison) bounds) (differences, improvements bool) {
		differences, improvements = true, true
		for i := range comparisons {
			c := &comparisons[i]
			trueDifference, trueImprovement := e.truth(metric, c.variation)
			differences = differences && difference(c).covers(trueDifference)
			improvements = improvements && improvement(c).covers(trueImprovement)
		}
		return differences, improvements
	}
	t.all.experiments++
	differences, improvements := cover(r.final,
		func(c *comparison) bounds { return c.difference }, func(c *comparison) bounds { return c.improvement })
	countIf(&t.all.difference, differences)
	countIf(&t.all.improvement, improvements)
	if len(r.looks) > 0 {
		t.all.withLooks++
		differences, improvements = cover(slices.Concat(r.looks...),
			func(c *comparison) bounds { return c.sequentialDifference }, func(c *comparison) bounds { return c.sequentialImprovement })
		countIf(&t.all.sequentialDifference, differences)
		countIf(&t.all.sequentialImprovement, improvements)
	}
	if e.effect {
		t.addEffect(e, r)
	} else {
		t.addNull(r)
	}
}

func (t *tally) addNull(r *results) {
	n := &t.null
	n.experiments++
	countIf(&n.significant, slices.ContainsFunc(r.final, func(c comparison) bool { return c.significant }))
	countIf(&n.decided, slices.ContainsFunc(r.final, func(c comparison) bool { return c.decided }))
	if len(r.looks) == 0 {
		return
	}
	n.withLooks++
	looks := slices.Concat(r.looks...)
	countIf(&n.anyLook, slices.ContainsFunc(looks, func(c comparison) bool { return c.significant }))
	countIf(&n.anyLookDecided, slices.ContainsFunc(looks, func(c comparison) bool { return c.decided }))
	countIf(&n.sequential, slices.ContainsFunc(looks, func(c comparison) bool { return c.sequential }))
	countIf(&n.sequentialAndDecided, slices.ContainsFunc(looks, func(c comparison) bool { return c.sequential && c.decided }))
}

// addEffect counts the variations with an effect.
func (t *tally) addEffect(e *experiment, r *results) {
	n := &t.effect
	n.experiments++
	affected := func(c comparison) bool { return e.shape.lifts[c.variation] != 0 }
	countIf(&n.significant, slices.ContainsFunc(r.final, func(c comparison) bool { return affected(c) && c.significant }))
	countIf(&n.decided, slices.ContainsFunc(r.final, func(c comparison) bool { return affected(c) && c.decided }))
	countIf(&n.wrongSign, slices.ContainsFunc(r.final, func(c comparison) bool {
		return affected(c) && c.significant && c.value != nil && *c.value*e.shape.lifts[c.variation] < 0
	}))
}

func countIf(count *int, condition bool) {
	if condition {
		*count++
	}
}
