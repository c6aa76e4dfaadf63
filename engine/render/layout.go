package render

import (
	"strings"

	"github.com/rivo/uniseg"
)

// WrapText breaks a text into lines of at most width terminal columns. It keeps a
// number and its percent sign together. A longer word gets its own line.
func WrapText(text string, width int) []string {
	const held = "\x00%"
	text = strings.ReplaceAll(text, " %", held)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = strings.ReplaceAll(word, held, " %")
		if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// ShortenText cuts a text to a width in terminal columns. An ellipsis replaces the
// rest.
func ShortenText(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	end, used := 0, 1 // 1 for the ellipsis
	characters := uniseg.NewGraphemes(text)
	for characters.Next() {
		if used += characters.Width(); used > width {
			break
		}
		_, end = characters.Positions()
	}
	return text[:end] + "…"
}
