package catalogue

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"lifthouse/schema"
)

// Date is a time in a catalogue file: RFC 3339, or a day, which means its start
// in UTC.
type Date struct{ time.Time }

const dateFormat = "must be RFC 3339 such as 2026-05-01T12:00:00Z, or a day such as 2026-05-01"

func parseDate(text string) (Date, error) {
	for _, parse := range []func(string) (time.Time, error){schema.ParseTime, func(text string) (time.Time, error) { return time.Parse(time.DateOnly, text) }} {
		if t, err := parse(text); err == nil {
			return Date{t.UTC()}, nil
		}
	}
	return Date{}, fmt.Errorf("%q: %s", text, dateFormat)
}

// UnmarshalYAML parses a date.
func (d *Date) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	var err error
	*d, err = parseDate(text)
	return err
}

// scalarTypes are the types of the scalar fields of a catalogue file by name. A
// name has the same type in all resources.
var scalarTypes = func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	addScalars(types, reflect.TypeFor[File]())
	return types
}()

func addScalars(types map[string]reflect.Type, t reflect.Type) {
	for field := range t.Fields() {
		of := field.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case name == "-":
		case of.Kind() == reflect.Struct && of != reflect.TypeFor[Date]():
			addScalars(types, of)
		default:
			types[name] = of
		}
	}
}

// scalarFinder finds scalars that the YAML decoder would convert: 33.3 to 33, 010
// to 8, the name 1.10 to 1.1.
type scalarFinder struct {
	anchors map[string]ast.Node
	faults  Faults
}

// Visit implements ast.Visitor. It checks the value of a pair if the field is a
// scalar.
func (f *scalarFinder) Visit(node ast.Node) ast.Visitor {
	switch node := node.(type) {
	case *ast.AnchorNode:
		f.anchors[node.Name.GetToken().Value] = node.Value
	case *ast.MappingValueNode:
		name := keyOf(node)
		value := f.resolve(node.Value)
		values := []ast.Node{value}
		if list, ok := value.(*ast.SequenceNode); ok && listedScalars[name] {
			values = list.Values
		}
		for _, value := range values {
			f.check(name, node, f.resolve(value))
		}
	}
	return f
}

// listedScalars are the fields that are lists of scalars.
var listedScalars = map[string]bool{"tags": true}

func (f *scalarFinder) check(name string, node *ast.MappingValueNode, value ast.Node) {
	if detail := typeError(scalarTypes[name], value); detail != "" {
		f.faults = append(f.faults, Fault{
			Path:   fmt.Sprintf("line %d, %s", node.Value.GetToken().Position.Line, name),
			Value:  strings.TrimSpace(value.GetToken().Value),
			Detail: detail,
		})
	}
}

func keyOf(pair *ast.MappingValueNode) string {
	if explicit, ok := pair.Key.(*ast.MappingKeyNode); ok {
		return explicit.Value.GetToken().Value
	}
	return pair.Key.GetToken().Value
}

// resolve returns the node of an anchor or an alias.
func (f *scalarFinder) resolve(node ast.Node) ast.Node {
	for range 100 { // the limit guards against cycles
		switch n := node.(type) {
		case *ast.AnchorNode:
			f.anchors[n.Name.GetToken().Value] = n.Value
			node = n.Value
		case *ast.AliasNode:
			target, known := f.anchors[n.Value.GetToken().Value]
			if !known {
				return node // the decoder returns an error
			}
			node = target
		default:
			return node
		}
	}
	return node
}

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	number      = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

// typeError returns what is allowed if the node is not literally a value of the
// type, and an empty string otherwise. A null is allowed and means the default.
func typeError(want reflect.Type, node ast.Node) string {
	if want == nil || node.Type() == ast.NullType {
		return ""
	}
	text := node.GetToken().Value
	quoted := node.Type() == ast.StringType || node.Type() == ast.LiteralType
	switch want.Kind() {
	case reflect.String:
		if !quoted {
			return "must be a string: add quotes"
		}
	case reflect.Bool:
		if node.Type() != ast.BoolType {
			return "must be true or false"
		}
	case reflect.Struct:
		if _, err := parseDate(text); !quoted || err != nil {
			return dateFormat
		}
	case reflect.Float64:
		if quoted || !number.MatchString(text) {
			return "must be a number in decimal digits, without quotes or leading zeros"
		}
	default:
		if quoted || !wholeNumber.MatchString(text) {
			return "must be an integer in decimal digits, without quotes or leading zeros"
		}
	}
	return ""
}
