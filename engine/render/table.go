// Package render writes answers of the engine: as tables for a terminal, as CSV, and as a forest plot in SVG. It
// measures widths in terminal columns, which aligns names in Chinese, Japanese or Korean and names with emoji.
package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/calculator"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/stats"

	"github.com/rivo/uniseg"
)

// Screen describes where a table is written.
type Screen struct {
	Width  int  // in columns
	Colour bool // whether escape sequences may set colours
}

// The widths of tables in columns. Plain is for files and pipes; a terminal's width is clamped to the others.
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

type table struct {
	Screen
	rate        bool // the metric is a rate
	methodology stats.Methodology
	level       int // of intervals, in per cent
	out         strings.Builder
}

// tableRow is a variation.
type tableRow struct {
	label     string
	visitors  int64
	converted string // converted visitors; empty: the column is omitted
	result.Estimate
	Comparison *result.Comparison // nil: control
	verdict    judged
}

// judged is a verdict as text, and the verdict that its colour shows.
type judged struct {
	words   string
	verdict stats.Verdict
}

// Comparison returns the calculator's answer as text: the conclusion, and a table with one row per variation.
func Comparison(a *calculator.Answer, s Screen) string {
	t := &table{
		Screen: s, rate: a.Metric == calculator.MetricBinary, methodology: a.Methodology, level: a.SignificanceLevel,
	}
	var rows []tableRow
	for _, v := range a.Variations {
		row := tableRow{
			label: strconv.FormatInt(v.ID, 10), visitors: v.Visitors, Estimate: v.Estimate, Comparison: v.Comparison,
		}
		if v.Control {
			row.label += " control"
		}
		if v.Comparison != nil {
			row.verdict = judged{v.Comparison.VerdictInWords(), v.Comparison.ConclusiveVerdict()}
		}
		rows = append(rows, row)
	}
	t.writeParagraph(bold, a.Conclusion.Text)
	t.writeLine("")
	t.writeRows(rows)
	for i, sentence := range a.Worth.InWords() {
		if i == 0 {
			t.writeLine("")
		}
		t.writeParagraph("", sentence)
	}
	return t.out.String()
}

func (t *table) writeLine(text string) { t.out.WriteString(strings.TrimRight(text, " ") + "\n") }

func (t *table) writeParagraph(colour, text string) {
	for _, line := range wrapText(text, t.Width) {
		t.writeLine(t.paintText(colour, line))
	}
}

type column struct {
	title   string
	left    bool     // whether cells are aligned to the left
	cells   []string // one per row
	colours []string // one per row; nil: no colours
}

// newColumns returns columns with titles. The cells below a title that begins with < are aligned to the left.
func newColumns(titles ...string) []column {
	columns := make([]column, len(titles))
	for i, title := range titles {
		columns[i].title, columns[i].left = strings.CutPrefix(title, "<")
	}
	return columns
}

func addCells(columns []column, cells ...string) {
	for i := range columns {
		columns[i].cells = append(columns[i].cells, cells[i])
	}
}

// textWidth returns the width of the widest cell, in terminal columns.
func (c column) textWidth() int {
	width := uniseg.StringWidth(c.title)
	for _, cell := range c.cells {
		width = max(width, uniseg.StringWidth(cell))
	}
	return width
}

const gap = "  "

// writeRows writes one grid if the screen is wide enough. Otherwise it writes the observed values first and the
// comparison with control below.
func (t *table) writeRows(rows []tableRow) {
	label := labelColumn(rows)
	observed := t.observedColumns(rows)
	compared := t.comparedColumns(rows)
	if columns := slices.Concat(observed, compared); t.countFitting(label, columns) == len(columns) {
		t.writeGrids(label, columns, allRows)
		return
	}
	t.writeGrids(label, observed, allRows)
	t.writeLine("")
	t.writeGrids(label, compared, func(row int) bool { return rows[row].Comparison != nil })
}

func labelColumn(rows []tableRow) column {
	label := column{title: "variation", left: true}
	for _, r := range rows {
		label.cells = append(label.cells, r.label)
	}
	return label
}

// writeGrids writes the columns in as many grids as the width of the screen requires.
func (t *table) writeGrids(label column, columns []column, shown func(row int) bool) {
	for first := true; len(columns) > 0; first = false {
		if !first {
			t.writeLine("")
		}
		fitting := t.countFitting(label, columns)
		t.out.WriteString(t.gridText(append([]column{label}, columns[:fitting]...), shown))
		columns = columns[fitting:]
	}
}

// countFitting returns how many of the columns fit on the screen beside the labels, at least 1.
func (t *table) countFitting(label column, columns []column) int {
	width := label.textWidth()
	for i, c := range columns {
		width += len(gap) + c.textWidth()
		if width > t.Width {
			return max(i, 1)
		}
	}
	return len(columns)
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

// observedColumns returns the columns with the visitors and the metric of each variation.
func (t *table) observedColumns(rows []tableRow) []column {
	name := "mean"
	if t.rate {
		name = "rate"
	}
	columns := newColumns("visitors", "converted", name, t.intervalTitle())
	for _, r := range rows {
		write := func(x float64) string { return wording.FormatValue(x, r.Interval, t.rate) }
		addCells(columns, wording.FormatCount(r.visitors), r.converted, formatOptional(r.Value, write),
			wording.RangeInWords(r.Interval, write))
	}
	if len(rows) == 0 || rows[0].converted == "" {
		columns = slices.Delete(columns, 1, 2)
	}
	return columns
}

func (t *table) intervalTitle() string { return fmt.Sprintf("%d %% interval", t.level) }

// comparedColumns returns the columns with the lift, the evidence and the verdict of each variation. A column with the
// p-value of the look is omitted if there is none.
func (t *table) comparedColumns(rows []tableRow) []column {
	look := 0
	for _, r := range rows {
		if number := lookOf(r.Comparison); number != nil {
			look = *number
		}
	}
	columns := newColumns("lift", t.intervalTitle(), t.evidenceTitle(rows), fmt.Sprintf("p at look %d", look),
		"<verdict")
	for _, r := range rows {
		addCells(columns, append(comparedCells(r.Comparison), r.verdict.words)...)
		columns[4].colours = append(columns[4].colours, verdictColours[r.verdict.verdict])
	}
	if look == 0 {
		columns = slices.Delete(columns, 3, 4)
	}
	return columns
}

// lookOf returns the number of the look by which a comparison is judged; nil: there is none.
func lookOf(c *result.Comparison) *int {
	if c == nil || c.Sequential == nil || c.Bayesian != nil {
		return nil
	}
	return c.Sequential.Look
}

// evidenceTitle returns what the evidence of comparisons is.
func (t *table) evidenceTitle(rows []tableRow) string {
	if t.methodology == stats.MethodologyBayesian {
		return "chance to beat control"
	}
	isCorrected := func(r tableRow) bool {
		return r.Comparison != nil && r.Comparison.Frequentist != nil &&
			r.Comparison.Frequentist.Correction != stats.CorrectionNone
	}
	if slices.ContainsFunc(rows, isCorrected) {
		return "adjusted p"
	}
	return "p"
}

// comparedCells returns the lift of a comparison, its interval, its evidence and its p-value at the look. Those of
// control, whose comparison is nil, are empty.
func comparedCells(c *result.Comparison) []string {
	if c == nil {
		return make([]string, 4)
	}
	write := func(x float64) string { return wording.FormatLift(x, c.Improvement.Interval) }
	evidence := ""
	if c.Bayesian != nil {
		evidence = formatOptional(c.Bayesian.ChanceToBeatControl, wording.FormatChance)
	}
	if c.Frequentist != nil {
		evidence = formatOptional(c.Frequentist.AdjustedPValue, wording.FormatPValue)
	}
	atLook := ""
	if c.Sequential != nil && c.Sequential.Look != nil {
		atLook = formatOptional(c.Sequential.PValue, wording.FormatPValue)
	}
	return []string{
		formatOptional(c.Improvement.Value, write),
		wording.RangeInWords(c.Improvement.Interval, write),
		evidence,
		atLook,
	}
}

var verdictColours = map[stats.Verdict]string{stats.VerdictBetter: green, stats.VerdictWorse: red}

func formatOptional(x *float64, write func(float64) string) string {
	if x == nil {
		return none
	}
	return write(*x)
}

// wrapText breaks a text into lines of at most width terminal columns. It keeps a number and its percent sign together.
// A longer word gets its own line.
func wrapText(text string, width int) []string {
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

// shortenText cuts a text to a width in terminal columns. An ellipsis replaces the rest.
func shortenText(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	end, used := 0, 1 // 1 for the ellipsis
	characters := uniseg.NewGraphemes(text)
	for characters.Next() {
		used += characters.Width()
		if used > width {
			break
		}
		_, end = characters.Positions()
	}
	return text[:end] + "…"
}
