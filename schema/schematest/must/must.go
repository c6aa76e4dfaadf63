// Package must ends tests whose steps fail.
package must

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TB is a test, also one of rapid.
type TB interface {
	check.TB
	Fatalf(format string, args ...any)
	FailNow()
}

// OK ends the test if err is not nil, with a text about it, which may have arguments. The cause is named even if the
// text of the error, which is for clients, does not name it.
func OK(tb TB, err error, about ...any) {
	tb.Helper()
	if err == nil {
		return
	}
	if cause := errors.Unwrap(err); cause != nil && !strings.Contains(err.Error(), cause.Error()) {
		tb.Fatalf("%s%v: %v", check.Text(about), err, cause)
	}
	tb.Fatalf("%s%v", check.Text(about), err)
}

// Equal ends the test if a value is not the wanted one.
func Equal[T comparable](tb TB, got, want T, about ...any) {
	tb.Helper()
	if check.Equal(tb, got, want, about...); got != want {
		tb.FailNow()
	}
}

// That ends the test with a text about what is not so, which may have arguments.
func That(tb TB, is bool, about string, args ...any) {
	tb.Helper()
	if !is {
		tb.Fatalf(about, args...)
	}
}

// Get returns a function that returns v, or ends the test if err is not nil: must.Get(os.ReadFile(path))(t).
func Get[T any](v T, err error) func(TB) T {
	return func(tb TB) T {
		tb.Helper()
		OK(tb, err)
		return v
	}
}

// JSON decodes a text of JSON.
func JSON[T any, Text ~string | ~[]byte](tb TB, text Text) (v T) {
	tb.Helper()
	OK(tb, json.Unmarshal([]byte(text), &v), "%.1000s", string(text))
	return v
}

// WriteFile writes a file in a new directory, which is deleted when the test ends, and returns its path.
func WriteFile(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	OK(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}
