package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
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
	found := newTree()
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)
	}
	var body *yaml.Node
	if err == nil {
		body, err = parseDocument(text)
	}
	if err != nil {
		return found, fmt.Errorf("read YAML: %w", err)
	}
	if body == nil {
		return found, nil
	}
	target := reflect.ValueOf(into).Elem()
	if found.checkNode("", body, target.Type()) {
		err = body.Decode(into)
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
func parseDocument(text []byte) (*yaml.Node, error) {
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

// jsonOnly matches the characters in strings of JSON that YAML may read differently: those beyond ASCII, some of which are
// line breaks, and pairs of escapes for one of them. It also matches other escapes, because a backslash may follow one.
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
