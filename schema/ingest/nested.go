package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// parseJSON parses and validates JSON. It parses first, because the parser limits
// the depth of nesting, whereas the validator recurses until the stack overflows.
// It also validates, because the parser accepts 0012 and raw control characters.
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

// maxReason is the maximum size of each end of the parser's message that is kept,
// in bytes.
const maxReason = 150

// splitName splits a name at the first dot for which exists(beginning) is true.
// Names may contain dots.
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
	column int
	inner  string // the name in the JSON object in the cell; empty: the whole cell
}

// places returns the positions of the mapper's columns in a header.
func places(m *mapper, header []string) ([]place, error) {
	found := make([]place, len(m.columns))
	for i, name := range m.columns {
		column, inner := name, ""
		if !slices.Contains(header, name) {
			var ok bool
			if column, inner, ok = splitName(name, func(b string) bool { return slices.Contains(header, b) }); !ok {
				return nil, fmt.Errorf("the file has no column %q; the columns are %s", name, strings.Join(header, ", "))
			}
		}
		at := slices.Index(header, column)
		if slices.Contains(header[at+1:], column) {
			return nil, fmt.Errorf("the file has several columns %q: the name must be unique", column)
		}
		found[i] = place{at, inner}
	}
	return found, nil
}

// nested is a JSON object in a string. It caches the last one.
type nested struct {
	parser fastjson.Parser
	text   string
	object *fastjson.Object
}

// read returns the object in a string. The object is valid until read is called
// with another string.
func (n *nested) read(text string) (*fastjson.Object, error) {
	if n.object != nil && n.text == text {
		return n.object, nil
	}
	var err error
	n.text = text
	n.object, err = parseObject(&n.parser, []byte(text))
	return n.object, err
}

// find returns the value of a name: the value of the key with this name, or
// otherwise the value of the rest of the name in a nested object. It returns nil
// if there is no value.
func (r *jsonReader) find(object *fastjson.Object, name string) (*fastjson.Value, error) {
	if v := object.Get(name); v != nil {
		return v, nil
	}
	beginning, rest, found := splitName(name, func(b string) bool { return object.Get(b) != nil })
	if !found {
		return nil, nil
	}
	inner, err := r.objectOf(object.Get(beginning))
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", beginning, err)
	}
	if inner == nil {
		return nil, nil
	}
	return r.find(inner, rest)
}

// objectOf returns the object that a value is, or that a string contains. It
// returns nil for null and for an empty string.
func (r *jsonReader) objectOf(v *fastjson.Value) (*fastjson.Object, error) {
	switch v.Type() {
	case fastjson.TypeObject:
		return v.Object()
	case fastjson.TypeNull:
		return nil, nil
	case fastjson.TypeString:
		text, err := v.StringBytes()
		if err != nil || len(text) == 0 {
			return nil, err
		}
		return r.nested.read(string(text))
	case fastjson.TypeArray, fastjson.TypeNumber, fastjson.TypeTrue, fastjson.TypeFalse:
	}
	return nil, errors.New("must be a JSON object")
}

// cell returns the value of a name in the JSON object in a cell.
func (r *jsonReader) cell(cell, name string) (string, error) {
	if cell == "" {
		return "", nil
	}
	object, err := r.nested.read(cell)
	if err != nil {
		return "", err
	}
	value, err := r.find(object, name)
	if err != nil {
		return "", err
	}
	return r.scalar(value)
}
