package ingest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Inspection describes a CSV file before it is imported.
type Inspection struct {
	Separator rune
	Encoding  string // empty: UTF-8 or UTF-16
	ShortRows bool   // rows lack cells at their end
	Rows      int    // rows that were read, at most maxInspected
	Columns   []Column
	First     [][]string // the first rows, in the order of Columns
}

// Column is a column of a file.
type Column struct {
	Name     string
	Type     ColumnType
	Layout   string // format of a time for a mapping; empty: none is needed
	Comma    bool   // numbers have a decimal comma
	Grouped  string // a number with thousands separators, or empty
	Empty    int    // rows without a value
	Distinct int    // different values, at most maxDistinct
	More     bool   // there are more different values
	Values   []string
}

const (
	maxInspected = 10_000 // number of rows on which types and guesses are based
	maxDistinct  = 1_000
	shownRows    = 10
	shownValues  = 8
)

// InspectFile reads the first rows of a CSV file and returns its columns with their types.
func InspectFile(ctx context.Context, path string, o Options) (*Inspection, error) {
	if format := cmp.Or(o.Format, formatOf(path)); format != formatCSV {
		return nil, fmt.Errorf("%s: is %s; only CSV files are inspected", path, format)
	}
	file, err := o.openSource(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	in := &Inspection{}
	plain, err := decompressFile(file)
	if err == nil {
		err = in.readRows(plain)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return in, nil
}

// collectColumns completes the columns from the rows that were read.
func (i *Inspection) collectColumns(names []string, rows [][]string) {
	i.Rows, i.First = len(rows), rows[:min(shownRows, len(rows))]
	for n, name := range names {
		empty := 0
		var examples []string
		more := false
		values := make([]string, 0, len(rows))
		seen := map[string]bool{}
		for _, row := range rows {
			value := row[n]
			if value == "" {
				empty++
				continue
			}
			values = append(values, value)
			more = more || !seen[value] && len(seen) == maxDistinct
			if !seen[value] && len(seen) < maxDistinct {
				seen[value] = true
				if len(examples) < shownValues {
					examples = append(examples, value)
				}
			}
		}
		c := typeOf(values)
		c.Name, c.Empty, c.Distinct, c.More, c.Values = name, empty, len(seen), more, examples
		i.Columns = append(i.Columns, c)
	}
}

func (i *Inspection) readRows(r *bufio.Reader) error {
	table, err := openTable(r, "", "")
	if err != nil {
		return err
	}
	i.Separator = table.Comma
	header, rows := table.header, [][]string(nil)
	short := false
	for len(rows) < maxInspected {
		row, err := table.readCells()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		i.ShortRows, short = i.ShortRows || short, len(row) < len(header) // the last row that was read may be cut off
		rows = append(rows, append(row, make([]string, max(0, len(header)-len(row)))...)[:len(header)])
	}
	i.decodeCells(append([][]string{header}, rows...))
	i.collectColumns(header, rows)
	return nil
}

// decodeCells converts cells that are not UTF-8 from Windows-1252, the Western European encoding of Windows.
func (i *Inspection) decodeCells(rows [][]string) {
	if !slices.ContainsFunc(rows, func(row []string) bool {
		return slices.ContainsFunc(row, func(cell string) bool { return !utf8.ValidString(cell) })
	}) {
		return
	}
	i.Encoding = "windows-1252"
	for _, row := range rows {
		for i, cell := range row {
			row[i], _ = charmap.Windows1252.NewDecoder().String(cell) // cannot fail
		}
	}
}

// ColumnType is what the values of a column are.
type ColumnType string

// The types of columns.
const (
	ColumnEmpty   ColumnType = "empty"
	ColumnText    ColumnType = "text"
	ColumnInteger ColumnType = "integer"
	ColumnNumber  ColumnType = "number"
	ColumnTime    ColumnType = "time"
	ColumnBoolean ColumnType = "boolean"
)

var (
	integerPattern = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	secondsPattern = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]+)?$`)
	numberPattern  = regexp.MustCompile(`^-?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?$`)
)

// layouts are the time formats that are tried, in this order. The first is the default, which a mapping need not name.
// Dates with slashes are read with the month first, unless the first number of a value is too large for a month.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05-07",
	"2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05 MST", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02",
	"02.01.2006 15:04:05", "02.01.2006 15:04", "02.01.2006", "01/02/2006 15:04:05", "01/02/2006 15:04", "01/02/2006",
	"02/01/2006 15:04:05", "02/01/2006 15:04", "02/01/2006", "20060102",
}

// typeOf returns the type that all values have. It also sets the format of times and the way numbers are written.
func typeOf(values []string) Column {
	all := func(holds func(string) bool) bool {
		return !slices.ContainsFunc(values, func(v string) bool { return !holds(v) })
	}
	if len(values) == 0 {
		return Column{Type: ColumnEmpty}
	}
	for i, layout := range layouts {
		if all(func(v string) bool { _, err := time.Parse(layout, v); return err == nil }) {
			if i == 0 {
				layout = ""
			}
			return Column{Type: ColumnTime, Layout: layout}
		}
	}
	if format, are := unixTimes(values); are {
		return Column{Type: ColumnTime, Layout: format}
	}
	switch {
	case all(integerPattern.MatchString):
		return Column{Type: ColumnInteger}
	case all(func(v string) bool { // with a point or a comma, and with or without thousands separators
		return numberPattern.MatchString(v) || commaNumber.MatchString(v) || groupedNumber.MatchString(v)
	}):
		return numberColumn(values)
	case all(func(v string) bool { _, err := strconv.ParseBool(v); return err == nil }):
		return Column{Type: ColumnBoolean}
	}
	return Column{Type: ColumnText}
}

// numberColumn returns a column of numbers, or of text if some values have a decimal point and others a decimal comma.
// A number such as 1,234 may be of either kind, so the other numbers decide.
func numberColumn(values []string) Column {
	c := Column{
		Type:  ColumnNumber,
		Comma: slices.ContainsFunc(values, func(v string) bool { return decimalOf(v) == ',' }),
	}
	if c.Comma && slices.ContainsFunc(values, func(v string) bool { return decimalOf(v) == '.' }) {
		return Column{Type: ColumnText}
	}
	at := slices.IndexFunc(values, func(v string) bool {
		if c.Comma {
			_, err := withDecimalPoint(v)
			return err != nil
		}
		return !numberPattern.MatchString(v)
	})
	if at >= 0 {
		c.Grouped = values[at]
	}
	return c
}

// decimalOf returns the decimal separator of a number. It returns 0 if there is none, or if the separator may be one of
// thousands.
func decimalOf(v string) byte {
	at := strings.LastIndexAny(v, ".,")
	if at < 0 {
		return 0
	}
	others := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, v[:at])
	if groupedNumber.MatchString(v) && len(v)-at == len(".000") &&
		(others == "" || strings.IndexByte(others, v[at]) >= 0) {
		return 0
	}
	return v[at]
}

// unixTimes reports whether all numbers are Unix times from 2001 to 2065, and in which format: seconds, microseconds,
// or the default of milliseconds.
func unixTimes(values []string) (format string, are bool) {
	const first, last = 1e9, 3e9
	for _, unit := range []struct {
		format  string
		pattern *regexp.Regexp
		second  int64
	}{
		{formatUnix, secondsPattern, 1},
		{"", integerPattern, 1_000},
		{formatUnixMicroseconds, integerPattern, 1_000_000},
	} {
		if !slices.ContainsFunc(values, func(v string) bool {
			whole, _, _ := strings.Cut(v, ".")
			n, err := strconv.ParseInt(whole, 10, 64)
			return err != nil || !unit.pattern.MatchString(v) || n < first*unit.second || n >= last*unit.second
		}) {
			return unit.format, true
		}
	}
	return "", false
}

// guessed lists the usual column names of each field, the most specific first.
var guessed = []struct {
	field string
	types []ColumnType // nil: any
	names []string
}{
	{"visitor", nil, []string{
		"visitor", "visitorid", "anonymousid", "deviceid", "clientid", "cookieid", "userid", "user", "customerid",
		"customer", "email", "kunde", "kundennummer", "kundennr", "besucher", "uid",
	}},
	{"time", []ColumnType{ColumnTime}, []string{
		"time", "timestamp", "eventtime", "ts", "datetime", "createdat", "date", "zeit", "zeitpunkt", "datum",
		"bestelldatum",
	}},
	{"variationId", nil, []string{
		"variationid", "variation", "variationkey", "variant", "variantid", "testgroup",
		"testgruppe", "experimentgroup", "treatment", "bucket", "group", "arm", "gruppe", "variante",
	}},
	{"value", []ColumnType{ColumnInteger, ColumnNumber}, []string{
		"revenue", "value", "amount", "total", "totalprice", "subtotal", "ordervalue", "price", "spend", "sales",
		"umsatz", "betrag",
	}},
	{"country", []ColumnType{ColumnText}, []string{"country", "countrycode", "billingcountry", "land"}},
	{"device", []ColumnType{ColumnText}, []string{"device", "devicecategory", "devicetype", "geraet"}},
	{"browser", []ColumnType{ColumnText}, []string{"browser", "browsername"}},
}

// GuessColumns returns the columns that probably contain the event fields visitor, time, variationId, value, country,
// device and browser. It decides by the names, without case and punctuation. It uses a column at most once.
func (i *Inspection) GuessColumns() map[string]Column {
	found, used := map[string]Column{}, map[string]bool{}
	for _, g := range guessed {
		for _, name := range g.names {
			at := slices.IndexFunc(i.Columns, func(c Column) bool {
				return !used[c.Name] && plainName(c.Name) == name &&
					(g.types == nil || slices.Contains(g.types, c.Type)) &&
					(g.field != "country" || c.hasCountryCodes())
			})
			if at >= 0 {
				found[g.field], used[i.Columns[at].Name] = i.Columns[at], true
				break
			}
		}
	}
	return found
}

// hasCountryCodes reports whether the values may be countries, which have two letters.
func (c *Column) hasCountryCodes() bool {
	return !slices.ContainsFunc(c.Values, func(v string) bool { return len(v) != 2 })
}

var punctuation = regexp.MustCompile(`[^a-z0-9]`)

var umlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss")

func plainName(name string) string {
	return punctuation.ReplaceAllString(umlauts.Replace(strings.ToLower(name)), "")
}

// maxMapped is the largest number of values that a drafted mapping of variations lists.
const maxMapped = shownValues

// controls are the usual names of control, in lower case.
var controls = []string{"control", "0", "a", "base", "baseline", "original", "kontrolle", "off", "false"}

// DraftMapping returns a mapping file with the guessed columns. Comments mark what the user must fill in: the ids of
// the website, campaign and goal.
func (i *Inspection) DraftMapping(name string) string {
	var b strings.Builder
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(&b, format+"\n", values...) }
	guess := i.GuessColumns()
	column := func(field, missing string) string {
		if c, known := guess[field]; known {
			return strconv.Quote(c.Name)
		}
		return missing
	}
	line("# Mapping of %s for lifthouse import, guessed from its columns. Check the lines with a comment.",
		strings.Map(printableRune, name))
	if i.Separator != rune(separators[0]) {
		line("separator: %s", strconv.Quote(string(i.Separator)))
	}
	if i.Encoding != "" {
		line("encoding: %-26s # check that names with accents are right", i.Encoding)
	}
	if i.ShortRows {
		line("shortRows: true                     # some rows have fewer cells than the header")
	}
	if value, known := guess["value"]; known && value.Comma {
		line(`decimal: ","`)
	}
	// Not all rows may have a view. Goals of the others count for the campaigns that their visitors saw.
	shown := guess["variationId"]
	allShown := shown.Empty == 0
	line("fields:")
	line("  websiteId: {value: 1}             # the id of the website in the catalogue")
	if allShown {
		line("  campaignId: {value: 1}            # the id of the campaign")
	}
	line("  visitor: %s", column("visitor", `""                       # the column with the id of the visitor`))
	line("  time: %s", timeSource(guess))
	if allShown {
		line("  variationId: %s", variationSource(guess))
	}
	for _, field := range []string{"country", "device", "browser"} {
		if c, known := guess[field]; known {
			line("  %s: %s", field, strconv.Quote(c.Name))
		}
	}
	line("events:")
	if allShown {
		line("  - fields: {event: {value: view}}")
	} else {
		line(`  - when: [{column: %s, not: ""}] # the rows with a view`, strconv.Quote(shown.Name))
		line("    fields:")
		line("      event: {value: view}")
		line("      campaignId: {value: 1}        # the id of the campaign")
		line("      variationId: %s", variationSource(guess))
	}
	if value, known := guess["value"]; known {
		line("  - when: {column: %s, above: 0}", strconv.Quote(value.Name))
		line("    fields: {event: {value: goal}, goalId: {value: 1}, value: %s} # the id of the goal",
			strconv.Quote(value.Name))
		if value.Grouped != "" {
			line("# %s has numbers such as %s: export them without thousands separators.",
				strings.Map(printableRune, value.Name), strings.Map(printableRune, value.Grouped))
		}
	}
	return b.String()
}

// timeSource returns the source of the time.
func timeSource(guess map[string]Column) string {
	c, known := guess["time"]
	switch {
	case !known:
		return `""                          # the column with the time`
	case c.Layout == "":
		return strconv.Quote(c.Name)
	}
	zone, comment := "", ""
	if c.Layout != formatUnix && c.Layout != formatUnixMicroseconds && !strings.Contains(c.Layout, "-07") {
		zone, comment = ", zone: UTC", " # the zone may be a place, such as Europe/Paris"
	}
	if strings.HasPrefix(c.Layout, "0") && strings.Contains(c.Layout, "/") {
		comment += "; 01 is the month and 02 the day: check the order"
	}
	return fmt.Sprintf("{column: %s, format: %s%s}%s", strconv.Quote(c.Name), strconv.Quote(c.Layout), zone, comment)
}

// variationSource returns the source of the variation: the column, or a map of its values to ids. Control gets 0, the
// other values 1, 2, ….
func variationSource(guess map[string]Column) string {
	c, known := guess["variationId"]
	switch {
	case !known:
		return `""                   # the column with the variation; 0 is control`
	case c.Type == ColumnInteger:
		return strconv.Quote(c.Name) + " # 0 is control"
	case c.Distinct > maxMapped:
		return strconv.Quote(c.Name) + " # map its values to ids: {column: …, map: {control: 0, …}}"
	}
	values := slices.Clone(c.Values)
	slices.SortStableFunc(values, func(x, y string) int { return controlRank(x) - controlRank(y) })
	ids := make([]string, len(values))
	for i, v := range values {
		ids[i] = fmt.Sprintf("%s: %d", strconv.Quote(v), i)
	}
	return fmt.Sprintf("{column: %s, map: {%s}} # 0 is control", strconv.Quote(c.Name), strings.Join(ids, ", "))
}

func controlRank(value string) int {
	if at := slices.Index(controls, strings.ToLower(value)); at >= 0 {
		return at
	}
	return len(controls)
}

// printableRune replaces characters that would end a comment.
func printableRune(r rune) rune {
	if !strconv.IsPrint(r) {
		return '?'
	}
	return r
}
