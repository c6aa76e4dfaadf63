package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// ParseYAML returns the only document of a YAML or JSON file, or nil if there is none. The error names the line.
func ParseYAML(text []byte) (*yaml.Node, error) {
	if line := 1; !utf8.Valid(text) {
		for of := range bytes.Lines(text) {
			if !utf8.Valid(of) {
				return nil, fmt.Errorf("line %d: must be UTF-8: save the file as UTF-8", line)
			}
			line++
		}
	}
	if json.Valid(text) {
		text = jsonOnly.ReplaceAllFunc(text, escapeForYAML)
	}
	var body *yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, err
		case body != nil:
			return nil, fmt.Errorf("line %d: the file has several documents: must have one", document.Content[0].Line)
		}
		body = document.Content[0]
	}
}

// maxPath bounds the paths of LinesOf, in bytes: a hostile document has deep nesting, or long keys with many elements.
const maxPath = 200

// LinesOf returns the lines of a document's fields and elements by their paths, such as goals[0].name. Of a field that
// is given twice, it returns the first line.
func LinesOf(document *yaml.Node) map[string]int {
	lines := map[string]int{}
	var note func(path string, node *yaml.Node)
	note = func(path string, node *yaml.Node) {
		if _, known := lines[path]; !known {
			lines[path] = node.Line
		}
		if len(path) > maxPath {
			return
		}
		for i := 1; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
			note(strings.TrimPrefix(path+"."+node.Content[i-1].Value, "."), node.Content[i])
		}
		for i := 0; node.Kind == yaml.SequenceNode && i < len(node.Content); i++ {
			note(fmt.Sprintf("%s[%d]", path, i), node.Content[i])
		}
	}
	note("", document)
	return lines
}

// jsonOnly matches the characters in strings of JSON that YAML may read differently: those beyond ASCII, some of which
// are line breaks, and pairs of escapes for one of them. It also matches other escapes, because a backslash may follow
// one.
var jsonOnly = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\.|[^\x00-\x7E]`)

// escapeForYAML returns a match of jsonOnly as YAML.
func escapeForYAML(found []byte) []byte {
	character := string(found)
	if len(found) == len(`\udddd\udddd`) {
		_ = json.Unmarshal([]byte(`"`+character+`"`), &character)
	}
	if r, size := utf8.DecodeRuneInString(character); size == len(character) {
		return fmt.Appendf(nil, `\U%08X`, r)
	}
	return found
}
