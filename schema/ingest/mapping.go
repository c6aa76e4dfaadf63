package ingest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/encoding/htmlindex"
)

// Mapping defines how the columns of a file, or the keys of its JSON lines, are converted to events. A name such as
// properties.plan selects a value in a nested object, in a list of objects with key and value, or in a string that
// contains JSON or lines such as "plan: pro". A column with the whole name takes precedence.
type Mapping struct {
	Format    string            `yaml:"format"`    // csv, ndjson or parquet; empty: the format of the file name
	Separator string            `yaml:"separator"` // separator of CSV; empty: detected in the first line
	Decimal   string            `yaml:"decimal"`   // decimal separator of numbers: . or ,; empty: .
	Encoding  string            `yaml:"encoding"`  // encoding of CSV, such as latin1; empty: UTF-8
	ShortRows bool              `yaml:"shortRows"` // rows of CSV may lack cells at their end, which are empty
	Fields    map[string]Source `yaml:"fields"`    // fields of every event of a line
	Events    []EventMapping    `yaml:"events"`    // the events of a line; empty: one event
}

// EventMapping defines one event of a line. The line has the event if all conditions are true. Fields override
// Mapping.Fields.
type EventMapping struct {
	When   conditions        `yaml:"when"` // in YAML one condition or a list
	Fields map[string]Source `yaml:"fields"`
}

// Condition compares the value of a column: the value equals a text, differs from it, or is a number above a limit. An
// empty value is not above any number.
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

// Source defines the value of a field. In YAML, a plain string is the name of a column.
type Source struct {
	Column    string        `yaml:"column"`
	Value     text          `yaml:"value"`     // a constant
	RowNumber bool          `yaml:"rowNumber"` // the number of the record, from 1, without the header
	Lookup    *Lookup       `yaml:"lookup"`    // replaces the column's value
	Map       map[text]text `yaml:"map"`       // replaces the value; other values are rejected
	// used if the column is empty or missing, or if Lookup or Map does not contain its value
	Default *text  `yaml:"default"`
	Format  string `yaml:"format"` // format of a time: a Go layout, unix, unixMilliseconds or unixMicroseconds
	Zone    string `yaml:"zone"`   // time zone of times without offset; empty: UTC
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

// Lookup replaces a value with a cell of a CSV file: the value of Column in the row whose Key column equals the value.
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

// ReadMapping parses and validates a mapping file. The error of an unknown key includes its line.
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
	if _, err := htmlindex.Get(m.Encoding); m.Encoding != "" && err != nil {
		found.AddField(fmt.Sprintf("encoding %q", m.Encoding),
			"must be a name such as utf-8, latin1, windows-1252 or utf-16le")
	}
	checkSources(&found, "fields", m.Fields)
	if _, shared := m.Fields[fieldNames[fieldEventID]]; shared && len(m.Events) > 1 {
		found.AddField("fields.eventId",
			"the %d events of a line would have the same id and count once: set eventId in "+
				"the fields of each event, or not at all", len(m.Events))
	}
	for i, event := range m.Events {
		at := fmt.Sprintf("events[%d]", i)
		checkSources(&found, at+".fields", event.Fields)
		for _, w := range event.When {
			if w.Column == "" || count(w.Equals != nil, w.Not != nil, w.Above != nil) != 1 {
				found.AddField(at+".when",
					"must have column and one of equals, not, above, or be a list of such conditions")
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
			found.AddField(fmt.Sprintf("%s.format %q", at, s.Format),
				"must be unix, unixMilliseconds, unixMicroseconds or a Go layout with a year, such as 2006-01-02 "+
					"15:04:05")
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

// holdsFor reports whether the value of the column satisfies the condition. It returns an error if the value must be a
// number and is not.
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
		return false, fmt.Errorf("%s: %q: must be a number, because a condition compares it%s", c.Column,
			clipText(value), numberHint(plain))
	}
	return number > *c.Above, nil
}

// mapper is a compiled Mapping, with the look-up files in memory.
type mapper struct {
	columns []string // names of the columns, in the order of a line's cells
	needed  []string // columns that at least one line must have
	events  []mappedEvent
}

type mappedEvent struct {
	when   []mappedCondition
	fields []mappedField
}

type mappedCondition struct {
	Condition
	cell  int
	comma bool // a number has a decimal comma
}

type mappedField struct {
	field  field
	source Source
	cell   int
	zone   *time.Location
	comma  bool // a number has a decimal comma
	lookup map[string]string
}

// newMapper compiles a mapping. It reads the look-up files with open.
func newMapper(m *Mapping, open func(file string) (io.ReadCloser, error)) (*mapper, error) {
	compiled := &mapper{}
	lookups := map[Lookup]map[string]string{}
	for _, event := range m.Events {
		sources := maps.Clone(m.Fields)
		if sources == nil {
			sources = map[string]Source{}
		}
		maps.Copy(sources, event.Fields)
		var e mappedEvent
		for _, c := range event.When {
			e.when = append(e.when, mappedCondition{c, compiled.columnIndex(c.Column), m.Decimal == decimalComma})
			compiled.needed = append(compiled.needed, c.Column)
		}
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			f, err := compiled.compileField(name, sources[name], m.Encoding, lookups, open)
			if err != nil {
				return nil, err
			}
			isAmount := f.field == fieldValue || f.field == fieldProfit || f.field == fieldExtraValue
			f.comma = isAmount && m.Decimal == decimalComma
			e.fields = append(e.fields, f)
		}
		compiled.events = append(compiled.events, e)
	}
	return compiled, nil
}

func (m *mapper) columnIndex(name string) int {
	if at := slices.Index(m.columns, name); at >= 0 {
		return at
	}
	m.columns = append(m.columns, name)
	return len(m.columns) - 1
}

func (m *mapper) compileField(name string, s Source, encoding string, lookups map[Lookup]map[string]string,
	open func(string) (io.ReadCloser, error),
) (mappedField, error) {
	f := mappedField{source: s}
	f.field, _ = fieldByName(name)
	if s.Column != "" {
		f.cell = m.columnIndex(s.Column)
		if s.Default == nil {
			m.needed = append(m.needed, s.Column)
		}
	}
	var err error
	if f.zone, err = time.LoadLocation(s.Zone); err != nil {
		return f, err
	}
	if s.Lookup != nil {
		if _, read := lookups[*s.Lookup]; !read {
			if lookups[*s.Lookup], err = readLookup(*s.Lookup, encoding, open); err != nil {
				return f, fmt.Errorf("lookup %s: %w", s.Lookup.File, err)
			}
		}
		f.lookup = lookups[*s.Lookup]
	}
	return f, nil
}

func readLookup(l Lookup, encoding string, open func(string) (io.ReadCloser, error)) (map[string]string, error) {
	file, err := open(l.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	plain, err := decompressReader(file)
	if err != nil {
		return nil, err
	}
	table, err := openTable(plain, encoding, "")
	if err != nil {
		return nil, err
	}
	key, value := slices.Index(table.header, l.Key), slices.Index(table.header, l.Column)
	if key < 0 || value < 0 {
		return nil, fmt.Errorf("the file must have the columns %q and %q, has %q", l.Key, l.Column, table.header)
	}
	table.FieldsPerRecord = len(table.header)
	found := map[string]string{}
	for {
		record, err := table.readCells()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		found[record[key]] = record[value]
	}
}

// lineEvents returns the fields of each event of a line.
func (m *mapper) lineEvents(record int64, cells []string) ([]fields, error) {
	var events []fields
	for i := range m.events {
		e := &m.events[i]
		holds := true
		for j := 0; j < len(e.when) && holds; j++ {
			var err error
			if holds, err = e.when[j].holdsFor(cells[e.when[j].cell]); err != nil {
				return nil, err
			}
		}
		if !holds {
			continue
		}
		var f fields
		for j := range e.fields {
			value, err := e.fields[j].cellValue(record, cells)
			if err != nil {
				return nil, err
			}
			f.values[e.fields[j].field] = value
		}
		events = append(events, f)
	}
	return events, nil
}

func (f *mappedField) cellValue(record int64, cells []string) (string, error) {
	s := &f.source
	switch {
	case s.RowNumber:
		return strconv.FormatInt(record, 10), nil
	case s.Column == "":
		return string(s.Value), nil
	}
	value := cells[f.cell]
	if value == "" && s.Default != nil && s.Map == nil && s.Lookup == nil {
		value = string(*s.Default)
	}
	var err error
	if f.lookup != nil {
		found, known := f.lookup[value]
		if value, err = f.replaceValue(value, text(found), known, s.Lookup.File); err != nil {
			return "", err
		}
	}
	if s.Map != nil {
		found, known := s.Map[text(value)]
		if value, err = f.replaceValue(value, found, known, "the map"); err != nil {
			return "", err
		}
	}
	if s.Format != "" && value != "" {
		at, err := toUnixMilliseconds(value, s.Format, f.zone)
		if err != nil {
			return "", fmt.Errorf("time: column %s: %q: %w", s.Column, clipText(value), err)
		}
		return strconv.FormatInt(at, 10), nil
	}
	if f.comma {
		if value, err = withDecimalPoint(value); err != nil {
			return "", fmt.Errorf("%s: %w", fieldNames[f.field], err)
		}
	}
	return value, nil
}

// replaceValue returns the replacement if the value is known, and the default of the field otherwise. It returns an
// error if the field has no default.
func (f *mappedField) replaceValue(value string, replacement text, known bool, table string) (string, error) {
	if known {
		return string(replacement), nil
	}
	if f.source.Default != nil {
		return string(*f.source.Default), nil
	}
	return "", fmt.Errorf("%s: column %s: %q is not in %s: add the value, or set a default", fieldNames[f.field],
		f.source.Column, clipText(value), table)
}

// Formats of times, in addition to Go's layouts.
const (
	formatUnix             = "unix"
	formatUnixMilliseconds = "unixMilliseconds"
	formatUnixMicroseconds = "unixMicroseconds"
)

// isFormat reports whether the format is that of a time with a year, or empty.
func isFormat(format string) bool {
	switch format {
	case "", formatUnix, formatUnixMilliseconds, formatUnixMicroseconds:
		return true
	}
	one := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	return one.Format(format) != one.AddDate(1, 0, 0).Format(format)
}

// toUnixMilliseconds converts a time in the format to Unix milliseconds, rounded down. zone is the time zone of a time
// without offset.
func toUnixMilliseconds(value, format string, zone *time.Location) (int64, error) {
	switch format {
	case formatUnixMilliseconds, formatUnixMicroseconds:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("must be an integer, because its format is %s", format)
		}
		if format == formatUnixMicroseconds {
			return time.UnixMicro(n).UnixMilli(), nil
		}
		return n, nil
	case formatUnix:
		return secondsToMilliseconds(value)
	}
	t, err := time.ParseInLocation(format, value, zone)
	if err != nil {
		return 0, fmt.Errorf("must have the format %s", format)
	}
	if name, invented := inventedZone(t, zone); invented && !strings.Contains(format, "07") {
		return 0, fmt.Errorf("the time zone %s is not known: set zone to the place that uses it, such as Europe/Paris",
			name)
	}
	return t.UnixMilli(), nil
}

// inventedZone returns the abbreviation of a time's zone, such as CEST, and reports whether the parser did not know it.
// The parser treats such times as UTC.
func inventedZone(t time.Time, zone *time.Location) (name string, invented bool) {
	name, offset := t.Zone()
	known := t.Location() == zone || t.Location() == time.UTC || offset != 0
	return name, !known && name != "" && name != "GMT" && name != "UTC"
}

// maxSeconds exceeds the Unix seconds of every accepted time.
const maxSeconds = 1e11

// secondsToMilliseconds reads seconds with any number of decimals.
func secondsToMilliseconds(value string) (int64, error) {
	whole, decimals, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err == nil && seconds >= 0 && seconds < maxSeconds && strings.Trim(decimals, "0123456789") == "" {
		thousandths, _ := strconv.ParseInt((decimals + "000")[:3], 10, 64)
		return seconds*1000 + thousandths, nil
	}
	number, err := strconv.ParseFloat(value, 64) // 1.7776368e9
	if err != nil || !(number > -maxSeconds && number < maxSeconds) {
		return 0, errors.New("must be a number of seconds, because its format is unix")
	}
	return int64(number * 1000), nil
}
