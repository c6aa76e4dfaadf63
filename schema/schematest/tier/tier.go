// Package tier selects the size of tests. The environment variable LIFTHOUSE_LONG enables the long tier, which make
// test-long runs.
package tier

import (
	"os"
	"testing"
)

// Variable is the environment variable that enables the long tier.
const Variable = "LIFTHOUSE_LONG"

// IsLong reports whether the tests of the long tier run.
func IsLong() bool { return os.Getenv(Variable) != "" }

// Of returns the size of a test in make test, or in make test-long.
func Of(short, long int) int {
	if IsLong() {
		return long
	}
	return short
}

// OnlyLong skips a test outside the long tier.
func OnlyLong(tb testing.TB) {
	tb.Helper()
	if !IsLong() {
		tb.Skip("SKIP: one of the long tests: make test-long")
	}
}
