package catalogue

import (
	"fmt"
	"io"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
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
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return File{}, fmt.Errorf("read catalogue: %w", err)
	}
	if len(text) > maxFile {
		return File{}, fmt.Errorf("read catalogue: the file is larger than %d MiB", maxFile>>20)
	}
	text, invalid := markInvalid(text)
	body, err := parseDocument(text)
	if err != nil && invalid.line > 0 {
		return File{}, fmt.Errorf("read catalogue: line %d: the file is not UTF-8: save the file as UTF-8", invalid.line)
	}
	if err != nil || body == nil {
		return File{}, err
	}
	found := newTree(invalid)
	var file File
	if found.checkNode("", body, reflect.TypeFor[File]()) {
		err = yaml.NodeToValue(body, &file, yaml.Strict())
	}
	switch {
	case err != nil && len(found.faults) == 0:
		return File{}, fmt.Errorf("read catalogue: %w", err)
	case err != nil: // the rest alone cannot be decoded
		file = File{}
	}
	file.setWebsites()
	file.faults, file.missing, file.lines = found.faults, found.missing, found.lines
	if len(found.faults) > 0 {
		return file, found.faults
	}
	return file, nil
}

// parseDocument returns the only document of a file, or nil if there is none.
func parseDocument(text []byte) (ast.Node, error) {
	parsed, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	var body ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if body != nil {
			return nil, fmt.Errorf("read catalogue: line %d: the file has several documents: must have one", doc.Body.GetToken().Position.Line)
		}
		body = doc.Body
	}
	return body, nil
}

func (f *File) setWebsites() {
	for a := range f.Accounts {
		for w := range f.Accounts[a].Websites {
			site := &f.Accounts[a].Websites[w]
			for i := range site.Goals {
				site.Goals[i].WebsiteID = site.ID
			}
			for i := range site.Targets {
				site.Targets[i].WebsiteID = site.ID
			}
			for i := range site.Campaigns {
				site.Campaigns[i].WebsiteID = site.ID
			}
			for i := range site.Widgets {
				site.Widgets[i].WebsiteID = site.ID
			}
		}
	}
}
