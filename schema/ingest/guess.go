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
	numberPattern  = regexp.MustCompile(`^-?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?$`)
	commaPattern   = regexp.MustCompile(`^-?[0-9]*,?[0-9]+$`)
)

// layouts are the formats of times that are tried, in this order. The first is the
// default, which a mapping need not name. Dates with slashes are read with the month
// first, unless a value has a larger first number.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02",
	"02.01.2006 15:04:05", "02.01.2006 15:04", "02.01.2006", "01/02/2006 15:04:05", "01/02/2006 15:04", "01/02/2006", "02/01/2006 15:04:05", "02/01/2006 15:04", "02/01/2006", "20060102",
}

// typeOf returns the type that all values have, the format of times and whether numbers
// have a decimal comma.
func typeOf(values []string) (kind ColumnType, layout string, comma bool) {
	all := func(is func(string) bool) bool {
		return !slices.ContainsFunc(values, func(v string) bool { return !is(v) })
	}
	if len(values) == 0 {
		return ColumnEmpty, "", false
	}
	for i, layout := range layouts {
		if all(func(v string) bool { _, err := time.Parse(layout, v); return err == nil }) {
			if i == 0 {
				layout = ""
			}
			return ColumnTime, layout, false
		}
	}
	switch {
	case all(integerPattern.MatchString):
		if format, is := unixTimes(values); is {
			return ColumnTime, format, false
		}
		return ColumnInteger, "", false
	case all(numberPattern.MatchString):
		return ColumnNumber, "", false
	case all(commaPattern.MatchString):
		return ColumnNumber, "", true
	case all(func(v string) bool { _, err := strconv.ParseBool(v); return err == nil }):
		return ColumnBoolean, "", false
	}
	return ColumnText, "", false
}

// unixTimes reports whether all integers are Unix times from 2001 to 2065, and in which
// format: seconds, or the default of milliseconds.
func unixTimes(values []string) (format string, are bool) {
	const first, last = 1e9, 3e9
	seconds, milliseconds := true, true
	for _, v := range values {
		n, _ := strconv.ParseInt(v, 10, 64)
		seconds = seconds && n >= first && n < last
		milliseconds = milliseconds && n >= first*1000 && n < last*1000
	}
	if seconds {
		return formatUnix, true
	}
	return "", milliseconds
}

// guessed are the usual names of the columns of a field, the most specific first.
var guessed = []struct {
	field string
	types []ColumnType // nil: any
	names []string
}{
	{"visitor", nil, []string{"visitor", "visitorid", "userpseudoid", "anonymousid", "anonymoususerid", "distinctid", "deviceid", "clientid", "cookieid", "userid", "user", "customerid", "customer", "email", "kunde", "uid"}},
	{"time", []ColumnType{ColumnTime}, []string{"time", "timestamp", "eventtimestamp", "eventtime", "originaltimestamp", "ts", "datetime", "createdat", "processedat", "receivedat", "sentat", "date", "zeit", "datum"}},
	{"variationId", nil, []string{"variationid", "variation", "variationkey", "variant", "variantid", "testgroup", "experimentgroup", "treatment", "bucket", "group", "arm", "gruppe"}},
	{"value", []ColumnType{ColumnInteger, ColumnNumber}, []string{"revenue", "value", "amount", "total", "totalprice", "subtotal", "ordervalue", "purchaserevenue", "eventvalueinusd", "price", "spend", "sales", "umsatz", "betrag"}},
	{"eventId", nil, []string{"eventid", "messageid", "insertid", "uuid", "orderid", "transactionid", "id", "name"}},
	{"country", []ColumnType{ColumnText}, []string{"country", "countrycode", "geocountry", "billingcountry", "land"}},
	{"device", []ColumnType{ColumnText}, []string{"device", "devicecategory", "devicetype", "geraet"}},
	{"browser", []ColumnType{ColumnText}, []string{"browser", "devicewebinfobrowser", "browsername"}},
}

// Guess returns the columns that probably have the fields visitor, time, variationId,
// value, eventId, country, device and browser of an event. The names decide: without case,
// punctuation and the names of enclosing objects. A column is guessed at most once.
func (in *Inspection) Guess() map[string]Column {
	found, used := map[string]Column{}, map[string]bool{}
	for _, g := range guessed {
		for _, name := range g.names {
			at := slices.IndexFunc(in.Columns, func(c Column) bool {
				unique := g.field != "eventId" || c.Distinct == min(in.Rows, maxDistinct) && c.Empty == 0
				return !used[c.Name] && unique && (g.types == nil || slices.Contains(g.types, c.Type)) && (plainName(c.Name) == name || plainName(c.Name[strings.LastIndexByte(c.Name, '.')+1:]) == name)
			})
			if at >= 0 {
				found[g.field], used[in.Columns[at].Name] = in.Columns[at], true
				break
			}
		}
	}
	return found
}

var punctuation = regexp.MustCompile(`[^a-z0-9]`)

func plainName(name string) string { return punctuation.ReplaceAllString(strings.ToLower(name), "") }
