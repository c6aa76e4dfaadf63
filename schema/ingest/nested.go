package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"lifthouse/schema/faults"

	"github.com/valyala/fastjson"
)

func parseObject(parser *fastjson.Parser, text []byte) (*fastjson.Object, error) {
	value, err := parseJSON(parser, text)
	if err != nil {
		return nil, err
	}
	object, err := value.Object()
	if err != nil {
		return nil, errors.New("must be a JSON object")
	}
	return object, nil
}

// parseJSON parses and validates JSON. It parses first, because the parser limits the depth of nesting, whereas the
// validator recurses until the stack overflows. It also validates, because the parser accepts 0012 and raw control
// characters.
func parseJSON(parser *fastjson.Parser, text []byte) (*fastjson.Value, error) {
	value, err := parser.ParseBytes(text)
	if err == nil {
		err = fastjson.ValidateBytes(text)
	}
	if err == nil {
		return value, nil
	}
	reason := err.Error()
	if len(reason) > 2*maxReason { // the parser names each level of nesting
		reason = reason[:maxReason] + " … " + reason[len(reason)-maxReason:]
	}
	return nil, errors.New("not JSON: " + strings.ToValidUTF8(reason, "�"))
}

// maxReason is the maximum size of each end of the parser's message that is kept, in bytes.
const maxReason = 150

// splitName splits a name at the first dot for which exists(beginning) is true. Names may contain dots.
func splitName(name string, exists func(beginning string) bool) (beginning, rest string, found bool) {
	for at := range len(name) {
		if name[at] == '.' && exists(name[:at]) {
			return name[:at], name[at+1:], true
		}
	}
	return "", "", false
}

// place is the position of a mapper's column in a file with a header.
type place struct {
	column int    // -1: the file does not have it
	inner  string // the name in the JSON in the cell; empty: the whole cell
}

// requiredFields are the fields that every event in a file without a mapping has.
var requiredFields = []string{"websiteId", "visitor", "time", "event"}

// placeColumns returns the positions of the mapper's columns in a header. Without a mapper, the columns have the names
// of fields, and the mapper of these is returned.
func placeColumns(m *mapper, header []string) (*mapper, []place, error) {
	unknown := ""
	if m == nil {
		fields := map[string]Source{}
		for _, column := range slices.Concat(requiredFields, header) {
			if _, known := fieldsByName[column]; !known {
				unknown = cmp.Or(unknown, column)
				continue
			}
			fields[column] = Source{Column: oneOrMore[text]{text(column)}}
		}
		var err error
		m, err = newMapper(&Mapping{Fields: fields, Events: []EventMapping{{}}}, 0, nil)
		if err != nil {
			return nil, nil, err
		}
	}
	places := make([]place, len(m.columns))
	for i, name := range m.columns {
		column := name
		inner := ""
		has := slices.Contains(header, name)
		if !has {
			column, inner, has = splitName(name, func(b string) bool { return slices.Contains(header, b) })
		}
		at := slices.Index(header, column)
		if has && slices.Contains(header[at+1:], column) {
			return nil, nil, fmt.Errorf("the file has several columns %q: the name must be unique", column)
		}
		places[i] = place{at, inner}
	}
	isThere := func(cell int) bool { return places[cell].column >= 0 }
	missing := m.missingColumns(slices.Concat(m.needed, m.defaulted), isThere)
	switch shown := strings.Join(header, ", "); {
	case missing != "":
		return nil, nil, fmt.Errorf("the file lacks the columns %s: it has %s; %s", missing, shown, mappingHint)
	case !slices.ContainsFunc(places, func(p place) bool { return p.column >= 0 }):
		return nil, nil, fmt.Errorf("the file has none of the columns of the mapping: it has %s; %s", shown,
			mappingHint)
	case unknown != "":
		return nil, nil, fmt.Errorf("column %q is not a field of an event: %s; for other names use a mapping file",
			unknown, faults.OneOf(fieldNames[:]...))
	}
	return m, places, nil
}

// nested parses the JSON in a string. It caches the last value.
type nested struct {
	parser fastjson.Parser
	arena  fastjson.Arena
	text   string
	value  *fastjson.Value
}

// parseContainer returns the object or the list in a string. The result is valid until parseContainer is called with
// another string.
func (n *nested) parseContainer(text string) (*fastjson.Value, error) {
	if n.value != nil && n.text == text {
		return n.value, nil
	}
	n.text, n.value = text, n.parseAttributes(text)
	if n.value != nil {
		return n.value, nil
	}
	value, err := parseJSON(&n.parser, []byte(text))
	if err != nil {
		return nil, err
	}
	if value.Type() != fastjson.TypeObject && value.Type() != fastjson.TypeArray {
		return nil, errNoObject
	}
	n.value = value
	return value, nil
}

// parseAttributes returns lines such as "plan: pro" as an object, or nil if the text does not begin with such a line. A
// line without a name continues the value before it.
func (n *nested) parseAttributes(text string) *fastjson.Value {
	if strings.IndexByte("{[\"", text[0]) >= 0 {
		return nil
	}
	n.arena.Reset()
	object := n.arena.NewObject()
	last := ""
	value := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch name, rest, found := strings.Cut(line+" ", ": "); {
		case found && name != "":
			last = name
			value = strings.TrimRight(rest, " ")
		case last == "":
			return nil
		default:
			value += "\n" + line
		}
		object.Set(last, n.arena.NewString(value))
	}
	return object
}

var errNoObject = errors.New("must be a JSON object, or a list of objects with key and value")

// findValue returns the value of the key with the given name. If the key is missing, it looks up the rest of the name
// in a nested object or list. It returns nil if the value is missing.
func (r *jsonReader) findValue(object *fastjson.Object, name string) (*fastjson.Value, error) {
	if v := object.Get(name); v != nil {
		return v, nil
	}
	beginning, rest, found := splitName(name, func(b string) bool { return object.Get(b) != nil })
	if !found {
		return nil, nil
	}
	inner, err := r.containerOf(object.Get(beginning))
	if err == nil && inner != nil && inner.Type() == fastjson.TypeArray {
		if element, after, is := elementAt(inner, rest); is {
			inner = element
			rest = after
		} else {
			inner, err = findEntry(inner, rest)
			rest = ""
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("in %s: %w", beginning, err)
	case inner == nil || rest == "":
		return inner, nil
	}
	return r.findValue(inner.GetObject(), rest)
}

// containerOf returns the object or list in a value, or in the string that the value is. It returns nil for null and
// for an empty string.
func (r *jsonReader) containerOf(v *fastjson.Value) (*fastjson.Value, error) {
	switch v.Type() {
	case fastjson.TypeObject, fastjson.TypeArray:
		return v, nil
	case fastjson.TypeNull:
		return nil, nil
	case fastjson.TypeString:
		text, err := v.StringBytes()
		if err != nil || len(text) == 0 {
			return nil, err
		}
		return r.nested.parseContainer(string(text))
	default:
		return nil, errNoObject
	}
}

// elementAt returns the element of a list whose number, from 0, begins a name, and the rest of the name; nil: the list
// has no such element. It returns false if the name begins with no number.
func elementAt(list *fastjson.Value, name string) (element *fastjson.Value, rest string, is bool) {
	number, rest, _ := strings.Cut(name, ".")
	at, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, "", false
	}
	if all := list.GetArray(); at < uint64(len(all)) {
		element = all[at]
	}
	if element != nil && rest != "" && element.Type() != fastjson.TypeObject {
		element = nil
	}
	return element, rest, true
}

// findEntry returns the value of the first entry with the key in a list of objects with key and value, such as GA4's
// event_params, or with name and value, such as Shopify's note_attributes. It returns nil if no entry has the key.
func findEntry(list *fastjson.Value, key string) (*fastjson.Value, error) {
	entries, err := list.Array()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Get("key")
		if name == nil {
			name = e.Get("name")
		}
		if e.Type() != fastjson.TypeObject || name == nil || name.Type() != fastjson.TypeString {
			return nil, errNoObject
		}
		if string(name.GetStringBytes()) != key {
			continue
		}
		value := e.Get("value")
		if value == nil || value.Type() != fastjson.TypeObject {
			return value, nil
		}
		// BigQuery's GA4 export has an object with typed values, one of which is set.
		typed := value.GetObject().Len() == 0
		for _, name := range []string{"string_value", "int_value", "float_value", "double_value"} {
			inner := value.Get(name)
			if inner != nil && inner.Type() != fastjson.TypeNull {
				return inner, nil
			}
			typed = typed || inner != nil
		}
		if typed {
			return nil, nil
		}
		return value, nil
	}
	return nil, nil
}

// cellValue returns the value of a name in the JSON in a cell. isName: it is an id or a key.
func (r *jsonReader) cellValue(cell, name string, isName bool) (string, error) {
	if cell == "" {
		return "", nil
	}
	container, err := r.nested.parseContainer(cell)
	if err != nil {
		return "", err
	}
	var value *fastjson.Value
	if container.Type() == fastjson.TypeArray {
		value, err = findEntry(container, name)
	} else {
		value, err = r.findValue(container.GetObject(), name)
	}
	if err != nil {
		return "", err
	}
	if isName {
		return r.nameText(value)
	}
	return r.scalarText(value)
}

// errNotObjects is the fault of a list with an element that is not an object.
var errNotObjects = errors.New("must be a list of objects")

// jsonLine is an object in JSON with the mapper's columns, which are looked up in the innermost object first.
type jsonLine struct {
	reader  *jsonReader
	mapper  *mapper
	headers func(name string) string // of an HTTP request; nil: of a file
	objects []*fastjson.Object       // from the innermost
	present []atomic.Bool            // set for the columns that the line has; empty: not wanted
}

// headerPrefix begins the names of columns that are headers of an HTTP request.
const headerPrefix = "header."

// cellReader returns a function that returns the values of columns. It looks up each column once.
func (l *jsonLine) cellReader() func(cell int) (string, error) {
	type found struct {
		value string
		err   error
		known bool
	}
	cells := make([]found, len(l.mapper.columns))
	return func(cell int) (string, error) {
		c := &cells[cell]
		if !c.known {
			c.known = true
			c.value, c.err = l.readCell(cell)
			if c.err != nil {
				c.err = fmt.Errorf("%s: %w", l.mapper.columns[cell], c.err)
			}
		}
		return c.value, c.err
	}
}

func (l *jsonLine) readCell(cell int) (string, error) {
	column := l.mapper.columns[cell]
	if header, is := strings.CutPrefix(column, headerPrefix); is {
		if l.headers == nil {
			return "", nil
		}
		return l.headers(header), nil
	}
	for _, object := range l.objects { // the innermost object that has the column
		value, err := l.reader.findValue(object, column)
		if err != nil {
			return "", err
		}
		if value == nil {
			continue
		}
		if len(l.present) > 0 {
			l.present[cell].Store(true)
		}
		if l.mapper.ofNames[cell] {
			return l.reader.nameText(value)
		}
		return l.reader.scalarText(value)
	}
	return "", nil
}

// eachElement calls do for each object in the lists at a path, with nil for an element that is no object, and reports
// whether there is such a list. An object in the place of a list is its only element.
func (l *jsonLine) eachElement(path []string, do func(*jsonLine) error) (has bool, err error) {
	value := l.objects[0].Get(path[0])
	if value == nil {
		return false, nil
	}
	elements := []*fastjson.Value{value}
	if value.Type() == fastjson.TypeArray {
		elements = value.GetArray()
	}
	for _, element := range elements {
		object, noObject := element.Object()
		inner := &jsonLine{l.reader, l.mapper, l.headers, append([]*fastjson.Object{object}, l.objects...), l.present}
		switch {
		case noObject != nil:
			err = do(nil)
		case len(path) > 1:
			_, err = inner.eachElement(path[1:], do)
		default:
			err = do(inner)
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// eachItem calls do for each line in an object: the elements of the mapper's list if the object has it, or else the
// object itself.
func (l *jsonLine) eachItem(do func(*jsonLine) error) error {
	if l.mapper.each != nil {
		if has, err := l.eachElement(l.mapper.each, do); has || err != nil {
			return err
		}
	}
	return do(l)
}

// toMappedLine returns the line for the mapper.
func (l *jsonLine) toMappedLine(record int64, arrived time.Time) *mappedLine {
	return &mappedLine{
		record: record, arrived: arrived, cellAt: l.cellReader(),
		each: func(path []string, do func(*mappedLine) error) error {
			_, err := l.eachElement(path, func(inner *jsonLine) error {
				if inner == nil {
					return do(nil)
				}
				return do(inner.toMappedLine(record, arrived))
			})
			return err
		},
	}
}
