package catalogue

import (
	"fmt"
	"io"
	"reflect"

	"go.yaml.in/yaml/v4"

	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// maxFile is the maximum size of a catalogue file in bytes. 500 campaigns with 20
// variations take 1 MB.
const maxFile = 16 << 20

// ReadYAML decodes a catalogue file. If the file has unknown fields, duplicate fields or
// values of the wrong type, the error is a faults.List, and the returned file has the
// remaining fields. ApplyFile reports these faults together with those that it finds in
// the rest.
func ReadYAML(r io.Reader) (File, error) {
	var file File
	found, err := decodeYAML(r, &file)
	file.read = *found
	return file, err
}

// DecodeYAML decodes a YAML or JSON document into a struct. If the document has unknown
// fields, duplicate fields or values of the wrong type, the error is a faults.List.
func DecodeYAML(r io.Reader, into any) error {
	_, err := decodeYAML(r, into)
	return err
}

// decodeYAML is like DecodeYAML. After faults, into has the remaining fields.
func decodeYAML(r io.Reader, into any) (*tree, error) {
	found := &tree{lines: map[string]int{}, faults: faults.Collector{Most: maxFaults}}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)
	}
	var body *yaml.Node
	if err == nil {
		body, err = schema.ParseYAML(text)
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
	case err != nil && len(found.faults.List) == 0:
		return found, fmt.Errorf("read YAML: %w", err)
	case err != nil: // the rest alone cannot be decoded
		target.SetZero()
	}
	return found, found.faults.List.Err()
}
