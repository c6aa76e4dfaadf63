package main

import (
	"fmt"
	"strings"

	"lifthouse/engine"
	"lifthouse/stats"
)

// letters is how much of a variation's name, or of a value, fits beside the
// widest interval.
func (s screen) letters() int {
	const most, interval = 22, 28
	return min((s.width-interval)/2, most)
}

// reportTable is a report as a person reads it.
type reportTable struct {
	*table
	results *engine.Results
}

// drawReport writes the conclusion, the variations with their bars, what is to
// be known beside them, and a further table of the dimension's values.
func drawReport(r *engine.Results, s screen) string {
	t := &reportTable{&table{screen: s}, r}
	whole := section{letters: t.letters()}
	whole.add("", &r.Cell, t.metric())
	if r.Conclusion != nil {
		t.paragraph(bold, harmless(r.Conclusion.Text))
	} else {
		t.paragraph(bold, "What the variations gathered; nothing is compared.")
	}
	t.line("")
	t.paragraph("", harmless(r.Subtitle()))
	t.draw(&whole)
	t.notes()
	if r.Dimension != nil {
		t.breakdown()
	}
	return t.out.String()
}

func (t *reportTable) paragraph(colour, text string) {
	for _, line := range engine.Wrapped(text, t.width) {
		t.line(t.paint(colour, line))
	}
}

// metric is the one that is compared, or what a widget is best known by.
func (t *reportTable) metric() engine.Metric {
	if t.results.CompareMetric == nil {
		return engine.GoalConversionRate
	}
	return *t.results.CompareMetric
}

// section are rows that are drawn together.
type section struct {
	letters   int // of a name
	labels    []string
	converted []int64
	rows      []engine.AnswerVariation
}

// add puts the variations of a cell into the section.
func (s *section) add(value string, c *engine.Cell, metric engine.Metric) {
	for i := range c.Variations {
		v := &c.Variations[i]
		label := engine.Shortened(harmless(v.Name), s.letters)
		if value != "" {
			label = engine.Shortened(harmless(value), s.letters) + " · " + label
		}
		s.labels, s.converted = append(s.labels, label), append(s.converted, v.ConvertedVisitors)
		s.rows = append(s.rows, engine.AnswerVariation{ID: v.ID, Control: v.Control, Visitors: v.Visitors, Estimate: v.Metrics.Of(metric), Comparison: v.Comparison})
	}
}

// draw writes a section as the calculator writes its answer.
func (t *reportTable) draw(s *section) {
	metric := engine.MetricMean
	if engine.IsRate(t.metric()) {
		metric = engine.MetricBinary
	}
	t.input = &engine.CalculatorInput{Metric: metric}
	t.answer = &engine.Answer{Methodology: stats.Methodology(t.results.Methodology), SignificanceLevel: t.results.SignificanceLevel, Variations: s.rows}
	t.labels, t.converted = s.labels, s.converted
	t.line("")
	if t.results.CompareMetric == nil {
		t.grids(t.observed(), func(int) bool { return true })
		return
	}
	t.rows()
	t.bars()
}

// notes tell of the sections' reasons, of checks that warn, and of the sample.
func (t *reportTable) notes() {
	notes := t.reasons()
	if t.results.CompareMetric != nil && t.results.Methodology == string(stats.MethodologyFrequentist) {
		notes = append(notes, "p holds for one look at the planned end, the always-valid p however often one looks.")
	}
	for _, warning := range t.results.Checks.Warnings {
		notes = append(notes, "Warning: "+harmless(warning.Message))
	}
	if text := t.progress(); text != "" {
		notes = append(notes, text)
	}
	if n := len(t.results.Series); n > 0 {
		notes = append(notes, fmt.Sprintf("The series has %d points: --csv and --json write them.", n))
	}
	t.listed(notes)
}

func (t *reportTable) progress() string {
	p := t.results.Power
	if p == nil || p.RequiredVisitors == nil || p.Progress == nil {
		return ""
	}
	text := fmt.Sprintf("Sample: %s visitors are needed; these are %s of them", engine.Grouped(*p.RequiredVisitors), engine.Percent(*p.Progress, 0, false))
	if p.DaysRemaining != nil && *p.DaysRemaining > 0 {
		text += fmt.Sprintf(", and the rest takes about %s days", engine.Grouped(*p.DaysRemaining))
	}
	return text + "."
}

// breakdown draws all values on one scale, and says which of them decide.
func (t *reportTable) breakdown() {
	all := section{letters: t.letters()}
	var notes []string
	for i := range t.results.Breakdown {
		cell := &t.results.Breakdown[i]
		all.add(cell.Value, &cell.Cell, t.metric())
		if c := cell.Conclusion; c != nil && (c.VariationID != nil || c.Status == stats.StatusInvalid) {
			notes = append(notes, harmless(cell.Value+": "+c.Text))
		}
	}
	t.line("")
	t.line(t.paint(bold, "By "+string(*t.results.Dimension)))
	if len(all.rows) == 0 {
		t.line("")
		t.line("There is no value yet.")
		return
	}
	t.draw(&all)
	t.listed(notes)
}

// The codes by which a terminal draws a frame over the last one: what is held
// back until it is whole does not flicker.
const (
	clearScreen = "\x1b[2J"
	holdFrame   = "\x1b[?2026h"
	showFrame   = "\x1b[?2026l"
	toTheTop    = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// frame draws a text and its foot over what stands on a terminal, cut to its
// height: what scrolls away could not be drawn over.
func frame(text, foot string, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	const others = 3 // the foot, a line before it, and the one that the cursor is on
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
