package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lifthouse/engine"
	"lifthouse/stats"

	"golang.org/x/term"
)

// screen is what a table is drawn on.
type screen struct {
	width, height int
	colour        bool
}

const (
	plainWidth  = 80 // where there is no terminal
	plainHeight = 24
	narrowest   = 60
	widest      = 120
)

func (p *program) screen() screen {
	if !isTerminal(p.out) {
		return screen{width: plainWidth}
	}
	// https://no-color.org
	s := screen{width: plainWidth, height: plainHeight, colour: p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"}
	raw, err := p.out.SyscallConn() // Fd would make the file blocking
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) {
		if width, height, err := term.GetSize(int(fd)); err == nil && width > 0 {
			s.width, s.height = min(max(width, narrowest), widest), height
		}
	})
	return s
}

// The colours of a terminal, which say nothing that the words do not.
const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func (s screen) paint(colour, text string) string {
	if !s.colour || colour == "" {
		return text
	}
	return colour + text + plain
}

// none stands for a number that cannot be had.
const none = "–"

// table is an answer as a person reads it.
type table struct {
	screen
	input  *engine.CalculatorInput
	answer *engine.Answer
	labels []string // of the variations
	// converted are their visitors who did; nil: not shown.
	converted []int64
	out       strings.Builder
}

func newTable(q *engine.CalculatorInput, a *engine.Answer, s screen) *table {
	t := &table{screen: s, input: q, answer: a}
	for _, v := range a.Variations {
		label := strconv.FormatInt(v.ID, 10)
		if v.Control {
			label += " control"
		}
		t.labels = append(t.labels, label)
	}
	return t
}

// String draws the conclusion, a row for each variation, the lifts as bars, and
// what a reader should know beside the numbers.
func (t *table) String() string {
	t.out.Reset()
	for _, line := range engine.Wrapped(t.answer.Conclusion.Text, t.width) {
		t.line(t.paint(bold, line))
	}
	t.line("")
	t.line(strings.Join(engine.Wrapped(t.subtitle(), t.width), "\n"))
	t.line("")
	t.rows()
	t.bars()
	t.notes()
	return t.out.String()
}

func (t *table) line(text string) { t.out.WriteString(strings.TrimRight(text, " ") + "\n") }

func (t *table) subtitle() string {
	what := "rate = converted / visitors, in %"
	if t.input.Metric == engine.MetricMean {
		what = "mean per visitor, in the metric's unit"
	}
	var visitors int64
	for _, v := range t.answer.Variations {
		visitors += v.Visitors
	}
	return fmt.Sprintf("%s · %s, %d %% · %s visitors", what, t.answer.Methodology, t.answer.SignificanceLevel, engine.Grouped(visitors))
}

// column is one of a table's; its cells are one for each row.
type column struct {
	title   string
	left    bool // aligned
	cells   []string
	colours []string
}

func (c column) width() int {
	width := utf8.RuneCountInString(c.title)
	for _, cell := range c.cells {
		width = max(width, utf8.RuneCountInString(cell))
	}
	return width
}

// gap is between two columns.
const gap = "  "

// rows writes one grid where the screen is wide enough, else those of what was
// observed and those of how that compares with control.
func (t *table) rows() {
	observed, compared := t.observed(), t.compared()
	everyone := func(int) bool { return true }
	if all := slices.Concat(observed, compared); t.fitting(all) == len(all) {
		t.grid(all, everyone)
		return
	}
	t.grids(observed, everyone)
	t.line("")
	t.grids(compared, func(row int) bool { return t.answer.Variations[row].Comparison != nil })
}

// grids writes as many grids as the columns take.
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

// fitting returns how many of the columns, at least one, fit on the screen.
func (t *table) fitting(columns []column) int {
	width := t.label().width()
	for i, c := range columns {
		if width += len(gap) + c.width(); width > t.width {
			return max(i, 1)
		}
	}
	return len(columns)
}

func (t *table) label() column { return column{title: "variation", left: true, cells: t.labels} }

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
	space := strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
	if left {
		return text + space
	}
	return space + text
}

// intervalTitle heads the columns of intervals.
func (t *table) intervalTitle() string {
	return fmt.Sprintf("%d %% interval", t.answer.SignificanceLevel)
}

// observed are the columns of what was seen of each variation.
func (t *table) observed() []column {
	visitors := column{title: "visitors"}
	value := column{title: "mean"}
	if t.input.Metric == engine.MetricBinary {
		value.title = "rate"
	}
	interval := column{title: t.intervalTitle()}
	spread := math.Inf(1)
	for _, v := range t.answer.Variations {
		if v.Interval == nil && v.StandardError != nil {
			spread = narrower(spread, *v.StandardError)
		} else {
			spread = narrower(spread, engine.HalfWidth(v.Value, v.Interval))
		}
	}
	write := t.value(spread)
	for _, v := range t.answer.Variations {
		visitors.cells = append(visitors.cells, engine.Grouped(v.Visitors))
		value.cells = append(value.cells, optional(v.Value, write))
		interval.cells = append(interval.cells, engine.RangeInWords(v.Interval, write))
	}
	if t.converted == nil {
		return []column{visitors, value, interval}
	}
	converted := column{title: "converted"}
	for _, n := range t.converted {
		converted.cells = append(converted.cells, engine.Grouped(n))
	}
	return []column{visitors, converted, value, interval}
}

// value writes rates in per cent and means as they are, with the decimals that
// the spread deserves.
func (t *table) value(spread float64) func(float64) string {
	if t.input.Metric == engine.MetricBinary {
		return func(x float64) string { return engine.Percent(x, engine.PercentDecimals(spread), false) }
	}
	return func(x float64) string { return engine.Number(x, engine.Decimals(spread)) }
}

func narrower(a, b float64) float64 {
	if b > 0 {
		return math.Min(a, b)
	}
	return a
}

// lift writes lifts with the decimals that the narrowest interval deserves.
func (t *table) lift() func(float64) string {
	spread := math.Inf(1)
	for _, v := range t.answer.Variations {
		if v.Comparison != nil {
			spread = narrower(spread, engine.HalfWidth(v.Comparison.Improvement.Value, v.Comparison.Improvement.Interval))
		}
	}
	return func(x float64) string { return engine.Percent(x, engine.PercentDecimals(spread), true) }
}

// compared are the columns of how each variation compares with control.
func (t *table) compared() []column {
	lift, interval := column{title: "lift"}, column{title: t.intervalTitle()}
	verdict := column{title: "verdict", left: true}
	evidence := t.evidence()
	write := t.lift()
	for _, v := range t.answer.Variations {
		c := v.Comparison
		if c == nil {
			lift.cells, interval.cells = append(lift.cells, ""), append(interval.cells, "")
			verdict.cells, verdict.colours = append(verdict.cells, ""), append(verdict.colours, "")
			continue
		}
		lift.cells = append(lift.cells, optional(c.Improvement.Value, write))
		interval.cells = append(interval.cells, engine.RangeInWords(c.Improvement.Interval, write))
		verdict.cells = append(verdict.cells, c.VerdictInWords())
		verdict.colours = append(verdict.colours, verdictColours[c.Judged()])
	}
	return slices.Concat([]column{lift, interval}, evidence, []column{verdict})
}

var verdictColours = map[stats.Verdict]string{stats.VerdictBetter: green, stats.VerdictWorse: red}

// evidence are the columns by which a verdict is given.
func (t *table) evidence() []column {
	chance := column{title: "chance to beat control"}
	fixed, always := column{title: "p"}, column{title: "always-valid p"}
	for _, v := range t.answer.Variations {
		var chanceCell, fixedCell, alwaysCell string
		if v.Comparison != nil {
			if b := v.Comparison.Bayesian; b != nil {
				chanceCell = optional(b.ChanceToBeatControl, engine.Chance)
			}
			if f := v.Comparison.Frequentist; f != nil {
				fixedCell = optional(f.AdjustedPValue, engine.Probability)
				if f.Correction != stats.CorrectionNone {
					fixed.title = "adjusted p"
				}
			}
			if s := v.Comparison.Sequential; s != nil {
				alwaysCell = optional(s.PValue, engine.Probability)
			}
		}
		chance.cells = append(chance.cells, chanceCell)
		fixed.cells = append(fixed.cells, fixedCell)
		always.cells = append(always.cells, alwaysCell)
	}
	if t.answer.Methodology == stats.MethodologyBayesian {
		return []column{chance}
	}
	return []column{fixed, always}
}

func optional(x *float64, write func(float64) string) string {
	if x == nil {
		return none
	}
	return write(*x)
}
