package generation_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"lifthouse/engine/generation"
	"lifthouse/schema/schematest"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// month is a partition; blocks of tests are below 40.
const month, blocks = uint64(202611) << 40, 40

// randomBlocks returns some intervals and the same blocks one by one.
func randomBlocks(r *rand.Rand) (generation.Blocks, map[uint64]bool) {
	var intervals []generation.Interval
	each := map[uint64]bool{}
	for range r.IntN(8) {
		first := month + uint64(r.IntN(2))<<40 + uint64(r.IntN(blocks))
		last := first + uint64(r.IntN(4))
		intervals = append(intervals, generation.Interval{First: first, Last: last})
		for b := first; b <= last; b++ {
			each[b] = true
		}
	}
	return generation.NewBlocks(intervals), each
}

// oneByOne returns the blocks of intervals, which must be disjoint, not adjacent and ascending.
func oneByOne(t *testing.T, of generation.Blocks) map[uint64]bool {
	t.Helper()
	each := map[uint64]bool{}
	for i, b := range of {
		if b.First > b.Last || i > 0 && b.First <= of[i-1].Last+1 {
			t.Fatalf("intervals %v", of)
		}
		for at := b.First; at <= b.Last; at++ {
			each[at] = true
		}
	}
	return each
}

func same(a, b map[uint64]bool) bool { return len(a) == len(b) && includes(a, b) }

func includes(all, some map[uint64]bool) bool {
	for b := range some {
		if !all[b] {
			return false
		}
	}
	return true
}

// TestBlocksEqualSets compares sets of blocks with maps.
func TestBlocksEqualSets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	included := 0
	for range 20_000 {
		a, eachA := randomBlocks(r)
		b, eachB := randomBlocks(r)
		if !same(oneByOne(t, a), eachA) {
			t.Fatalf("%v are not %v", a, eachA)
		}
		both := map[uint64]bool{}
		for block := range eachA {
			if eachB[block] {
				both[block] = true
			}
		}
		intersection := a.Intersect(b)
		if !same(oneByOne(t, intersection), both) {
			t.Fatalf("%v and %v have %v in common", a, b, intersection)
		}
		if a.Include(b) != includes(eachA, eachB) || !a.Include(intersection) || !b.Include(intersection) {
			t.Fatalf("%v includes %v: %v", a, b, a.Include(b))
		}
		if a.Include(b) && len(b) > 0 {
			included++
		}
	}
	if included < 100 {
		t.Error("only", included, "sets include another one")
	}
}

// TestConditionsOfSets compares the conditions on rows and parts with sets.
func TestConditionsOfSets(t *testing.T) {
	conn := schematest.Empty(t)
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // no secret
	// one row per block, which is also a part of its own
	query := "SELECT toUInt64(202611 + intDiv(number, 50)) AS of, toUInt64(number % 50) AS n, toUInt8(" + generation.BySet.Until + "), toUInt8(" + generation.BySet.Since + "), toUInt8(" + generation.BySet.NewPart + ")" + `
		FROM (SELECT number, toDateTime64(if(number < 50, '2026-11-05 00:00:00', '2026-12-05 00:00:00'), 3, 'UTC') AS time, number % 50 AS _block_number,
			concat(toString(202611 + intDiv(number, 50)), '_', toString(number % 50), '_', toString(number % 50), '_0') AS _part FROM numbers(100))`
	for range 200 {
		set, each := randomBlocks(r)
		rows, err := conn.Query(t.Context(), query, clickhouse.Named("through", set.Bounds()), clickhouse.Named("since", set.Bounds()))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; rows.Next(); n++ {
			var of, number uint64
			var until, since, newPart uint8
			if err := rows.Scan(&of, &number, &until, &since, &newPart); err != nil {
				t.Fatal(err)
			}
			if in := each[of<<40+number]; (until == 1) != in || (since == 1) == in || (newPart == 1) == in {
				t.Fatalf("block %d %d of %v: until %d, since %d, new part %d", of, number, set, until, since, newPart)
			}
		}
		if err := rows.Err(); err != nil || n != 100 {
			t.Fatal(n, err)
		}
	}
	if !slices.Equal(generation.Blocks(nil).Bounds(), []uint64{1}) {
		t.Error("bounds of no blocks")
	}
}
