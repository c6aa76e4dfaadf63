package source

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// SQLLiteral returns a parameter value as SQL. Only statements shown to people use it: the
// engine binds its parameters.
func SQLLiteral(value any) string {
	switch v := value.(type) {
	case string:
		return quoteText(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return quoteText(v.UTC().Format(instantFormat))
	case []string:
		return listLiteral(v, quoteText)
	case uint64:
		return strconv.FormatUint(v, 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case []uint16:
		return listLiteral(v, func(n uint16) string { return strconv.FormatUint(uint64(n), 10) })
	case []int64:
		return listLiteral(v, func(n int64) string { return strconv.FormatInt(n, 10) })
	}
	panic(fmt.Sprintf("engine: no literal for a %T", value))
}

func listLiteral[T any](values []T, write func(T) string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = write(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// quoteText returns a string literal on one line. It escapes quotes, backslashes
// and control characters.
func quoteText(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// placeholder matches {name:Type}.
var placeholder = regexp.MustCompile(`\{(\w+):((?:[^{}])+)\}`)

// InlinedSQL returns the statement with the values of its parameters.
func (q *Statement) InlinedSQL() string {
	values := make(map[string]any, len(q.Params))
	for _, p := range q.Params {
		values[p.Name] = p.Value
	}
	return placeholder.ReplaceAllStringFunc(q.SQL, func(found string) string {
		name, _, _ := strings.Cut(found[1:], ":")
		return SQLLiteral(values[name])
	})
}
