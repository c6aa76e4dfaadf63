package ingest

import (
	"regexp"
	"strings"
)

// rejectText returns the beginning of a text, at most maxRejectText bytes.
func rejectText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxRejectText)], "�")
}

// Patterns of the name of a secret, such as password, before a value in JSON,
// queries and headers, and patterns of quoted and unquoted values.
const (
	secretName = `(?i)([a-z0-9_-]*(?:password|passwd|secret|token|authorization|cookie|credential|session_?id|api_?-?key)[a-z0-9_-]*\\?["']?\s*`
	quoted     = `"(?:[^"\\]|\\.)*"?|\\"[^"]*"?`
	unquoted   = `[^\s,;&"'}]+`
)

var (
	// API tokens and credentials of headers.
	tokens     = regexp.MustCompile(`\b(lh_|[Bb]earer +|[Bb]asic +)[A-Za-z0-9+/_=.~-]*`)
	inLines    = regexp.MustCompile(secretName + `[:=]\s*)(?:` + quoted + `|` + unquoted + `)`)
	afterEqual = regexp.MustCompile(secretName + `=\s*)` + unquoted)
	afterColon = regexp.MustCompile(secretName + `:\s*)(?:` + quoted + `)`)
)

// redactLine replaces credentials in a line by "…".
func redactLine(line string) string {
	return inLines.ReplaceAllString(tokens.ReplaceAllString(line, "${1}…"), "${1}…")
}

// redactReason replaces credentials in a reason with "…". After a name and a colon,
// it only replaces quoted values, because unquoted text is part of the error
// message.
func redactReason(reason string) string {
	reason = afterEqual.ReplaceAllString(tokens.ReplaceAllString(reason, "${1}…"), "${1}…")
	return afterColon.ReplaceAllString(reason, "${1}…")
}
