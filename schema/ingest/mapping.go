package ingest

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"

	"github.com/cespare/xxhash/v2"
	"go.yaml.in/yaml/v4"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
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
	Extends   string            `yaml:"extends"`   // a shipped mapping, whose fields are overridden; events are added
	Each      string            `yaml:"each"`      // a list in a JSON object, of which each element is a line
	Fields    map[string]Source `yaml:"fields"`    // fields of every event of a line
	Events    []EventMapping    `yaml:"events"`    // the events of a line; empty: one event

	anyColumns bool // lines may lack any column, as those of a shipped mapping
}

// EventMapping defines one event of a line, or one for each element of a list in the line. The line has the event if
// all conditions are true. Fields override Mapping.Fields.
type EventMapping struct {
	Each   string               `yaml:"each"` // path of a list in lists; columns are looked up in its elements first
	When   oneOrMore[Condition] `yaml:"when"`
	Fields map[string]Source    `yaml:"fields"`
}

// Condition compares the value of a column: the value equals a text, differs from all texts, or is a number above a
// limit. An empty value is not above any number.
type Condition struct {
	Column oneOrMore[text] `yaml:"column"` // the first that is not empty
	Equals oneOrMore[text] `yaml:"equals"`
	Not    oneOrMore[text] `yaml:"not"`
	Above  *float64        `yaml:"above"`
}

// oneOrMore is a list, which YAML may write as its only element.
type oneOrMore[T any] []T

// UnmarshalYAML decodes an element or a list of elements.
func (l *oneOrMore[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		node = &yaml.Node{Kind: yaml.SequenceNode, Line: node.Line, Content: []*yaml.Node{node}}
	}
	return node.Load((*[]T)(l), yaml.WithKnownFields())
}

// Source defines the value of a field. In YAML, a plain string is the name of a column, and a list has the names of
// several.
type Source struct {
	Column    oneOrMore[text] `yaml:"column"`    // the first that is not empty
	Value     text            `yaml:"value"`     // a constant
	RowNumber bool            `yaml:"rowNumber"` // the number of the record, from 1, without the header
	Lookup    *Lookup         `yaml:"lookup"`    // replaces the column's value
	Map       map[text]text   `yaml:"map"`       // replaces the value; other values are rejected
	// used if the column is empty or missing, or if Lookup or Map does not contain its value
	Default *text           `yaml:"default"`
	Format  string          `yaml:"format"` // of a time or revision: a Go layout, unix, unixMilliseconds, unixMicroseconds or age; or country
	Zone    string          `yaml:"zone"`   // time zone of times without offset; empty: UTC
	Match   string          `yaml:"match"`  // regular expression with one group, which replaces the value; empty without a match
	Hash    oneOrMore[text] `yaml:"hash"`   // columns whose hash is an event id
	SentAt  text            `yaml:"sentAt"` // column with the sender's time of the request, which corrects a clock that is ahead
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

// UnmarshalYAML decodes the name of a column, a list of names, or an object.
func (s *Source) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode || node.Kind == yaml.SequenceNode {
		return s.Column.UnmarshalYAML(node)
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
	if m.Extends != "" {
		if err := m.extend(); err != nil {
			return nil, err
		}
	}
	if len(m.Events) == 0 {
		m.Events = []EventMapping{{}}
	}
	return &m, m.checkFields()
}

// extend adds the fields and the events of the mapping that m extends.
func (m *Mapping) extend() error {
	base, err := ShippedMapping(m.Extends)
	if err != nil {
		return fmt.Errorf("mapping: extends: %w", err)
	}
	fields := maps.Clone(base.Fields)
	maps.Copy(fields, m.Fields)
	m.Fields, m.Events, m.anyColumns = fields, slices.Concat(base.Events, m.Events), true
	m.Each = cmp.Or(m.Each, base.Each)
	return nil
}

// fieldsOf returns the fields of an event: its own, and those of all events that it does not override.
func (m *Mapping) fieldsOf(e *EventMapping) map[string]Source {
	fields := map[string]Source{}
	maps.Copy(fields, m.Fields)
	maps.Copy(fields, e.Fields)
	return fields
}

//go:embed shipped/*.yaml
var shipped embed.FS

// ShippedMappings returns the names of the shipped mappings.
func ShippedMappings() []string {
	files, _ := shipped.ReadDir("shipped") // embedded
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".yaml"))
	}
	return names
}

// ShippedMapping returns a shipped mapping.
func ShippedMapping(name string) (*Mapping, error) {
	if !slices.Contains(ShippedMappings(), name) {
		return nil, fmt.Errorf("no shipped mapping %q; %s", name, faults.OneOf(ShippedMappings()...))
	}
	text, err := shipped.ReadFile("shipped/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	m, err := ReadMapping(bytes.NewReader(text))
	if err == nil {
		m.anyColumns = true
	}
	return m, err
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
			hasColumn := len(w.Column) > 0 && !slices.Contains(w.Column, "")
			if !hasColumn || count(w.Equals != nil, w.Not != nil, w.Above != nil) != 1 {
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
		hasColumn := len(s.Column) > 0 && !slices.Contains(s.Column, "")
		isTime := name == fieldNames[fieldTime] || name == fieldNames[fieldRevision] && s.Format != formatAge
		hasHash := len(s.Hash) > 0 && !slices.Contains(s.Hash, "")
		if count(hasColumn, s.Value != "", s.RowNumber, hasHash) != 1 {
			found.AddField(at, "must have one of column, value, rowNumber, hash")
		}
		if s.Default != nil && len(s.Column) == 0 {
			found.AddField(at+".default", "requires a column")
		}
		if len(s.Column) == 0 && (s.Map != nil || s.Format != "" || s.Match != "") {
			found.AddField(at, "map, match and format require a column")
		}
		if expression, err := regexp.Compile(s.Match); err != nil || s.Match != "" && expression.NumSubexp() != 1 {
			found.AddField(fmt.Sprintf("%s.match %q", at, s.Match),
				"must be a regular expression with one group, such as ^exp-(.+)$")
		}
		if len(s.Hash) > 0 && name != fieldNames[fieldEventID] {
			found.AddField(at+".hash", "is only allowed for eventId")
		}
		if s.SentAt != "" && name != fieldNames[fieldTime] {
			found.AddField(at+".sentAt", "is only allowed for time")
		}
		if !isFormat(s.Format) {
			found.AddField(fmt.Sprintf("%s.format %q", at, s.Format),
				"must be unix, unixMilliseconds, unixMicroseconds, age or a Go layout with a year, such as 2006-01-02 "+
					"15:04:05; or country")
		}
		if (s.Format == formatCountry) != (name == fieldNames[fieldCountry]) && s.Format != "" ||
			(s.Zone != "" || s.Format != "" && s.Format != formatCountry) && !isTime {
			found.AddField(at,
				"format and zone are only allowed for time and revision, and format: country for country")
		}
		if _, err := time.LoadLocation(s.Zone); err != nil {
			found.AddField(fmt.Sprintf("%s.zone %q", at, s.Zone), "must be a name such as Europe/Paris")
		}
		if l := s.Lookup; l != nil && (l.File == "" || l.Key == "" || l.Column == "" || len(s.Column) == 0) {
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
		return slices.Contains(c.Equals, text(value)), nil
	case c.Not != nil:
		return !slices.Contains(c.Not, text(value)), nil
	}
	if value == "" {
		return false, nil
	}
	plain := value
	if c.comma {
		var err error
		if plain, err = withDecimalPoint(value); err != nil {
			return false, fmt.Errorf("%s: %w", c.Column[0], err)
		}
	}
	number, err := strconv.ParseFloat(plain, 64)
	if err != nil {
		return false, fmt.Errorf("%s: %q: must be a number, because a condition compares it%s", c.Column[0],
			clipText(value), numberHint(plain))
	}
	return number > *c.Above, nil
}

// mapper is a compiled Mapping, with the look-up files in memory.
type mapper struct {
	columns    []string // names of the columns, in the order of a line's cells
	needed     [][]int  // cells of which the header, or at least one line of JSON, must have one
	defaulted  [][]int  // cells of which the header must have one
	anyColumns bool     // none is needed
	each       []string // path of the lists whose elements are lines
	name       int      // cell that names lines without an event; -1: none
	website    string   // of events without websiteId
	events     []mappedEvent
}

type mappedEvent struct {
	each   []string // path of the lists of which each element is an event
	when   []mappedCondition
	fields []mappedField
}

type mappedCondition struct {
	Condition
	cells []int
	comma bool // a number has a decimal comma
}

type mappedField struct {
	field  field
	source Source
	cells  []int // of the columns, or of those that are hashed
	sentAt int   // cell with the sender's time; -1: none
	match  *regexp.Regexp
	zone   *time.Location
	comma  bool // a number has a decimal comma
	lookup map[string]string
}

// newMapper compiles a mapping. It reads the look-up files with open. website is that of events without websiteId.
func newMapper(m *Mapping, website int64, open func(file string) (io.ReadCloser, error)) (*mapper, error) {
	compiled := &mapper{anyColumns: m.anyColumns, name: -1, each: pathOf(m.Each)}
	if website != 0 {
		compiled.website = strconv.FormatInt(website, 10)
	}
	lookups := map[Lookup]map[string]string{}
	for i := range m.Events {
		event := &m.Events[i]
		sources := m.fieldsOf(event)
		e := mappedEvent{each: pathOf(event.Each)}
		for _, c := range event.When {
			cells := compiled.cellsOf(c.Column)
			if c.Equals != nil && compiled.name < 0 {
				compiled.name = cells[0]
			}
			e.when = append(e.when, mappedCondition{c, cells, m.Decimal == decimalComma})
			compiled.needed = append(compiled.needed, cells)
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

func pathOf(each string) []string {
	if each == "" {
		return nil
	}
	return strings.Split(each, ".")
}

// cellsOf returns the places of columns in the cells of a line.
func (m *mapper) cellsOf(columns []text) []int {
	var cells []int
	for _, name := range columns {
		at := slices.Index(m.columns, string(name))
		if at < 0 {
			at, m.columns = len(m.columns), append(m.columns, string(name))
		}
		cells = append(cells, at)
	}
	return cells
}

func (m *mapper) compileField(name string, s Source, encoding string, lookups map[Lookup]map[string]string,
	open func(string) (io.ReadCloser, error),
) (mappedField, error) {
	f := mappedField{source: s, sentAt: -1, cells: m.cellsOf(slices.Concat(s.Column, s.Hash))}
	f.field, _ = fieldByName(name)
	if s.Default == nil {
		m.needed = append(m.needed, f.cells)
	} else {
		m.defaulted = append(m.defaulted, f.cells)
	}
	if s.SentAt != "" {
		f.sentAt = m.cellsOf([]text{s.SentAt})[0]
	}
	var err error
	if s.Match != "" {
		f.match = regexp.MustCompile(s.Match) // ReadMapping has compiled it
	}
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
	plain, err := decompressFile(file)
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

// mappedLine is a line, or an element of a list in a line, whose events a mapper returns.
type mappedLine struct {
	record  int64                          // from 1, without the header
	arrived time.Time                      // of an HTTP request; zero: of a file
	cellAt  func(cell int) (string, error) // value of a column; empty: the line does not have it
	// each calls do for each element of the lists at a path, with a cellAt of the element; nil: the line has no lists
	each func(path []string, do func(cellAt func(int) (string, error)) error) error
}

// firstCell returns the first cell that is not empty.
func firstCell(cells []int, cellAt func(int) (string, error)) (string, error) {
	for _, cell := range cells {
		if value, err := cellAt(cell); value != "" || err != nil {
			return value, err
		}
	}
	return "", nil
}

// lineEvents appends the fields of each event of a line.
func (m *mapper) lineEvents(events []fields, line *mappedLine) ([]fields, error) {
	for i := range m.events {
		e := &m.events[i]
		add := func(cellAt func(int) (string, error)) error {
			f, has, err := m.readEvent(e, line, cellAt)
			if has && err == nil {
				events = append(events, f)
			}
			return err
		}
		var err error
		switch {
		case e.each == nil:
			err = add(line.cellAt)
		case line.each != nil:
			err = line.each(e.each, add)
		}
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}

// readEvent returns the fields of an event, if the line has it.
func (m *mapper) readEvent(e *mappedEvent, line *mappedLine, cellAt func(int) (string, error)) (f fields, has bool,
	err error,
) {
	for j := range e.when {
		value, err := firstCell(e.when[j].cells, cellAt)
		if err != nil {
			return f, false, err
		}
		if holds, err := e.when[j].holdsFor(value); !holds || err != nil {
			return f, false, err
		}
	}
	f.values[fieldWebsiteID] = m.website
	sent := ""
	for j := range e.fields {
		of := &e.fields[j]
		if f.values[of.field], err = of.cellValue(line, cellAt); err != nil {
			return f, false, err
		}
		if of.sentAt >= 0 {
			if sent, err = cellAt(of.sentAt); err != nil {
				return f, false, err
			}
		}
	}
	if !line.arrived.IsZero() {
		f.values[fieldTime] = timeOnArrival(f.values[fieldTime], sent, line.arrived)
	}
	return f, true, nil
}

// timeOnArrival returns the time of an event that arrived over HTTP, in Unix milliseconds. An event without a time
// happened on its arrival. A sender's clock that is ahead of ours, by its time of the request, is corrected. One that
// is behind is believed, because some senders repeat the time of their first attempt in every retry. No event happened
// after its arrival. An invalid time is returned unchanged: validation reports it.
func timeOnArrival(value, sent string, arrived time.Time) string {
	happened := arrived
	if value != "" {
		var err error
		if happened, err = parseTime(value); err != nil {
			return value
		}
		if sentAt, err := parseTime(sent); err == nil && sentAt.After(arrived) {
			happened = happened.Add(arrived.Sub(sentAt))
		}
	}
	if happened.After(arrived) {
		happened = arrived
	}
	return strconv.FormatInt(happened.UnixMilli(), 10)
}

func (f *mappedField) cellValue(line *mappedLine, cellAt func(int) (string, error)) (string, error) {
	s := &f.source
	switch {
	case s.RowNumber:
		return strconv.FormatInt(line.record, 10), nil
	case len(s.Hash) > 0:
		return hashCells(f.cells, cellAt)
	case len(s.Column) == 0:
		return string(s.Value), nil
	}
	value, err := firstCell(f.cells, cellAt)
	if err != nil {
		return "", err
	}
	if f.match != nil {
		group := ""
		if found := f.match.FindStringSubmatch(value); found != nil {
			group = found[1]
		}
		value = group
	}
	if value == "" && s.Default != nil && s.Map == nil && s.Lookup == nil {
		value = string(*s.Default)
	}
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
	switch {
	case value == "":
	case s.Format == formatCountry:
		return countryCode(value), nil
	case s.Format == formatAge:
		age, err := strconv.ParseFloat(value, 64)
		if err != nil || !(age >= 0 && age < maxSeconds*1000) || line.arrived.IsZero() {
			return "", fmt.Errorf("time: column %s: %q: must be the age of the event in milliseconds when it is sent, "+
				"over HTTP", s.Column[0], clipText(value))
		}
		return strconv.FormatInt(line.arrived.UnixMilli()-int64(age), 10), nil
	case s.Format != "":
		at, err := toUnixMilliseconds(value, s.Format, f.zone)
		if err != nil {
			return "", fmt.Errorf("%s: column %s: %q: %w", fieldNames[f.field], s.Column[0], clipText(value), err)
		}
		return strconv.FormatInt(at, 10), nil
	case f.comma:
		if value, err = withDecimalPoint(value); err != nil {
			return "", fmt.Errorf("%s: %w", fieldNames[f.field], err)
		}
	}
	return value, nil
}

// hashCells returns a hash of cells as text.
func hashCells(cells []int, cellAt func(int) (string, error)) (string, error) {
	hash := xxhash.New()
	for _, cell := range cells {
		value, err := cellAt(cell)
		if err != nil {
			return "", err
		}
		_, _ = hash.WriteString(value + "\x00") // never fails
	}
	return strconv.FormatUint(hash.Sum64(), 36), nil
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
		f.source.Column[0], clipText(value), table)
}

// Formats of times, in addition to Go's layouts.
const (
	formatUnix             = "unix"
	formatUnixMilliseconds = "unixMilliseconds"
	formatUnixMicroseconds = "unixMicroseconds"
	formatAge              = "age" // milliseconds before the arrival over HTTP
)

// formatCountry is the format of a country that is a name in English or a code of ISO 3166.
const formatCountry = "country"

// countryCodes has the codes of ISO 3166 by the names of countries in English, in lower case.
var countryCodes = sync.OnceValue(func() map[string]string {
	codes, names := map[string]string{}, display.English.Regions()
	for first := 'A'; first <= 'Z'; first++ {
		for second := 'A'; second <= 'Z'; second++ {
			if region, err := language.ParseRegion(string(first) + string(second)); err == nil && region.IsCountry() {
				codes[strings.ToLower(names.Name(region))] = region.String()
			}
		}
	}
	return codes
})

// countryCode returns the code of a country, or an empty string if it is not known.
func countryCode(country string) string {
	if len(country) == len("FR") {
		return strings.ToUpper(country)
	}
	return countryCodes()[strings.ToLower(country)]
}

// isFormat reports whether the format is that of a time with a year, or empty.
func isFormat(format string) bool {
	switch format {
	case "", formatUnix, formatUnixMilliseconds, formatUnixMicroseconds, formatAge, formatCountry:
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
