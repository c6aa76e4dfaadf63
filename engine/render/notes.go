package render

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// writeReportNotes writes what the tables do not say: reasons, warnings, and the sizes of the sample and the worth.
func (t *reportTable) writeReportNotes(rows []tableRow) {
	r := t.results
	notes := reasonNotes(rows)
	if r.Compares() && r.Methodology == string(stats.MethodologyFrequentist) {
		notes = append(notes, "The p-value is that of a single test. Conclusions come from the looks.")
	}
	notes = append(notes, t.complementNotes("", &r.Slice, true)...)
	notes = append(notes, evidenceNotes(r)...)
	notes = append(notes, priorNote(r))
	notes = append(notes, checkNotes(r)...)
	notes = append(notes, r.LooksInWords(), sampleNote(r))
	notes = append(notes, worthNotes(r)...)
	if n := len(r.Series); n > 0 {
		notes = append(notes, fmt.Sprintf("The series has %d points; --csv and --json print them.", n))
	}
	t.writeNoteLines(slices.DeleteFunc(notes, func(note string) bool { return note == "" }))
}

// evidenceNotes says of each comparison without looks whether its answer holds, and how strong the evidence must be.
func evidenceNotes(r *result.Report) (notes []string) {
	for i := range r.Variations {
		v := &r.Variations[i]
		if v.Comparison != nil && v.Comparison.Evidence != nil {
			notes = append(notes, v.Name+": "+v.Comparison.Evidence.InWords())
		}
	}
	return notes
}

// reasonNotes returns the reasons why values are missing, each with the variations that it applies to.
func reasonNotes(rows []tableRow) (notes []string) {
	var order []stats.Reason
	concerned := map[stats.Reason][]string{}
	for _, r := range rows {
		reasons := []stats.Reason{r.Reason}
		if r.Comparison != nil {
			reasons = append(reasons, r.Comparison.Reasons...)
		}
		for _, reason := range reasons {
			if reason != "" && !slices.Contains(order, reason) {
				order = append(order, reason)
			}
			if !slices.Contains(concerned[reason], r.label) {
				concerned[reason] = append(concerned[reason], r.label)
			}
		}
	}
	for _, reason := range order {
		who := "Variation "
		if len(concerned[reason]) > 1 {
			who = "Variations "
		}
		notes = append(notes, who+strings.Join(concerned[reason], ", ")+": "+wording.ExplainReason(reason)+".")
	}
	return notes
}

// priorNote says what the prior of a Bayesian report expects; empty: there is none.
func priorNote(r *result.Report) string {
	hasPrior := func(v result.VariationResults) bool {
		return v.Comparison != nil && v.Comparison.Bayesian != nil && v.Comparison.Bayesian.Prior != nil
	}
	at := slices.IndexFunc(r.Variations, hasPrior)
	if at < 0 {
		return ""
	}
	p := r.Variations[at].Comparison.Bayesian.Prior
	reach := 1.96 * p.StandardDeviation
	origin := "prior"
	if p.Campaigns != nil {
		origin = fmt.Sprintf("prior, learned from past campaigns (%d),", *p.Campaigns)
	}
	return fmt.Sprintf("Lifts are means of the posterior. The %s expects 95 %% of all lifts between %s and %s.", origin,
		wording.FormatPercent(p.Mean-reach, 1, true), wording.FormatPercent(p.Mean+reach, 1, true))
}

// checkNotes returns what the checks of the report found.
func checkNotes(r *result.Report) (notes []string) {
	if limit := r.Checks.Cap; limit != nil {
		notes = append(notes, limit.InWords())
	}
	if customers := r.Checks.Customers; customers != nil {
		notes = append(notes, customers.InWords())
	}
	for _, warning := range r.Checks.Warnings {
		notes = append(notes, "Warning: "+PrintableText(warning.Message))
	}
	if cause := r.Checks.SplitCause; cause != nil {
		notes = append(notes, PrintableText(cause.Text))
	}
	return notes
}

// sampleNote says how much of the required sample there is; empty: this is not known.
func sampleNote(r *result.Report) string {
	p := r.Power
	if p == nil || p.RequiredVisitors == nil || p.Progress == nil {
		return ""
	}
	text := fmt.Sprintf("Sample: %s of the %s required visitors", wording.FormatPercent(*p.Progress, 0, false),
		wording.FormatCount(*p.RequiredVisitors))
	if p.DaysRemaining != nil && *p.DaysRemaining > 0 {
		text += "; about " + wording.CountNoun(*p.DaysRemaining, "more day")
	}
	return text + "."
}

// worthNotes returns what the variations are worth, and where this comes from.
func worthNotes(r *result.Report) (notes []string) {
	if r.Worth == nil {
		return nil
	}
	for i := range r.Worth.Items {
		item := &r.Worth.Items[i]
		if item.Text != "" {
			notes = append(notes, PrintableText(item.Name)+": "+item.InWords())
		}
	}
	return append(notes, r.Worth.PoolText)
}

func (t *table) writeNoteLines(notes []string) {
	if len(notes) == 0 {
		return
	}
	t.writeLine("")
	for _, note := range notes {
		for i, line := range wrapText(note, t.Width-len(gap)) {
			if i > 0 {
				line = gap + line
			}
			t.writeLine(line)
		}
	}
}

// complementNotes returns a line for each variation whose lift differs from that among all other visitors; every: for
// each variation.
func (t *reportTable) complementNotes(prefix string, c *result.Slice, every bool) (notes []string) {
	for i := range c.Variations {
		v := &c.Variations[i]
		if v.Comparison == nil || v.Comparison.Complement == nil {
			continue
		}
		d := v.Comparison.Complement.ImprovementDifference
		if every || d.Interval.Excludes(0) {
			notes = append(notes, PrintableText(prefix+v.Name)+": "+result.ComplementInWords(d, t.level)+".")
		}
	}
	return notes
}
