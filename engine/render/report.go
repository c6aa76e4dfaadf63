package render

import (
	"fmt"
	"strings"
	"unicode"

	"lifthouse/engine/calculator"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// letters returns the maximum width of a variation's name or of a value, in
// columns: half of the room beside the widest interval, at most 22.
func (s Screen) letters() int {
	const most, interval, separators = 22, 28, 5
	return min((s.Width-interval-separators)/2, most)
}

// reportTable writes a report.
type reportTable struct {
	*table
	results *result.Report
}

// Report returns a report as text: the conclusion, one row per variation, the
// lifts as bars, and notes. With a dimension, a second table has one row per
// value and variation.
func Report(r *result.Report, s Screen) string {
	t := &reportTable{&table{Screen: s}, r}
	whole := section{letters: t.letters()}
	whole.add("", &r.Cell, t.metric())
	if r.Decision != nil {
		t.paragraph(bold, Printable(r.Decision.Text))
		t.line("")
	}
	if r.Conclusion != nil {
		t.paragraph(bold, Printable(r.Conclusion.Text))
	} else {
		t.paragraph(bold, "Totals per variation; nothing is compared.")
	}
	t.line("")
	t.paragraph("", Printable(Subtitle(r)))
	t.draw(&whole)
	t.notes()
	t.scorecard()
	if r.Dimension != nil {
		t.breakdown()
	}
	return t.out.String()
}

func (t *reportTable) paragraph(colour, text string) {
	for _, line := range Wrapped(text, t.Width) {
		t.line(t.paint(colour, line))
	}
}

// metric returns the compared metric, or the goal conversion rate if nothing is
// compared.
func (t *reportTable) metric() query.Metric {
	if t.results.CompareMetric == nil {
		return query.GoalConversionRate
	}
	return *t.results.CompareMetric
}

// section holds rows that share one table and one scale.
type section struct {
	letters   int // maximum width of a name, in columns
	labels    []string
	converted []int64
	rows      []calculator.AnswerVariation
	verdicts  []judged
}

// add appends the variations of a cell to the section.
func (s *section) add(value string, c *result.Cell, metric query.Metric) {
	for i := range c.Variations {
		v := &c.Variations[i]
		label := Shortened(Printable(v.Name), s.letters)
		if value != "" {
			label = Shortened(Printable(value), s.letters) + " · " + label
		}
		s.labels, s.converted = append(s.labels, label), append(s.converted, v.ConvertedVisitors)
		var verdict judged
		if v.Comparison != nil {
			verdict = judged{v.Comparison.VerdictInWords(), c.Judged(v.Comparison)}
		}
		s.verdicts = append(s.verdicts, verdict)
		s.rows = append(s.rows, calculator.AnswerVariation{ID: v.ID, Control: v.Control, Visitors: v.Visitors, Estimate: v.Metrics.Of(metric), Comparison: v.Comparison})
	}
}

// draw writes a section in the form of the calculator's answer.
func (t *reportTable) draw(s *section) {
	metric := calculator.MetricMean
	if result.IsRate(t.metric()) {
		metric = calculator.MetricBinary
	}
	t.input = &calculator.Input{Metric: metric}
	t.answer = &calculator.Answer{Methodology: stats.Methodology(t.results.Methodology), SignificanceLevel: t.results.SignificanceLevel, Variations: s.rows}
	t.labels, t.converted, t.verdicts = s.labels, s.converted, s.verdicts
	t.line("")
	if t.results.CompareMetric == nil {
		t.grids(t.observed(), func(int) bool { return true })
		return
	}
	t.rows()
	t.bars()
}

// notes writes the reasons, the warnings and the sample size.
func (t *reportTable) notes() {
	notes := t.reasons()
	if t.results.CompareMetric != nil && t.results.Methodology == string(stats.MethodologyFrequentist) {
		notes = append(notes, t.validity())
	}
	var comparisons []*result.Comparison
	for i := range t.results.Variations {
		comparisons = append(comparisons, t.results.Variations[i].Comparison)
	}
	notes = append(notes, priorNote(comparisons)...)
	if check := t.results.Checks.Cap; check != nil {
		notes = append(notes, check.InWords())
	}
	for _, warning := range t.results.Checks.Warnings {
		notes = append(notes, "Warning: "+Printable(warning.Message))
	}
	if text := t.results.LooksInWords(); text != "" {
		notes = append(notes, text)
	}
	if text := t.progress(); text != "" {
		notes = append(notes, text)
	}
	if n := len(t.results.Series); n > 0 {
		notes = append(notes, fmt.Sprintf("The series has %d points; --csv and --json print them.", n))
	}
	t.listed(notes)
}

func (t *reportTable) progress() string {
	p := t.results.Power
	if p == nil || p.RequiredVisitors == nil || p.Progress == nil {
		return ""
	}
	text := fmt.Sprintf("Sample: %s of the %s required visitors", result.Percent(*p.Progress, 0, false), result.Grouped(*p.RequiredVisitors))
	if p.DaysRemaining != nil && *p.DaysRemaining > 0 {
		text += fmt.Sprintf("; about %s days remain", result.Grouped(*p.DaysRemaining))
	}
	return text + "."
}

// breakdown writes all values on one scale, and notes the conclusive ones.
func (t *reportTable) breakdown() {
	all := section{letters: t.letters()}
	var notes []string
	for i := range t.results.Breakdown {
		cell := &t.results.Breakdown[i]
		all.add(cell.Value, &cell.Cell, t.metric())
		if c := cell.Conclusion; c != nil && (c.VariationID != nil || c.Status == stats.StatusInvalid) {
			notes = append(notes, Printable(cell.Value+": "+c.Text))
		}
	}
	t.line("")
	t.line(t.paint(bold, "By "+string(*t.results.Dimension)))
	if len(all.rows) == 0 {
		t.line("")
		t.line("There are no values yet.")
		return
	}
	t.draw(&all)
	t.listed(notes)
}

// Escape sequences that replace the last frame on a terminal. Between holdFrame
// and showFrame the terminal draws nothing, which avoids flicker.
const (
	ClearScreen = "\x1b[2J"
	holdFrame   = "\x1b[?2026h"
	showFrame   = "\x1b[?2026l"
	toTheTop    = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// Frame returns the sequence that replaces the content of a terminal by a text
// and a footer. It cuts the text to the height of the terminal, because lines
// that scroll away could not be replaced by the next frame.
func Frame(text, foot string, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	const others = 3 // the footer, a blank line before it, and the line of the cursor
	if most := max(height-others, 1); len(lines) > most {
		foot = fmt.Sprintf("%d more lines: a taller terminal shows them · %s", len(lines)-most, foot)
		lines = lines[:most]
	}
	var b strings.Builder
	b.WriteString(holdFrame + toTheTop)
	for _, line := range append(lines, "", foot) {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearBelow + showFrame)
	return b.String()
}

// Printable replaces characters that could move the cursor of a terminal, since
// texts come from outside. It keeps line feeds, and the joiner within
// emoji.
func Printable(text string) string {
	const zeroWidthJoiner = '\u200d'
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != zeroWidthJoiner && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, strings.ReplaceAll(text, "\r", ""))
}
