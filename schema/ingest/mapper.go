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
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"lifthouse/schema"
)

// mapper is a compiled Mapping, with the look-up files in memory.
type mapper struct {
	columns    []string     // names of the columns, in the order of a line's cells
	needed     [][]int      // cells of which the header, or at least one line of JSON, must have one
	defaulted  [][]int      // cells of which the header must have one
	anyColumns bool         // none is needed
	each       []string     // path of the lists whose elements are lines
	name       int          // cell that names lines without an event; -1: none
	ofNames    map[int]bool // cells with ids or keys
	website    string       // of events without websiteId
	events     []mappedEvent
}

type mappedEvent struct {
	each   []string // path of the lists of which each element is an event
	when   []mappedCondition
	fields []mappedField

	attributes, properties []mappedField
	items                  *mappedItems // nil: none
}

// mappedItems are the lines of an order.
type mappedItems struct {
	each     []string // path of the lists of which each element is a line
	perPiece bool     // the discount is that of a piece
	fields   []mappedField
	places   []itemField // of the fields
}

type mappedCondition struct {
	Condition
	cells []int
	comma bool // a number has a decimal comma
}

type mappedField struct {
	name   string
	field  field // of fields of the event
	source Source
	cells  []int // of the columns, or of those that are hashed
	sentAt int   // cell with the sender's time; -1: none
	minus  int   // cell with an amount that is subtracted; -1: none
	match  *regexp.Regexp
	zone   *time.Location
	comma  bool // a number has a decimal comma
	tables []valueTable
}

// valueTable replaces values.
type valueTable struct {
	name   string
	values map[string]string
}

// newMapper compiles a mapping. It reads the look-up files with open. website is that of events without websiteId.
func newMapper(m *Mapping, website int64, open func(file string) (io.ReadCloser, error)) (*mapper, error) {
	compiled := &mapper{anyColumns: m.anyColumns, name: -1, each: pathOf(m.Each), ofNames: map[int]bool{}}
	if website != 0 {
		compiled.website = strconv.FormatInt(website, 10)
	}
	files := lookupFiles{encoding: m.Encoding, open: open, read: map[Lookup]valueTable{}}
	hasComma := m.Decimal == ","
	for i := range m.Events {
		event := &m.Events[i]
		e := mappedEvent{each: pathOf(event.Each), when: compiled.compileConditions(event.When, hasComma)}
		sources := m.fieldsOf(event)
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			of := fieldsByName[name]
			f, err := compiled.compileField(name, sources[name], hasComma && isAmount(of), &files)
			if err != nil {
				return nil, err
			}
			f.field = of
			if isNameField(of) && f.source.keepsValue() {
				for _, cell := range f.cells {
					compiled.ofNames[cell] = true
				}
			}
			e.fields = append(e.fields, *f)
		}
		if err := compiled.compileDetails(&e, m.with(&event.DetailMapping), hasComma, &files); err != nil {
			return nil, err
		}
		compiled.events = append(compiled.events, e)
	}
	return compiled, nil
}

// compileDetails compiles the own attributes, the properties and the lines of an event.
func (m *mapper) compileDetails(e *mappedEvent, d DetailMapping, hasComma bool, files *lookupFiles) error {
	compileAll := func(sources map[string]Source, hasComma func(name string) bool) (all []mappedField, err error) {
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			f, err := m.compileField(name, sources[name], hasComma(name), files)
			if err != nil {
				return nil, err
			}
			all = append(all, *f)
		}
		return all, nil
	}
	var err error
	e.attributes, err = compileAll(d.Attributes, func(string) bool { return false })
	if err != nil {
		return err
	}
	e.properties, err = compileAll(d.Properties, func(name string) bool {
		return hasComma && d.Properties[name].Format == formatNumber
	})
	if err != nil || d.Items == nil {
		return err
	}
	e.items = &mappedItems{each: pathOf(d.Items.Each), perPiece: d.Items.PerPiece}
	placeOf := func(name string) itemField { return itemField(slices.Index(itemFieldNames[:], name)) }
	e.items.fields, err = compileAll(d.Items.Fields, func(name string) bool {
		return hasComma && placeOf(name) >= itemQuantity
	})
	for _, f := range e.items.fields {
		e.items.places = append(e.items.places, placeOf(f.name))
	}
	return err
}

// compileConditions finds the cells of conditions. The first column that must equal a text names lines without an
// event.
func (m *mapper) compileConditions(conditions []Condition, hasComma bool) []mappedCondition {
	var compiled []mappedCondition
	for _, c := range conditions {
		cells := m.cellsOf(c.Column)
		if c.Equals != nil && m.name < 0 {
			m.name = cells[0]
		}
		compiled = append(compiled, mappedCondition{c, cells, hasComma})
		m.needed = append(m.needed, cells)
	}
	return compiled
}

// compileField finds the cells of a field, its expression, its time zone and its tables.
func (m *mapper) compileField(name string, s Source, hasComma bool, files *lookupFiles) (*mappedField, error) {
	f := &mappedField{
		name: name, source: s, sentAt: -1, minus: -1, comma: hasComma,
		cells: m.cellsOf(slices.Concat(s.Column, s.Hash)),
	}
	if s.Default == nil {
		m.needed = append(m.needed, f.cells)
	} else {
		m.defaulted = append(m.defaulted, f.cells)
	}
	if s.SentAt != "" {
		f.sentAt = m.cellsOf([]text{s.SentAt})[0]
	}
	if s.Minus != "" {
		f.minus = m.cellsOf([]text{s.Minus})[0]
		m.needed = append(m.needed, []int{f.minus})
	}
	if s.Match != "" {
		f.match = regexp.MustCompile(s.Match) // ReadMapping has compiled it
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, err
	}
	f.zone = zone
	f.tables, err = files.tablesOf(&f.source)
	return f, err
}

// lookupFiles reads each look-up file of a mapping once.
type lookupFiles struct {
	encoding string
	open     func(file string) (io.ReadCloser, error)
	read     map[Lookup]valueTable
}

// tablesOf returns the tables that replace the values of a source, in their order.
func (l *lookupFiles) tablesOf(s *Source) ([]valueTable, error) {
	var tables []valueTable
	if s.Lookup != nil {
		table, isRead := l.read[*s.Lookup]
		if !isRead {
			values, err := readLookup(*s.Lookup, l.encoding, l.open)
			if err != nil {
				return nil, fmt.Errorf("lookup %s: %w", s.Lookup.File, err)
			}
			table = valueTable{s.Lookup.File, values}
			l.read[*s.Lookup] = table
		}
		tables = append(tables, table)
	}
	if s.Map != nil {
		values := map[string]string{}
		for value, replacement := range s.Map {
			values[string(value)] = string(replacement)
		}
		tables = append(tables, valueTable{"the map", values})
	}
	return tables, nil
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
			at = len(m.columns)
			m.columns = append(m.columns, string(name))
		}
		cells = append(cells, at)
	}
	return cells
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
	table, err := openTable(plain, encoding, ',')
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
	// each calls do for each element of the lists at a path, nil for one that is no object; nil: the line has no lists
	each func(path []string, do func(element *mappedLine) error) error
}

// holdsFor reports whether the value of the column satisfies the condition. It returns an error if the value must be a
// number and is not.
func (c *mappedCondition) holdsFor(value string) (bool, error) {
	switch {
	case c.Equals != nil:
		return slices.Contains(c.Equals, text(value)), nil
	case c.Not != nil:
		return !slices.Contains(c.Not, text(value)), nil
	case c.Contains != nil:
		return containsAny(value, c.Contains), nil
	case c.Lacks != nil:
		return !containsAny(value, c.Lacks), nil
	}
	if value == "" {
		return false, nil
	}
	plain := value
	if c.comma {
		var err error
		plain, err = withDecimalPoint(value)
		if err != nil {
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

// containsAny reports whether a value contains one of the texts.
func containsAny(value string, texts []text) bool {
	return slices.ContainsFunc(texts, func(t text) bool { return strings.Contains(value, string(t)) })
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

// maxLineEvents is the maximum number of events of a line. The rate of a source counts lines.
const maxLineEvents = 1000

// lineEvents appends the fields of each event that a line has.
func (m *mapper) lineEvents(events []fields, line *mappedLine) ([]fields, error) {
	before := len(events)
	for i := range m.events {
		e := &m.events[i]
		add := func(own *mappedLine) error {
			if own == nil {
				return fmt.Errorf("%s: %w", strings.Join(e.each, "."), errNotObjects)
			}
			if holds, err := e.holdsFor(own.cellAt); !holds || err != nil {
				return err
			}
			var f fields
			f.values[fieldWebsiteID] = m.website
			if err := e.readFields(&f, own); err != nil {
				return err
			}
			if err := e.readDetails(&f, own); err != nil {
				return err
			}
			if len(events) == before+maxLineEvents {
				return fmt.Errorf("the line has more than %d events", maxLineEvents)
			}
			events = append(events, f)
			return nil
		}
		var err error
		switch {
		case e.each == nil:
			err = add(line)
		case line.each != nil:
			err = line.each(e.each, add)
		}
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}

// holdsFor reports whether a line, or an element of a list in it, satisfies all conditions of the event.
func (e *mappedEvent) holdsFor(cellAt func(int) (string, error)) (bool, error) {
	for i := range e.when {
		condition := &e.when[i]
		value, err := firstCell(condition.cells, cellAt)
		if err != nil {
			return false, err
		}
		if holds, err := condition.holdsFor(value); !holds || err != nil {
			return false, err
		}
	}
	return true, nil
}

// readFields sets the fields that the mapping defines.
func (e *mappedEvent) readFields(f *fields, line *mappedLine) error {
	sent := ""
	for i := range e.fields {
		of := &e.fields[i]
		if of.field == fieldVisitor && of.source.isConstant("") {
			f.ofNobody = true
		}
		value, err := of.cellValue(line)
		if err != nil {
			return err
		}
		f.values[of.field] = value
		if of.sentAt >= 0 {
			sent, err = line.cellAt(of.sentAt)
			if err != nil {
				return err
			}
		}
	}
	if !line.arrived.IsZero() {
		f.values[fieldTime] = timeOnArrival(f.values[fieldTime], sent, line.arrived)
	}
	return nil
}

// readDetails sets the own attributes, and of a goal the properties and lines, that the mapping defines.
func (e *mappedEvent) readDetails(f *fields, line *mappedLine) error {
	if len(e.attributes) == 0 && len(e.properties) == 0 && e.items == nil {
		return nil
	}
	var d givenDetails
	d.attributes = d.readLabels("attribute", e.attributes, line)
	if f.values[fieldEvent] == string(schema.KindGoal) {
		d.properties = d.readLabels("property", e.properties, line)
		if err := e.items.readItems(&d, line); err != nil {
			return err
		}
	}
	if len(d.attributes)+len(d.properties)+len(d.items)+len(d.faults) > 0 {
		f.details = &d
	}
	return nil
}

// readLabels returns the labels that have a value, and notes what cannot be read.
func (d *givenDetails) readLabels(kind string, of []mappedField, line *mappedLine) (labels []givenLabel) {
	for i := range of {
		value, err := of[i].cellValue(line)
		if err != nil {
			d.faults = append(d.faults, detailFault{kind, of[i].name, err.Error()})
		}
		if value != "" {
			labels = append(labels, givenLabel{of[i].name, value, of[i].source.Format == formatNumber})
		}
	}
	return labels
}

// readItems adds the lines of an order. An element that is no object is a line without fields.
func (m *mappedItems) readItems(d *givenDetails, line *mappedLine) error {
	if m == nil || line.each == nil {
		return nil
	}
	d.discountIsOfPiece = m.perPiece
	return line.each(m.each, func(element *mappedLine) error {
		var item givenItem
		if element != nil {
			for i := range m.fields {
				value, err := m.fields[i].cellValue(element)
				if err != nil {
					d.faults = append(d.faults, detailFault{"item", "items." + m.fields[i].name, err.Error()})
				}
				item[m.places[i]] = value
			}
		}
		d.items = append(d.items, item)
		return nil
	})
}

// cellValue returns the value of the field as text: a number, a hash or a constant, or what the column has after the
// expression, the tables and the format.
func (f *mappedField) cellValue(line *mappedLine) (string, error) {
	s := &f.source
	cellAt := line.cellAt
	switch {
	case s.RowNumber:
		return strconv.FormatInt(line.record, 10), nil
	case len(s.Hash) > 0:
		return f.hashCells(cellAt)
	case s.Value != nil:
		return string(*s.Value), nil
	}
	value, err := firstCell(f.cells, cellAt)
	if err != nil {
		return "", err
	}
	value, err = f.replaceValue(f.matchValue(value))
	switch {
	case err != nil || value == "":
		return "", err
	case s.Format != "" && s.Format != formatNumber:
		return f.convertFormat(value, line.arrived)
	case f.comma:
		value, err = withDecimalPoint(value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if f.minus >= 0 && value != "" {
		return f.subtractCell(value, cellAt)
	}
	return value, nil
}

// hashCells returns a hash of the cells, which is an event id.
func (f *mappedField) hashCells(cellAt func(int) (string, error)) (string, error) {
	hash := xxhash.New()
	for _, cell := range f.cells {
		value, err := cellAt(cell)
		if err != nil {
			return "", err
		}
		_, _ = hash.WriteString(value + "\x00") // never fails
	}
	return strconv.FormatUint(hash.Sum64(), 36), nil
}

// matchValue returns the group of the field's expression in a value; without an expression, the value.
func (f *mappedField) matchValue(value string) string {
	if f.match == nil {
		return value
	}
	found := f.match.FindStringSubmatch(value)
	if found == nil {
		return ""
	}
	return found[1]
}

// replaceValue replaces a value with what the tables have for it, or with the default.
func (f *mappedField) replaceValue(value string) (string, error) {
	s := &f.source
	if value == "" && s.Default != nil && len(f.tables) == 0 {
		return string(*s.Default), nil
	}
	for _, table := range f.tables {
		replacement, known := table.values[value]
		switch {
		case known:
			value = replacement
		case s.Default != nil:
			value = string(*s.Default)
		default:
			return "", fmt.Errorf("%s: column %s: %q is not in %s: add the value, or set a default",
				f.name, s.Column[0], clipText(value), table.name)
		}
	}
	return value, nil
}

// convertFormat converts a country, an age or a time, which is not empty, from the field's format.
func (f *mappedField) convertFormat(value string, arrived time.Time) (string, error) {
	switch s := &f.source; s.Format {
	case formatCountry:
		if len(value) == len("FR") {
			return strings.ToUpper(value), nil
		}
		return countryCodes()[strings.ToLower(value)], nil // empty: not known
	case formatEmail:
		return schema.HashEmail(value), nil
	case formatAge:
		age, err := strconv.ParseFloat(value, 64)
		isAge := err == nil && age >= 0 && age < maxSeconds*1000
		if !isAge || arrived.IsZero() {
			return "", fmt.Errorf("time: column %s: %q: must be the age of the event in milliseconds when it is sent, "+
				"over HTTP", s.Column[0], clipText(value))
		}
		return strconv.FormatInt(arrived.UnixMilli()-int64(age), 10), nil
	default:
		at, err := toUnixMilliseconds(value, s.Format, f.zone)
		if err != nil {
			return "", fmt.Errorf("%s: column %s: %q: %w", f.name, s.Column[0], clipText(value), err)
		}
		return strconv.FormatInt(at, 10), nil
	}
}

// subtractCell returns an amount less that of another column. An empty cell subtracts nothing.
func (f *mappedField) subtractCell(value string, cellAt func(int) (string, error)) (string, error) {
	less, err := cellAt(f.minus)
	if err == nil && f.comma {
		less, err = withDecimalPoint(less)
	}
	if err != nil || less == "" {
		return value, err
	}
	from, isAmount := parseMoney(value)
	by, isOther := parseMoney(less)
	if !isAmount {
		return value, nil // which is rejected
	}
	if !isOther {
		return "", fmt.Errorf("%s: column %s: %q: must be a decimal number%s", f.name, f.source.Minus,
			clipText(less), numberHint(less))
	}
	return schema.FormatUnits(from - by), nil
}

// Formats of times, in addition to Go's layouts.
const (
	formatUnix             = "unix"
	formatUnixMilliseconds = "unixMilliseconds"
	formatUnixMicroseconds = "unixMicroseconds"
	formatAge              = "age" // milliseconds before the arrival over HTTP
)

// formatNumber is the format of a property that is a number.
const formatNumber = "number"

// formatCountry is the format of a country that is a name in English or a code of ISO 3166.
const formatCountry = "country"

// formatEmail is the format of a customer that is an e-mail, or its hash.
const formatEmail = "email"

// formats are the formats of values besides Go's layouts of times. A value may have none.
var formats = []string{
	"", formatUnix, formatUnixMilliseconds, formatUnixMicroseconds, formatAge, formatCountry, formatEmail,
}

// countryCodes has the codes of ISO 3166 by the names of countries in English, in lower case.
var countryCodes = sync.OnceValue(func() map[string]string {
	codes := map[string]string{}
	names := display.English.Regions()
	for first := 'A'; first <= 'Z'; first++ {
		for second := 'A'; second <= 'Z'; second++ {
			if region, err := language.ParseRegion(string(first) + string(second)); err == nil && region.IsCountry() {
				codes[strings.ToLower(names.Name(region))] = region.String()
			}
		}
	}
	return codes
})

// maxSeconds exceeds the Unix seconds of every accepted time.
const maxSeconds = 1e11

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
		return parseUnixSeconds(value)
	}
	t, err := time.ParseInLocation(format, value, zone)
	if err != nil {
		return 0, fmt.Errorf("must have the format %s", format)
	}
	if name := unknownZone(t, format, zone); name != "" {
		return 0, fmt.Errorf("the time zone %s is not known: set zone to the place that uses it, such as Europe/Paris",
			name)
	}
	return t.UnixMilli(), nil
}

// parseUnixSeconds parses Unix seconds with any number of decimals, or in scientific notation such as 1.7776368e9, and
// returns Unix milliseconds. Decimals are exact, scientific notation is as exact as a float64.
func parseUnixSeconds(value string) (int64, error) {
	whole, decimals, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	isInRange := err == nil && seconds >= 0 && seconds < maxSeconds
	if isInRange && strings.Trim(decimals, "0123456789") == "" {
		thousandths, _ := strconv.ParseInt((decimals + "000")[:3], 10, 64)
		return seconds*1000 + thousandths, nil
	}
	number, err := strconv.ParseFloat(value, 64)
	if err != nil || !(number > -maxSeconds && number < maxSeconds) {
		return 0, errors.New("must be a number of seconds, because its format is unix")
	}
	return int64(number * 1000), nil
}

// unknownZone returns the abbreviation of a zone, such as CEST, that the parser of the time does not know in zone, and
// treats as UTC. It is empty if the time is right.
func unknownZone(t time.Time, format string, zone *time.Location) string {
	name, offset := t.Zone()
	isKnown := t.Location() == zone || t.Location() == time.UTC || offset != 0
	isUTC := name == "GMT" || name == "UTC"
	hasOffset := strings.Contains(format, "07")
	if isKnown || isUTC || hasOffset {
		return ""
	}
	return name
}

// timeOnArrival returns the time of an event that arrived over HTTP, in Unix milliseconds. An event without a time
// happened on its arrival. A sender's clock that is ahead of ours, by its time of the request, is corrected. One that
// is behind is believed, because some senders repeat the time of their first attempt in every retry. No event happened
// after its arrival. An invalid time is returned unchanged: validation reports it.
func timeOnArrival(value, sent string, arrived time.Time) string {
	happened := arrived
	if value != "" {
		var err error
		happened, err = parseTime(value)
		if err != nil {
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
