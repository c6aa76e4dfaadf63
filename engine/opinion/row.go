package opinion

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lifthouse/schema/faults"
	"lifthouse/stats"
)

// cellOf returns the first cell with a role.
func (t *Table) cellOf(cells []string, r role) string {
	for i, c := range t.columns {
		isOfTest := c.role == r && c.label == ""
		if isOfTest && i < len(cells) && cells[i] != "" {
			return cells[i]
		}
	}
	return ""
}

// readNumbersOfRow reads a test, or a variation of it.
func (t *Table) readNumbersOfRow(r row) {
	variation := t.cellOf(r.cells, variationRole)
	test := t.testOf(r.line, variation, r.cells)
	if test == nil {
		return
	}
	given := t.readVariations(r, test, variation)
	for _, v := range given {
		_, hasVisitors := v.numbers[visitorsRole]
		isNotInTest := t.layout == columnsByLabel && !hasVisitors
		if v.isUnread || isNotInTest {
			continue
		}
		if detail := test.addSample(v.label, v.numbers); detail != "" {
			test.isFaulty = true
			t.found.Append(faults.Fault{Line: r.line, Name: v.label, Detail: detail, WithoutValue: true})
		}
	}
	t.readDays(r, test)
	if yes, _ := isYes(t.cellOf(r.cells, baselineRole)); yes {
		test.control = len(test.Variations) - 1
	}
	t.readShipped(r, test, max(len(given)-1, 1))
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
		t.byName[name] = at
		t.Tests = append(t.Tests, test)
	}
	test := &t.Tests[at]
	if metric != test.metric {
		t.addNote(line, name+"\x00"+metric, "%q of test %q left out: %q, which is first, counts", metric, name,
			test.metric)
		return nil
	}
	return test
}

// variationNumbers are the numbers of a variation in a row.
type variationNumbers struct {
	label    string
	numbers  map[role]float64
	isUnread bool // a cell cannot be read
}

// readVariations returns the numbers of each variation in a row, in the order of the columns. variation is the one that
// the row names.
func (t *Table) readVariations(r row, test *Test, variation string) []*variationNumbers {
	var given []*variationNumbers
	for i, c := range t.columns[:min(len(t.columns), len(r.cells))] {
		label := c.label
		switch t.layout {
		case columnsByLabel:
		case columnByVariation:
			label = ""
			if c.role == noRole {
				label = c.header
				c.role = sumsRole
			}
		case linePerVariation:
			isOfRow := label == "" && c.role >= shareRole
			label = ""
			if isOfRow {
				label = cmp.Or(variation, fmt.Sprintf("Variation %d", len(test.Variations)))
			}
		}
		if r.cells[i] == "" || label == "" || isTotal(label) {
			continue
		}
		at := slices.IndexFunc(given, func(v *variationNumbers) bool { return v.label == label })
		if at < 0 {
			at = len(given)
			given = append(given, &variationNumbers{label: label, numbers: map[role]float64{}})
		}
		if !t.readNumbers(r.line, c, r.cells[i], given[at].numbers) {
			given[at].isUnread = true
			test.isFaulty = true
		}
	}
	return given
}

// readDays reads the duration of a test: 28, or 28 days.
func (t *Table) readDays(r row, test *Test) {
	text := t.cellOf(r.cells, daysRole)
	if text == "" {
		return
	}
	x, err := readNumber(strings.TrimSuffix(strings.TrimSuffix(text, "s"), "day"), true, t.hasCommas)
	if err != nil {
		t.found.Append(faultAt(r.line, "days", text, err.Error()))
		return
	}
	days, err := wholeNumber(math.Trunc(x), maxDays)
	if err != nil {
		t.found.Append(faultAt(r.line, "days", text, err.Error()))
		return
	}
	test.Days = max(test.Days, days)
}

// readShipped reads what was shipped: in a row of a variation, whether it was; in a row of a test, which of the n
// treatments: yes, no, or its number or name.
func (t *Table) readShipped(r row, test *Test, n int) {
	text := t.cellOf(r.cells, shippedRole)
	yes, isAnswer := isYes(text)
	if t.layout == linePerVariation {
		switch {
		case yes:
			test.Shipped = len(test.Variations) - 1
		case !isAnswer:
			t.found.Append(faultAt(r.line, "shipped", text, "must be yes or no"))
		}
		return
	}
	byName := -1
	if text != "" {
		byName = slices.IndexFunc(test.Variations, func(v string) bool { return strings.EqualFold(v, text) })
	}
	number, err := strconv.Atoi(text)
	isTreatment := err == nil && number >= 1 && number <= n
	switch {
	case yes && n == 1:
		test.Shipped = 1
	case byName >= 0:
		test.Shipped = byName
	case isTreatment:
		test.Shipped = number
	case yes:
		t.found.Append(faultAt(r.line, "shipped", text,
			fmt.Sprintf("must be the number of the treatment, 1 to %d, or no", n)))
	case !isAnswer:
		t.found.Append(faultAt(r.line, "shipped", text,
			fmt.Sprintf("must be yes, no, or the number of the treatment, 1 to %d", n)))
	}
}

// readNumbers adds the numbers of a cell to those of a variation. It returns false if it cannot.
func (t *Table) readNumbers(line int, c column, cell string, numbers map[role]float64) (ok bool) {
	parts := []string{cell}
	given := []role{c.role}
	if c.role == sumsRole {
		parts, given = splitSums(cell)
		if len(parts) != len(given) {
			t.found.Append(faultAt(line, c.header, cell,
				"must be converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)"))
			return false
		}
	}
	for i, r := range given {
		x, err := t.readNumberOf(r, parts[i], c.header, cell)
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

// splitSums splits a cell with all numbers of a variation, and returns the roles that they should have.
func splitSums(cell string) (parts []string, given []role) {
	if strings.Contains(cell, "/") {
		return strings.Split(cell, "/"), []role{convertedRole, visitorsRole}
	}
	return strings.Split(cell, ":"), []role{visitorsRole, meanRole, varianceRole}
}

// readNumberOf reads a number, which may be a part of a cell, as what its role says.
func (t *Table) readNumberOf(r role, text, header, cell string) (float64, error) {
	isCount := r == visitorsRole || r == convertedRole
	x, err := readNumber(text, isCount, t.hasCommas)
	switch {
	case err != nil:
		return 0, err
	case isCount:
		_, err := wholeNumber(x, maxVisitors)
		return x, err
	case r == rateRole:
		return fractionOf(x, header, cell)
	}
	return x, nil
}

// fractionOf returns a rate as a fraction. readNumber has read the sign % of a cell, but not that of a header.
func fractionOf(x float64, header, cell string) (float64, error) {
	switch {
	case strings.Contains(cell, "%"):
		return x, nil
	case strings.Contains(header, "%"):
		return x / 100, nil
	case x > 1:
		return 0, errors.New("must be a fraction, or have the sign %")
	}
	return x, nil
}

// addSample adds the sample of a variation, or returns why there is none.
func (t *Test) addSample(label string, numbers map[role]float64) (detail string) {
	sample, detail := sampleOf(numbers)
	if detail != "" {
		return detail
	}
	if slices.Contains(t.Variations, label) {
		return fmt.Sprintf("stands twice in the test %q", t.Name)
	}
	if len(t.Samples) > 0 && fmt.Sprintf("%T", sample) != fmt.Sprintf("%T", t.Samples[0]) {
		return "must be like control: all are rates, or all are means"
	}
	t.Variations = append(t.Variations, label)
	t.Samples = append(t.Samples, sample)
	if share, has := numbers[shareRole]; has {
		t.Shares = append(t.Shares, share)
	}
	return ""
}

// sampleOf returns the sample of a variation, or why there is none: of conversions, of a mean and a variance, or of a
// rate, whichever is first.
func sampleOf(numbers map[role]float64) (sample stats.Sample, detail string) {
	n, hasVisitors := numbers[visitorsRole]
	converted, hasConverted := numbers[convertedRole]
	rate, hasRate := numbers[rateRole]
	mean, variance, hasMean := meanOf(numbers)
	isVariance := variance >= 0 && variance <= math.MaxFloat64
	isFinite := math.Abs(mean) <= math.MaxFloat64
	switch {
	case !hasVisitors:
		return nil, "has no visitors"
	case hasConverted && converted > n:
		return nil, fmt.Sprintf("has %.0f converted of %.0f visitors", converted, n)
	case hasConverted:
		return stats.Rate{Visitors: int64(n), Converted: int64(converted)}, ""
	case hasMean && isVariance && isFinite:
		return stats.Mean{Visitors: int64(n), Mean: mean, Variance: variance, Nonzero: -1}, ""
	case hasMean:
		return nil, "has a variance that is not a number from 0 to 1.8e308"
	case hasRate && rate >= 0 && rate <= 1:
		return stats.Rate{Visitors: int64(n), Converted: int64(math.Round(rate * n))}, ""
	}
	return nil, "must have conversions, or a mean (or total) with its standard deviation (or sum of squares)"
}

// meanOf returns the mean and the variance of a variation, and false if one of them is not given. Sums that are given
// instead of them are converted.
func meanOf(numbers map[role]float64) (mean, variance float64, has bool) {
	n := numbers[visitorsRole]
	total, hasTotal := numbers[totalRole]
	mean, hasMean := numbers[meanRole]
	if !hasMean && hasTotal {
		mean = total / n
		hasMean = true
	}
	variance, hasVariance := numbers[varianceRole]
	deviation, hasDeviation := numbers[deviationRole]
	squares, hasSquares := numbers[squaresRole]
	switch {
	case hasVariance:
	case hasDeviation:
		variance = deviation * math.Abs(deviation) // a negative one is refused
	case hasSquares && hasTotal:
		variance = (squares - total*mean) / (n - 1)
	default:
		return 0, 0, false
	}
	return mean, variance, hasMean
}
