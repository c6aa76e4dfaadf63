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

// Date is an instant of a catalogue file: RFC 3339, or a day, which stands for
// its first instant in UTC.
type Date struct{ time.Time }

const wantDate = "want RFC 3339 such as 2026-05-01T12:00:00Z, or a day such as 2026-05-01"

func parseDate(text string) (Date, error) {
	for _, parse := range []func(string) (time.Time, error){schema.ParseTime, func(text string) (time.Time, error) { return time.Parse(time.DateOnly, text) }} {
		if t, err := parse(text); err == nil {
			return Date{t.UTC()}, nil
		}
	}
	return Date{}, fmt.Errorf("%q: %s", text, wantDate)
}

// UnmarshalYAML reads the text as it stands in the file.
func (d *Date) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	var err error
	*d, err = parseDate(text)
	return err
}

// scalarTypes are the fields of a catalogue file that hold one value, by
// their names; a name means the same in every resource.
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

// scalarFinder notes values that the decoder would take for something else:
// 33.3 for 33, 010 for 8, the name 1.10 for 1.1.
type scalarFinder struct {
	anchors map[string]ast.Node
	faults  Faults
}

// Visit checks the pair's value if it is a scalar's.
func (f *scalarFinder) Visit(node ast.Node) ast.Visitor {
	switch node := node.(type) {
	case *ast.AnchorNode:
		f.anchors[node.Name.GetToken().Value] = node.Value
	case *ast.MappingValueNode:
		name := keyOf(node)
		value := f.behind(node.Value)
		if detail := misread(scalarTypes[name], value); detail != "" {
			f.faults = append(f.faults, Fault{
				Path:   fmt.Sprintf("line %d, %s", node.Value.GetToken().Position.Line, name),
				Value:  strings.TrimSpace(value.GetToken().Value),
				Detail: detail,
			})
		}
	}
	return f
}

func keyOf(pair *ast.MappingValueNode) string {
	if explicit, ok := pair.Key.(*ast.MappingKeyNode); ok {
		return explicit.Value.GetToken().Value
	}
	return pair.Key.GetToken().Value
}

// behind is the node that an anchor names or an alias stands for.
func (f *scalarFinder) behind(node ast.Node) ast.Node {
	for range 100 { // an alias cannot lead to itself; a bound needs no proof
		switch n := node.(type) {
		case *ast.AnchorNode:
			f.anchors[n.Name.GetToken().Value] = n.Value
			node = n.Value
		case *ast.AliasNode:
			target, known := f.anchors[n.Value.GetToken().Value]
			if !known {
				return node // the decoder refuses it
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

// misread says what is allowed where the node is not plainly a value of the
// type; empty where it is. A null is no value, so the default holds.
func misread(want reflect.Type, node ast.Node) string {
	if want == nil || node.Type() == ast.NullType {
		return ""
	}
	text := node.GetToken().Value
	quoted := node.Type() == ast.StringType || node.Type() == ast.LiteralType
	switch want.Kind() {
	case reflect.String:
		if !quoted {
			return "want text; quote it"
		}
	case reflect.Bool:
		if node.Type() != ast.BoolType {
			return "want true or false"
		}
	case reflect.Struct:
		if _, err := parseDate(text); !quoted || err != nil {
			return wantDate
		}
	case reflect.Float64:
		if quoted || !number.MatchString(text) {
			return "want a number in decimal digits, without quotes or leading zeros"
		}
	default:
		if quoted || !wholeNumber.MatchString(text) {
			return "want a whole number in decimal digits, without quotes or leading zeros"
		}
	}
	return ""
}
