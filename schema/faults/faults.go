// Package faults collects what is wrong with an input, so that an answer names all of it: where, which value, and what
// is allowed.
package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fault is an error in an input.
type Fault struct {
	Name   string `json:"field"`  // of a parameter, or the path of a field: accounts[0].websites[0].campaigns[2].power
	Line   int    `json:"-"`      // of the file; 0: unknown, or not a file
	Value  string `json:"value"`  // as given
	Detail string `json:"detail"` // what is allowed

	WithoutValue bool `json:"-"` // the fault is about the field and not about its value
}

// The beginnings of details about a field.
const (
	UnknownField = "unknown field"
	GivenTwice   = "given twice"
)

// String returns the fault in words.
func (f *Fault) String() string {
	where := f.Name + ": "
	value := ""
	if f.Line > 0 {
		where = fmt.Sprintf("line %d: %s", f.Line, where)
	}
	if !f.WithoutValue {
		value = fmt.Sprintf("%q: ", f.Value)
	}
	return where + value + f.Detail
}

// List has all faults of an input.
type List []Fault

// Error returns the faults, one per line.
func (l List) Error() string { return l.Join("\n") }

// Join returns the faults in words, with a separator.
func (l List) Join(separator string) string {
	texts := make([]string, len(l))
	for i := range l {
		texts[i] = l[i].String()
	}
	return strings.Join(texts, separator)
}

// Err returns the list, or nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// WithOthers returns the faults, and the first of others about each name that has none.
func (l List) WithOthers(others List) List {
	all := slices.Clone(l)
	for _, other := range others {
		isKnown := func(fault Fault) bool { return fault.Name == other.Name }
		if !slices.ContainsFunc(all, isKnown) {
			all = append(all, other)
		}
	}
	return all
}

// SortByLine sets the lines of faults without one, which are those of their paths or of the nearest enclosing parts. It
// orders the faults by line.
func (l List) SortByLine(lines map[string]int) {
	for i := range l {
		f := &l[i]
		for path := f.Name; f.Line == 0 && path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
			f.Line = lines[path]
		}
	}
	slices.SortStableFunc(l, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
}

// Collector collects faults. It only counts those beyond a limit.
type Collector struct {
	List List
	Most int // limit; 0: none
	More int // number of faults beyond the limit
}

// Append adds faults.
func (c *Collector) Append(faults ...Fault) {
	for _, f := range faults {
		if c.Most > 0 && len(c.List) == c.Most {
			c.More++
			continue
		}
		c.List = append(c.List, f)
	}
}

// Add adds a fault without a line.
func (c *Collector) Add(name string, value any, detail string) {
	c.Append(Fault{Name: name, Value: fmt.Sprint(value), Detail: detail})
}

// AddIf adds a fault if something is wrong. Without a value, nil, the fault is about the field.
func (c *Collector) AddIf(wrong bool, name string, value any, detail string) {
	switch {
	case wrong && value == nil:
		c.AddField(name, "%s", detail)
	case wrong:
		c.Add(name, value, detail)
	}
}

// AddField adds a fault about a field, whose detail fmt.Sprintf formats.
func (c *Collector) AddField(name, detail string, values ...any) {
	c.Append(Fault{Name: name, Detail: fmt.Sprintf(detail, values...), WithoutValue: true})
}

// WithRest returns the faults, and one about those beyond the limit. rest has %d for their number.
func (c *Collector) WithRest(name, rest string) List {
	if c.More == 0 {
		return c.List
	}
	return append(c.List, Fault{Name: name, Detail: fmt.Sprintf(rest, c.More)})
}

// Clip returns a text, or the beginning of a text that is longer than most bytes.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.ToValidUTF8(text[:most], "�") + "…"
}
