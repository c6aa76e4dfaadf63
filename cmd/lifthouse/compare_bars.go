package main

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"lifthouse/engine"
)

// scale places lifts on a row of so many columns.
type scale struct {
	least, most float64
	columns     int
}

// margin of the scale is left free at either side, where arrows point.
const margin = 0.04

// newScale spans zero, all observed lifts and all ends of their intervals, and
// is false where there is nothing to draw.
func (t *table) newScale(columns int) (scale, bool) {
	var lifts []float64
	for _, v := range t.answer.Variations {
		if v.Comparison == nil {
			continue
		}
		e := v.Comparison.Improvement
		ends := []*float64{e.Value}
		if e.Interval != nil {
			ends = append(ends, e.Interval[0], e.Interval[1])
		}
		for _, x := range ends {
			if x != nil {
				lifts = append(lifts, *x)
			}
		}
	}
	if len(lifts) == 0 {
		return scale{}, false
	}
	s := scale{least: min(0, slices.Min(lifts)), most: max(0, slices.Max(lifts)), columns: columns}
	const smallest = 1e-12 // no lift that a scale is worth drawing for
	if s.most-s.least < smallest {
		s.least, s.most = -0.01, 0.01
	}
	// Beyond this nothing but the sign can be drawn, and the span overflows.
	const largest = 1e300
	s.least, s.most = max(s.least, -largest), min(s.most, largest)
	space := margin * (s.most - s.least)
	s.least, s.most = s.least-space, s.most+space
	return s, true
}

// column returns where a lift is drawn.
func (s scale) column(x float64) int {
	at := math.Round((x - s.least) / (s.most - s.least) * float64(s.columns-1))
	return int(math.Max(0, math.Min(at, float64(s.columns-1))))
}

// bars draws the lift of each variation with its interval on one scale.
func (t *table) bars() {
	indent := 0
	for _, label := range t.labels {
		indent = max(indent, utf8.RuneCountInString(label))
	}
	indent += len(gap)
	s, ok := t.newScale(t.width - indent)
	if !ok {
		return
	}
	t.line("")
	for i, v := range t.answer.Variations {
		if c := v.Comparison; c != nil {
			bar := t.paint(verdictColours[c.Verdict], strings.TrimRight(s.bar(c.Improvement), " "))
			t.line(padded(t.labels[i], indent, true) + bar)
		}
	}
	line, labels := s.axis()
	t.line(padded("lift", indent, true) + line)
	t.line(strings.Repeat(" ", indent) + labels)
}

// bar draws one lift: its value, its interval, and the line of no lift. An
// unbounded end is an arrow at the edge.
func (s scale) bar(e engine.Effect) string {
	row := []rune(strings.Repeat(" ", s.columns))
	zero := s.column(0)
	row[zero] = '│'
	if e.Interval != nil && (e.Interval[0] != nil || e.Interval[1] != nil) {
		from, to, left, right := 0, s.columns-1, '◀', '▶'
		if lower := e.Interval[0]; lower != nil {
			from, left = s.column(*lower), '├'
		}
		if upper := e.Interval[1]; upper != nil {
			to, right = s.column(*upper), '┤'
		}
		for i := from; i <= to; i++ {
			row[i] = '─'
		}
		if from < zero && zero < to {
			row[zero] = '┼'
		}
		row[from], row[to] = left, right
	}
	if e.Value != nil {
		row[s.column(*e.Value)] = '●'
	}
	return string(row)
}

// tickWidth is the room that a tick's label takes at least.
const tickWidth = 12

// axis draws the scale's line and, below it, the labels of its ticks.
func (s scale) axis() (line, labels string) {
	ruler := []rune(strings.Repeat("─", s.columns))
	text := []rune(strings.Repeat(" ", s.columns))
	step := niceStep((s.most - s.least) / math.Max(1, float64(s.columns/tickWidth)))
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9))-2)
	free := 0 // the first column that a label may take
	for k := math.Ceil(s.least/step) + 0; k*step <= s.most; k++ {
		at := s.column(k * step)
		ruler[at] = '┴'
		if k == 0 {
			ruler[at] = '┼'
		}
		label := []rune(engine.Percent(k*step, min(decimals, 9), k != 0))
		start := max(0, min(at-len(label)/2, s.columns-len(label)))
		if start >= free {
			copy(text[start:], label)
			free = start + len(label) + 1
		}
	}
	return string(ruler), string(text)
}

// niceStep returns the least of 1, 2 and 5 times a power of ten from x on.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= x {
			return times * power
		}
	}
	return 10 * power
}
