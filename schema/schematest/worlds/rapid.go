package worlds

import (
	"context"
	"flag"
	"math/bits"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/schema/schematest/tier"
)

// TB is what a test of random numbers and other tests have in common.
type TB interface {
	rapid.TB
	Context() context.Context
}

// Rand draws random numbers: with a *rand.Rand, or with rapid.
type Rand interface {
	IntN(n int) int
	Int64N(n int64) int64
	Uint64N(n uint64) uint64
	Uint64() uint64
	Shuffle(n int, swap func(i, j int))
}

// drawn has rapid draw the numbers, bit by bit, because rapid's own integers are mostly small.
type drawn struct{ t *rapid.T }

func (d drawn) Uint64N(n uint64) uint64 {
	if n == 1 {
		return 0
	}
	return rapid.Custom(func(t *rapid.T) uint64 {
		for {
			var x uint64
			for range bits.Len64(n - 1) {
				x <<= 1
				if rapid.Bool().Draw(t, "bit") {
					x |= 1
				}
			}
			if n == 0 || x < n {
				return x
			}
		}
	}).Draw(d.t, "number")
}

func (d drawn) Uint64() uint64       { return d.Uint64N(0) }                // of all 64 bits
func (d drawn) Int64N(n int64) int64 { return int64(d.Uint64N(uint64(n))) } //nolint:gosec // positive
func (d drawn) IntN(n int) int       { return int(d.Uint64N(uint64(n))) }   //nolint:gosec // positive

func (d drawn) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, d.IntN(i+1))
	}
}

// Check checks a property with random numbers: with the same ones in each run of make test, and with new ones, which
// the output names if they fail, in the long tier. From numbers that fail, it finds the smallest that do.
//
// Tests that run in parallel must not call it, because rapid reads its options from flags.
func Check(t *testing.T, checks int, property func(t *rapid.T, r Rand)) {
	t.Helper()
	options := map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.nofailfile": "true"}
	if seed := flag.Lookup("rapid.seed"); !tier.IsLong() && seed.Value.String() == seed.DefValue {
		options["rapid.seed"] = "1"
	}
	for name, value := range options {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) { property(t, drawn{t}) })
}
