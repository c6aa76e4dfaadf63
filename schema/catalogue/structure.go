package catalogue

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/token"
)

// Limits of the structure of a file. The parser is recursive, keeps a path for each level, and
// moves all later tokens at each omitted value, so without limits a short file could take all
// memory or minutes.
const (
	maxNesting = 100    // levels of lists and mappings; a catalogue needs ten
	maxOmitted = 10_000 // omitted values, as in "name:", and tags
)

// checkStructure returns an error if the file exceeds a limit. Levels of indentation are not
// counted: they make the file long.
func checkStructure(tokens token.Tokens) error {
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t *token.Token) bool { return t.Type == token.CommentType })
	tokens = append(tokens, &token.Token{Position: &token.Position{}}) // the end
	var brackets []token.Type
	chain, omitted := 0, 0 // a chain has tokens that contain each other, without brackets
	for i, t := range tokens[:len(tokens)-1] {
		before, after := tokens[max(i-1, 0)], tokens[i+1]
		prefix := t.Type == token.AnchorType || t.Type == token.TagType || t.Type == token.MappingKeyType
		if len(brackets) == 0 && t.Position.Line != before.Position.Line && !prefix {
			chain = 0
		}
		switch t.Type { //nolint:exhaustive // other tokens contain nothing
		case token.SequenceStartType, token.MappingStartType:
			brackets, chain = append(brackets, t.Type), 0
		case token.SequenceEndType, token.MappingEndType:
			brackets, chain = brackets[:max(len(brackets)-1, 0)], 0
		case token.CollectEntryType:
			chain = 0
		case token.SequenceEntryType, token.MappingValueType, token.MappingKeyType, token.AnchorType, token.TagType:
			chain++
		}
		if omitsValue(before, t, after, brackets) {
			omitted++
		}
		if len(brackets) > maxNesting || chain > maxNesting || omitted > maxOmitted {
			return fmt.Errorf("read YAML: line %d: more than %d levels of lists and mappings, or %d omitted values", t.Position.Line, maxNesting, maxOmitted)
		}
	}
	return nil
}

// omitsValue reports whether the value after a token is omitted.
func omitsValue(before, t, after *token.Token, brackets []token.Type) bool {
	switch ends := after.Type == token.CollectEntryType || after.Type == token.MappingEndType; {
	case t.Type == token.TagType:
		return true // it may have a value
	case len(brackets) > 0 && t.Type == token.MappingValueType:
		return ends
	case len(brackets) > 0:
		starts := before.Type == token.CollectEntryType || before.Type == token.MappingStartType
		return ends && starts && brackets[len(brackets)-1] == token.MappingStartType
	case t.Type == token.SequenceEntryType:
		return after.Position.Column <= t.Position.Column
	case t.Type == token.MappingValueType:
		isList := after.Type == token.SequenceEntryType && after.Position.Column == before.Position.Column
		return after.Position.Column <= before.Position.Column && !isList
	}
	return false
}
