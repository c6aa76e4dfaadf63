package audit

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/effects"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// The limits of a table. An audit of a thousand tests takes one second and a half, of the most treatments six, and in a
// browser twice as long.
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

	// The cells of each row that is not empty, and its line.
	var rows [][]string
	var lines []int
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
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.found.AddField("file", "%v", err)
			}
			break
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

	// The tests.
	for i, cells := range rows {
		line := lines[i]
		given := slices.DeleteFunc(slices.Clone(cells), func(cell string) bool { return cell == "" })
		isNamed := len(given) == 2 && roles[strings.Join(wordsOf(given[0]), " ")] == nameRole
		switch {
		case t.readHeader(line, cells):
		case t.layout == linePerVariation && (len(given) == 1 || t.columns == nil && isNamed):
			t.title, t.titleLine = faults.Clip(given[len(given)-1], maxShown), line
		case t.columns == nil:
			t.addNote(line, strconv.Itoa(line), "left out: no header above it names visitors")
		case t.titleLine > 0:
			t.found.Append(faultAt(t.titleLine, "line", t.title, "has neither numbers nor a header below it"))
			t.titleLine = 0
			fallthrough
		default:
			t.readNumbersOfRow(line, cells)
		}
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

// addNote says once for each key what is left out.
func (t *Table) addNote(line int, key, format string, values ...any) {
	if !t.noted[key] {
		t.noted[key] = true
		t.Notes = append(t.Notes, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, values...))
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
	isExperience := func(c column) bool { // a test for Convert, and a variation for Personizely
		return c.role == nameRole && strings.HasPrefix(strings.ToLower(c.header), "experience")
	}
	if i := slices.IndexFunc(columns, isExperience); i >= 0 && has[nameRole] > 1 && has[variationRole] == 0 {
		columns[i].role = variationRole // of a campaign
	}
	isNumber := func(cell string) bool {
		_, err := strconv.ParseFloat(cell, 64)
		return err == nil
	}
	layout, means := linePerVariation, has[convertedRole]+has[rateRole]+has[meanRole]+has[totalRole]
	switch {
	case len(labels) >= leastVariations:
		layout = columnsByLabel
	case has[visitorsRole] == 1 && means > 0 && !slices.ContainsFunc(cells, isNumber) || has[sumsRole] > 0:
	case t.columns == nil && has[nameRole] > 0 && has[noRole] >= leastVariations:
		layout = columnByVariation
	default:
		return false
	}
	var unread []string
	for i := range columns {
		c := &columns[i]
		if layout != columnByVariation && c.header != "" && (c.role == noRole || c.label != "" && !labels[c.label]) {
			unread = append(unread, c.header)
		}
	}
	if len(unread) > 0 {
		t.addNote(line, strings.Join(unread, ","), "columns left out: %s", strings.Join(unread, ", "))
	}
	t.columns, t.layout = columns, layout
	t.KnowsShipped = t.KnowsShipped || has[shippedRole] > 0
	if t.titleLine == 0 {
		t.title = fmt.Sprintf("Test of line %d", line)
	}
	t.titleLine = 0
	return true
}

// cellOf returns the first cell with a role.
func (t *Table) cellOf(cells []string, r role) string {
	for i, c := range t.columns {
		if c.role == r && c.label == "" && i < len(cells) && cells[i] != "" {
			return cells[i]
		}
	}
	return ""
}

// readNumbersOfRow reads a test, or a variation of it.
func (t *Table) readNumbersOfRow(line int, cells []string) {
	ofRow := t.cellOf(cells, variationRole)
	test := t.testOf(line, ofRow, cells)
	if test == nil {
		return
	}
	// The numbers of each variation.
	var labels []string
	numbers, unread := map[string]map[role]float64{}, map[string]bool{}
	for i, c := range t.columns[:min(len(t.columns), len(cells))] {
		label := c.label
		switch {
		case t.layout == columnByVariation && c.role == noRole:
			label, c.role = c.header, sumsRole
		case t.layout == linePerVariation && label == "" && c.role >= shareRole:
			label = cmp.Or(ofRow, fmt.Sprintf("Variation %d", len(test.Variations)))
		case t.layout != columnsByLabel:
			label = ""
		}
		if cells[i] == "" || label == "" || isTotal(label) {
			continue
		}
		if numbers[label] == nil {
			numbers[label], labels = map[role]float64{}, append(labels, label)
		}
		if !t.readNumbers(line, c, cells[i], numbers[label]) {
			test.isFaulty, unread[label] = true, true
		}
	}
	for _, label := range labels {
		if _, has := numbers[label][visitorsRole]; unread[label] || !has && t.layout == columnsByLabel {
			continue
		}
		if detail := test.addSample(label, numbers[label]); detail != "" {
			test.isFaulty = true
			t.found.Append(faults.Fault{Line: line, Name: label, Detail: detail, WithoutValue: true})
		}
	}
	// What is said about the test.
	if text := t.cellOf(cells, daysRole); text != "" {
		x, err := readNumber(strings.TrimSuffix(strings.TrimSuffix(text, "s"), "day"), true, t.hasCommas)
		days, bad := wholeNumber(math.Trunc(x), maxDays)
		if err = cmp.Or(err, bad); err != nil {
			t.found.Append(faultAt(line, "days", text, err.Error()))
		}
		test.Days = max(test.Days, days)
	}
	if yes, _ := isYes(t.cellOf(cells, baselineRole)); yes {
		test.control = len(test.Variations) - 1
	}
	// What was shipped: whether this variation was, or which treatment of n: yes, no, or its number or name.
	shipped, n := t.cellOf(cells, shippedRole), max(len(labels)-1, 1)
	yes, is := isYes(shipped)
	number, err := strconv.Atoi(shipped)
	byName := slices.IndexFunc(test.Variations, func(v string) bool { return strings.EqualFold(v, shipped) })
	switch isLine := t.layout == linePerVariation; {
	case isLine && yes:
		test.Shipped = len(test.Variations) - 1
	case isLine && !is:
		t.found.Append(faultAt(line, "shipped", shipped, "must be yes or no"))
	case isLine:
	case yes && n == 1:
		test.Shipped = 1
	case byName >= 0 && shipped != "":
		test.Shipped = byName
	case err == nil && number >= 1 && number <= n:
		test.Shipped = number
	case yes:
		t.found.Append(faultAt(line, "shipped", shipped,
			fmt.Sprintf("must be the number of the treatment, 1 to %d, or no", n)))
	case !is:
		t.found.Append(faultAt(line, "shipped", shipped,
			fmt.Sprintf("must be yes, no, or the number of the treatment, 1 to %d", n)))
	}
}

// testOf returns the test of a row; nil: the row is left out.
func (t *Table) testOf(line int, variation string, cells []string) *Test {
	name := cmp.Or(t.cellOf(cells, nameRole), t.title)
	if isTotal(cmp.Or(variation, name)) || t.layout == linePerVariation && isTotal(cells[0]) {
		t.addNote(line, strconv.Itoa(line), "a row of totals, left out")
		return nil
	}
	var metrics []string
	for i, c := range t.columns[:min(len(t.columns), len(cells))] {
		if c.role == metricRole {
			metrics = append(metrics, cells[i])
		}
	}
	metric := strings.Join(metrics, ", ")
	at, has := t.byName[name]
	if !has || t.layout != linePerVariation {
		at = len(t.Tests)
		test := Test{Name: name, Line: line, Shipped: -1, control: -1, metric: metric}
		if t.layout == columnByVariation {
			test.control = 0
		}
		t.byName[name], t.Tests = at, append(t.Tests, test)
	}
	if test := &t.Tests[at]; metric != test.metric {
		t.addNote(line, name+"\x00"+metric, "%q of test %q left out: %q, which is first, counts", metric, name,
			test.metric)
		return nil
	}
	return &t.Tests[at]
}

// readNumbers adds the numbers of a cell to those of a variation. It returns false if it cannot.
func (t *Table) readNumbers(line int, c column, cell string, numbers map[role]float64) (ok bool) {
	parts, given := []string{cell}, []role{c.role}
	if c.role == sumsRole {
		parts, given = strings.Split(cell, "/"), []role{convertedRole, visitorsRole}
		if len(parts) == 1 {
			parts, given = strings.Split(cell, ":"), []role{visitorsRole, meanRole, varianceRole}
		}
		if len(parts) != len(given) {
			t.found.Append(faultAt(line, c.header, cell,
				"must be converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)"))
			return false
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
			return false
		}
		if _, has := numbers[r]; !has {
			numbers[r] = x
		}
	}
	return true
}

// addSample adds the sample of a variation, or returns why there is none.
func (t *Test) addSample(label string, numbers map[role]float64) (detail string) {
	n, hasVisitors := numbers[visitorsRole]
	converted, isRate := numbers[convertedRole]
	rate, hasRate := numbers[rateRole]
	mean, hasMean := numbers[meanRole]
	total, hasTotal := numbers[totalRole]
	variance, hasVariance := numbers[varianceRole]
	if deviation, has := numbers[deviationRole]; has && !hasVariance {
		variance, hasVariance = deviation*math.Abs(deviation), true
	}
	if !hasMean && hasTotal {
		mean, hasMean = total/n, true
	}
	if squares, has := numbers[squaresRole]; has && hasTotal && !hasVariance {
		variance, hasVariance = (squares-total*mean)/(n-1), true
	}
	var sample stats.Sample
	switch {
	case !hasVisitors:
		return "has no visitors"
	case isRate && converted > n:
		return fmt.Sprintf("has %.0f converted of %.0f visitors", converted, n)
	case isRate:
		sample = stats.Rate{Visitors: int64(n), Converted: int64(converted)}
	case hasMean && hasVariance && variance >= 0 && variance <= math.MaxFloat64 && math.Abs(mean) <= math.MaxFloat64:
		sample = stats.Mean{Visitors: int64(n), Mean: mean, Variance: variance, Nonzero: -1}
	case hasMean && hasVariance:
		return "has a variance that is not a number from 0 to 1.8e308"
	case hasRate && rate >= 0 && rate <= 1:
		sample = stats.Rate{Visitors: int64(n), Converted: int64(math.Round(rate * n))}
	default:
		return "must have conversions, or a mean (or total) with its standard deviation (or sum of squares)"
	}
	if slices.Contains(t.Variations, label) {
		return fmt.Sprintf("stands twice in the test %q", t.Name)
	}
	if len(t.Samples) > 0 && fmt.Sprintf("%T", sample) != fmt.Sprintf("%T", t.Samples[0]) {
		return "must be like control: all are rates, or all are means"
	}
	t.Variations, t.Samples = append(t.Variations, label), append(t.Samples, sample)
	if share, has := numbers[shareRole]; has {
		t.Shares = append(t.Shares, share)
	}
	return ""
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
