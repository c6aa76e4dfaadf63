package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// maxLabelWidth returns the maximum width of a variation's name or of a value, in columns: half of the room beside the
// widest interval, at most 22.
func (s Screen) maxLabelWidth() int {
	const most, interval, separators = 22, 28, 5
	return min((s.Width-interval-separators)/2, most)
}

type reportTable struct {
	*table
	results *result.Report
}

// Report returns a report as text: the conclusion, one row per variation, and notes. With a dimension, a second table
// has one row per value and variation.
func Report(r *result.Report, s Screen) string {
	base := &table{Screen: s, methodology: stats.Methodology(r.Methodology), level: r.SignificanceLevel}
	t := &reportTable{base, r}
	t.rate = r.IsShare()
	rows := t.rowsOf("", &r.Slice)
	if r.Decision != nil {
		t.writeParagraph(bold, PrintableText(r.Decision.Text))
		t.writeParagraph("", r.Decision.NextStep())
		t.writeLine("")
	}
	if r.Conclusion != nil {
		t.writeParagraph(bold, PrintableText(r.Conclusion.Text))
	} else {
		t.writeParagraph(bold, "Totals per variation; nothing is compared.")
	}
	t.writeLine("")
	t.writeParagraph("", PrintableText(ReportSubtitle(r)))
	t.writeSection(rows)
	t.writeReportNotes(rows)
	t.writeScorecard()
	t.writeFollowUp()
	t.writeParts()
	if r.Dimension != nil {
		// Write whether the values differ, all values in one table, and notes on those that differ from all others.
		rows = nil
		var notes []string
		for i := range r.Breakdown {
			slice := &r.Breakdown[i]
			rows = append(rows, t.rowsOf(slice.Value, &slice.Slice)...)
			if c := slice.Conclusion; c != nil && c.Status == stats.StatusInvalid {
				notes = append(notes, PrintableText(slice.Value+": "+c.Text))
			}
			notes = append(notes, t.complementNotes(slice.Value+" · ", &slice.Slice, false)...)
		}
		t.writeLine("")
		t.writeLine(t.paintText(bold, "By "+string(*r.Dimension)))
		if h := r.Heterogeneity; h != nil {
			t.writeParagraph("", h.Text)
		}
		if len(rows) == 0 {
			t.writeLine("")
			t.writeLine("There are no values yet.")
		} else {
			t.writeSection(rows)
			t.writeNoteLines(notes)
		}
	}
	if r.Curve != nil {
		t.writeCurve()
	}
	return t.out.String()
}

// rowsOf returns the variations of a slice. value is that of the dimension, or empty.
func (t *reportTable) rowsOf(value string, c *result.Slice) []tableRow {
	rows := make([]tableRow, len(c.Variations))
	for i := range c.Variations {
		v := &c.Variations[i]
		row := &rows[i]
		*row = tableRow{
			visitors: v.Visitors, Estimate: t.results.EstimateOf(v),
			Comparison: v.Comparison,
		}
		row.label = shortenText(PrintableText(v.Name), t.maxLabelWidth())
		row.converted = wording.FormatCount(v.ConvertedVisitors)
		if v.Metric != nil {
			row.converted = wording.FormatCount(v.Metric.Visitors)
		}
		if value != "" {
			row.label = shortenText(PrintableText(value), t.maxLabelWidth()) + " · " + row.label
		}
		if v.Comparison != nil {
			row.verdict = judged{v.Comparison.VerdictInWords(), c.ConclusiveVerdict(v.Comparison)}
		}
	}
	return rows
}

// writeSection writes rows that share one table.
func (t *reportTable) writeSection(rows []tableRow) {
	t.writeLine("")
	if !t.results.Compares() {
		t.writeGrids(labelColumn(rows), t.observedColumns(rows), allRows)
		return
	}
	t.writeRows(rows)
}

// writeFollowUp writes the readings of later orders.
func (t *reportTable) writeFollowUp() {
	if len(t.results.FollowUp) == 0 {
		return
	}
	t.writeLine("")
	t.writeLine(t.paintText(bold, "Later"))
	t.writeParagraph("", result.MeaningOfFollowUp)
	for i := range t.results.FollowUp {
		t.writeParagraph("", PrintableText(t.results.FollowUp[i].Text))
	}
}

// writeParts writes a table with a row for each part of the metric and variation.
func (t *reportTable) writeParts() {
	parts := t.results.Parts
	if parts == nil {
		return
	}
	t.writeLine("")
	t.writeLine(t.paintText(bold, "Split by "+parts.By))
	about := "The parts add up to the metric."
	if !parts.Additive {
		about = "The parts do not add up to the metric: a visitor may be in several."
	}
	t.writeParagraph("", about)
	var rows []tableRow
	for i := range parts.Items {
		part := &parts.Items[i]
		for k := range part.Variations {
			rows = append(rows, t.partRow(part, k))
		}
	}
	if len(rows) == 0 {
		t.writeLine("")
		t.writeLine("There are no values yet.")
		return
	}
	t.writeSection(rows)
}

// partRow returns the row of a part for a variation.
func (t *reportTable) partRow(part *result.Part, variation int) tableRow {
	v := &part.Variations[variation]
	of := &t.results.Variations[variation]
	row := tableRow{visitors: of.Visitors, Estimate: v.Metric.Estimate, Comparison: v.Comparison}
	name := part.Value
	if part.Label != "" {
		name = part.Label
	}
	row.label = shortenText(PrintableText(name), t.maxLabelWidth()) + " · " +
		shortenText(PrintableText(of.Name), t.maxLabelWidth())
	row.converted = wording.FormatCount(v.Metric.Visitors)
	if v.Comparison != nil {
		row.verdict = judged{v.Comparison.VerdictInWords(), v.Comparison.ConclusiveVerdict()}
	}
	return row
}

// writeCurve writes a table with a row for each day of age and variation.
func (t *reportTable) writeCurve() {
	c := t.results.Curve
	level := t.results.SignificanceLevel
	t.writeLine("")
	t.writeParagraph(bold, "By age")
	t.writeParagraph("", fmt.Sprintf("Events of the first days after the first view, of the %s visitors who came at "+
		"least %d days ago (%s came later). Lifts have the %d %% interval of a single test, and that of all days "+
		"together.", wording.FormatCount(c.Cohort.Visitors), c.Cohort.Days,
		wording.FormatCount(c.Cohort.ImmatureVisitors), level))
	t.writeLine("")
	label := column{title: "day"}
	columns := newColumns("<variation", "", "value", "lift", "interval", "all days")
	columns[1].title = shortenText(PrintableText(t.results.Variations[0].Name), t.maxLabelWidth())
	write := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	for _, point := range c.Points {
		control := point.Variations[0].Value
		value := func(x float64) string { return wording.FormatValue(x, nil, t.rate) }
		for i, v := range point.Variations {
			if v.Comparison == nil {
				continue
			}
			label.cells = append(label.cells, strconv.Itoa(point.Day))
			together := ""
			if v.Simultaneous != nil {
				together = wording.RangeInWords(v.Simultaneous.Improvement.Interval, write)
			}
			addCells(columns, shortenText(PrintableText(t.results.Variations[i].Name), t.maxLabelWidth()),
				formatOptional(control, value), formatOptional(v.Value, value),
				formatOptional(v.Comparison.Improvement.Value, write),
				wording.RangeInWords(v.Comparison.Improvement.Interval, write), together)
		}
	}
	t.writeGrids(label, columns, allRows)
	var notes []string
	for _, n := range c.Novelty {
		notes = append(notes, PrintableText(n.Text))
	}
	t.writeNoteLines(notes)
}

// PrintableText replaces characters that could move the cursor of a terminal, because texts are user input. It keeps
// line feeds, and the joiner within emoji.
func PrintableText(text string) string {
	const zeroWidthJoiner = '\u200d'
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != zeroWidthJoiner && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, strings.ReplaceAll(text, "\r", ""))
}

// Looks returns a table with a row for each look and variation: the result of the look, when it was recorded, and
// whether today's events give another result.
func Looks(r *result.Report) string {
	columns := newColumns("look", "<until", "visitors", "<variation", "lift", "interval", "z", "bound", "p", "<",
		"<recorded")
	names := map[int64]string{}
	for _, v := range r.Variations {
		names[v.ID] = shortenText(PrintableText(v.Name), 22)
	}
	write := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
	for _, look := range r.Looks {
		recorded := "computed"
		if look.RecordedAt != nil {
			recorded = look.RecordedAt.UTC().Format("2006-01-02 15:04")
		}
		for _, v := range look.Variations {
			found := ""
			of := recorded
			if v.Significant {
				found = "significant"
			}
			if v.Recomputed != nil {
				of += ", later data changed it: " + formatOptional(v.Recomputed.Improvement.Value, write)
			}
			addCells(columns,
				strconv.Itoa(look.Number), look.End.Add(-time.Millisecond).UTC().Format(time.DateOnly),
				wording.FormatCount(look.Visitors),
				names[v.ID], formatOptional(v.Improvement.Value, write),
				wording.RangeInWords(v.Improvement.Interval, write),
				formatOptional(v.Z, number), formatOptional(v.CriticalValue, number),
				formatOptional(v.PValue, wording.FormatPValue),
				found, of)
		}
	}
	return Screen{}.gridText(columns, allRows) + "\n" + r.LooksInWords() + "\n"
}

// writeScorecard writes a table with a row for each goal, metric and variation.
func (t *reportTable) writeScorecard() {
	if t.results.Scorecard == nil {
		return
	}
	t.writeLine("")
	t.writeParagraph(bold, "Scorecard")
	intervals, evidence := "intervals, of the last look where a row has looks", "p"
	if t.methodology == stats.MethodologyBayesian {
		intervals = "credible intervals"
		evidence = "chance to beat control"
	}
	t.writeParagraph("", fmt.Sprintf("Lifts with their %d %% %s. * marks a change in the good direction.",
		t.results.SignificanceLevel, intervals))
	t.writeLine("")
	several := slices.ContainsFunc(t.results.Scorecard,
		func(r *result.ScorecardRow) bool { return len(r.Variations) > 2 })
	label := column{title: "metric", left: true}
	columns := newColumns("<role", "control", "value", "lift", "interval", evidence, "<verdict")
	empty := 0
	for _, row := range t.results.Scorecard {
		if row.IsEmpty() {
			empty++
			continue
		}
		format := func(e *result.Estimate) string {
			return formatOptional(e.Value,
				func(x float64) string { return wording.FormatValue(x, e.Interval, row.Metric.IsRate()) })
		}
		for i := range row.Variations {
			v := &row.Variations[i]
			if v.Control {
				continue
			}
			name := shortenText(PrintableText(row.MetricInWords()), t.maxLabelWidth()+10)
			if several {
				name += " · " + shortenText(PrintableText(v.Name), t.maxLabelWidth())
			}
			label.cells = append(label.cells, name)
			effect := []string{none, none, none}
			words, colour := "", ""
			if v.Comparison != nil {
				effect = scorecardCells(v.Comparison)
				words, colour = scorecardVerdict(row, v)
			}
			addCells(columns, slices.Concat([]string{
				string(row.Role), format(&row.Variations[0].Estimate), format(&v.Estimate),
			}, effect, []string{words})...)
			columns[6].colours = append(columns[6].colours, colour)
		}
	}
	t.writeGrids(label, columns, allRows)
	if empty > 0 {
		t.writeLine("")
		t.writeParagraph("",
			fmt.Sprintf("Without metrics whose values are all 0 (%d); --csv and --json print them.", empty))
	}
}

// scorecardCells returns the lift of a comparison, its interval and its evidence: those of the last look, if there was
// one.
func scorecardCells(c *result.Comparison) []string {
	interval := c.Improvement.Interval
	evidence := none
	switch {
	case c.Bayesian != nil:
		evidence = formatOptional(c.Bayesian.ChanceToBeatControl, wording.FormatChance)
	case c.Sequential != nil && c.Sequential.Look != nil:
		interval = c.Sequential.Improvement
		evidence = formatOptional(c.Sequential.PValue, wording.FormatPValue)
	case c.Frequentist != nil:
		evidence = formatOptional(c.Frequentist.AdjustedPValue, wording.FormatPValue)
	}
	inPercent := func(x float64) string { return wording.FormatLift(x, interval) }
	return []string{
		formatOptional(c.Improvement.Value, inPercent), wording.RangeInWords(interval, inPercent), evidence,
	}
}

// scorecardVerdict returns the verdict of a variation in words, and its colour. Only conclusive verdicts are coloured,
// by whether the effect is good.
func scorecardVerdict(r *result.ScorecardRow, v *result.ScorecardVariation) (words, colour string) {
	if g := v.Guardrail; g != nil {
		switch g.Status {
		case looks.Safe:
			return "safe", green
		case looks.Harmed:
			return "harmed", red
		}
		return "not yet known", ""
	}
	words = v.Comparison.VerdictInWords()
	judged := v.Comparison.ConclusiveVerdict()
	if judged == stats.VerdictBetter || judged == stats.VerdictWorse {
		words = "higher"
		colour = red
		if judged == stats.VerdictWorse {
			words = "lower"
		}
		if (judged == stats.VerdictBetter) == (r.Direction == "up") {
			words += " *"
			colour = green
		}
	}
	if v.QValue != nil {
		words += fmt.Sprintf(" (q %s)", wording.FormatPValue(*v.QValue))
	}
	return words, colour
}
