package source

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Literal returns a parameter value as SQL. It is only used for statements that
// are shown to people: the engine binds its parameters.
func Literal(value any) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return quote(v.UTC().Format(instantFormat))
	case []string:
		return list(v, quote)
	case uint64:
		return strconv.FormatUint(v, 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case []uint16:
		return list(v, func(n uint16) string { return strconv.FormatUint(uint64(n), 10) })
	case []int64:
		return list(v, func(n int64) string { return strconv.FormatInt(n, 10) })
	}
	panic(fmt.Sprintf("engine: no literal for a %T", value))
}

func list[T any](values []T, write func(T) string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = write(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// quote returns a string literal on one line. It escapes quotes, backslashes
// and control characters.
func quote(text string) string {
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

// Inlined returns the statement with the values of its parameters.
func (q *Query) Inlined() string {
	values := make(map[string]any, len(q.Params))
	for _, p := range q.Params {
		values[p.Name] = p.Value
	}
	return placeholder.ReplaceAllStringFunc(q.SQL, func(found string) string {
		name, _, _ := strings.Cut(found[1:], ":")
		return Literal(values[name])
	})
}
