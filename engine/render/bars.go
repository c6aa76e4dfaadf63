package render

import (
	"math"
	"strings"

	"lifthouse/engine/result"

	"github.com/rivo/uniseg"
)

// scale maps lifts to terminal columns.
type scale struct {
	least, most float64
	columns     int
}

// newScale returns a scale that covers zero, all lifts and the ends of their
// intervals. It returns false if there is no lift.
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
	least, most, ok := LiftRange(lifts)
	return scale{least, most, columns}, ok
}

// columnOf returns the column of a lift, from 0.
func (s scale) columnOf(x float64) int {
	at := math.Round((x - s.least) / (s.most - s.least) * float64(s.columns-1))
	return int(math.Max(0, math.Min(at, float64(s.columns-1))))
}

// writeBars writes the lift and the interval of each variation on a common scale.
func (t *table) writeBars() {
	indent := 0
	for _, label := range t.labels {
		indent = max(indent, uniseg.StringWidth(label))
	}
	indent += len(gap)
	s, ok := t.newScale(t.Width - indent)
	if !ok {
		return
	}
	t.writeLine("")
	for i, v := range t.answer.Variations {
		if c := v.Comparison; c != nil {
			bar := t.paintText(verdictColours[t.rowVerdict(i).verdict], strings.TrimRight(s.drawBar(c.Improvement), " "))
			t.writeLine(padText(t.labels[i], indent, true) + bar)
		}
	}
	line, labels := s.drawAxis()
	t.writeLine(padText("lift", indent, true) + line)
	t.writeLine(strings.Repeat(" ", indent) + labels)
}

// drawBar returns one lift as text: a dot for the lift, a line for its interval, and
// the line of zero lift. An arrow marks an unbounded end.
func (s scale) drawBar(e result.Effect) string {
	row := []rune(strings.Repeat(" ", s.columns))
	zero := s.columnOf(0)
	row[zero] = '│'
	if e.Interval != nil && (e.Interval[0] != nil || e.Interval[1] != nil) {
		from, to, left, right := 0, s.columns-1, '◀', '▶'
		if lower := e.Interval[0]; lower != nil {
			from, left = s.columnOf(*lower), '├'
		}
		if upper := e.Interval[1]; upper != nil {
			to, right = s.columnOf(*upper), '┤'
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
		row[s.columnOf(*e.Value)] = '●'
	}
	return string(row)
}

// tickWidth is the minimum distance of two ticks, in columns.
const tickWidth = 12

// drawAxis returns the line of the scale and the labels of its ticks.
func (s scale) drawAxis() (line, labels string) {
	ruler := []rune(strings.Repeat("─", s.columns))
	text := []rune(strings.Repeat(" ", s.columns))
	step := NiceStep((s.most - s.least) / math.Max(1, float64(s.columns/tickWidth)))
	decimals := StepDecimals(step)
	free := 0 // the first column without a label
	for k := math.Ceil(s.least/step) + 0; k*step <= s.most; k++ {
		at := s.columnOf(k * step)
		ruler[at] = '┴'
		if k == 0 {
			ruler[at] = '┼'
		}
		label := []rune(result.FormatPercent(k*step, decimals, k != 0))
		start := max(0, min(at-len(label)/2, s.columns-len(label)))
		if start >= free {
			copy(text[start:], label)
			free = start + len(label) + 1
		}
	}
	return string(ruler), string(text)
}
