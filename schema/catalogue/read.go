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

// maxFile bounds a catalogue file: 500 campaigns of 20 variations are 1 MB.
const maxFile = 16 << 20

// Read decodes a catalogue file: unknown fields, values of the wrong type and
// duplicate keys are refused with their line. What the values may be is
// checked by Apply, which knows what the file may refer to.
func Read(r io.Reader) (File, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return File{}, fmt.Errorf("read catalogue: %w", err)
	}
	if len(text) > maxFile {
		return File{}, fmt.Errorf("read catalogue: larger than %d MiB", maxFile>>20)
	}
	if err := refuseFractions(text); err != nil {
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

// refuseFractions finds numbers with a fraction where whole numbers belong,
// which the decoder would cut off without a word.
func refuseFractions(text []byte) error {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fmt.Errorf("read catalogue: %w", err)
	}
	var found fractionFinder
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			ast.Walk(&found, doc.Body)
		}
	}
	if len(found) > 0 {
		return Faults(found)
	}
	return nil
}

type fractionFinder Faults

// Visit notes the pair if it holds a number that is not whole.
func (f *fractionFinder) Visit(node ast.Node) ast.Visitor {
	pair, ok := node.(*ast.MappingValueNode)
	if !ok {
		return f
	}
	key := pair.Key.String()
	switch pair.Value.(type) {
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		if key != "mde" && key != "name" && key != "description" && key != "action" {
			position := pair.Value.GetToken().Position
			*f = append(*f, Fault{
				Path:   fmt.Sprintf("line %d, %s", position.Line, key),
				Value:  pair.Value.String(),
				Detail: "want a whole number",
			})
		}
	}
	return f
}
