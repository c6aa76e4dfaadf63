package audit

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/effects"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// The limits of a table. A fit of a thousand tests takes a tenth of a second.
const (
	maxTests      = 1000
	maxBytes      = 5 << 20
	maxVariations = 21 // control and the 20 that a campaign may have
	maxVisitors   = 1e12
	maxDays       = 3650
	maxFaults     = 100
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
}

// Table is a table of past tests.
type Table struct {
	Tests        []Test
	Notes        []string // what was left out, by line
	KnowsShipped bool     // it says what was shipped

	found      faults.Collector
	hasCommas  bool
	columns    []column
	isWide     bool
	isWritten  bool // a column per variation with its numbers in one cell
	title      string
	titleLine  int
	byName     map[string]int  // index of a test with a row per variation
	chosen     map[int]string  // metric of each of them
	isDeclared map[int]bool    // a row of it says that it is control
	noted      map[string]bool // what was left out already
}

// ReadTable reads a table of past tests: text with commas, semicolons or tabs. A test has a line, with columns such as
// "Control visitors", or with the numbers of a variation in each column, 500/10000 or 10000:4.2:81; or it has a line
// per variation, as in the exports of products. The error has all faults, with their lines.
func ReadTable(r io.Reader) (*Table, error) {
	t := &Table{
		byName: map[string]int{}, chosen: map[int]string{}, isDeclared: map[int]bool{}, noted: map[string]bool{},
		found: faults.Collector{Most: maxFaults},
	}
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxBytes:
		t.found.AddField("file", "must have at most %d bytes", maxBytes)
		return nil, t.found.List
	}
	rows, lines := t.splitRows(bytes.TrimPrefix(bytes.ToValidUTF8(text, []byte("�")), []byte("\ufeff")))
	for i, cells := range rows {
		t.readRow(lines[i], cells)
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

// splitRows returns the cells of each row that is not empty, and its line.
func (t *Table) splitRows(text []byte) (rows [][]string, lines []int) {
	table := csv.NewReader(bytes.NewReader(text))
	table.FieldsPerRecord, table.LazyQuotes = -1, true
	most := 0
	for _, separator := range []rune{',', ';', '\t'} { // of the line with most of them
		for line := range bytes.Lines(text[:min(len(text), 1<<16)]) {
			if n := bytes.Count(line, []byte(string(separator))); n > most || separator != ',' && n >= max(most, 1) {
				most, table.Comma = n, separator
			}
		}
	}
	table.TrimLeadingSpace = table.Comma != '\t' // or empty cells would be lost
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			return rows, lines
		}
		if err != nil {
			t.found.AddField("file", "%v", err)
			return rows, lines
		}
		line, _ := table.FieldPos(0)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			t.hasCommas = t.hasCommas || hasDecimalComma(cells[i])
		}
		if slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }) {
			rows, lines = append(rows, cells), append(lines, line)
		}
	}
}

func (t *Table) countFaults() int { return len(t.found.List) + t.found.More }

// note says once for each key what is left out.
func (t *Table) note(line int, key, format string, values ...any) {
	if !t.noted[key] {
		t.noted[key] = true
		t.Notes = append(t.Notes, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, values...))
	}
}

// readRow reads a header, a title, or the numbers of a test or of a variation.
func (t *Table) readRow(line int, cells []string) {
	given := slices.DeleteFunc(slices.Clone(cells), func(cell string) bool { return cell == "" })
	isTitle := len(given) == 1 && !t.isWide && !t.isWritten
	switch pair := len(given) == 2 && roles[strings.Join(wordsOf(given[0]), " ")] == nameRole; {
	case t.readHeader(line, cells):
		return
	case isTitle, t.columns == nil && pair:
		t.title, t.titleLine = faults.Clip(given[len(given)-1], 200), line
	case t.columns == nil:
		t.note(line, strconv.Itoa(line), "left out: no header above it names visitors")
	case t.titleLine > 0:
		t.found.Append(faultAt(t.titleLine, "line", t.title, "has neither numbers nor a header below it"))
		t.titleLine = 0
		fallthrough
	case t.isWide || t.isWritten:
		t.readTest(line, cells)
	default:
		t.readVariation(line, cells)
	}
}

// readHeader reports whether a row is a header, which begins a table.
func (t *Table) readHeader(line int, cells []string) bool {
	columns, labels, has := make([]column, len(cells)), map[string]bool{}, map[role]int{}
	for i, cell := range cells {
		columns[i] = readColumn(cell)
		if c := &columns[i]; c.label == "" {
			has[c.role]++
		} else if c.role == visitorsRole && !isTotal(c.label) {
			labels[c.label] = true
		}
	}
	isWide := len(labels) >= 2
	isLong := has[visitorsRole] == 1 && len(cells) > 1 && has[convertedRole]+has[rateRole]+has[meanRole]+has[totalRole] > 0 ||
		has[sumsRole] > 0
	isWritten := t.columns == nil && has[nameRole] > 0 && has[noRole] >= 2
	if !isWide && !isLong && !isWritten {
		return false
	}
	if isWritten = isWritten && !isWide && !isLong; !isWritten {
		var unread []string
		for i := range columns {
			if c := &columns[i]; c.header != "" && (c.role == noRole || c.label != "" && !labels[c.label]) {
				unread = append(unread, c.header)
			}
		}
		if len(unread) > 0 {
			t.note(line, strings.Join(unread, ","), "columns left out: %s", strings.Join(unread, ", "))
		}
	}
	t.columns, t.isWide, t.isWritten = columns, isWide, isWritten
	t.KnowsShipped = t.KnowsShipped || has[shippedRole] > 0
	if t.titleLine == 0 {
		t.title = fmt.Sprintf("Test of line %d", line)
	}
	t.titleLine = 0
	return true
}

// cell returns the first cell with a role.
func (t *Table) cell(cells []string, r role) string {
	for i, c := range t.columns {
		if c.role == r && c.label == "" && i < len(cells) && cells[i] != "" {
			return cells[i]
		}
	}
	return ""
}

// readTest reads a test that has one line.
func (t *Table) readTest(line int, cells []string) {
	test := Test{Name: cmp.Or(t.cell(cells, nameRole), t.title), Line: line, Days: t.readDays(line, cells)}
	if isTotal(test.Name) {
		t.note(line, strconv.Itoa(line), "a row of totals, left out")
		return
	}
	numbers := map[string]map[role]float64{} // by variation
	before := t.countFaults()
	for i, c := range t.columns[:min(len(t.columns), len(cells))] {
		label := c.label
		switch {
		case cells[i] == "", isTotal(label):
			continue
		case t.isWritten && c.role == noRole:
			label = c.header
		case label == "":
			continue
		}
		if numbers[label] == nil {
			numbers[label] = map[role]float64{}
			test.Variations = append(test.Variations, label)
		}
		if t.isWritten {
			c.role = sumsRole
		}
		t.readNumbers(line, c, cells[i], numbers[label])
	}
	if t.countFaults() > before {
		return
	}
	test.Variations = slices.DeleteFunc(test.Variations, func(v string) bool {
		_, has := numbers[v][visitorsRole]
		return !has
	})
	for _, v := range test.Variations {
		t.addSample(&test, line, numbers[v])
	}
	if at := slices.IndexFunc(test.Variations, isControl); at > 0 && t.isWide {
		test.moveToFront(at)
	}
	shipped := t.cell(cells, shippedRole)
	yes, is := isYes(shipped)
	number, err := strconv.Atoi(shipped)
	byName := slices.IndexFunc(test.Variations, func(v string) bool { return strings.EqualFold(v, shipped) })
	switch n := len(test.Variations) - 1; {
	case yes && n == 1:
		test.Shipped = 1
	case byName > 0, byName == 0 && shipped != "":
		test.Shipped = byName
	case err == nil && number >= 1 && number <= n:
		test.Shipped = number
	case yes && n > 1:
		t.found.Append(faultAt(line, "shipped", shipped,
			fmt.Sprintf("must be the number of the treatment, 1 to %d, or no", n)))
	case !is:
		t.found.Append(faultAt(line, "shipped", shipped,
			fmt.Sprintf("must be yes, no, or the number of the treatment, 1 to %d", n)))
	}
	t.Tests = append(t.Tests, test)
}

// moveToFront makes a variation control.
func (t *Test) moveToFront(at int) {
	first(t.Variations, at)
	first(t.Samples, at)
	if len(t.Shares) == len(t.Samples) {
		first(t.Shares, at)
	}
	switch {
	case t.Shipped == at:
		t.Shipped = 0
	case t.Shipped >= 0 && t.Shipped < at:
		t.Shipped++
	}
}

func first[T any](all []T, at int) {
	one := all[at]
	copy(all[1:at+1], all[:at])
	all[0] = one
}

// readVariation reads a variation that has its own line.
func (t *Table) readVariation(line int, cells []string) {
	name, label := cmp.Or(t.cell(cells, nameRole), t.title), t.cell(cells, variationRole)
	if isTotal(cmp.Or(label, cells[0])) {
		t.note(line, strconv.Itoa(line), "a row of totals, left out")
		return
	}
	at, has := t.byName[name]
	metric := []string{}
	for i, c := range t.columns {
		if c.role == metricRole && i < len(cells) {
			metric = append(metric, cells[i])
		}
	}
	if !has {
		at = len(t.Tests)
		t.byName[name], t.chosen[at] = at, strings.Join(metric, ", ")
		t.Tests = append(t.Tests, Test{Name: name, Line: line, Shipped: -1})
	}
	if key := strings.Join(metric, ", "); key != t.chosen[at] {
		t.note(line, name+"\x00"+key, "%q of test %q left out: %q, which is first, counts", key, name, t.chosen[at])
		return
	}
	test, numbers := &t.Tests[at], map[role]float64{}
	before := t.countFaults()
	for i, c := range t.columns[:min(len(t.columns), len(cells))] {
		if c.label == "" && c.role >= shareRole && cells[i] != "" {
			t.readNumbers(line, c, cells[i], numbers)
		}
	}
	if t.countFaults() > before || !t.addSample(test, line, numbers) {
		test.Line = -1 // faulty
		return
	}
	test.Variations = append(test.Variations, cmp.Or(label, fmt.Sprintf("Variation %d", len(test.Variations))))
	test.Days = max(test.Days, t.readDays(line, cells))
	if share, has := numbers[shareRole]; has {
		test.Shares = append(test.Shares, share)
	}
	if yes, is := isYes(t.cell(cells, shippedRole)); yes {
		test.Shipped = len(test.Variations) - 1
	} else if !is {
		t.found.Append(faultAt(line, "shipped", t.cell(cells, shippedRole), "must be yes or no"))
	}
	if yes, _ := isYes(t.cell(cells, baselineRole)); yes && !t.isDeclared[at] {
		t.isDeclared[at] = true
		test.moveToFront(len(test.Variations) - 1)
	}
}

func (t *Table) readDays(line int, cells []string) int64 {
	text := t.cell(cells, daysRole)
	if text == "" {
		return 0
	}
	x, err := readNumber(strings.TrimSuffix(strings.TrimSuffix(text, "s"), "day"), true, t.hasCommas)
	days, bad := wholeNumber(math.Trunc(x), maxDays)
	if err = cmp.Or(err, bad); err != nil {
		t.found.Append(faultAt(line, "days", text, err.Error()))
	}
	return days
}

// readNumbers adds the numbers of a cell to those of a variation.
func (t *Table) readNumbers(line int, c column, cell string, numbers map[role]float64) {
	parts, given := []string{cell}, []role{c.role}
	if c.role == sumsRole {
		parts, given = strings.Split(cell, "/"), []role{convertedRole, visitorsRole}
		if len(parts) == 1 {
			parts, given = strings.Split(cell, ":"), []role{visitorsRole, meanRole, varianceRole}
		}
		if len(parts) != len(given) {
			t.found.Append(faultAt(line, c.header, cell,
				"must be converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)"))
			return
		}
	}
	for i, r := range given {
		isCount := r == visitorsRole || r == convertedRole
		x, err := readNumber(parts[i], isCount, t.hasCommas)
		switch {
		case err == nil && r == rateRole && !strings.Contains(cell+c.header, "%") && x > 1:
			err = errors.New("must be a fraction, or have the sign %")
		case err == nil && r == rateRole && strings.Contains(c.header, "%") && !strings.Contains(cell, "%"):
			x /= 100
		case err == nil && isCount:
			_, err = wholeNumber(x, maxVisitors)
		}
		if err != nil {
			t.found.Append(faultAt(line, c.header, cell, err.Error()))
			continue
		}
		if _, has := numbers[r]; !has {
			numbers[r] = x
		}
	}
}

// addSample adds the sample of a variation to its test.
func (t *Table) addSample(test *Test, line int, numbers map[role]float64) bool {
	number := func(r role) (float64, bool) { x, has := numbers[r]; return x, has }
	n, hasVisitors := number(visitorsRole)
	converted, isRate := number(convertedRole)
	rate, hasRate := number(rateRole)
	mean, hasMean := number(meanRole)
	total, hasTotal := number(totalRole)
	variance, hasVariance := number(varianceRole)
	squares, hasSquares := number(squaresRole)
	if deviation, has := number(deviationRole); has && !hasVariance {
		variance, hasVariance = deviation*deviation, true
		if deviation < 0 {
			variance = deviation
		}
	}
	if !hasMean && hasTotal {
		mean, hasMean = total/n, true
	}
	if !hasVariance && hasSquares && hasTotal {
		variance, hasVariance = (squares-total*mean)/(n-1), true
	}
	var sample stats.Sample
	detail := ""
	switch {
	case !hasVisitors:
		detail = "has no visitors"
	case isRate && converted > n:
		detail = fmt.Sprintf("has %.0f converted of %.0f visitors", converted, n)
	case isRate:
		sample = stats.Rate{Visitors: int64(n), Converted: int64(converted)}
	case hasMean && hasVariance && !(variance >= 0 && variance <= math.MaxFloat64 && !math.IsInf(mean, 0)):
		detail = "has a variance that is not a number from 0 to 1.8e308"
	case hasMean && hasVariance:
		sample = stats.Mean{Visitors: int64(n), Mean: mean, Variance: variance, Nonzero: -1}
	case hasRate && rate >= 0 && rate <= 1:
		sample = stats.Rate{Visitors: int64(n), Converted: int64(math.Round(rate * n))}
	default:
		detail = "must have conversions, or a mean (or total) with its standard deviation (or sum of squares)"
	}
	if sample != nil && len(test.Samples) > 0 {
		_, is := sample.(stats.Rate)
		if _, was := test.Samples[0].(stats.Rate); is != was {
			detail = "must all be rates, or all be means"
		}
	}
	if detail != "" {
		t.found.Append(faults.Fault{Line: line, Name: "variations", Detail: detail, WithoutValue: true})
		return false
	}
	test.Samples = append(test.Samples, sample)
	return true
}

// finishTests finds the controls of tests with a line per variation, and checks the number of variations.
func (t *Table) finishTests() {
	for _, at := range slices.Sorted(maps.Values(t.byName)) {
		test := &t.Tests[at]
		if control := slices.IndexFunc(test.Variations, isControl); control > 0 && !t.isDeclared[at] {
			test.moveToFront(control)
		}
		test.Shipped = max(test.Shipped, 0)
	}
	for i := range t.Tests {
		test := &t.Tests[i]
		if len(test.Shares) != len(test.Samples) {
			test.Shares = nil
		}
		if n := len(test.Samples); test.Line > 0 && (n < 2 || n > maxVariations) {
			t.found.Append(faultAt(test.Line, "variations", test.Name,
				fmt.Sprintf("must be 2 to %d with numbers, control first, has %d", maxVariations, n)))
		}
	}
	slices.SortStableFunc(t.found.List, func(a, b faults.Fault) int { return cmp.Compare(a.Line, b.Line) })
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
