// Package tier selects the size of tests. The environment variable LIFTHOUSE_LONG
// enables the long tier, which make test-long runs.
package tier

import (
	"os"
	"testing"
)

// Variable is the environment variable that enables the long tier.
const Variable = "LIFTHOUSE_LONG"

// IsLong reports whether the tests of the long tier run.
func IsLong() bool { return os.Getenv(Variable) != "" && !testing.Short() }

// Of returns the size of a test: with -short, in make test, or in make test-long.
func Of(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case IsLong():
		return long
	}
	return usual
}

// Parallel lets a test run beside others, except in the long tier, where it
// needs the machine for itself.
func Parallel(t *testing.T) {
	t.Helper()
	if !IsLong() {
		t.Parallel()
	}
}

// SkipShort skips a test with -short, because it takes long under the race
// detector and has only one goroutine.
func SkipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("SKIP: -short; make test has it")
	}
}

// OnlyLong skips a test outside the long tier.
func OnlyLong(tb testing.TB) {
	tb.Helper()
	if !IsLong() {
		tb.Skip("SKIP: one of the long tests: make test-long")
	}
}
