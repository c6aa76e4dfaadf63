package ingest

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// Mapping defines how the columns of a file, or the keys of its JSON lines, are
// converted to events. A name such as properties.plan selects a value in a nested
// object, in a list of objects with key and value, or in a string that contains
// JSON or lines such as "plan: pro". A column with the whole name takes precedence.
type Mapping struct {
	Format    string            `yaml:"format"`    // csv, ndjson or parquet; empty: the format of the file name
	Separator string            `yaml:"separator"` // separator of CSV; empty: detected in the first line
	Decimal   string            `yaml:"decimal"`   // decimal separator of numbers: . or ,; empty: .
	Encoding  string            `yaml:"encoding"`  // encoding of CSV, such as latin1; empty: UTF-8
	ShortRows bool              `yaml:"shortRows"` // rows of CSV may lack cells at their end, which are empty
	Fields    map[string]Source `yaml:"fields"`    // fields of every event of a line
	Events    []EventMapping    `yaml:"events"`    // the events of a line; empty: one event
}

// EventMapping defines one event of a line. The line has the event if all
// conditions are true. Fields override Mapping.Fields.
type EventMapping struct {
	When   conditions        `yaml:"when"` // in YAML one condition or a list
	Fields map[string]Source `yaml:"fields"`
}

// Condition compares the value of a column: the value equals a text, differs from
// it, or is a number above a limit. An empty value is not above any number.
type Condition struct {
	Column string   `yaml:"column"`
	Equals *text    `yaml:"equals"`
	Not    *text    `yaml:"not"`
	Above  *float64 `yaml:"above"`
}

type conditions []Condition

// UnmarshalYAML decodes one condition or a list of conditions.
func (c *conditions) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		node = &yaml.Node{Kind: yaml.SequenceNode, Line: node.Line, Content: []*yaml.Node{node}}
	}
	return node.Load((*[]Condition)(c), yaml.WithKnownFields())
}

// Source defines the value of a field. In YAML, a plain string is the name of a
// column.
type Source struct {
	Column    string        `yaml:"column"`
	Value     text          `yaml:"value"`     // a constant
	RowNumber bool          `yaml:"rowNumber"` // the number of the record, from 1, without the header
	Lookup    *Lookup       `yaml:"lookup"`    // replaces the column's value
	Map       map[text]text `yaml:"map"`       // replaces the value; other values are rejected
	Default   *text         `yaml:"default"`   // used if the column is empty or missing, or if Lookup or Map does not contain its value
	Format    string        `yaml:"format"`    // format of a time: a Go layout, unix, unixMilliseconds or unixMicroseconds
	Zone      string        `yaml:"zone"`      // time zone of times without offset; empty: UTC
}

// text is the literal text of a YAML scalar: 010 is not decoded as a number.
type text string

// UnmarshalYAML decodes a scalar. It returns an error for other nodes.
func (t *text) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: must be a string, a number or a boolean", node.Line)
	}
	*t = text(node.Value)
	return nil
}

// Lookup replaces a value with a cell of a CSV file: the value of Column in the row
// whose Key column equals the value.
type Lookup struct {
	File   string `yaml:"file"` // relative to the mapping file
	Key    string `yaml:"key"`
	Column string `yaml:"column"`
}

// UnmarshalYAML decodes the name of a column, or an object.
func (s *Source) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		s.Column = node.Value
		return nil
	}
	type object Source
	return node.Load((*object)(s), yaml.WithKnownFields())
}

// unknownField matches the error of the decoder about an unknown field.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// maxMapping is the maximum size of a mapping file, in bytes.
const maxMapping = 16 << 20

// ReadMapping parses and validates a mapping file. The error of an unknown key
// includes its line.
func ReadMapping(r io.Reader) (*Mapping, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxMapping+1))
	if err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	if len(content) > maxMapping {
		return nil, fmt.Errorf("read mapping: the file is longer than %d bytes", maxMapping)
	}
	body, err := schema.ParseYAML(content)
	var m Mapping
	if err == nil && body != nil {
		err = body.Load(&m, yaml.WithKnownFields())
	}
	if err != nil {
		return nil, fmt.Errorf("read mapping: %s", unknownField.ReplaceAllString(err.Error(), "unknown field $1"))
	}
	if len(m.Events) == 0 {
		m.Events = []EventMapping{{}}
	}
	return &m, m.checkFields()
}

func (m *Mapping) checkFields() error {
	var found faults.Collector
	if m.Format != "" && m.Format != formatCSV && m.Format != formatNDJSON && m.Format != formatParquet {
		found.AddField(fmt.Sprintf("format %q", m.Format), "must be csv, ndjson or parquet")
	}
	if len([]rune(m.Separator)) > 1 {
		found.AddField(fmt.Sprintf("separator %q", m.Separator), "must be one character")
	}
	if m.Decimal != "" && m.Decimal != decimalPoint && m.Decimal != decimalComma {
		found.AddField(fmt.Sprintf("decimal %q", m.Decimal), "must be . or ,")
	}
	if !isEncoding(m.Encoding) {
		found.AddField(fmt.Sprintf("encoding %q", m.Encoding), "must be a name such as utf-8, latin1, windows-1252 or utf-16le")
	}
	checkSources(&found, "fields", m.Fields)
	if _, shared := m.Fields[fieldNames[fieldEventID]]; shared && len(m.Events) > 1 {
		found.AddField("fields.eventId", "the %d events of a line would have the same id and count once: set eventId in the fields of each event, or not at all", len(m.Events))
	}
	for i, event := range m.Events {
		at := fmt.Sprintf("events[%d]", i)
		checkSources(&found, at+".fields", event.Fields)
		for _, w := range event.When {
			if w.Column == "" || count(w.Equals != nil, w.Not != nil, w.Above != nil) != 1 {
				found.AddField(at+".when", "must have column and one of equals, not, above, or be a list of such conditions")
			}
		}
	}
	if err := found.List.Err(); err != nil {
		return fmt.Errorf("mapping: %w", err)
	}
	return nil
}

func checkSources(found *faults.Collector, path string, sources map[string]Source) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s, at := sources[name], path+"."+name
		if _, known := fieldByName(name); !known {
			found.AddField(at, "%s; must be one of %v", faults.UnknownField, fieldNames)
		}
		if count(s.Column != "", s.Value != "", s.RowNumber) != 1 {
			found.AddField(at, "must have one of column, value, rowNumber")
		}
		if s.Default != nil && s.Column == "" {
			found.AddField(at+".default", "requires a column")
		}
		if s.Column == "" && (s.Map != nil || s.Format != "") {
			found.AddField(at, "map and format require a column")
		}
		if !isFormat(s.Format) {
			found.AddField(fmt.Sprintf("%s.format %q", at, s.Format), "must be unix, unixMilliseconds, unixMicroseconds or a Go layout with a year, such as 2006-01-02 15:04:05")
		}
		if (s.Format != "" || s.Zone != "") && name != fieldNames[fieldTime] {
			found.AddField(at, "format and zone are only allowed for time")
		}
		if _, err := time.LoadLocation(s.Zone); err != nil {
			found.AddField(fmt.Sprintf("%s.zone %q", at, s.Zone), "must be a name such as Europe/Paris")
		}
		if l := s.Lookup; l != nil && (l.File == "" || l.Key == "" || l.Column == "" || s.Column == "") {
			found.AddField(at+".lookup", "must have file, key and column, and requires a column to look up")
		}
	}
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

// holdsFor reports whether the value of the column satisfies the condition. It
// returns an error if the value must be a number and is not.
func (c *mappedCondition) holdsFor(value string) (bool, error) {
	switch {
	case c.Equals != nil:
		return value == string(*c.Equals), nil
	case c.Not != nil:
		return value != string(*c.Not), nil
	}
	if value == "" {
		return false, nil
	}
	plain := value
	if c.comma {
		var err error
		if plain, err = withDecimalPoint(value); err != nil {
			return false, fmt.Errorf("%s: %w", c.Column, err)
		}
	}
	number, err := strconv.ParseFloat(plain, 64)
	if err != nil {
		return false, fmt.Errorf("%s: %q: must be a number, because a condition compares it%s", c.Column, clipText(value), numberHint(plain))
	}
	return number > *c.Above, nil
}
