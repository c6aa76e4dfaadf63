package engine

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Bounds of a query: what a person or a dashboard writes is far below, and
// what a program could send stays cheap to compile.
const (
	maxQuery = 8 << 10 // bytes
	maxValue = 512     // bytes of one value, as of an event's attribute
)

// Parameters reads the query of a request strictly and collects all that is
// wrong with it.
type Parameters struct {
	values url.Values
	known  func(name string) bool
	names  []string // as a fault suggests them
	faults []Fault
}

// ReadParameters reads a query of which only the names are understood.
func ReadParameters(rawQuery string, names ...string) *Parameters {
	p := &Parameters{known: func(name string) bool { return slices.Contains(names, name) }, names: names}
	p.read(rawQuery)
	return p
}

// read parses the query and refuses names that are not known.
func (p *Parameters) read(rawQuery string) {
	if len(rawQuery) > maxQuery {
		p.fault("query", rawQuery[:64]+"…", fmt.Sprintf("want at most %d bytes, have %d", maxQuery, len(rawQuery)))
		return
	}
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		p.fault("query", rawQuery, "cannot be read ("+err.Error()+"); join parameters by & and percent-encode the rest")
		return
	}
	p.values = values
	for name := range values {
		if !p.known(name) {
			p.unknown(name)
		}
	}
}

// unknown names the nearest of the names that would have been understood.
func (p *Parameters) unknown(name string) {
	if len(p.names) == 0 {
		p.fault(name, p.values.Get(name), "unknown parameter; there is none here")
		return
	}
	if name == "filters" || name == "filters[]" {
		p.fault(name, p.values.Get(name), "unknown parameter; a filter is given as filters[name]=value")
		return
	}
	nearest := slices.MinFunc(p.names, func(a, b string) int {
		return cmp.Compare(levenshtein.ComputeDistance(name, a), levenshtein.ComputeDistance(name, b))
	})
	p.fault(name, p.values.Get(name), "unknown parameter; the nearest known is "+nearest)
}

func (p *Parameters) fault(name, value, detail string) {
	p.faults = append(p.faults, Fault{name, strings.ToValidUTF8(value, "�"), detail})
}

// Err returns an InvalidError with all faults, or nil.
func (p *Parameters) Err() error {
	if len(p.faults) == 0 {
		return nil
	}
	slices.SortFunc(p.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return &InvalidError{Code: InvalidParameter, Faults: p.faults}
}

// One returns the parameter's only value, and false where it is absent or
// cannot be used.
func (p *Parameters) One(name string) (string, bool) {
	given := p.values[name]
	if len(given) > 1 {
		p.fault(name, strings.Join(given, ", "), "want one value")
		return "", false
	}
	if len(given) == 0 {
		return "", false
	}
	return given[0], p.clean(name, given[0])
}

// clean refuses what no attribute can hold.
func (p *Parameters) clean(name, value string) bool {
	switch {
	case len(value) > maxValue:
		p.fault(name, value[:64]+"…", fmt.Sprintf("want at most %d bytes, have %d", maxValue, len(value)))
	case !utf8.ValidString(value):
		p.fault(name, value, "want UTF-8")
	default:
		return true
	}
	return false
}

// OneOf returns the parameter's value, or "" where it is absent or not one of
// the allowed.
func (p *Parameters) OneOf(name string, allowed []string) string {
	value, ok := p.One(name)
	if !ok {
		return ""
	}
	if !slices.Contains(allowed, value) {
		p.fault(name, value, "want one of "+strings.Join(allowed, ", "))
		return ""
	}
	return value
}

var digits = regexp.MustCompile(`^\d+$`)

// NoID is what reads as an id and can be no resource's: 0, or beyond int64.
const NoID = -1

// ID returns the id that the parameter names, 0 where it is absent, NoID where
// no resource can have it.
func (p *Parameters) ID(name string) int64 {
	text, ok := p.One(name)
	if !ok {
		return 0
	}
	id, ok := ParseID(text)
	if !ok {
		p.fault(name, text, "want a number, digits only")
	}
	return id
}

// ParseID reads \d+, and is false where the text is something else.
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

// Integer returns the parameter's value, or the default where it is absent.
func (p *Parameters) Integer(name string, least, most, otherwise int) int {
	text, ok := p.One(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || !digits.MatchString(text) || n < least || n > most { // Atoi takes a sign
		p.fault(name, text, fmt.Sprintf("want an integer from %d to %d", least, most))
		return otherwise
	}
	return n
}
