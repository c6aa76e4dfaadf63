package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the maximum size of a catalogue file in bytes. 500 campaigns with 20
// variations take 1 MB.
const maxFile = 16 << 20

// Read decodes a catalogue file. Unknown fields, values of the wrong type and
// duplicate keys are errors with their line. Apply checks the values and
// references.
func Read(r io.Reader) (File, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return File{}, fmt.Errorf("read catalogue: %w", err)
	}
	if len(text) > maxFile {
		return File{}, fmt.Errorf("read catalogue: the file is larger than %d MiB", maxFile>>20)
	}
	if err := checkScalars(text); err != nil {
		return File{}, err
	}
	var file File
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file)
	if err != nil && !errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("read catalogue: %w", err)
	}
	file.setWebsites()
	return file, nil
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

// checkScalars returns Faults for scalars that the decoder would convert
// silently, and an error for further documents, which the decoder would ignore.
func checkScalars(text []byte) error {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fmt.Errorf("read catalogue: %w", err)
	}
	found := scalarFinder{anchors: map[string]ast.Node{}}
	documents := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if documents++; documents > 1 {
			return fmt.Errorf("read catalogue: line %d: the file has several documents: must have one", doc.Body.GetToken().Position.Line)
		}
		ast.Walk(&found, doc.Body)
	}
	if len(found.faults) > 0 {
		return found.faults
	}
	return nil
}
