package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// tree checks the nodes of a catalogue file against the types of its fields. It removes
// the pairs with errors, so the rest can still be decoded and validated.
type tree struct {
	lines  map[string]int // by path
	faults Faults
	// missing are the paths of fields that a misspelt name was probably meant to set.
	missing []string
}

// maxFaults is the maximum number of faults of a kind that are reported.
const maxFaults = 1000

func newTree() *tree { return &tree{lines: map[string]int{}} }

func (t *tree) addFault(path string, node *yaml.Node, value, detail string) {
	if len(t.faults) < maxFaults {
		t.faults = append(t.faults, Fault{Path: path, Line: node.Line, Value: strings.TrimSpace(value), Detail: detail})
	}
}

// checkNode checks a node against the type of its field. It returns false if the node cannot
// be decoded.
func (t *tree) checkNode(path string, node *yaml.Node, want reflect.Type) bool {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if _, known := t.lines[path]; !known {
		t.lines[path] = node.Line
	}
	switch {
	case node.Kind == yaml.AliasNode:
		t.addFault(path, node, "*"+node.Value, "must be written out: aliases are not supported")
		return false
	case node.Style&yaml.TaggedStyle != 0:
		t.addFault(path, node, node.Tag, "must be written without a tag")
		return false
	case node.Tag == nullTag: // the default
		return true
	case isScalar(want):
		if detail := typeError(want, node); detail != "" {
			t.addFault(path, node, node.Value, detail)
			return false
		}
		return true
	case want == reflect.TypeFor[Prior]() && node.Kind == yaml.ScalarNode:
		if node.Value != flatPrior {
			t.addFault(path, node, node.Value, "must be flat, or have mean and standardDeviation")
			return false
		}
		return true
	case want.Kind() == reflect.Slice:
		return t.checkList(path, node, want.Elem())
	}
	return t.checkMapping(path, node, want)
}

// isScalar reports whether a field of the type has one value.
func isScalar(t reflect.Type) bool {
	return t == reflect.TypeFor[Date]() || t == reflect.TypeFor[schema.Cap]() || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice
}

func (t *tree) checkList(path string, node *yaml.Node, want reflect.Type) bool {
	if node.Kind != yaml.SequenceNode {
		t.addFault(path, node, node.Value, "must be a list")
		return false
	}
	for i, element := range node.Content {
		if !t.checkNode(fmt.Sprintf("%s[%d]", path, i), element, want) {
			node.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag} // the other elements keep their places
		}
	}
	return true
}

func (t *tree) checkMapping(path string, node *yaml.Node, want reflect.Type) bool {
	fields, defaults := fieldsOf(want), map[string]string{}
	names := slices.Sorted(maps.Keys(fields))
	for name, field := range fields {
		if value, has := field.Tag.Lookup("default"); has {
			defaults[name] = value
		}
	}
	if node.Kind != yaml.MappingNode {
		t.addFault(path, node, node.Value, "must have fields: "+strings.Join(names, ", "))
		return false
	}
	given := map[string]int{} // lines by field
	var misspelt []string     // the fields that unknown ones were probably meant to be
	var fine []*yaml.Node     // the keys and values that can be decoded
	for pair := range slices.Chunk(node.Content, 2) {
		key, value := pair[0], pair[1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		of, known := fields[key.Value]
		switch line, twice := given[key.Value]; {
		case !known || key.Kind != yaml.ScalarNode:
			if nearest := faults.NearestName(key.Value, names); nearest != "" {
				misspelt = append(misspelt, nearest)
			}
			t.addFault(at, key, "", fmt.Sprintf("%s %q; %s", unknownPrefix, key.Value, faults.SuggestName(key.Value, names)))
		case twice:
			t.addFault(at, key, "", fmt.Sprintf("%s; first in line %d", twicePrefix, line))
		default:
			given[key.Value] = key.Line
			if t.checkNode(at, value, of.Type) && value.Tag != nullTag && (value.Kind != yaml.SequenceNode || len(value.Content) > 0) {
				fine = append(fine, key, value)
				delete(defaults, key.Value)
			}
		}
	}
	for name, value := range defaults {
		fine = append(fine, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &yaml.Node{Kind: yaml.ScalarNode, Value: value})
	}
	node.Content = fine
	for _, name := range misspelt {
		if given[name] == 0 {
			t.missing = append(t.missing, strings.TrimPrefix(path+"."+name, "."))
		}
	}
	return true
}

// unknownPrefix and twicePrefix begin the details of faults about a field name.
const (
	unknownPrefix = "unknown field"
	twicePrefix   = "given twice"
)

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

// independentFaults returns the faults that do not follow from earlier faults of the same file. A
// fault follows from a field that could not be decoded.
func (f Faults) independentFaults(earlier Faults, missing []string) Faults {
	idWrong := slices.ContainsFunc(earlier, func(e Fault) bool { return strings.HasSuffix(e.Path, ".id") }) ||
		slices.ContainsFunc(missing, func(path string) bool { return strings.HasSuffix(path, ".id") })
	return slices.DeleteFunc(f, func(fault Fault) bool {
		follows := func(path string) bool {
			rest, within := strings.CutPrefix(fault.Path, path)
			return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		return idWrong && strings.HasPrefix(fault.Detail, noSuch) || slices.ContainsFunc(missing, follows) ||
			slices.ContainsFunc(earlier, func(e Fault) bool { return !strings.HasPrefix(e.Detail, twicePrefix) && follows(e.Path) })
	})
}

// setLines sets the line of each fault: the line of its path, or of the nearest enclosing
// part.
func (f Faults) setLines(lines map[string]int) {
	for i := range f {
		for path := f[i].Path; f[i].Line == 0 && path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
			f[i].Line = lines[path]
		}
	}
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
}
