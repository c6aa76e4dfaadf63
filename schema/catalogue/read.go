package catalogue

import (
	"fmt"
	"io"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the maximum size of a catalogue file in bytes. 500 campaigns with 20
// variations take 1 MB.
const maxFile = 16 << 20

// ReadYAML decodes a catalogue file. If the file has unknown fields, duplicate fields or
// values of the wrong type, the error is of type Faults, and the returned file has the
// remaining fields. ApplyFile reports these faults together with those that it finds in
// the rest.
func ReadYAML(r io.Reader) (File, error) {
	var file File
	found, err := decodeYAML(r, &file)
	file.faults, file.missing, file.lines = found.faults, found.missing, found.lines
	return file, err
}

// DecodeYAML decodes a YAML or JSON document into a struct. If the document has unknown
// fields, duplicate fields or values of the wrong type, the error is of type Faults.
func DecodeYAML(r io.Reader, into any) error {
	_, err := decodeYAML(r, into)
	return err
}

// decodeYAML is like DecodeYAML. After Faults, into has the remaining fields.
func decodeYAML(r io.Reader, into any) (*tree, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)
	}
	if err != nil {
		return &tree{}, fmt.Errorf("read YAML: %w", err)
	}
	text, invalid := markInvalid(text)
	found := newTree(invalid)
	body, err := parseDocument(text)
	if err != nil && invalid.line > 0 {
		return found, fmt.Errorf("read YAML: line %d: the file is not UTF-8: save the file as UTF-8", invalid.line)
	}
	if err != nil || body == nil {
		return found, err
	}
	target := reflect.ValueOf(into).Elem()
	if found.checkNode("", body, target.Type()) {
		err = yaml.NodeToValue(body, into, yaml.Strict())
	}
	switch {
	case err != nil && len(found.faults) == 0:
		return found, fmt.Errorf("read YAML: %w", err)
	case err != nil: // the rest alone cannot be decoded
		target.SetZero()
	}
	if len(found.faults) > 0 {
		return found, found.faults
	}
	return found, nil
}

// parseDocument returns the only document of a file, or nil if there is none.
func parseDocument(text []byte) (ast.Node, error) {
	tokens := lexer.Tokenize(string(text))
	if err := checkStructure(tokens); err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	var body ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if body != nil {
			return nil, fmt.Errorf("read YAML: line %d: the file has several documents: must have one", doc.Body.GetToken().Position.Line)
		}
		body = doc.Body
	}
	return body, nil
}
