package docs

import (
	"encoding/json"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// node is a value in the document. Maps keep their order, and references are
// resolved.
type node struct {
	root, value *yaml.Node // value is nil if there is none
	key         string     // key in the parent
	name        string     // name of the referenced value, or the key
}

func readNode(text []byte) (node, error) {
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return node{}, err
	}
	root := document.Content[0]
	return node{root: root, value: root}, nil
}

// valueOf returns the value of a key in a map, or nil.
func valueOf(fields *yaml.Node, key string) *yaml.Node {
	if fields != nil && fields.Kind == yaml.MappingNode {
		for field := range slices.Chunk(fields.Content, 2) {
			if field[0].Value == key {
				return field[1]
			}
		}
	}
	return nil
}

// valueAt follows keys. It returns an empty node if a key is missing.
func (n node) valueAt(keys ...string) node {
	for _, key := range keys {
		value := valueOf(n.value, key)
		if value == nil {
			return node{root: n.root}
		}
		n = node{n.root, value, key, key}.resolveReference()
	}
	return n
}

// resolveReference follows a reference. A description beside the reference replaces
// the description of the referenced value.
func (n node) resolveReference() node {
	ref := valueOf(n.value, "$ref")
	if ref == nil {
		return n
	}
	found := node{root: n.root, value: n.root}.valueAt(strings.Split(strings.TrimPrefix(ref.Value, "#/"), "/")...)
	if found.value == nil {
		return n
	}
	found.key = n.key
	if description := valueOf(n.value, "description"); description != nil && found.value.Kind == yaml.MappingNode {
		merged := *found.value
		merged.Content = []*yaml.Node{}
		for field := range slices.Chunk(found.value.Content, 2) {
			if field[0].Value != "description" {
				merged.Content = append(merged.Content, field...)
			}
		}
		merged.Content = append(merged.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "description"}, description)
		found.value = &merged
	}
	return found
}

// childNodes returns the fields of a map or the items of a list.
func (n node) childNodes() []node {
	var found []node
	switch {
	case n.value == nil:
	case n.value.Kind == yaml.MappingNode:
		for field := range slices.Chunk(n.value.Content, 2) {
			found = append(found, node{n.root, field[1], field[0].Value, field[0].Value}.resolveReference())
		}
	case n.value.Kind == yaml.SequenceNode:
		for _, item := range n.value.Content {
			found = append(found, node{root: n.root, value: item}.resolveReference())
		}
	}
	return found
}

// Text returns the scalar value.
func (n node) Text() string {
	if n.value == nil {
		return ""
	}
	return n.value.Value
}

// Key returns the key in the parent.
func (n node) Key() string { return n.key }

// At is used by the template.
func (n node) At(keys ...string) node { return n.valueAt(keys...) }

// Pairs is used by the template.
func (n node) Pairs() []node { return n.childNodes() }

// JSON returns the value as indented JSON.
func (n node) JSON() (string, error) {
	if n.value != nil && n.value.Tag == "!!str" {
		return n.value.Value, nil
	}
	compact, err := appendJSON(nil, n.value)
	if err != nil {
		return "", err
	}
	pretty, err := json.MarshalIndent(json.RawMessage(compact), "", "  ")
	return string(pretty), err
}

// appendJSON appends a value as JSON. Maps keep their order.
func appendJSON(text []byte, value *yaml.Node) ([]byte, error) {
	if value == nil {
		return append(text, "null"...), nil
	}
	open, end, isMap := byte('['), byte(']'), value.Kind == yaml.MappingNode
	switch {
	case isMap:
		open, end = '{', '}'
	case value.Tag == "!!str" || value.Tag == "!!timestamp":
		encoded, err := json.Marshal(value.Value)
		return append(text, encoded...), err
	case value.Kind == yaml.ScalarNode: // written as in JSON
		return append(text, value.Value...), nil
	}
	text = append(text, open)
	for i, item := range value.Content {
		separator := byte(',')
		if isMap && i%2 == 1 {
			separator = ':'
		}
		if i > 0 {
			text = append(text, separator)
		}
		if isMap && i%2 == 0 {
			item = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: item.Value} // such as the status 200
		}
		var err error
		if text, err = appendJSON(text, item); err != nil {
			return nil, err
		}
	}
	return append(text, end), nil
}

var (
	codeMark = regexp.MustCompile("`([^`]+)`")
	boldMark = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// proseHTML converts a description to HTML: paragraphs, `code` and **bold**.
func proseHTML(text string) template.HTML {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if paragraph == "" {
			continue
		}
		out.WriteString("<p>" + string(inlineHTML(paragraph)) + "</p>")
	}
	return template.HTML(out.String()) //nolint:gosec // escaped by inline
}

// inlineHTML converts a paragraph of a description to HTML without a <p>.
func inlineHTML(text string) template.HTML {
	escaped := codeMark.ReplaceAllString(html.EscapeString(text), "<code>$1</code>")
	return template.HTML(boldMark.ReplaceAllString(escaped, "<strong>$1</strong>")) //nolint:gosec // escaped above
}
