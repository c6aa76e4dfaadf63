package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lifthouse/schema"
)

// tree checks the nodes of a catalogue file against the types of its fields. It removes
// the pairs with errors, so the rest can still be decoded and validated.
type tree struct {
	invalid invalidText
	anchors map[string]ast.Node
	lines   map[string]int // by path
	faults  Faults
	// missing are the paths of fields that a misspelt name was probably meant to set.
	missing []string
	checked map[typed]checkedNode // aliases may refer to a node many times
	open    map[ast.Node]bool     // nodes whose check runs
	nodes   int                   // with all aliases written out
	full    bool                  // there are more than maxNodes
}

// maxNodes is the maximum number of nodes of a file with all aliases written out. A file of
// maxFile bytes has fewer, unless it has many aliases.
const maxNodes = 2 << 20

// maxFaults is the maximum number of faults of a kind that are reported.
const maxFaults = 1000

// checkedNode is the result of the check of a node.
type checkedNode struct {
	fine  bool // the node can be decoded
	nodes int  // in it, and itself
}

// typed is a node with the type of its field.
type typed struct {
	node ast.Node
	want reflect.Type
}

func newTree(invalid invalidText) *tree {
	return &tree{invalid: invalid, anchors: map[string]ast.Node{}, lines: map[string]int{}, checked: map[typed]checkedNode{}, open: map[ast.Node]bool{}}
}

func (t *tree) addFault(path string, node ast.Node, value, detail string) {
	if len(t.faults) == maxFaults {
		return
	}
	if t.invalid.hasMarks(path) {
		path = strings.Trim(strconv.Quote(t.invalid.restoreText(path)), `"`)
	}
	t.faults = append(t.faults, Fault{
		Path: path, Line: node.GetToken().Position.Line, Value: strings.TrimSpace(t.invalid.restoreText(value)), Detail: detail,
	})
}

// checkNode checks a node against the type of its field. It returns false if the node cannot
// be decoded.
func (t *tree) checkNode(path string, node ast.Node, want reflect.Type) bool {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if _, known := t.lines[path]; !known {
		t.lines[path] = node.GetToken().Position.Line
	}
	value := t.resolveAlias(node)
	if value.Type() == ast.NullType {
		return true
	}
	switch {
	case t.full:
		return false
	case t.open[value]:
		t.addFault(path, node, "", "contains itself: write it out")
		return false
	}
	before, known := t.checked[typed{value, want}]
	if !known {
		from := t.nodes
		t.open[value] = true
		before.fine = t.checkValue(path, node, value, want)
		delete(t.open, value)
		before.nodes, t.nodes = t.nodes-from+1, from
		t.checked[typed{value, want}] = before
	}
	if t.nodes += before.nodes; t.nodes > maxNodes && !t.full {
		t.full = true
		t.addFault(path, node, "", fmt.Sprintf("the file has more than %d values with all aliases written out: use fewer aliases", maxNodes))
	}
	return before.fine && !t.full
}

func (t *tree) checkValue(path string, node, value ast.Node, want reflect.Type) bool {
	if text := stringOf(value); t.invalid.hasMarks(text) {
		t.addFault(path, node, text, "must be UTF-8: save the file as UTF-8")
		return false
	}
	switch {
	case isScalar(want):
		if detail := typeError(want, value); detail != "" {
			t.addFault(path, node, textOf(value), detail)
			return false
		}
		return true
	case want == reflect.TypeFor[Prior]() && value.Type() == ast.StringType:
		if value.GetToken().Value != flatPrior {
			t.addFault(path, node, value.GetToken().Value, "must be flat, or have mean and standardDeviation")
			return false
		}
		return true
	case want.Kind() == reflect.Slice:
		return t.checkList(path, node, value, want.Elem())
	}
	return t.checkMapping(path, node, value, want)
}

// isScalar reports whether a field of the type has one value.
func isScalar(t reflect.Type) bool {
	return t == reflect.TypeFor[Date]() || t == reflect.TypeFor[schema.Cap]() || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice
}

// textOf returns the text of a scalar, and an empty text for other nodes.
func textOf(node ast.Node) string {
	if _, scalar := node.(ast.ScalarNode); !scalar {
		return ""
	}
	return node.GetToken().Value
}

func (t *tree) checkList(path string, node, value ast.Node, want reflect.Type) bool {
	list, is := value.(*ast.SequenceNode)
	if !is {
		t.addFault(path, node, textOf(value), "must be a list")
		return false
	}
	for i, element := range list.Values {
		if !t.checkNode(fmt.Sprintf("%s[%d]", path, i), element, want) {
			list.Values[i] = ast.Null(element.GetToken()) // the other elements keep their places
		}
	}
	return true
}

func (t *tree) checkMapping(path string, node, value ast.Node, want reflect.Type) bool {
	mapping, is := value.(*ast.MappingNode)
	if !is {
		t.addFault(path, node, textOf(value), "must have fields: "+strings.Join(fieldNames(want), ", "))
		return false
	}
	given := map[string]int{} // lines by field
	var misspelt []string     // the fields that unknown ones were probably meant to be
	mapping.Values = slices.DeleteFunc(mapping.Values, func(pair *ast.MappingValueNode) bool {
		name := keyOf(pair)
		if pair.Key.Type() == ast.MergeKeyType {
			return !t.checkNode(path, pair.Value, want)
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		of, known := fieldsOf(want)[name]
		switch line, twice := given[name]; {
		case !known:
			if nearest := schema.NearestName(name, fieldNames(want)); nearest != "" {
				misspelt = append(misspelt, nearest)
			}
			name = t.invalid.restoreText(name)
			t.addFault(at, pair.Key, "", fmt.Sprintf("%s %q; %s", unknownPrefix, name, schema.SuggestName(name, fieldNames(want))))
			return true
		case twice:
			t.addFault(at, pair.Key, "", fmt.Sprintf("%s; first in line %d", twicePrefix, line))
			return true
		}
		given[name] = pair.Key.GetToken().Position.Line
		return !t.checkNode(at, pair.Value, of)
	})
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

// fieldsOf returns the types of the fields of a struct by their names in a file.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "-" && name != "":
			fields[name] = field.Type
		}
	}
	return fields
}

func fieldNames(t reflect.Type) []string { return slices.Sorted(maps.Keys(fieldsOf(t))) }

func keyOf(pair *ast.MappingValueNode) string {
	if explicit, ok := pair.Key.(*ast.MappingKeyNode); ok {
		return explicit.Value.GetToken().Value
	}
	return pair.Key.GetToken().Value
}

// resolveAlias returns the node of an anchor or an alias.
func (t *tree) resolveAlias(node ast.Node) ast.Node {
	for range 100 { // the limit guards against cycles
		switch n := node.(type) {
		case *ast.AnchorNode:
			t.anchors[n.Name.GetToken().Value] = n.Value
			node = n.Value
		case *ast.AliasNode:
			target, known := t.anchors[n.Value.GetToken().Value]
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
