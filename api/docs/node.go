package docs

import (
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// node is a value in the document. Maps keep their order, and references are
// resolved.
type node struct {
	root, value any
	key         string // key in the parent
	name        string // name of the referenced value, or the key
}

func readNode(text []byte) (node, error) {
	var value any
	err := yaml.UnmarshalWithOptions(text, &value, yaml.UseOrderedMap())
	return node{root: value, value: value}, err
}

// valueAt follows keys. It returns an empty node if a key is missing.
func (n node) valueAt(keys ...string) node {
	for _, key := range keys {
		fields, _ := n.value.(yaml.MapSlice)
		at := slices.IndexFunc(fields, func(f yaml.MapItem) bool { return f.Key == key })
		if at < 0 {
			return node{root: n.root}
		}
		n = node{n.root, fields[at].Value, key, key}.resolveReference()
	}
	return n
}

// resolveReference follows a reference. A description beside the reference replaces
// the description of the referenced value.
func (n node) resolveReference() node {
	fields, _ := n.value.(yaml.MapSlice)
	var description any
	var found node
	for _, f := range fields {
		if ref, ok := f.Value.(string); ok && f.Key == "$ref" {
			found = node{root: n.root, value: n.root}.valueAt(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		if f.Key == "description" {
			description = f.Value
		}
	}
	if found.value == nil {
		return n
	}
	found.key = n.key
	if referenced, ok := found.value.(yaml.MapSlice); ok && description != nil {
		merged := slices.DeleteFunc(slices.Clone(referenced), func(f yaml.MapItem) bool { return f.Key == "description" })
		merged = append(merged, yaml.MapItem{Key: "description", Value: description})
		found.value = merged
	}
	return found
}

// childNodes returns the fields of a map or the items of a list.
func (n node) childNodes() []node {
	var found []node
	switch value := n.value.(type) {
	case yaml.MapSlice:
		for _, f := range value {
			key := fmt.Sprint(f.Key)
			found = append(found, node{n.root, f.Value, key, key}.resolveReference())
		}
	case []any:
		for _, item := range value {
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
	return fmt.Sprint(n.value)
}

// Key returns the key in the parent.
func (n node) Key() string { return n.key }

// At is used by the template.
func (n node) At(keys ...string) node { return n.valueAt(keys...) }

// Pairs is used by the template.
func (n node) Pairs() []node { return n.childNodes() }

// JSON returns the value as indented JSON.
func (n node) JSON() (string, error) {
	if text, ok := n.value.(string); ok {
		return text, nil
	}
	compact, err := yaml.MarshalWithOptions(n.value, yaml.JSON())
	if err != nil {
		return "", err
	}
	pretty, err := json.MarshalIndent(json.RawMessage(compact), "", "  ")
	return string(pretty), err
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
