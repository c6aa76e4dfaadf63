// Package check reports what tests find to be otherwise.
package check

import (
	"fmt"
	"strings"
)

// TB is a test, also one of rapid.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal reports a value that is not the wanted one, after a text about it, which may have arguments.
func Equal[T comparable](tb TB, got, want T, about ...any) {
	tb.Helper()
	if got != want {
		tb.Errorf("%sgot %v, want %v", Text(about), got, want)
	}
}

// That reports a text about what is not so, which may have arguments.
func That(tb TB, is bool, about string, args ...any) {
	tb.Helper()
	if !is {
		tb.Errorf(about, args...)
	}
}

// OK reports an error, after a text about it, which may have arguments, and returns whether there is none.
func OK(tb TB, err error, about ...any) bool {
	tb.Helper()
	if err != nil {
		tb.Errorf("%s%v", Text(about), err)
	}
	return err == nil
}

// Contains reports a text without a part.
func Contains(tb TB, text, part string, about ...any) {
	tb.Helper()
	if !strings.Contains(text, part) {
		tb.Errorf("%slacks %q:\n%s", Text(about), part, text)
	}
}

// Text returns a format with its arguments and a colon, if there is one.
func Text(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return fmt.Sprintf(about[0].(string), about[1:]...) + ": "
}
