package ingest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// layouts are the time formats that are tried, in this order. The first is the
// default, which a mapping need not name. Dates with slashes are read with the month
// first, unless the first number of a value is too large for a month.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05 MST", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02",
	"02.01.2006 15:04:05", "02.01.2006 15:04", "02.01.2006", "01/02/2006 15:04:05", "01/02/2006 15:04", "01/02/2006", "02/01/2006 15:04:05", "02/01/2006 15:04", "02/01/2006", "20060102",
}

// typeOf returns the type that all values have. It also sets the format of times and
// the way numbers are written.
func typeOf(values []string) Column {
	all := func(is func(string) bool) bool {
		return !slices.ContainsFunc(values, func(v string) bool { return !is(v) })
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
	case all(isNumber):
		return numberColumn(values)
	case all(func(v string) bool { _, err := strconv.ParseBool(v); return err == nil }):
		return Column{Type: ColumnBoolean}
	}
	return Column{Type: ColumnText}
}

// isNumber reports whether a value is a number, with a point or a comma, and with or without
// thousands separators.
func isNumber(v string) bool {
	return numberPattern.MatchString(v) || commaNumber.MatchString(v) || groupedNumber.MatchString(v)
}

// numberColumn returns a column of numbers, or of text if some values have a decimal point and
// others a decimal comma. A number such as 1,234 may be of either kind, so the other numbers
// decide.
func numberColumn(values []string) Column {
	c := Column{Type: ColumnNumber, Comma: slices.ContainsFunc(values, func(v string) bool { return decimalOf(v) == ',' })}
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

// decimalOf returns the decimal separator of a number. It returns 0 if there is none,
// or if the separator may be one of thousands.
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
	if groupedNumber.MatchString(v) && len(v)-at == len(".000") && (others == "" || strings.IndexByte(others, v[at]) >= 0) {
		return 0
	}
	return v[at]
}

// unixTimes reports whether all numbers are Unix times from 2001 to 2065, and in which
// format: seconds, microseconds, or the default of milliseconds.
func unixTimes(values []string) (format string, are bool) {
	const first, last = 1e9, 3e9
	for _, unit := range []struct {
		format  string
		pattern *regexp.Regexp
		second  int64
	}{{formatUnix, secondsPattern, 1}, {"", integerPattern, 1_000}, {formatUnixMicroseconds, integerPattern, 1_000_000}} {
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
	{"visitor", nil, []string{"visitor", "visitorid", "userpseudoid", "anonymousid", "anonymoususerid", "distinctid", "deviceid", "clientid", "cookieid", "userid", "user", "customerid", "customer", "email", "kunde", "kundennummer", "kundennr", "besucher", "uid"}},
	{"time", []ColumnType{ColumnTime}, []string{"time", "timestamp", "eventtimestamp", "eventtime", "originaltimestamp", "ts", "datetime", "createdat", "processedat", "receivedat", "sentat", "date", "zeit", "zeitpunkt", "datum", "bestelldatum"}},
	{"variationId", nil, []string{"variationid", "variation", "variationkey", "variant", "variantid", "testgroup", "testgruppe", "experimentgroup", "treatment", "bucket", "group", "arm", "gruppe", "variante"}},
	{"value", []ColumnType{ColumnInteger, ColumnNumber}, []string{"revenue", "purchaserevenue", "value", "amount", "total", "totalprice", "subtotal", "ordervalue", "eventvalueinusd", "price", "spend", "sales", "umsatz", "betrag"}},
	{"eventId", nil, []string{"eventid", "messageid", "insertid", "uuid", "orderid", "transactionid", "bestellnummer", "bestellnr", "id", "name"}},
	{"experiment", nil, []string{"experimentid", "experimentkey", "experimentname"}},
	{"country", []ColumnType{ColumnText}, []string{"country", "countrycode", "geocountry", "billingcountry", "land"}},
	{"device", []ColumnType{ColumnText}, []string{"device", "devicecategory", "devicetype", "geraet"}},
	{"browser", []ColumnType{ColumnText}, []string{"browser", "devicewebinfobrowser", "browsername"}},
}

// GuessColumns returns the columns that probably contain the event fields visitor, time,
// variationId, value, eventId, country, device and browser, and the experiment. It decides
// by the names, without case, punctuation and the names of enclosing objects. It uses a
// column at most once.
func (in *Inspection) GuessColumns() map[string]Column {
	found, used := map[string]Column{}, map[string]bool{}
	for _, g := range guessed {
		for _, name := range g.names {
			at := slices.IndexFunc(in.Columns, func(c Column) bool {
				return !used[c.Name] && in.fitsField(c, g.field) && (g.types == nil || slices.Contains(g.types, c.Type)) && (plainName(c.Name) == name || plainName(c.Name[strings.LastIndexByte(c.Name, '.')+1:]) == name)
			})
			if at >= 0 {
				found[g.field], used[in.Columns[at].Name] = in.Columns[at], true
				break
			}
		}
	}
	return found
}

// fitsField reports whether the values of a column suit a field: event ids must be unique, and
// countries must have two letters.
func (in *Inspection) fitsField(c Column, field string) bool {
	switch field {
	case "eventId":
		return c.Distinct == min(in.Rows, maxDistinct) && c.Empty == 0
	case "country":
		return !slices.ContainsFunc(c.Values, func(v string) bool { return len(v) != 2 })
	}
	return true
}

var punctuation = regexp.MustCompile(`[^a-z0-9]`)

var umlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss")

func plainName(name string) string {
	return punctuation.ReplaceAllString(umlauts.Replace(strings.ToLower(name)), "")
}
