package schematest

import (
	"os"
	"testing"
)

// Long says whether the tests of make test-long are wanted.
func Long() bool { return os.Getenv("LIFTHOUSE_LONG") != "" && !testing.Short() }

// Tier is how much a test does: under -short, in make test, or in make test-long.
func Tier(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case Long():
		return long
	}
	return usual
}
