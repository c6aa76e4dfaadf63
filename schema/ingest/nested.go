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
		return nil, errors.New("want a JSON object")
	}
	return object, nil
}

// parseJSON parses before it validates: the parser takes 0012 and raw control
// characters, but the validator goes as deep as the text does, until the stack
// is full, which no process survives.
func parseJSON(parser *fastjson.Parser, text []byte) (*fastjson.Value, error) {
	value, err := parser.ParseBytes(text)
	if err == nil {
		err = fastjson.ValidateBytes(text)
	}
	if err == nil {
		return value, nil
	}
	reason := err.Error()
	if len(reason) > 2*maxReason { // it names each level of nesting
		reason = reason[:maxReason] + " … " + reason[len(reason)-maxReason:]
	}
	return nil, errors.New("not JSON: " + strings.ToValidUTF8(reason, "�"))
}

// maxReason is how much of the beginning and of the end of the parser's
// complaint is told, in bytes.
const maxReason = 150

// begins splits a name at the first dot before which it is one that there is.
// Names may have dots in them.
func splitName(name string, there func(beginning string) bool) (beginning, rest string, found bool) {
	for at := range len(name) {
		if name[at] == '.' && there(name[:at]) {
			return name[:at], name[at+1:], true
		}
	}
	return "", "", false
}

// place is where a column of the mapper is in a file of columns.
type place struct {
	column int
	inner  string // the name within the object that the cell holds; empty: the cell itself
}

// places finds the columns of the mapper in a file's header.
func places(m *mapper, header []string) ([]place, error) {
	found := make([]place, len(m.columns))
	for i, name := range m.columns {
		column, inner := name, ""
		if !slices.Contains(header, name) {
			var ok bool
			if column, inner, ok = splitName(name, func(b string) bool { return slices.Contains(header, b) }); !ok {
				return nil, fmt.Errorf("there is no column %q; have %s", name, strings.Join(header, ", "))
			}
		}
		at := slices.Index(header, column)
		if slices.Contains(header[at+1:], column) {
			return nil, fmt.Errorf("there are several columns %q; want one", column)
		}
		found[i] = place{at, inner}
	}
	return found, nil
}

// nested is an object that is written as a text. It is good until another one
// is read.
type nested struct {
	parser fastjson.Parser
	text   string
	object *fastjson.Object
}

// read returns the object of a text, and remembers it for the next column.
func (n *nested) read(text string) (*fastjson.Object, error) {
	if n.object != nil && n.text == text {
		return n.object, nil
	}
	var err error
	n.text = text
	n.object, err = parseObject(&n.parser, []byte(text))
	return n.object, err
}

// reach returns what the name stands for: the key that is called so, or else
// the rest of the name within the object that its beginning stands for; nil
// where there is nothing.
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

// within returns the object that a value is, or holds as a text; nil of null
// and of the empty text.
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
	return nil, errors.New("want a JSON object")
}

// cell returns what the name stands for in the object that a cell holds.
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
