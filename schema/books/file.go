package books

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/books"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// The limits of a file of rates.
const (
	maxRates  = 1_000_000 // of a file
	maxFaults = 100       // that are named
)

// centralBank is the base of the files of the European Central Bank.
const centralBank = "EUR"

// The columns of a file with a rate in each line.
const (
	dateColumn     = "date"
	currencyColumn = "currency"
	rateColumn     = "rate"
	baseColumn     = "base"
)

// RateFile is a file of rates that is read.
type RateFile struct {
	base   string // of the account, or else of the first rate; empty: not known yet
	today  int64
	rates  []Rate
	lines  map[quoteKey]int // at which a rate is
	seen   map[quoteKey]books.Rate
	faults faults.Collector
}

// ReadRates reads a file of rates, without storing them: that of the European Central Bank, which has a column for each
// currency, or one with the columns date, currency and rate, and perhaps base. base is that of the account; empty: it
// has no rates yet. No rate may be of a day after today. The error has all faults, with their lines.
func ReadRates(r io.Reader, base string, today time.Time) ([]Rate, error) {
	f := RateFile{
		base: base, today: dayOf(today), lines: map[quoteKey]int{}, seen: map[quoteKey]books.Rate{},
		faults: faults.Collector{Most: maxFaults},
	}
	if err := f.readLines(r); err != nil {
		return nil, err
	}
	if len(f.faults.List) == 0 && len(f.rates) == 0 {
		f.addFault(1, rateColumn, nil, "the file has no rates")
	}
	if err := f.faults.WithRest("rates", "%d more faults").Err(); err != nil {
		return nil, err
	}
	return f.rates, nil
}

// addFault adds a fault about a field of a line; nil: it is about no value.
func (f *RateFile) addFault(line int, field string, value any, detail string) {
	found := faults.Fault{Name: field, Line: line, Detail: detail, WithoutValue: value == nil}
	if value != nil {
		found.Value = faults.Clip(fmt.Sprint(value), 100)
	}
	f.faults.Append(found)
}

// readLines reads the header, and then each line.
func (f *RateFile) readLines(r io.Reader) error {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	lines.ReuseRecord = true
	lines.TrimLeadingSpace = true
	var header []string
	var readLine func(line int, fields []string)
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		syntax, isSyntax := errors.AsType[*csv.ParseError](err)
		switch {
		case isSyntax:
			f.addFault(syntax.Line, "line", nil, "is not CSV: "+syntax.Err.Error())
			return nil // what follows cannot be read either
		case err != nil:
			return fmt.Errorf("read rates: %w", err)
		case len(f.rates) > maxRates:
			f.addFault(0, "rates", nil, fmt.Sprintf("a file has at most %d rates", maxRates))
			return nil
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		line, _ := lines.FieldPos(0)
		if header == nil {
			header = slices.Clone(fields)
			header[0] = strings.TrimPrefix(header[0], "\ufeff")
			readLine = f.readHeader(line, header)
			if readLine == nil {
				return nil
			}
			continue
		}
		for len(fields) > len(header) && fields[len(fields)-1] == "" {
			fields = fields[:len(fields)-1]
		}
		if len(fields) != len(header) {
			f.addFault(line, "line", nil, fmt.Sprintf("has %d fields, and the header has %d", len(fields), len(header)))
			continue
		}
		readLine(line, fields)
	}
}

// readHeader returns the function that reads the other lines; nil: the header is not that of a file of rates.
func (f *RateFile) readHeader(line int, header []string) func(int, []string) {
	for len(header) > 1 && header[len(header)-1] == "" { // the lines of the European Central Bank end with a comma
		header = header[:len(header)-1]
	}
	if strings.EqualFold(header[0], dateColumn) && len(header) > 1 && schema.IsCurrency(header[1]) {
		return f.readWideHeader(line, header)
	}
	at, isRight := f.findColumns(line, header)
	if !isRight {
		return nil
	}
	base, hasBase := at[baseColumn]
	return func(line int, fields []string) {
		if hasBase {
			f.checkBase(line, fields[base])
		}
		day := f.parseDay(line, fields[at[dateColumn]])
		f.addRate(line, day, fields[at[currencyColumn]], rateColumn, fields[at[rateColumn]])
	}
}

// findColumns returns the places of the columns of a file with a rate in each line; false: the header is wrong.
func (f *RateFile) findColumns(line int, header []string) (at map[string]int, isRight bool) {
	at = map[string]int{}
	before := len(f.faults.List)
	for i, name := range header {
		name = strings.ToLower(name)
		_, isTwice := at[name]
		switch {
		case !slices.Contains([]string{dateColumn, currencyColumn, rateColumn, baseColumn}, name):
			f.addFault(line, "header", name, "must be date, currency, rate or base; or date and codes of ISO 4217")
		case isTwice:
			f.addFault(line, "header", name, faults.GivenTwice)
		}
		at[name] = i
	}
	for _, name := range []string{dateColumn, currencyColumn, rateColumn} {
		if _, has := at[name]; !has {
			f.addFault(line, "header", nil, "has no column "+name)
		}
	}
	if _, hasBase := at[baseColumn]; !hasBase && f.base == "" {
		f.addFault(line, "header", nil, "has no column base, and the account has no rates yet, from which it is known")
	}
	return at, len(f.faults.List) == before
}

// readWideHeader returns the function that reads the lines of a file with a column for each currency.
func (f *RateFile) readWideHeader(line int, header []string) func(int, []string) {
	f.checkBase(line, centralBank)
	seen := map[string]bool{}
	for _, code := range header[1:] {
		if seen[code] {
			f.addFault(line, "header", code, faults.GivenTwice)
		}
		seen[code] = true
		if !schema.IsCurrency(code) {
			f.addFault(line, "header", code, mustBeCurrency)
		}
	}
	if len(f.faults.List) > 0 {
		return nil
	}
	return func(line int, fields []string) {
		day := f.parseDay(line, fields[0])
		for i, code := range header[1:] {
			if text := fields[i+1]; text != "N/A" {
				f.addRate(line, day, code, code, text)
			}
		}
	}
}

const mustBeCurrency = "must be a code of ISO 4217 such as JPY"

// checkBase checks that a base is that of all other rates.
func (f *RateFile) checkBase(line int, base string) {
	base = strings.ToUpper(base)
	switch {
	case !schema.IsCurrency(base):
		f.addFault(line, baseColumn, base, "must be a code of ISO 4217 such as EUR")
	case f.base == "":
		f.base = base
	case base != f.base:
		f.addFault(line, baseColumn, base, "must be "+f.base+", the base of the other rates: an account has one base")
	}
}

// noDay is the day of a date with a fault.
const noDay = -1

// parseDay returns the day of a date, or noDay.
func (f *RateFile) parseDay(line int, text string) int64 {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse("2 January 2006", text) // the daily file of the European Central Bank
	}
	day := dayOf(at)
	switch {
	case err != nil:
		f.addFault(line, dateColumn, text, "must be a date such as 2026-05-04")
	case day < 0:
		f.addFault(line, dateColumn, text, "must be 1970-01-01 or later")
	case day > f.today:
		f.addFault(line, dateColumn, text, "must not be in the future; today is "+dateOf(f.today)+" (UTC)")
	default:
		return day
	}
	return noDay
}

// addRate adds a rate.
func (f *RateFile) addRate(line int, day int64, currency, field, text string) {
	rate, err := books.ParseRate(text)
	if err != nil {
		f.addFault(line, field, text, err.Error())
	}
	given := currency
	currency = strings.ToUpper(given)
	isCurrency := schema.IsCurrency(currency)
	switch {
	case !isCurrency:
		f.addFault(line, currencyColumn, given, mustBeCurrency)
	case currency == f.base:
		f.addFault(line, currencyColumn, currency, "must be another currency than the base")
	}
	if err != nil || !isCurrency || day == noDay {
		return
	}
	key := quoteKey{currency, day}
	first, isTwice := f.seen[key]
	switch {
	case isTwice && !first.IsSame(rate):
		f.addFault(line, field, text,
			fmt.Sprintf("line %d has %s for %s on %s", f.lines[key], first, currency, dateOf(day)))
	case !isTwice:
		f.seen[key] = rate
		f.lines[key] = line
		f.rates = append(f.rates, Rate{Base: f.base, Currency: currency, Quote: books.Quote{Day: day, Rate: rate}})
	}
}
