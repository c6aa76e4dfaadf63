package docs

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
)

// docField is a field of an object. If it contains objects, it also has their
// fields.
type docField struct {
	node
	Required bool
	Inner    string // schema of Fields; empty if it has no name
	Fields   []docField
}

type docSchema struct {
	node
	Fields []docField
}

func schemasOf(root node) []docSchema {
	var shown []docSchema
	for _, schema := range root.valueAt("components", "schemas").childNodes() {
		shown = append(shown, docSchema{schema, fieldsOf(schema, nil)})
	}
	return shown
}

// fieldsOf returns the fields of an object, or of the objects in a list, including
// fields of the schemas that it extends. It expands named schemas that are not yet
// in expanded. If expanded is nil, it expands none.
func fieldsOf(schema node, expanded map[string]bool) []docField {
	schema, _ = objectIn(schema)
	var fields []docField
	for _, base := range schema.valueAt("allOf").childNodes() {
		fields = append(fields, fieldsOf(base, expanded)...)
	}
	required := map[string]bool{}
	for _, name := range schema.valueAt("required").childNodes() {
		required[name.Text()] = true
	}
	for _, property := range schema.valueAt("properties").childNodes() {
		field := docField{node: property, Required: required[property.key]}
		if inner, found := objectIn(property); found {
			name := inner.schemaName()
			if name == "" || expanded != nil && !expanded[name] {
				if name != "" {
					expanded[name] = true
				}
				field.Inner, field.Fields = name, fieldsOf(inner, expanded)
			}
		}
		fields = append(fields, field)
	}
	return fields
}

// objectIn returns the schema of the object that a schema describes. The object may
// also be an item of a list, or an alternative to null.
func objectIn(schema node) (node, bool) {
	if schema.value == nil {
		return schema, false
	}
	if schema.valueAt("properties").value != nil || schema.valueAt("allOf").value != nil {
		return schema, true
	}
	for _, inner := range append(schema.valueAt("oneOf").childNodes(), schema.valueAt("items")) {
		if found, ok := objectIn(inner); ok {
			return found, true
		}
	}
	return schema, false
}

// schemaName returns the name of a schema in the components, if it has one.
func (n node) schemaName() string {
	if n.name == n.key || n.root == nil || (node{root: n.root, value: n.root}).valueAt("components", "schemas", n.name).value == nil {
		return ""
	}
	return n.name
}

// longPattern is the length above which a pattern is not shown.
const longPattern = 40

// Named reports whether a schema is shown as a link.
func (n node) Named() bool { return n.schemaName() != "" }

// bounds are the keywords that limit a value, with their descriptions.
var bounds = [][2]string{
	{"format", "%s"},
	{"minimum", "from %s"},
	{"maximum", "to %s"},
	{"exclusiveMinimum", "above %s"},
	{"minLength", "at least %s characters"},
	{"maxLength", "at most %s characters"},
	{"maxItems", "at most %s items"},
	{"pattern", "pattern <code>%s</code>"},
	{"const", "always <code>%s</code>"},
	{"default", "default <code>%s</code>"},
}

// Type describes a schema. Named schemas in it are links.
func (n node) Type() template.HTML {
	words := []string{n.baseType()}
	if allowed := n.valueAt("enum").childNodes(); len(allowed) > 0 {
		words = append(words, "one of "+joinedTypes(allowed, ", ", func(value node) string {
			if value.Text() == "null" {
				return "null"
			}
			return "<code>" + html.EscapeString(value.Text()) + "</code>"
		}))
	}
	for _, bound := range bounds {
		if n.valueAt("prefixItems").value != nil {
			break // the number of items is visible
		}
		value := n.valueAt(bound[0])
		text := value.Text()
		if text == "int64" || text == "double" || bound[0] == "pattern" && len(text) > longPattern {
			continue // implied by the type, or described in words
		}
		if value.value != nil {
			words = append(words, fmt.Sprintf(bound[1], html.EscapeString(text)))
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return template.HTML(strings.Join(words, ", ")) //nolint:gosec // escaped above
}

// baseType returns the type in HTML without the bounds of its values.
func (n node) baseType() string {
	link := func(of node) string { return string(of.ShortType()) }
	types := n.valueAt("type")
	switch {
	case n.valueAt("oneOf").value != nil:
		return joinedTypes(n.valueAt("oneOf").childNodes(), " or ", link)
	case n.valueAt("anyOf").value != nil:
		return joinedTypes(n.valueAt("anyOf").childNodes(), " or ", link)
	case n.valueAt("prefixItems").value != nil:
		return "[" + joinedTypes(n.valueAt("prefixItems").childNodes(), ", ", link) + "]"
	case n.valueAt("items").value != nil:
		list := "list of " + link(n.valueAt("items"))
		if slices.ContainsFunc(types.childNodes(), func(of node) bool { return of.Text() == "null" }) {
			list += " or null"
		}
		return list
	case len(types.childNodes()) > 0:
		return joinedTypes(types.childNodes(), " or ", node.Text)
	}
	return types.Text()
}

func joinedTypes(all []node, separator string, of func(node) string) string {
	var words []string
	for _, one := range all {
		words = append(words, of(one))
	}
	return strings.Join(words, separator)
}

// ShortType returns a link to a named schema, or a description.
func (n node) ShortType() template.HTML {
	if name := n.schemaName(); name != "" {
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`) //nolint:gosec // a name in our document
	}
	return n.Type()
}
