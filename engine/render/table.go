// Package render writes answers of the engine as text for a terminal. Widths are
// measured in terminal columns, so that names in Chinese, Japanese or Korean
// and names with emoji are aligned.
package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/calculator"
	"lifthouse/engine/result"
	"lifthouse/stats"

	"github.com/rivo/uniseg"
)

// Screen describes where a table is written.
type Screen struct {
	Width, Height int  // in columns and lines
	Colour        bool // whether escape sequences may set colours
}

// The widths of tables in columns. Plain is for files and pipes; a terminal's
// width is clamped to the others.
const (
	PlainWidth = 80
	MinWidth   = 60
	MaxWidth   = 120
)

// Escape sequences of a terminal. A colour repeats what a word already says.
const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func (s Screen) paint(colour, text string) string {
	if !s.Colour || colour == "" {
		return text
	}
	return colour + text + plain
}

// none is shown for a value that cannot be computed.
const none = "–"

// table writes the answer of the calculator.
type table struct {
	Screen
	input     *calculator.Input
	answer    *calculator.Answer
	rowTitle  string   // of the labels; empty: variation
	labels    []string // one per variation
	converted []int64  // converted visitors per variation; nil: the column is omitted
	verdicts  []judged // one per variation; nil: those of the comparisons
	out       strings.Builder
}

// Comparison returns the calculator's answer as text: the conclusion, one row
// per variation, the lifts as bars, and notes.
func Comparison(input *calculator.Input, a *calculator.Answer, s Screen) string {
	t := &table{Screen: s, input: input, answer: a}
	for _, v := range a.Variations {
		label := strconv.FormatInt(v.ID, 10)
		if v.Control {
			label += " control"
		}
		t.labels = append(t.labels, label)
	}
	for _, line := range Wrapped(t.answer.Conclusion.Text, t.Width) {
		t.line(t.paint(bold, line))
	}
	t.line("")
	t.line(strings.Join(Wrapped(t.subtitle(), t.Width), "\n"))
	t.line("")
	t.rows()
	t.bars()
	t.notes()
	return t.out.String()
}

func (t *table) line(text string) { t.out.WriteString(strings.TrimRight(text, " ") + "\n") }

func (t *table) subtitle() string {
	what := "rate = converted / visitors, in %"
	if t.input.Metric == calculator.MetricMean {
		what = "mean per visitor, in the metric's unit"
	}
	var visitors int64
	for _, v := range t.answer.Variations {
		visitors += v.Visitors
	}
	return fmt.Sprintf("%s · %s, %d %% · %s visitors", what, t.answer.Methodology, t.answer.SignificanceLevel, result.Grouped(visitors))
}

// column is a column of a table.
type column struct {
	title   string
	left    bool     // whether cells are aligned to the left
	cells   []string // one per row
	colours []string // one per row; nil: no colours
}

// width returns the width of the widest cell, in terminal columns.
func (c column) width() int {
	width := uniseg.StringWidth(c.title)
	for _, cell := range c.cells {
		width = max(width, uniseg.StringWidth(cell))
	}
	return width
}

// gap separates two columns.
const gap = "  "

// rows writes one grid if the screen is wide enough. Otherwise it writes the
// observed values first and the comparison with control below.
func (t *table) rows() {
	observed, compared := t.observed(), t.compared()
	all := func(int) bool { return true }
	if columns := slices.Concat(observed, compared); t.fitting(columns) == len(columns) {
		t.grid(columns, all)
		return
	}
	t.grids(observed, all)
	t.line("")
	t.grids(compared, func(row int) bool { return t.answer.Variations[row].Comparison != nil })
}

// grids writes the columns in as many grids as the width of the screen requires.
func (t *table) grids(columns []column, shown func(row int) bool) {
	for first := true; len(columns) > 0; first = false {
		if !first {
			t.line("")
		}
		fitting := t.fitting(columns)
		t.grid(columns[:fitting], shown)
		columns = columns[fitting:]
	}
}

// fitting returns how many of the columns fit on the screen, at least 1.
func (t *table) fitting(columns []column) int {
	width := t.label().width()
	for i, c := range columns {
		if width += len(gap) + c.width(); width > t.Width {
			return max(i, 1)
		}
	}
	return len(columns)
}

func (t *table) label() column {
	return column{title: cmp.Or(t.rowTitle, "variation"), left: true, cells: t.labels}
}

func (t *table) grid(columns []column, shown func(row int) bool) {
	columns = append([]column{t.label()}, columns...)
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = padded(c.title, c.width(), c.left)
	}
	t.line(strings.Join(heads, gap))
	for row := range t.answer.Variations {
		if !shown(row) {
			continue
		}
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = padded(c.cells[row], c.width(), c.left)
			if c.colours != nil {
				cells[i] = t.paint(c.colours[row], cells[i])
			}
		}
		t.line(strings.Join(cells, gap))
	}
}

func padded(text string, width int, left bool) string {
	space := strings.Repeat(" ", max(width-uniseg.StringWidth(text), 0))
	if left {
		return text + space
	}
	return space + text
}

// intervalTitle returns the title of an interval column.
func (t *table) intervalTitle() string {
	return fmt.Sprintf("%d %% interval", t.answer.SignificanceLevel)
}

// observed returns the columns with the visitors and the metric of each variation.
func (t *table) observed() []column {
	visitors := column{title: "visitors"}
	value := column{title: "mean"}
	if t.input.Metric == calculator.MetricBinary {
		value.title = "rate"
	}
	interval := column{title: t.intervalTitle()}
	spread := math.Inf(1)
	for _, v := range t.answer.Variations {
		if v.Interval == nil && v.StandardError != nil {
			spread = narrower(spread, *v.StandardError)
		} else {
			spread = narrower(spread, result.HalfWidth(v.Value, v.Interval))
		}
	}
	write := t.value(spread)
	for _, v := range t.answer.Variations {
		visitors.cells = append(visitors.cells, result.Grouped(v.Visitors))
		value.cells = append(value.cells, optional(v.Value, write))
		interval.cells = append(interval.cells, result.RangeInWords(v.Interval, write))
	}
	if t.converted == nil {
		return []column{visitors, value, interval}
	}
	converted := column{title: "converted"}
	for _, n := range t.converted {
		converted.cells = append(converted.cells, result.Grouped(n))
	}
	return []column{visitors, converted, value, interval}
}

// value returns a function that formats a value: a rate in per cent, a mean as a
// number. The spread, half the narrowest interval, determines the decimals.
func (t *table) value(spread float64) func(float64) string {
	if t.input.Metric == calculator.MetricBinary {
		return func(x float64) string { return result.Percent(x, result.PercentDecimals(spread), false) }
	}
	return func(x float64) string { return result.Number(x, result.Decimals(spread)) }
}

func narrower(a, b float64) float64 {
	if b > 0 {
		return math.Min(a, b)
	}
	return a
}

// lift returns a function that formats a lift. The narrowest interval determines
// the decimals.
func (t *table) lift() func(float64) string {
	spread := math.Inf(1)
	for _, v := range t.answer.Variations {
		if v.Comparison != nil {
			spread = narrower(spread, result.HalfWidth(v.Comparison.Improvement.Value, v.Comparison.Improvement.Interval))
		}
	}
	return func(x float64) string { return result.Percent(x, result.PercentDecimals(spread), true) }
}

// compared returns the columns that compare each variation with control.
func (t *table) compared() []column {
	lift, interval := column{title: "lift"}, column{title: t.intervalTitle()}
	verdict := column{title: "verdict", left: true}
	evidence := t.evidence()
	write := t.lift()
	for i, v := range t.answer.Variations {
		c := v.Comparison
		if c == nil {
			lift.cells, interval.cells = append(lift.cells, ""), append(interval.cells, "")
			verdict.cells, verdict.colours = append(verdict.cells, ""), append(verdict.colours, "")
			continue
		}
		lift.cells = append(lift.cells, optional(c.Improvement.Value, write))
		interval.cells = append(interval.cells, result.RangeInWords(c.Improvement.Interval, write))
		shown := t.verdict(i)
		verdict.cells = append(verdict.cells, shown.words)
		verdict.colours = append(verdict.colours, verdictColours[shown.verdict])
	}
	return slices.Concat([]column{lift, interval}, evidence, []column{verdict})
}

// judged is a verdict as text, and the verdict that its colour shows.
type judged struct {
	words   string
	verdict stats.Verdict
}

// verdict returns the verdict of a row that is compared with control.
func (t *table) verdict(row int) judged {
	if t.verdicts != nil {
		return t.verdicts[row]
	}
	c := t.answer.Variations[row].Comparison
	return judged{c.VerdictInWords(), c.Judged()}
}

var verdictColours = map[stats.Verdict]string{stats.VerdictBetter: green, stats.VerdictWorse: red}

// evidence returns the columns with the p-values or the chance to beat control.
func (t *table) evidence() []column {
	chance := column{title: "chance to beat control"}
	fixed, look := column{title: "p"}, column{}
	for _, v := range t.answer.Variations {
		var chanceCell, fixedCell, lookCell string
		if v.Comparison != nil {
			if b := v.Comparison.Bayesian; b != nil {
				chanceCell = optional(b.ChanceToBeatControl, result.Chance)
			}
			if f := v.Comparison.Frequentist; f != nil {
				fixedCell = optional(f.AdjustedPValue, result.Probability)
				if f.Correction != stats.CorrectionNone {
					fixed.title = "adjusted p"
				}
			}
			if s := v.Comparison.Sequential; s != nil && s.Look != nil {
				look.title = fmt.Sprintf("p at look %d", *s.Look)
				lookCell = optional(s.PValue, result.Probability)
			}
		}
		chance.cells = append(chance.cells, chanceCell)
		fixed.cells = append(fixed.cells, fixedCell)
		look.cells = append(look.cells, lookCell)
	}
	columns := []column{fixed}
	if t.answer.Methodology == stats.MethodologyBayesian {
		columns[0] = chance
	}
	if look.title != "" {
		columns = append(columns, look)
	}
	return columns
}

func optional(x *float64, write func(float64) string) string {
	if x == nil {
		return none
	}
	return write(*x)
}
