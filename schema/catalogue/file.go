package catalogue

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/faults"

	"go.yaml.in/yaml/v4"
)

// maxFile is the maximum size of a catalogue file in bytes. 500 campaigns with 20 variations take 1 MB.
const maxFile = 16 << 20

// ReadYAML decodes a catalogue file. If the file has unknown fields, duplicate fields or values of the wrong type, the
// error is a faults.List, and the returned file has the remaining fields. ApplyFile reports these faults together with
// those that it finds in the rest.
func ReadYAML(r io.Reader) (File, error) {
	var file File
	found, err := readDocument(r, &file, (*Document).resolveKeys)
	file.read = *found
	return file, err
}

// ReadDocument decodes a YAML or JSON document into a struct. If the document has unknown fields, duplicate fields or
// values of the wrong type, the error is a faults.List, and the struct has the remaining fields, whose faults
// Document.WithFaults adds.
func ReadDocument(r io.Reader, into any) (*Document, error) {
	return readDocument(r, into, func(*Document, *yaml.Node) {})
}

// readDocument calls prepare before it checks and decodes the document.
func readDocument(r io.Reader, into any, prepare func(*Document, *yaml.Node)) (*Document, error) {
	found := &Document{faults: faults.Collector{Most: maxFaults}}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)
	}
	var body *yaml.Node
	if err == nil {
		body, err = schema.ParseYAML(text)
	}
	if err != nil {
		return found, fmt.Errorf("read YAML: %w", err)
	}
	if body == nil {
		return found, nil
	}
	prepare(found, body)
	found.lines = schema.LinesOf(body)
	target := reflect.ValueOf(into).Elem()
	if found.checkNode("", body, target.Type()) {
		err = body.Decode(into)
	}
	switch {
	case err != nil && len(found.faults.List) == 0:
		return found, fmt.Errorf("read YAML: %w", err)
	case err != nil: // the rest alone cannot be decoded
		target.SetZero()
	}
	return found, found.faults.List.Err()
}

// Document is what was found in a YAML or JSON document. It checks the nodes against the types of the fields, and
// removes the pairs with errors, so the rest can still be decoded and validated.
type Document struct {
	lines  map[string]int // by path
	faults faults.Collector
}

// maxFaults is the maximum number of faults of a kind that are reported.
const maxFaults = 1000

// addFault adds a fault about a node, which cannot be decoded: it returns false.
func (d *Document) addFault(path string, node *yaml.Node, value, detail string) bool {
	d.faults.Append(faults.Fault{Name: path, Line: node.Line, Value: strings.TrimSpace(value), Detail: detail})
	return false
}

func (d *Document) addField(path string, key *yaml.Node, detail string, values ...any) {
	d.faults.Append(faults.Fault{
		Name: path, Line: key.Line, Detail: fmt.Sprintf(detail, values...),
		WithoutValue: true,
	})
}

// checkNode checks a node against the type of its field. It returns false if the node cannot be decoded.
func (d *Document) checkNode(path string, node *yaml.Node, want reflect.Type) bool {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	switch {
	case node.Kind == yaml.AliasNode:
		return d.addFault(path, node, "*"+node.Value, "must be written out: aliases are not supported")
	case node.Style&yaml.TaggedStyle != 0:
		return d.addFault(path, node, node.Tag, "must be written without a tag")
	case node.Tag == nullTag: // the default
		return true
	case want == reflect.TypeFor[Prior]() && node.Kind == yaml.ScalarNode:
		if node.Value != Learned {
			d.addFault(path, node, node.Value, "must be "+Learned+", or have mean and standardDeviation")
		}
		return node.Value == Learned
	case isOneValue(want):
		if detail := typeError(want, node); detail != "" {
			return d.addFault(path, node, node.Value, detail)
		}
		return true
	case want.Kind() == reflect.Struct:
		return d.checkMapping(path, node, want)
	case node.Kind != yaml.SequenceNode:
		return d.addFault(path, node, node.Value, "must be a list")
	}
	d.checkElements(path, node, want.Elem())
	return true
}

// isOneValue reports whether a type is written as one value: it is parsed from a text, or has neither fields nor
// elements.
func isOneValue(want reflect.Type) bool {
	return parsedText(want) != nil || want.Kind() != reflect.Struct && want.Kind() != reflect.Slice
}

// checkElements checks the elements of a list, and replaces those that cannot be decoded: the others keep their places.
func (d *Document) checkElements(path string, list *yaml.Node, want reflect.Type) {
	for i, element := range list.Content {
		if d.checkNode(fmt.Sprintf("%s[%d]", path, i), element, want) {
			continue
		}
		list.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag}
		if want.Kind() == reflect.Struct {
			list.Content[i] = &yaml.Node{Kind: yaml.MappingNode}
		}
	}
}

func (d *Document) checkMapping(path string, node *yaml.Node, want reflect.Type) bool {
	fields := fieldsOf(want)
	defaults := map[string]string{}
	names := slices.Sorted(maps.Keys(fields))
	for name, field := range fields {
		if value, has := field.Tag.Lookup("default"); has {
			defaults[name] = value
		}
	}
	if node.Kind != yaml.MappingNode {
		return d.addFault(path, node, node.Value, "must have fields: "+strings.Join(names, ", "))
	}
	given := map[string]int{} // lines by field
	var fine []*yaml.Node     // the keys and values that can be decoded
	for pair := range slices.Chunk(node.Content, 2) {
		key, value := pair[0], pair[1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		of, known := fields[key.Value]
		switch line, twice := given[key.Value]; {
		case !known || key.Kind != yaml.ScalarNode:
			d.addField(at, key, "%s %q; %s", faults.UnknownField, key.Value, faults.SuggestName(key.Value, names))
		case twice:
			d.addField(at, key, "%s; first in line %d", faults.GivenTwice, line)
		default:
			given[key.Value] = key.Line
			isFine := d.checkNode(at, value, of.Type)
			isEmpty := value.Tag == nullTag || value.Kind == yaml.SequenceNode && len(value.Content) == 0
			if isFine && !isEmpty {
				fine = append(fine, key, value)
				delete(defaults, key.Value)
			}
		}
	}
	for name, value := range defaults {
		fine = append(fine, &yaml.Node{Kind: yaml.ScalarNode, Value: name},
			&yaml.Node{Kind: yaml.ScalarNode, Value: value})
	}
	node.Content = fine
	return true
}

// NewCampaign returns a campaign with the defaults of a catalogue file.
func NewCampaign() (c Campaign) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	new(Document).checkMapping("", node, reflect.TypeFor[Campaign]())
	_ = node.Load(&c) // the defaults are valid
	return c
}

// fieldsOf returns the fields of a struct by their names in a file. The tag default has the value of an omitted field.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "-" && name != "":
			fields[name] = field
		}
	}
	return fields
}

// WithFaults returns the faults of the document, and those of its validation about other fields, by line.
func (d *Document) WithFaults(found faults.List) faults.List {
	all := slices.Clone(d.faults.List)
	for _, fault := range found {
		follows := func(earlier faults.Fault) bool {
			rest, within := strings.CutPrefix(fault.Name, earlier.Name)
			isPart := rest == "" || rest[0] == '.' || rest[0] == '['
			return within && isPart && !strings.HasPrefix(earlier.Detail, faults.GivenTwice)
		}
		if !slices.ContainsFunc(d.faults.List, follows) {
			all = append(all, fault)
		}
	}
	all.SortByLine(d.lines)
	return all
}

// Date is a time in a catalogue file: RFC 3339, or a day, which means its start in UTC.
type Date struct{ time.Time }

// UnmarshalText parses a date.
func (d *Date) UnmarshalText(text []byte) error {
	t, err := schema.ParseTime(string(text))
	if err != nil {
		t, err = time.Parse(time.DateOnly, string(text))
	}
	if err != nil {
		return errors.New("must be RFC 3339 such as 2026-05-01T12:00:00Z, or a day such as 2026-05-01")
	}
	d.Time = t.UTC()
	return nil
}

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	number      = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// Tags that YAML gives to scalars.
const (
	nullTag = "!!null"
	boolTag = "!!bool"
)

// stringTags are the tags of texts, with and without quotes. A date without quotes is a text, too.
var stringTags = []string{"!!str", "!!timestamp"}

// parsedText returns a new value of a type that is parsed from a text; nil: the type is another one.
func parsedText(want reflect.Type) encoding.TextUnmarshaler {
	parsed, _ := reflect.New(want).Interface().(encoding.TextUnmarshaler)
	return parsed
}

// typeError returns what is allowed if the node is not a literal of the type, and an empty string otherwise.
func typeError(want reflect.Type, node *yaml.Node) string {
	text := node.Value
	quoted := slices.Contains(stringTags, node.Tag)
	if parsed := parsedText(want); parsed != nil {
		if err := parsed.UnmarshalText([]byte(text)); err != nil {
			return err.Error()
		}
		return ""
	}
	switch want.Kind() {
	case reflect.String:
		if !quoted {
			return "must be a string: add quotes"
		}
	case reflect.Bool:
		if node.Tag != boolTag {
			return "must be true or false"
		}
	case reflect.Float64:
		if quoted || !number.MatchString(text) {
			return "must be a number in decimal digits, without quotes or leading zeros"
		}
	default:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil || quoted || !wholeNumber.MatchString(text) {
			return "must be an integer in decimal digits, without quotes or leading zeros"
		}
	}
	return ""
}

// CatalogueFile returns the catalogue as a file. Applying the file to the same store changes nothing; applying it to an
// empty store, to which the keys of webhooks are added, creates the same catalogue. The file contains no tokens, no
// secrets and no history of shares.
func (s *Snapshot) CatalogueFile() File {
	var file File
	for _, owned := range s.AllAccounts() {
		file.Accounts = append(file.Accounts, owned.CatalogueFile().Accounts...)
	}
	return file
}

// CatalogueFile is like Snapshot.CatalogueFile, of one account.
func (o *AccountResources) CatalogueFile() File {
	account := o.Account
	for _, site := range ByID(o.Websites) {
		site.Goals = definitionsOf(o.Goals, site.ID, func(g Goal) Goal { return g })
		site.Targets = definitionsOf(o.Targets, site.ID, func(t LiveTarget) Target {
			t.Target.CreateDate = dateOf(&t.State.CreateDate)
			return t.Target
		})
		site.Campaigns = definitionsOf(o.Campaigns, site.ID, func(c LiveCampaign) Campaign {
			c.Initial = c.initialState()
			return c.Campaign
		})
		site.Widgets = definitionsOf(o.Widgets, site.ID, func(w LiveWidget) Widget {
			w.Initial = w.initialState()
			return w.Widget
		})
		account.Websites = append(account.Websites, site)
	}
	for _, hook := range ByID(o.Webhooks) {
		hook.Secret = ""
		account.Webhooks = append(account.Webhooks, hook.Webhook)
	}
	return File{Accounts: []Account{account}}
}

// definitionsOf returns the definitions of a website's resources, ordered by id.
func definitionsOf[R Placed, D any](resources map[int64]R, website int64, define func(R) D) (all []D) {
	for _, r := range ByID(resources) {
		if owner, _ := r.WebsiteAndKey(); owner == website {
			all = append(all, define(r))
		}
	}
	return all
}

// initialState returns the state as a file declares it. A resource that was stopped before its planned start has an end
// before its start, which a file cannot declare, so the end is omitted.
func (s *State) initialState() Initial {
	initial := Initial{
		Active: s.Active, CreateDate: dateOf(&s.CreateDate), StartDate: dateOf(s.StartDate), EndDate: dateOf(s.EndDate),
	}
	if s.StartDate != nil && s.EndDate != nil && s.EndDate.Before(*s.StartDate) {
		initial.EndDate = nil
	}
	return initial
}

func dateOf(t *time.Time) *Date {
	if t == nil || t.IsZero() {
		return nil
	}
	return &Date{*t}
}

// MarshalYAML returns the date in RFC 3339 with milliseconds.
func (d Date) MarshalYAML() (any, error) {
	return d.UTC().Format(time.RFC3339Nano), nil
}

// WriteYAML writes the file as YAML that ReadYAML can read.
func (f File) WriteYAML(w io.Writer) error {
	style := []yaml.Option{
		yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble),
	}
	var file yaml.Node
	text, err := yaml.Dump(f, style...)
	if err == nil {
		err = yaml.Load(text, &file)
	}
	if err == nil {
		writeKeys(file.Content[0])
		text, err = yaml.Dump(&file, style...)
	}
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	_, err = w.Write(slices.Concat([]byte("# For lifthouse apply; without tokens and secrets.\n"), text))
	return err
}

// WriteJSON writes the file as JSON with the field names of YAML. ReadYAML can read it.
func (f File) WriteJSON(w io.Writer) error {
	var text bytes.Buffer
	if err := f.WriteYAML(&text); err != nil {
		return err
	}
	var fields any
	if err := yaml.Load(text.Bytes(), &fields); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(fields)
}
