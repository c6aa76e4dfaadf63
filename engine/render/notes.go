package render

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/engine/result"
	"lifthouse/stats"
)

// writeNotes writes the reasons, the shares of the traffic and the sample size.
func (t *table) writeNotes() {
	var notes []string
	notes = append(notes, t.reasonNotes()...)
	notes = append(notes, t.validityNote())
	notes = append(notes, t.correctionNotes()...)
	var comparisons []*result.Comparison
	for i := range t.answer.Variations {
		comparisons = append(comparisons, t.answer.Variations[i].Comparison)
	}
	notes = append(notes, priorNote(comparisons)...)
	if t.answer.Checks != nil {
		notes = append(notes, t.sharesNote())
	}
	notes = append(notes, t.sampleSizeNote())
	t.writeNoteLines(notes)
}

// validityNote returns a note on the validity of the p-values.
func (t *table) validityNote() string {
	if t.answer.Methodology == stats.MethodologyFrequentist {
		return "The p-value is that of a single test. Conclusions come from the looks."
	}
	return "Conclusions come from the looks."
}

// writeNoteLines writes each note on its own lines.
func (t *table) writeNoteLines(notes []string) {
	if len(notes) == 0 {
		return
	}
	t.writeLine("")
	for _, note := range notes {
		for i, line := range WrapText(note, t.Width-len(gap)) {
			if i > 0 {
				line = gap + line
			}
			t.writeLine(line)
		}
	}
}

// reasonNotes returns a note per reason, with the variations that it applies to.
func (t *table) reasonNotes() []string {
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
		notes[i] = who + strings.Join(concerned[reason], ", ") + ": " + result.ExplainReason(reason) + "."
	}
	return notes
}

// priorNote returns a note on the prior of lifts, if the comparisons have one.
func priorNote(comparisons []*result.Comparison) []string {
	for _, c := range comparisons {
		if c != nil && c.Bayesian != nil && c.Bayesian.Prior != nil {
			p, reach := c.Bayesian.Prior, 1.96*c.Bayesian.Prior.StandardDeviation
			return []string{fmt.Sprintf("Lifts are means of the posterior. The prior expects 95 %% of all lifts between %s and %s.",
				result.FormatPercent(p.Mean-reach, 1, true), result.FormatPercent(p.Mean+reach, 1, true))}
		}
	}
	return nil
}

// correctionNotes returns a note on the correction for multiple comparisons.
func (t *table) correctionNotes() []string {
	switch several := len(t.answer.Variations) > 2; {
	case several && t.answer.Methodology == stats.MethodologyBayesian:
		return []string{"Chances and intervals are not corrected for the number of comparisons."}
	case several:
		return []string{"p-values and intervals of lifts are corrected for the number of comparisons (Dunnett's method)."}
	}
	return nil
}

func (t *table) sharesNote() string {
	check := t.answer.Checks.SampleRatio
	expected, observed := make([]string, len(check.Expected)), make([]string, len(check.Observed))
	for i := range check.Expected {
		expected[i] = result.FormatNumber(check.Expected[i], 0)
	}
	for i := range check.Observed {
		observed[i] = result.FormatCount(check.Observed[i])
	}
	verdict := "match the configured shares"
	switch {
	case check.Mismatch:
		verdict = "do not match the configured shares (sample ratio mismatch), so the comparison is not valid"
	case check.PValue == nil:
		return "Shares: not checked: " + result.ExplainReason(check.Reason) + "."
	}
	return fmt.Sprintf("Shares: the visitors %s: observed %s, expected %s (p = %s).", verdict,
		strings.Join(observed, " : "), strings.Join(expected, " : "), result.FormatPValue(*check.PValue))
}

// sampleSizeNote returns a note on the required sample size.
func (t *table) sampleSizeNote() string {
	power := t.answer.Power
	if power.RequiredVisitors == nil {
		return "Sample: the required size cannot be computed: " + result.ExplainReason(power.Reason) + "."
	}
	progress := result.FormatPercent(*power.Progress, 0, false)
	if onePercent := 0.01; *power.Progress < onePercent {
		progress = "under 1 %"
	}
	text := fmt.Sprintf("Sample: detecting a lift of %v %% with %d %% power requires %s visitors; the sample has %s of them",
		t.input.MDE, t.input.Power, result.FormatCount(*power.RequiredVisitors), progress)
	if effect := power.MinimumDetectableEffect; effect != nil {
		text += " and can detect a lift of " + result.FormatPercent(*effect, result.PercentDecimals(*effect), false)
	}
	return text + "."
}
