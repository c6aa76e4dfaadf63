package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Mapping says how the columns of a file, or the keys of its JSON lines, become
// events. A name such as properties.plan reaches into an object of a line, or
// into a text or a cell that holds one, where nothing has the whole name.
type Mapping struct {
	Format    string            `yaml:"format"`    // csv, ndjson or parquet; empty: by the file's name
	Separator string            `yaml:"separator"` // of CSV; empty: a comma
	Fields    map[string]Source `yaml:"fields"`    // of every event of a line
	Events    []EventMapping    `yaml:"events"`    // the events a line gives; empty: one
}

// EventMapping is one event that a line gives, when all its conditions hold.
// Its fields go before those of the whole line.
type EventMapping struct {
	When   conditions        `yaml:"when"` // in YAML one, or a list
	Fields map[string]Source `yaml:"fields"`
}

// Condition holds for a line whose column equals, differs from, or as a
// number exceeds a value; an empty cell exceeds nothing.
type Condition struct {
	Column string   `yaml:"column"`
	Equals *text    `yaml:"equals"`
	Not    *text    `yaml:"not"`
	Above  *float64 `yaml:"above"`
}

type conditions []Condition

// UnmarshalYAML reads one condition or a list of them.
func (c *conditions) UnmarshalYAML(node ast.Node) error {
	if node.Type() != ast.SequenceType {
		*c = make(conditions, 1)
		return yaml.NodeToValue(node, &(*c)[0], yaml.Strict())
	}
	return yaml.NodeToValue(node, (*[]Condition)(c), yaml.Strict())
}

// Source is where a field's value comes from. In YAML a bare text is the name
// of a column.
type Source struct {
	Column    string        `yaml:"column"`
	Value     text          `yaml:"value"`     // a constant
	RowNumber bool          `yaml:"rowNumber"` // the number of the line, 1 for the first after a header
	Lookup    *Lookup       `yaml:"lookup"`    // replaces the column's value
	Map       map[text]text `yaml:"map"`       // replaces the value; one that is not in it is refused
	Default   *text         `yaml:"default"`   // for what Lookup or Map does not know, and where the column is empty or, in JSON, missingColumns
	Format    string        `yaml:"format"`    // of a time: a Go layout, unix or unixMilliseconds
	Zone      string        `yaml:"zone"`      // of a time whose format says none; empty: UTC
}

// text is a scalar of YAML as it is written, so that 010 is not 8.
type text string

// UnmarshalYAML refuses what is no scalar.
func (t *text) UnmarshalYAML(node ast.Node) error {
	switch node := node.(type) {
	case *ast.LiteralNode:
		*t = text(node.Value.Value)
	case *ast.StringNode:
		*t = text(node.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		*t = text(node.GetToken().Value)
	default:
		at := node.GetToken().Position
		return fmt.Errorf("[%d:%d] %s: want a text or a number", at.Line, at.Column, node)
	}
	return nil
}

// Lookup finds a value in another file: the Column of the row whose Key
// column has the value.
type Lookup struct {
	File   string `yaml:"file"` // beside the mapping file unless absolute
	Key    string `yaml:"key"`
	Column string `yaml:"column"`
}

// UnmarshalYAML reads a column's name or a whole source.
func (s *Source) UnmarshalYAML(decode func(any) error) error {
	var column text
	if decode(&column) == nil {
		s.Column = string(column)
		return nil
	}
	type whole Source
	return decode((*whole)(s))
}

// maxMapping bounds a mapping file, in bytes.
const maxMapping = 16 << 20

// ReadMapping reads a mapping file; unknown keys are refused with their line.
func ReadMapping(r io.Reader) (*Mapping, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxMapping+1))
	if err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	if len(content) > maxMapping {
		return nil, fmt.Errorf("read mapping: longer than %d bytes", maxMapping)
	}
	var m Mapping
	decoder := yaml.NewDecoder(bytes.NewReader(content), yaml.Strict())
	if err := decoder.Decode(&m); err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("read mapping: more than one document; want one")
	}
	if len(m.Events) == 0 {
		m.Events = []EventMapping{{}}
	}
	return &m, m.check()
}

func (m *Mapping) check() error {
	var faults []error
	if m.Format != "" && m.Format != formatCSV && m.Format != formatNDJSON && m.Format != formatParquet {
		faults = append(faults, fmt.Errorf("format %q: want csv, ndjson or parquet", m.Format))
	}
	if len([]rune(m.Separator)) > 1 {
		faults = append(faults, fmt.Errorf("separator %q: want one character", m.Separator))
	}
	faults = append(faults, checkSources("fields", m.Fields)...)
	if _, shared := m.Fields[fieldNames[fieldEventID]]; shared && len(m.Events) > 1 {
		faults = append(faults, fmt.Errorf("fields.eventId: the %d events of a row would have one id and count once: give it in the fields of each event, or not at all", len(m.Events)))
	}
	for i, event := range m.Events {
		at := fmt.Sprintf("events[%d]", i)
		faults = append(faults, checkSources(at+".fields", event.Fields)...)
		for _, w := range event.When {
			if w.Column == "" || count(w.Equals != nil, w.Not != nil, w.Above != nil) != 1 {
				faults = append(faults, fmt.Errorf("%s.when: want a column and one of equals, not, above, or a list of such", at))
			}
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("mapping: %w", errors.Join(faults...))
	}
	return nil
}

func checkSources(path string, sources map[string]Source) []error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s, at := sources[name], path+"."+name
		if _, known := fieldByName(name); !known {
			faults = append(faults, fmt.Errorf("%s: unknown field; have %v", at, fieldNames))
		}
		if count(s.Column != "", s.Value != "", s.RowNumber) != 1 {
			faults = append(faults, fmt.Errorf("%s: want one of column, value, rowNumber", at))
		}
		if s.Default != nil && s.Column == "" {
			faults = append(faults, fmt.Errorf("%s.default: only a column has one", at))
		}
		if s.Column == "" && (s.Map != nil || s.Format != "") {
			faults = append(faults, fmt.Errorf("%s: only a column has a map and a format", at))
		}
		if (s.Format != "" || s.Zone != "") && name != fieldNames[fieldTime] {
			faults = append(faults, fmt.Errorf("%s: only time has a format and a zone", at))
		}
		if _, err := time.LoadLocation(s.Zone); err != nil {
			faults = append(faults, fmt.Errorf("%s.zone %q: want a name such as Europe/Paris", at, s.Zone))
		}
		if l := s.Lookup; l != nil && (l.File == "" || l.Key == "" || l.Column == "" || s.Column == "") {
			faults = append(faults, fmt.Errorf("%s.lookup: want file, key and column, and the column to look up", at))
		}
	}
	return faults
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// holds says whether the condition is true of the column's value.
func (c *Condition) holds(value string) (bool, error) {
	switch {
	case c.Equals != nil:
		return value == string(*c.Equals), nil
	case c.Not != nil:
		return value != string(*c.Not), nil
	}
	if value == "" {
		return false, nil
	}
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return false, fmt.Errorf("%s: %q: want a number, for the condition", c.Column, clipped(value))
	}
	return number > *c.Above, nil
}
