package main

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/engine"
	"lifthouse/stats"
)

// notes spell out the reasons, the sample and the shares.
func (t *table) notes() {
	var notes []string
	notes = append(notes, t.reasons()...)
	if t.answer.Methodology == stats.MethodologyFrequentist {
		notes = append(notes, "p holds for one look at the planned end, the always-valid p however often one looks.")
	}
	notes = append(notes, t.corrected()...)
	if t.answer.Checks != nil {
		notes = append(notes, t.shares())
	}
	notes = append(notes, t.sample())
	t.listed(notes)
}

// listed writes notes, each on lines of its own.
func (t *table) listed(notes []string) {
	if len(notes) == 0 {
		return
	}
	t.line("")
	for _, note := range notes {
		for i, line := range engine.Wrapped(note, t.width-len(gap)) {
			if i > 0 {
				line = gap + line
			}
			t.line(line)
		}
	}
}

// reasons names each reason once, with the variations that it concerns.
func (t *table) reasons() []string {
	var order []stats.Reason
	concerned := map[stats.Reason][]string{}
	add := func(i int, reasons ...stats.Reason) {
		for _, reason := range reasons {
			if reason == "" {
				continue
			}
			if !slices.Contains(order, reason) {
				order = append(order, reason)
			}
			if label := t.labels[i]; !slices.Contains(concerned[reason], label) {
				concerned[reason] = append(concerned[reason], label)
			}
		}
	}
	for i, v := range t.answer.Variations {
		add(i, v.Reason)
		if c := v.Comparison; c != nil {
			add(i, c.Reasons...)
		}
	}
	notes := make([]string, len(order))
	for i, reason := range order {
		who := "Variation "
		if len(concerned[reason]) > 1 {
			who = "Variations "
		}
		notes[i] = who + strings.Join(concerned[reason], ", ") + ": " + engine.Explain(reason) + "."
	}
	return notes
}

// corrected tells what several comparisons at once mean.
func (t *table) corrected() []string {
	switch several := len(t.answer.Variations) > 2; {
	case several && t.answer.Methodology == stats.MethodologyBayesian:
		return []string{"Each comparison stands for itself: chances and intervals are not corrected for their number."}
	case several:
		return []string{"p-values and intervals of lifts hold for all comparisons together (p by Dunnett's method)."}
	}
	return nil
}

func (t *table) shares() string {
	check := t.answer.Checks.SampleRatio
	expected, observed := make([]string, len(check.Expected)), make([]string, len(check.Observed))
	for i := range check.Expected {
		expected[i] = engine.Number(check.Expected[i], 0)
	}
	for i := range check.Observed {
		observed[i] = engine.Grouped(check.Observed[i])
	}
	verdict := "as they should"
	switch {
	case check.Mismatch:
		verdict = "not as they should, so that no comparison can be trusted"
	case check.PValue == nil:
		return "Shares: not checked, for " + engine.Explain(check.Reason) + "."
	}
	return fmt.Sprintf("Shares: visitors fell %s: %s, where %s were expected (p = %s).", verdict,
		strings.Join(observed, " : "), strings.Join(expected, " : "), engine.Probability(*check.PValue))
}

// sample tells how far the sample is.
func (t *table) sample() string {
	power := t.answer.Power
	if power.RequiredVisitors == nil {
		return "Sample: what it needs cannot be computed: " + engine.Explain(power.Reason) + "."
	}
	progress := engine.Percent(*power.Progress, 0, false)
	if few := 0.01; *power.Progress < few {
		progress = "under 1 %"
	}
	text := fmt.Sprintf("Sample: finding a lift of %v %% with %d %% power takes %s visitors; these are %s of them",
		t.input.MDE, t.input.Power, engine.Grouped(*power.RequiredVisitors), progress)
	if effect := power.MinimumDetectableEffect; effect != nil {
		text += ", enough for a lift of " + engine.Percent(*effect, engine.PercentDecimals(*effect), false)
	}
	return text + "."
}
