package schematest

import (
	"os"
	"testing"
)

// Long reports whether the tests of make test-long are enabled.
func Long() bool { return os.Getenv("LIFTHOUSE_LONG") != "" && !testing.Short() }

// Tier returns the size of a test under -short, in make test, or in make
// test-long.
func Tier(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case Long():
		return long
	}
	return usual
}
