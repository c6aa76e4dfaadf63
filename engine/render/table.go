// Package render writes answers of the engine: as tables for a terminal, as CSV, and as a forest plot in SVG.
// It measures widths in terminal columns, which aligns names in Chinese, Japanese or Korean and names with emoji.
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

func (s Screen) paintText(colour, text string) string {
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

// Comparison returns the calculator's answer as text: the conclusion, and a table with one row per variation.
func Comparison(input *calculator.Input, a *calculator.Answer, s Screen) string {
	t := &table{Screen: s, input: input, answer: a}
	for _, v := range a.Variations {
		label := strconv.FormatInt(v.ID, 10)
		if v.Control {
			label += " control"
		}
		t.labels = append(t.labels, label)
	}
	for _, line := range WrapText(t.answer.Conclusion.Text, t.Width) {
		t.writeLine(t.paintText(bold, line))
	}
	t.writeLine("")
	t.writeRows()
	return t.out.String()
}

func (t *table) writeLine(text string) { t.out.WriteString(strings.TrimRight(text, " ") + "\n") }

// column is a column of a table.
type column struct {
	title   string
	left    bool     // whether cells are aligned to the left
	cells   []string // one per row
	colours []string // one per row; nil: no colours
}

// textWidth returns the width of the widest cell, in terminal columns.
func (c column) textWidth() int {
	width := uniseg.StringWidth(c.title)
	for _, cell := range c.cells {
		width = max(width, uniseg.StringWidth(cell))
	}
	return width
}

// gap separates two columns.
const gap = "  "

// writeRows writes one grid if the screen is wide enough. Otherwise it writes the
// observed values first and the comparison with control below.
func (t *table) writeRows() {
	observed, compared := t.observedColumns(), t.comparedColumns()
	if columns := slices.Concat(observed, compared); t.countFitting(columns) == len(columns) {
		t.writeGrid(columns, allRows)
		return
	}
	t.writeGrids(observed, allRows)
	t.writeLine("")
	t.writeGrids(compared, func(row int) bool { return t.answer.Variations[row].Comparison != nil })
}

// writeGrids writes the columns in as many grids as the width of the screen requires.
func (t *table) writeGrids(columns []column, shown func(row int) bool) {
	for first := true; len(columns) > 0; first = false {
		if !first {
			t.writeLine("")
		}
		fitting := t.countFitting(columns)
		t.writeGrid(columns[:fitting], shown)
		columns = columns[fitting:]
	}
}

// countFitting returns how many of the columns fit on the screen, at least 1.
func (t *table) countFitting(columns []column) int {
	width := t.labelColumn().textWidth()
	for i, c := range columns {
		if width += len(gap) + c.textWidth(); width > t.Width {
			return max(i, 1)
		}
	}
	return len(columns)
}

func (t *table) labelColumn() column {
	return column{title: cmp.Or(t.rowTitle, "variation"), left: true, cells: t.labels}
}

func (t *table) writeGrid(columns []column, shown func(row int) bool) {
	t.out.WriteString(t.gridText(append([]column{t.labelColumn()}, columns...), shown))
}

// gridText returns the columns with their titles and the rows that are shown.
func (s Screen) gridText(columns []column, shown func(row int) bool) string {
	var text strings.Builder
	addRow := func(cell func(c *column) string) {
		cells := make([]string, len(columns))
		for i := range columns {
			cells[i] = cell(&columns[i])
		}
		text.WriteString(strings.TrimRight(strings.Join(cells, gap), " ") + "\n")
	}
	addRow(func(c *column) string { return padText(c.title, c.textWidth(), c.left) })
	for row := range columns[0].cells {
		if shown(row) {
			addRow(func(c *column) string {
				cell := padText(c.cells[row], c.textWidth(), c.left)
				if c.colours != nil {
					cell = s.paintText(c.colours[row], cell)
				}
				return cell
			})
		}
	}
	return text.String()
}

func allRows(int) bool { return true }

func padText(text string, width int, left bool) string {
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

// observedColumns returns the columns with the visitors and the metric of each variation.
func (t *table) observedColumns() []column {
	visitors := column{title: "visitors"}
	value := column{title: "mean"}
	if t.input.Metric == calculator.MetricBinary {
		value.title = "rate"
	}
	interval := column{title: t.intervalTitle()}
	spread := math.Inf(1)
	for _, v := range t.answer.Variations {
		if v.Interval == nil && v.StandardError != nil {
			spread = narrowerSpread(spread, *v.StandardError)
		} else {
			spread = narrowerSpread(spread, result.HalfWidth(v.Value, v.Interval))
		}
	}
	write := valueFormatter(t.input.Metric == calculator.MetricBinary, spread)
	for _, v := range t.answer.Variations {
		visitors.cells = append(visitors.cells, result.FormatCount(v.Visitors))
		value.cells = append(value.cells, formatOptional(v.Value, write))
		interval.cells = append(interval.cells, result.RangeInWords(v.Interval, write))
	}
	if t.converted == nil {
		return []column{visitors, value, interval}
	}
	converted := column{title: "converted"}
	for _, n := range t.converted {
		converted.cells = append(converted.cells, result.FormatCount(n))
	}
	return []column{visitors, converted, value, interval}
}

// valueFormatter returns a function that formats a value: a rate in per cent, a mean as a
// number. The spread, half of an interval, determines the decimals.
func valueFormatter(rate bool, spread float64) func(float64) string {
	if rate {
		return func(x float64) string { return result.FormatPercent(x, result.PercentDecimals(spread), false) }
	}
	return func(x float64) string { return result.FormatNumber(x, result.SpreadDecimals(spread)) }
}

func narrowerSpread(a, b float64) float64 {
	if b > 0 {
		return math.Min(a, b)
	}
	return a
}

// comparedColumns returns the columns that compare each variation with control.
func (t *table) comparedColumns() []column {
	lift, interval := column{title: "lift"}, column{title: t.intervalTitle()}
	verdict := column{title: "verdict", left: true}
	evidence := t.evidenceColumns()
	spread := math.Inf(1) // the narrowest interval determines the decimals
	for _, v := range t.answer.Variations {
		if v.Comparison != nil {
			spread = narrowerSpread(spread, result.HalfWidth(v.Comparison.Improvement.Value, v.Comparison.Improvement.Interval))
		}
	}
	write := func(x float64) string { return result.FormatPercent(x, result.PercentDecimals(spread), true) }
	for i, v := range t.answer.Variations {
		c := v.Comparison
		if c == nil {
			lift.cells, interval.cells = append(lift.cells, ""), append(interval.cells, "")
			verdict.cells, verdict.colours = append(verdict.cells, ""), append(verdict.colours, "")
			continue
		}
		lift.cells = append(lift.cells, formatOptional(c.Improvement.Value, write))
		interval.cells = append(interval.cells, result.RangeInWords(c.Improvement.Interval, write))
		shown := judged{c.VerdictInWords(), c.ConclusiveVerdict()}
		if t.verdicts != nil {
			shown = t.verdicts[i]
		}
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

var verdictColours = map[stats.Verdict]string{stats.VerdictBetter: green, stats.VerdictWorse: red}

// evidenceColumns returns the columns with the p-values or the chance to beat control.
func (t *table) evidenceColumns() []column {
	chance := column{title: "chance to beat control"}
	fixed, look := column{title: "p"}, column{}
	for _, v := range t.answer.Variations {
		var chanceCell, fixedCell, lookCell string
		if v.Comparison != nil {
			if b := v.Comparison.Bayesian; b != nil {
				chanceCell = formatOptional(b.ChanceToBeatControl, result.FormatChance)
			}
			if f := v.Comparison.Frequentist; f != nil {
				fixedCell = formatOptional(f.AdjustedPValue, result.FormatPValue)
				if f.Correction != stats.CorrectionNone {
					fixed.title = "adjusted p"
				}
			}
			if s := v.Comparison.Sequential; s != nil && s.Look != nil {
				look.title = fmt.Sprintf("p at look %d", *s.Look)
				lookCell = formatOptional(s.PValue, result.FormatPValue)
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

func formatOptional(x *float64, write func(float64) string) string {
	if x == nil {
		return none
	}
	return write(*x)
}

// WrapText breaks a text into lines of at most width terminal columns. It keeps a
// number and its percent sign together. A longer word gets its own line.
func WrapText(text string, width int) []string {
	const held = "\x00%"
	text = strings.ReplaceAll(text, " %", held)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = strings.ReplaceAll(word, held, " %")
		if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// ShortenText cuts a text to a width in terminal columns. An ellipsis replaces the
// rest.
func ShortenText(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	end, used := 0, 1 // 1 for the ellipsis
	characters := uniseg.NewGraphemes(text)
	for characters.Next() {
		if used += characters.Width(); used > width {
			break
		}
		_, end = characters.Positions()
	}
	return text[:end] + "…"
}
