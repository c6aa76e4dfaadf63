package catalogue

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// The YAML parser replaces bytes that are not UTF-8 with U+FFFD, which a name may also
// contain. So ReadYAML first replaces such bytes with marks, which are characters that do
// not occur in the file. It then rejects the fields that contain marks.

// invalidText holds the marks of a file. Base is the mark of byte 0, or 0 if the file
// is valid UTF-8.
type invalidText struct {
	base rune
	line int // of the first byte that is not UTF-8
}

// firstMark is the first mark that is tried, a private-use character.
const firstMark = 0x100000

// markInvalid replaces each byte that is not UTF-8 with its mark.
func markInvalid(text []byte) ([]byte, invalidText) {
	if utf8.Valid(text) {
		return text, invalidText{}
	}
	marks := invalidText{base: firstMark}
	for bytes.ContainsFunc(text, marks.isMark) {
		marks.base += 0x100
	}
	var marked []byte
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			if marks.line == 0 {
				marks.line = 1 + bytes.Count(marked, []byte("\n"))
			}
			r = marks.base + rune(rest[0])
		}
		marked = utf8.AppendRune(marked, r)
		rest = rest[size:]
	}
	return marked, marks
}

func (i invalidText) isMark(r rune) bool { return i.base != 0 && r >= i.base && r < i.base+0x100 }

// hasMarks reports whether a text has marks.
func (i invalidText) hasMarks(text string) bool { return strings.ContainsFunc(text, i.isMark) }

// restoreText replaces the marks in a text with their bytes.
func (i invalidText) restoreText(text string) string {
	if !i.hasMarks(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if i.isMark(r) {
			b.WriteByte(byte(r - i.base))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// stringOf returns the text of a scalar, also of one of several lines.
func stringOf(node ast.Node) string {
	if literal, is := node.(*ast.LiteralNode); is {
		return literal.Value.Value
	}
	return textOf(node)
}
