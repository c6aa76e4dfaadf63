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
	// Experiments without an effect: errors in any variation, on any day, and at any look.
	null struct {
		experiments, significant, decided                   int
		withDays, anyDay, anyDayDecided, withLooks, anyLook int
	}
	// Experiments with an effect.
	effect struct {
		experiments, significant, decided, wrongSign int
	}
	// All experiments: intervals that cover the truth in all variations, and also at
	// all looks.
	all struct {
		experiments, difference, improvement       int
		withLooks, lookDifference, lookImprovement int
	}
}

// addResults adds the results of an experiment.
func (t *tally) addResults(e *experiment, metric string, r *results) {
	cover := func(comparisons []comparison) (differences, improvements bool) {
		differences = true
		improvements = true
		for i := range comparisons {
			c := &comparisons[i]
			trueDifference, trueImprovement := e.trueEffect(metric, c.variation)
			differences = differences && c.difference.coversValue(trueDifference)
			improvements = improvements && c.improvement.coversValue(trueImprovement)
		}
		return differences, improvements
	}
	t.all.experiments++
	differences, improvements := cover(r.final)
	countIf(&t.all.difference, differences)
	countIf(&t.all.improvement, improvements)
	if len(r.looks) > 0 {
		t.all.withLooks++
		differences, improvements = cover(slices.Concat(r.looks...))
		countIf(&t.all.lookDifference, differences)
		countIf(&t.all.lookImprovement, improvements)
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
	if len(r.days) > 0 {
		n.withDays++
		days := slices.Concat(r.days...)
		countIf(&n.anyDay, slices.ContainsFunc(days, func(c comparison) bool { return c.significant }))
		countIf(&n.anyDayDecided, slices.ContainsFunc(days, func(c comparison) bool { return c.decided }))
	}
	if len(r.looks) > 0 {
		n.withLooks++
		countIf(&n.anyLook, slices.ContainsFunc(slices.Concat(r.looks...), func(c comparison) bool { return c.significant }))
	}
}

// addEffect counts the variations with an effect.
func (t *tally) addEffect(e *experiment, r *results) {
	n := &t.effect
	n.experiments++
	affected := func(c comparison) bool { return e.shape.lifts[c.variation] != 0 }
	countIf(&n.significant, slices.ContainsFunc(r.final, func(c comparison) bool { return affected(c) && c.significant }))
	countIf(&n.decided, slices.ContainsFunc(r.final, func(c comparison) bool { return affected(c) && c.decided }))
	countIf(&n.wrongSign, slices.ContainsFunc(r.final, func(c comparison) bool {
		isWrong := c.value != nil && *c.value*e.shape.lifts[c.variation] < 0
		return affected(c) && c.significant && isWrong
	}))
}

func countIf(count *int, condition bool) {
	if condition {
		*count++
	}
}
