package query

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lifthouse/schema/faults"
)

// Limits of a query string. Real requests are far smaller.
const (
	maxQuery = 8 << 10 // bytes
	maxValue = 512     // bytes of a value, as for attributes of events
)

// Parameters parses a query string strictly and collects all errors.
type Parameters struct {
	values url.Values
	faults.Collector
}

// ReadParameters parses a query string. Only the given names are valid, and filters[x][7] if filters[x][] is.
func ReadParameters(rawQuery string, names ...string) *Parameters {
	p := &Parameters{}
	if len(rawQuery) > maxQuery {
		p.addFault("query", rawQuery[:64]+"…", fmt.Sprintf("must have at most %d bytes; it has %d", maxQuery, len(rawQuery)))
		return p
	}
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		p.addFault("query", rawQuery, "cannot be parsed ("+err.Error()+"); separate parameters by & and percent-encode special characters")
		return p
	}
	p.values = values
	for name := range values {
		filter, _ := filterOf(name)
		isKnown := func(known string) bool {
			of, _ := filterOf(known)
			return known == name || filter != "" && filter == of
		}
		switch {
		case slices.ContainsFunc(names, isKnown):
		case len(names) == 0:
			p.addFault(name, values.Get(name), "unknown parameter; this operation has no parameters")
		case name == "filters" || name == "filters[]":
			p.addFault(name, values.Get(name), "unknown parameter; write filters as filters[name]=value")
		default:
			p.addFault(name, values.Get(name), "unknown parameter; "+faults.SuggestName(name, names))
		}
	}
	return p
}

func (p *Parameters) addFault(name, value, detail string) {
	p.Add(name, strings.ToValidUTF8(value, "�"), detail)
}

// maxFaults is the maximum number of faults that an error lists. Real requests have far fewer.
const maxFaults = 20

// Err returns an InvalidError with all faults, or nil. Of more than maxFaults, it has the first ones and the number of
// the others.
func (p *Parameters) Err() error {
	slices.SortFunc(p.List, func(a, b faults.Fault) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Detail, b.Detail))
	})
	first := faults.Collector{Most: maxFaults}
	first.Append(p.List...)
	return InvalidParameters(first.WithRest("query", "%d more faults")...)
}

// SingleValue returns the value of a parameter. It returns false if the parameter is
// absent or invalid.
func (p *Parameters) SingleValue(name string) (string, bool) {
	given := p.values[name]
	if len(given) > 1 {
		p.addFault(name, strings.Join(given, ", "), "must be given once")
		return "", false
	}
	if len(given) == 0 {
		return "", false
	}
	return given[0], p.checkValue(name, given[0])
}

// checkValue rejects values that no attribute can have.
func (p *Parameters) checkValue(name, value string) bool {
	switch {
	case len(value) > maxValue:
		p.addFault(name, value[:64]+"…", fmt.Sprintf("must have at most %d bytes; it has %d", maxValue, len(value)))
	case !utf8.ValidString(value):
		p.addFault(name, value, "must be UTF-8")
	default:
		return true
	}
	return false
}

// OneOf returns the value of a parameter, or "" if it is absent or not one of
// the allowed values.
func (p *Parameters) OneOf(name string, allowed []string) string {
	value, ok := p.SingleValue(name)
	if !ok {
		return ""
	}
	if !slices.Contains(allowed, value) {
		p.addFault(name, value, faults.OneOf(allowed...))
		return ""
	}
	return value
}

var digits = regexp.MustCompile(`^\d+$`)

// NoID is returned for a valid id that no resource can have: 0, or beyond
// int64.
const NoID = -1

// ID returns the id in a parameter, 0 if it is absent, or NoID.
func (p *Parameters) ID(name string) int64 {
	text, ok := p.SingleValue(name)
	if !ok {
		return 0
	}
	id, ok := ParseID(text)
	if !ok {
		p.addFault(name, text, "must be a number; digits only")
	}
	return id
}

// ParseID parses \d+. It returns false for any other text.
func ParseID(text string) (int64, bool) {
	if !digits.MatchString(text) {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id == 0 {
		return NoID, true
	}
	return id, true
}

// ParseInteger returns the value of a parameter, or the default if it is absent.
func (p *Parameters) ParseInteger(name string, least, most, otherwise int) int {
	text, ok := p.SingleValue(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || !digits.MatchString(text) || n < least || n > most { // Atoi accepts a sign
		p.addFault(name, text, fmt.Sprintf("must be an integer from %d to %d", least, most))
		return otherwise
	}
	return n
}
