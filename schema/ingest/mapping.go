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
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/encoding/htmlindex"
)

// Mapping defines how the columns of a file, or the keys of its JSON lines, are converted to events. A name such as
// properties.plan selects a value in a nested object, in a list of objects with key and value, or in a string that
// contains JSON or lines such as "plan: pro"; discount_codes.0.code selects one in the first element of a list. A
// column with the whole name takes precedence.
type Mapping struct {
	Format    string            `yaml:"format"`    // csv, ndjson or parquet; empty: the format of the file name
	Separator string            `yaml:"separator"` // separator of CSV; empty: a comma
	Decimal   string            `yaml:"decimal"`   // decimal separator of numbers: . or ,; empty: .
	Encoding  string            `yaml:"encoding"`  // encoding of CSV, such as latin1; empty: UTF-8
	ShortRows bool              `yaml:"shortRows"` // rows of CSV may lack cells at their end, which are empty
	Extends   string            `yaml:"extends"`   // a shipped mapping, whose fields are overridden; events are added
	Each      string            `yaml:"each"`      // a list in a JSON object, of which each element is a line
	Fields    map[string]Source `yaml:"fields"`    // fields of every event of a line
	Events    []EventMapping    `yaml:"events"`    // the events of a line; empty: one event

	DetailMapping `yaml:",inline"` // of every event of a line

	anyColumns bool // lines may lack any column, as those of a shipped mapping
	inherited  int  // number of the events of the mapping that it extends
}

// EventMapping defines one event of a line, or one for each element of a list in the line. The line has the event if
// all conditions are true. Fields override Mapping.Fields.
type EventMapping struct {
	Each   string               `yaml:"each"` // path of a list in lists; columns are looked up in its elements first
	When   oneOrMore[Condition] `yaml:"when"`
	Fields map[string]Source    `yaml:"fields"`

	DetailMapping `yaml:",inline"`
}

// DetailMapping defines the own attributes of events, and the properties and lines of goals. A mapping names what it
// takes, so that a sender of any texts chooses values and never names.
type DetailMapping struct {
	Attributes map[string]Source `yaml:"attributes"`
	Properties map[string]Source `yaml:"properties"`
	Items      *ItemMapping      `yaml:"items"` // nil: none, or that of every event
}

// ItemMapping defines the lines of an order: one for each element of a list.
type ItemMapping struct {
	Each     string            `yaml:"each"`     // path of the list
	PerPiece bool              `yaml:"perPiece"` // the discount is that of a piece
	Fields   map[string]Source `yaml:"fields"`   // by itemFieldNames; columns are looked up in the elements first
}

// Condition compares the value of a column: the value equals a text, differs from all texts, contains a text, contains
// none, or is a number above a limit. An empty value is not above any number.
type Condition struct {
	Column   oneOrMore[text] `yaml:"column"` // the first that is not empty
	Equals   oneOrMore[text] `yaml:"equals"`
	Not      oneOrMore[text] `yaml:"not"`
	Contains oneOrMore[text] `yaml:"contains"`
	Lacks    oneOrMore[text] `yaml:"lacks"`
	Above    *float64        `yaml:"above"`
}

// isValid reports whether a condition has a column and one comparison.
func (c *Condition) isValid() bool {
	hasColumn := len(c.Column) > 0 && !slices.Contains(c.Column, "")
	hasText := !slices.Contains(c.Contains, "") && !slices.Contains(c.Lacks, "") // every text contains the empty one
	return hasColumn && hasText &&
		countTrue(c.Equals != nil, c.Not != nil, c.Contains != nil, c.Lacks != nil, c.Above != nil) == 1
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
	Value     *text           `yaml:"value"`     // a constant; an empty visitor: the event is nobody's, or its customer's
	Minus     text            `yaml:"minus"`     // column with an amount that is subtracted
	RowNumber bool            `yaml:"rowNumber"` // the number of the record, from 1, without the header
	Lookup    *Lookup         `yaml:"lookup"`    // replaces the column's value
	Map       map[text]text   `yaml:"map"`       // replaces the value; other values are rejected
	// used if the column is empty or missing, or if Lookup or Map does not contain its value
	Default *text           `yaml:"default"`
	Format  string          `yaml:"format"` // of a time or revision: a Go layout, unix, unixMilliseconds, unixMicroseconds or age; or country, or email
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

// wrongType matches the error of the decoder about a value of another type.
var wrongType = regexp.MustCompile(`cannot construct !!(\w+)(?: (` + "`[^`]*`" + `))? into (\S+)`)

// explainWrongType says which type of value is allowed.
func explainWrongType(text string) string {
	parts := wrongType.FindStringSubmatch(text)
	given := cmp.Or(strings.Trim(parts[2], "`"), map[string]string{"seq": "a list", "map": "fields"}[parts[1]])
	switch want := parts[3]; {
	case strings.HasPrefix(want, "[]"):
		return fmt.Sprintf("%q: must be a list", given)
	case strings.HasPrefix(want, "map[") || strings.HasPrefix(want, "ingest."):
		return fmt.Sprintf("%q: must have fields, such as name: value", given)
	default:
		return fmt.Sprintf("%q: must be a %s", given, want)
	}
}

// noMapping returns the fault of a text that is neither YAML with fields nor the name of a shipped mapping.
func noMapping(text string) error {
	detail := faults.OneOf(shippedMappings...) + ", or a mapping as YAML"
	if nearest := faults.NearestName(text, shippedMappings); nearest != "" {
		detail += "; did you mean " + nearest + "?"
	}
	return errors.New(detail)
}

// maxMapping is the maximum size of a mapping file, in bytes.
const maxMapping = 16 << 20

// ReadMapping parses and validates a mapping file. The error of an unknown key includes its line.
func ReadMapping(r io.Reader) (*Mapping, error) {
	m, lines, err := decodeMapping(r)
	if err != nil {
		return nil, err
	}
	if m.Extends != "" {
		if err := m.extendShipped(); err != nil {
			return nil, fmt.Errorf("mapping: line %d: extends: %w", lines["extends"], err)
		}
	}
	if len(m.Events) == 0 {
		m.Events = []EventMapping{{}}
	}
	var found faults.Collector
	m.checkFormat(&found)
	m.checkFields(&found)
	found.List.SortByLine(lines)
	return m, schema.WrapError(found.List.Err(), "mapping")
}

// decodeMapping decodes YAML, and returns also the line of each key.
func decodeMapping(r io.Reader) (*Mapping, map[string]int, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxMapping+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read mapping: %w", err)
	}
	if len(content) > maxMapping {
		return nil, nil, fmt.Errorf("read mapping: the file is longer than %d bytes", maxMapping)
	}
	var m Mapping
	lines := map[string]int{}
	body, err := schema.ParseYAML(content)
	switch {
	case err != nil || body == nil:
	case body.Kind == yaml.ScalarNode && !strings.Contains(body.Value, "\n"):
		return nil, nil, noMapping(body.Value)
	default:
		lines = schema.LinesOf(body)
		err = body.Load(&m, yaml.WithKnownFields())
	}
	if err != nil {
		detail := unknownField.ReplaceAllString(err.Error(), "unknown field $1")
		return nil, nil, fmt.Errorf("read mapping: %s", wrongType.ReplaceAllStringFunc(detail, explainWrongType))
	}
	return &m, lines, nil
}

// extendShipped adds the fields that the mapping does not override, and the events, of the shipped mapping that it
// extends.
func (m *Mapping) extendShipped() error {
	base, err := ShippedMapping(m.Extends)
	if err != nil {
		return err
	}
	fields := maps.Clone(base.Fields)
	maps.Copy(fields, m.Fields)
	m.Fields = fields
	m.DetailMapping = base.with(&m.DetailMapping)
	m.Events = slices.Concat(base.Events, m.Events)
	m.Each = cmp.Or(m.Each, base.Each)
	m.anyColumns = true
	m.inherited = len(base.Events)
	return nil
}

// checkFormat finds faults in how the file is read.
func (m *Mapping) checkFormat(found *faults.Collector) {
	isFormat := slices.Contains([]string{"", formatCSV, formatNDJSON, formatParquet}, m.Format)
	found.AddIf(!isFormat, "format", m.Format, "must be csv, ndjson or parquet")
	found.AddIf(len([]rune(m.Separator)) > 1, "separator", m.Separator, "must be one character")
	isDecimal := slices.Contains([]string{"", ".", ","}, m.Decimal)
	found.AddIf(!isDecimal, "decimal", m.Decimal, "must be . or ,")
	_, unknown := htmlindex.Get(m.Encoding)
	found.AddIf(m.Encoding != "" && unknown != nil,
		"encoding", m.Encoding, "must be a name such as utf-8, latin1, windows-1252 or utf-16le")
}

// checkFields finds faults in the fields and in the mapping's own events.
func (m *Mapping) checkFields(found *faults.Collector) {
	checkSources(found, "fields", m.Fields)
	m.checkDetails(found, "")
	if _, shared := m.Fields[fieldNames[fieldEventID]]; shared && len(m.Events) > 1 {
		found.AddField("fields.eventId",
			"the %d events of a line would have the same id and count once: set eventId in "+
				"the fields of each event, or not at all", len(m.Events))
	}
	for i, event := range m.Events[m.inherited:] {
		at := fmt.Sprintf("events[%d]", i)
		checkSources(found, at+".fields", event.Fields)
		event.checkDetails(found, at+".")
		for _, w := range event.When {
			found.AddIf(!w.isValid(), at+".when", nil, "must have column and one of equals, not, contains, lacks, "+
				"above, or be a list of such conditions")
		}
	}
}

// AsOf returns the mapping for a file that has the state of its goals at a time: of several states of a goal, that of
// the latest time counts.
func (m *Mapping) AsOf(at time.Time) *Mapping {
	dated := *m
	dated.Fields = maps.Clone(m.Fields)
	if dated.Fields == nil {
		dated.Fields = map[string]Source{}
	}
	dated.Fields[fieldNames[fieldRevision]] = Source{Value: new(text(strconv.FormatInt(at.UnixMilli(), 10)))}
	return &dated
}

// with returns the mapping of details with those of another one, which override them.
func (d *DetailMapping) with(o *DetailMapping) DetailMapping {
	merge := func(shared, own map[string]Source) map[string]Source {
		all := map[string]Source{}
		maps.Copy(all, shared)
		maps.Copy(all, own)
		return all
	}
	return DetailMapping{
		Attributes: merge(d.Attributes, o.Attributes), Properties: merge(d.Properties, o.Properties),
		Items: cmp.Or(o.Items, d.Items),
	}
}

// fieldsOf returns the fields of an event: its own, and those of all events that it does not override.
func (m *Mapping) fieldsOf(e *EventMapping) map[string]Source {
	fields := map[string]Source{}
	maps.Copy(fields, m.Fields)
	maps.Copy(fields, e.Fields)
	return fields
}

//go:embed shipped
var shipped embed.FS

// The folders of the shipped mappings.
const (
	ofSenders = "shipped/senders" // of events over HTTP, and of files with the same items
	ofExports = "shipped/exports" // of files only
)

func namesIn(folder string) (names []string) {
	files, _ := shipped.ReadDir(folder) // embedded
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".yaml"))
	}
	return names
}

// shippedMappings are the names of the shipped mappings of senders, and shippedExports those of files.
var (
	shippedMappings = namesIn(ofSenders)
	shippedExports  = namesIn(ofExports)
)

// ShippedMappings returns the names of the shipped mappings of senders.
func ShippedMappings() []string { return slices.Clone(shippedMappings) }

// FileMappings returns the names of the shipped mappings of files: those of senders, and those of exports.
func FileMappings() []string { return slices.Concat(shippedMappings, shippedExports) }

// IsShipped reports whether a name is that of a shipped mapping of a sender.
func IsShipped(name string) bool { return slices.Contains(shippedMappings, name) }

// ShippedMapping returns a shipped mapping.
func ShippedMapping(name string) (*Mapping, error) {
	folder := ofSenders
	if slices.Contains(shippedExports, name) {
		folder = ofExports
	} else if !IsShipped(name) {
		return nil, fmt.Errorf("no shipped mapping %q; %s", name, faults.OneOf(FileMappings()...))
	}
	text, err := shipped.ReadFile(folder + "/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	m, err := ReadMapping(bytes.NewReader(text))
	if err == nil {
		m.anyColumns = true
	}
	return m, err
}

// checkSources finds faults in the sources of fields. path is that of the fields in the mapping.
func checkSources(found *faults.Collector, path string, sources map[string]Source) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s := sources[name]
		at := path + "." + name
		if _, known := fieldsByName[name]; !known {
			found.AddField(at, "%s; must be one of %v", faults.UnknownField, fieldNames)
		}
		s.checkOrigin(found, at, name)
		s.checkColumnOptions(found, at)
		s.checkLookup(found, at)
		found.AddIf(len(s.Hash) > 0 && name != fieldNames[fieldEventID], at+".hash", nil, "is only allowed for eventId")
		found.AddIf(s.SentAt != "" && name != fieldNames[fieldTime], at+".sentAt", nil, "is only allowed for time")
		s.checkValueFormat(found, at, name)
	}
}

// checkLookup finds faults in the look-up.
func (s *Source) checkLookup(found *faults.Collector, at string) {
	canLookUp := s.Lookup.isComplete() && len(s.Column) > 0
	found.AddIf(s.Lookup != nil && !canLookUp,
		at+".lookup", nil, "must have file, key and column, and requires a column to look up")
}

// checkDetails finds faults in the own attributes, properties and lines. path is that of their mapping, with a dot at
// its end.
func (d *DetailMapping) checkDetails(found *faults.Collector, path string) {
	checkDetailSources(found, path+"attributes", d.Attributes, schema.LabelFault)
	checkDetailSources(found, path+"properties", d.Properties, schema.LabelFault)
	if d.Items == nil {
		return
	}
	found.AddIf(d.Items.Each == "", path+"items.each", nil, "must be the path of the list of lines, such as line_items")
	checkDetailSources(found, path+"items.fields", d.Items.Fields, func(name string) string {
		if !slices.Contains(itemFieldNames[:], name) {
			return "unknown field; " + faults.OneOf(itemFieldNames[:]...)
		}
		return ""
	})
}

// checkDetailSources finds faults in the sources of own attributes, properties, or fields of lines. fault returns that
// of a name.
func checkDetailSources(found *faults.Collector, path string, sources map[string]Source, fault func(string) string) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s := sources[name]
		at := path + "." + name
		if detail := fault(name); detail != "" {
			found.AddField(at, "%s", detail)
		}
		s.checkOrigin(found, at, name)
		s.checkColumnOptions(found, at)
		s.checkLookup(found, at)
		mayBeNumber := strings.HasSuffix(path, "properties")
		isAllowed := s.Format == "" || s.Format == formatNumber && mayBeNumber
		found.AddIf(!isAllowed, at+".format", s.Format, "is only allowed for properties, and must be number")
		hasOther := s.Zone != "" || s.SentAt != "" || len(s.Hash) > 0
		found.AddIf(hasOther, at, nil, "zone, sentAt and hash are not allowed here")
	}
}

// checkOrigin finds faults in where the value comes from: a column, less another one, a constant, the number of the
// row, or a hash.
func (s *Source) checkOrigin(found *faults.Collector, at, name string) {
	hasColumn := len(s.Column) > 0 && !slices.Contains(s.Column, "")
	hasHash := len(s.Hash) > 0 && !slices.Contains(s.Hash, "")
	mayBeEmpty := name == fieldNames[fieldVisitor] || name == fieldNames[fieldCustomer]
	hasValue := s.Value != nil && (*s.Value != "" || mayBeEmpty)
	found.AddIf(countTrue(hasColumn, hasValue, s.RowNumber, hasHash) != 1,
		at, nil, "must have one of column, value, rowNumber, hash")
	mayHaveMinus := hasColumn && isAmount(fieldsByName[name])
	found.AddIf(s.Minus != "" && !mayHaveMinus,
		at+".minus", nil, "is only allowed for value, profit and extraValue, and requires a column")
}

// checkColumnOptions finds faults in what is done with the value of a column.
func (s *Source) checkColumnOptions(found *faults.Collector, at string) {
	hasColumn := len(s.Column) > 0
	isConverted := s.Map != nil || s.Format != "" || s.Match != ""
	found.AddIf(s.Default != nil && !hasColumn, at+".default", nil, "requires a column")
	found.AddIf(isConverted && !hasColumn, at, nil, "map, match and format require a column")
	expression, invalid := regexp.Compile(s.Match)
	found.AddIf(invalid != nil || s.Match != "" && expression.NumSubexp() != 1,
		at+".match", s.Match, "must be a regular expression with one group, such as ^exp-(.+)$")
}

// checkValueFormat finds faults in the format and the time zone, which depend on the field.
func (s *Source) checkValueFormat(found *faults.Collector, at, name string) {
	found.AddIf(!isValueFormat(s.Format), at+".format", s.Format, "must be unix, unixMilliseconds, unixMicroseconds, "+
		"age or a Go layout with a year, such as 2006-01-02 15:04:05; or country, or email")
	isTime := name == fieldNames[fieldTime] || name == fieldNames[fieldRevision] && s.Format != formatAge
	mayHaveFormat := isTime
	for format, of := range map[string]field{formatCountry: fieldCountry, formatEmail: fieldCustomer} {
		if name == fieldNames[of] || s.Format == format {
			mayHaveFormat = name == fieldNames[of] && s.Format == format
		}
	}
	hasWrongFormat := s.Format != "" && !mayHaveFormat
	hasWrongZone := s.Zone != "" && !isTime
	found.AddIf(hasWrongFormat || hasWrongZone, at, nil,
		"format and zone are only allowed for time and revision, format: country for country, and format: email for "+
			"customer")
	_, unknown := schema.LoadZone(s.Zone)
	found.AddIf(unknown != nil, at+".zone", s.Zone, "must be a name such as Europe/Paris")
}

// isValueFormat reports whether a text is a format of values. A layout of times writes another text for another year.
func isValueFormat(format string) bool {
	one := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	return slices.Contains(formats, format) || one.Format(format) != one.AddDate(1, 0, 0).Format(format)
}

// keepsValue reports whether the value of the field is that of its column, as it is or with a default.
func (s *Source) keepsValue() bool {
	isReplaced := s.Lookup != nil || s.Map != nil || s.Match != ""
	return !isReplaced && len(s.Hash) == 0
}

// isComplete reports whether there is a look-up with all its parts.
func (l *Lookup) isComplete() bool {
	return l != nil && !slices.Contains([]string{l.File, l.Key, l.Column}, "")
}

// isConstant reports whether a source is a constant with this value.
func (s Source) isConstant(value text) bool { return s.Value != nil && *s.Value == value }

// isAmount reports whether a field is an amount.
func isAmount(f field) bool { return f == fieldValue || f == fieldProfit || f == fieldExtraValue }

func countTrue(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// needingFile returns the name of a field whose source needs a file; empty: none does.
func (m *Mapping) needingFile() string {
	for i := range m.Events {
		e := &m.Events[i]
		details := m.with(&e.DetailMapping)
		all := []map[string]Source{m.fieldsOf(e), details.Attributes, details.Properties}
		if details.Items != nil {
			all = append(all, details.Items.Fields)
		}
		for _, sources := range all {
			for _, name := range slices.Sorted(maps.Keys(sources)) {
				if s := sources[name]; s.RowNumber || s.Lookup != nil {
					return name
				}
			}
		}
	}
	return ""
}

// GoalsHaveIDs reports whether every event of the mapping that may be a goal has an eventId. Then a line counts once,
// also if it is in several files.
func (m *Mapping) GoalsHaveIDs() bool {
	for i := range m.Events {
		fields := m.fieldsOf(&m.Events[i])
		_, hasID := fields[fieldNames[fieldEventID]]
		kind := fields[fieldNames[fieldEvent]]
		needsNone := kind.isConstant(text(schema.KindView)) || kind.isConstant(text(schema.KindCustomer))
		if !hasID && !needsNone {
			return false
		}
	}
	return true
}
