package catalogue

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// maxNesting is the maximum depth of lists and mappings in a file. A catalogue needs ten. The
// parser is recursive and keeps a path for each level, so a deeper file could exhaust the memory.
const maxNesting = 100

// checkNesting returns an error if lists, mappings, anchors or tags are nested too deeply.
// Deep indentation is not counted: it makes the file long.
func checkNesting(tokens token.Tokens) error {
	brackets, chain, line := 0, 0, 0 // a chain has tokens that contain each other, without brackets
	for _, t := range tokens {
		prefix := t.Type == token.AnchorType || t.Type == token.TagType || t.Type == token.MappingKeyType
		if brackets == 0 && t.Position.Line != line && !prefix {
			chain = 0
		}
		line = t.Position.Line
		switch t.Type { //nolint:exhaustive // other tokens contain nothing
		case token.SequenceStartType, token.MappingStartType:
			brackets, chain = brackets+1, 0
		case token.SequenceEndType, token.MappingEndType:
			brackets, chain = max(brackets-1, 0), 0
		case token.CollectEntryType:
			chain = 0
		case token.SequenceEntryType, token.MappingValueType, token.MappingKeyType, token.AnchorType, token.TagType:
			chain++
		}
		if brackets > maxNesting || chain > maxNesting {
			return fmt.Errorf("read YAML: line %d: more than %d lists and mappings are nested", line, maxNesting)
		}
	}
	return nil
}
