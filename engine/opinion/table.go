package opinion

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/effects"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// The limits of a table. An opinion on a thousand tests takes one second and a half, of the most treatments six, and in
// a browser twice as long.
const (
	maxTreatments   = 2000
	maxTests        = 1000
	maxBytes        = 5 << 20
	leastVariations = 2
	maxVariations   = 21 // control and the 20 that a campaign may have
	maxVisitors     = 1e12
	maxDays         = 3650
	maxFaults       = 100
)

// Test is a past test. Its control is first.
type Test struct {
	Name       string
	Line       int
	Variations []string
	Samples    []stats.Sample
	Shares     []float64 // in any unit; nil: not known
	Days       int64     // 0: not known
	Shipped    int       // number of the shipped treatment, from 1; 0: none

	control  int    // index of the declared control while reading; -1: none is declared
	metric   string // which counts, of several
	isFaulty bool
}

// Table is a table of past tests.
type Table struct {
	Tests        []Test
	Notes        []string // what was left out, by line
	KnowsShipped bool     // it says what was shipped

	found     faults.Collector
	hasCommas bool // as decimal marks
	columns   []column
	layout    layout
	title     string
	titleLine int            // of a title that no header follows yet
	byName    map[string]int // index of a test with a line per variation
	noted     map[string]bool
}

// layout is where the numbers of a variation are.
type layout int

const (
	linePerVariation  layout = iota
	columnsByLabel           // Control visitors
	columnByVariation        // 500/10000
)

// ReadTable reads a table of past tests: text with commas, semicolons or tabs. A test has a line, with columns such as
// "Control visitors", or with the numbers of a variation in each column, 500/10000 or 10000:4.2:81; or it has a line
// per variation, as in the exports of products. The error has all faults, with their lines.
func ReadTable(r io.Reader) (*Table, error) {
	t := &Table{byName: map[string]int{}, noted: map[string]bool{}, found: faults.Collector{Most: maxFaults}}
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxBytes:
		t.found.AddField("file", "must have at most %d bytes", maxBytes)
		return nil, t.found.List
	}
	text = bytes.TrimPrefix(bytes.ToValidUTF8(text, []byte("�")), []byte("\ufeff"))
	for _, r := range t.readRows(text) {
		t.addRow(r)
		if len(t.Tests) > maxTests {
			t.found.AddField("file", "must have at most %d tests", maxTests)
			return nil, t.found.List
		}
	}
	if t.columns == nil && len(t.found.List) == 0 {
		t.found.AddField("header", "must have name, control and at least one treatment, or visitors and conversions "+
			"(or mean and standard deviation) of each variation")
	}
	t.finishTests()
	if len(t.Tests) == 0 && len(t.found.List) == 0 {
		t.found.AddField("file", "must have at least one test")
	}
	if err := t.found.WithRest("file", "%d more faults").Err(); err != nil {
		return nil, err
	}
	return t, nil
}

// row is a row of the text that is not empty.
type row struct {
	line  int
	cells []string
}

// readRows returns the rows of a text, and finds out whether they have decimal commas. It adds a fault if a row cannot
// be read, and returns those before it.
func (t *Table) readRows(text []byte) []row {
	var rows []row
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord = -1
	reader.LazyQuotes = true
	reader.Comma = findSeparator(text)
	reader.TrimLeadingSpace = reader.Comma != '\t' // or empty cells would be lost
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.found.AddField("file", "%v", err)
			return rows
		}
		line, _ := reader.FieldPos(0)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			t.hasCommas = t.hasCommas || hasDecimalComma(cells[i])
		}
		if len(withoutEmpty(cells)) > 0 {
			rows = append(rows, row{line, cells})
		}
	}
}

// findSeparator returns the separator of cells: the one that a line at the beginning of the text has most of. A line
// may have as many commas, in its numbers, as semicolons or tabs.
func findSeparator(text []byte) rune {
	start := text[:min(len(text), 1<<16)]
	separator := ','
	most := countInLine(start, separator)
	for _, other := range []rune{';', '\t'} {
		if n := countInLine(start, other); n >= max(most, 1) {
			separator = other
			most = n
		}
	}
	return separator
}

// countInLine returns how often the line with most of a separator has it.
func countInLine(text []byte, separator rune) int {
	most := 0
	for line := range bytes.Lines(text) {
		most = max(most, bytes.Count(line, []byte(string(separator))))
	}
	return most
}

func withoutEmpty(cells []string) []string {
	return slices.DeleteFunc(slices.Clone(cells), func(cell string) bool { return cell == "" })
}

// addRow adds a row: a header, a title, or the numbers of a test.
func (t *Table) addRow(r row) {
	switch {
	case t.readHeader(r):
	case t.readTitle(r):
	case t.columns == nil:
		t.addNote(r.line, strconv.Itoa(r.line), "left out: no header above it names visitors")
	default:
		if t.titleLine > 0 {
			t.found.Append(faultAt(t.titleLine, "line", t.title, "has neither numbers nor a header below it"))
			t.titleLine = 0
		}
		t.readNumbersOfRow(r)
	}
}

// readTitle reports whether a row is the title of a table: one cell or, above the first header, a name in two.
func (t *Table) readTitle(r row) bool {
	if t.layout != linePerVariation {
		return false
	}
	given := withoutEmpty(r.cells)
	isNamed := len(given) == 2 && roles[strings.Join(wordsOf(given[0]), " ")] == nameRole
	isTitle := len(given) == 1 || t.columns == nil && isNamed
	if isTitle {
		t.title = faults.Clip(given[len(given)-1], maxShown)
		t.titleLine = r.line
	}
	return isTitle
}

// addNote says once for each key what is left out.
func (t *Table) addNote(line int, key, format string, values ...any) {
	if !t.noted[key] {
		t.noted[key] = true
		t.Notes = append(t.Notes, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, values...))
	}
}

// finishTests makes control the first variation of each test, and checks the number of variations.
func (t *Table) finishTests() {
	treatments := 0
	for i := range t.Tests {
		test := &t.Tests[i]
		treatments += len(test.Samples) - 1
		if len(test.Shares) != len(test.Samples) {
			test.Shares = nil
		}
		if test.control < 0 {
			test.control = slices.IndexFunc(test.Variations, isControl)
		}
		if at := test.control; at > 0 {
			moveFirst(test.Variations, at)
			moveFirst(test.Samples, at)
			if test.Shares != nil {
				moveFirst(test.Shares, at)
			}
			switch {
			case test.Shipped == at:
				test.Shipped = 0
			case test.Shipped >= 0 && test.Shipped < at:
				test.Shipped++
			}
		}
		test.Shipped = max(test.Shipped, 0)
		if n := len(test.Samples); !test.isFaulty && (n < leastVariations || n > maxVariations) {
			t.found.Append(faultAt(test.Line, "variations", test.Name,
				fmt.Sprintf("must be 2 to %d with numbers, control first, has %d", maxVariations, n)))
		}
	}
	t.mergeRepeatedTests()
	if treatments > maxTreatments {
		t.found.AddField("file", "must have at most %d treatments, has %d", maxTreatments, treatments)
	}
	slices.SortStableFunc(t.found.List, func(a, b faults.Fault) int { return cmp.Compare(a.Line, b.Line) })
}

// mergeRepeatedTests removes tests that repeat an earlier one with its name and numbers. It refuses another test of
// that name.
func (t *Table) mergeRepeatedTests() {
	first := map[string]*Test{}
	var kept []Test
	for i := range t.Tests {
		test := &t.Tests[i]
		earlier, isRepeated := first[test.Name]
		switch {
		case test.Name == "" || !isRepeated:
			first[test.Name] = test
			kept = append(kept, *test)
		case slices.Equal(test.Samples, earlier.Samples):
			t.addNote(test.Line, strconv.Itoa(test.Line), "the test %q repeats line %d, so it counts once", test.Name,
				earlier.Line)
		default:
			t.found.Append(faultAt(test.Line, "name", test.Name, fmt.Sprintf("must be of one test: line %d has other "+
				"numbers", earlier.Line)))
			kept = append(kept, *test)
		}
	}
	t.Tests = kept
}

func moveFirst[T any](all []T, at int) {
	one := all[at]
	copy(all[1:at+1], all[:at])
	all[0] = one
}

// Past returns the effects of the tests. Tests with a sample ratio mismatch say nothing.
func (t *Table) Past() []effects.PastTest {
	past := make([]effects.PastTest, len(t.Tests))
	for i := range t.Tests {
		test := &t.Tests[i]
		past[i] = effects.PastTest{Name: test.Name, Shipped: test.Shipped}
		ratio := test.checkSampleRatio()
		for _, treatment := range test.Samples[1:] {
			e := stats.NewPooledEffect([]stats.Stratum{{Control: test.Samples[0], Treatment: treatment}})
			if ratio != nil && ratio.Mismatch {
				e = stats.PooledEffect{Reason: stats.ReasonSampleRatioMismatch}
			}
			past[i].Effects = append(past[i].Effects, e)
		}
	}
	return past
}
