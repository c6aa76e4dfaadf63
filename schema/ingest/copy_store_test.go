package ingest_test

import (
	"math/rand/v2"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// TestCopyEvents copies random events from an embedded store to a server and back, in batches
// of several sizes, twice each. The oracle is the first store.
func TestCopyEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 0))
	first := schematest.Open(t)
	alone := ingest.NewWriter(first)
	alone.SetExclusive()
	for visitor := range uint64(tier.Of(6, 8, 80)) {
		for _, e := range arrivals(r, visitor) { // one by one, so that the order of their arrival counts
			if _, err := alone.Write(t.Context(), []schema.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := storedRows(t, first)
	from := first
	for _, size := range []int{7, 50, 100_000} {
		to := schematest.Server(t).Open(t)
		if size == 50 {
			to = schematest.Open(t)
		}
		w := ingest.NewWriter(to)
		if size == 50 {
			w.SetExclusive()
		} else {
			share(t, w)
		}
		copied, err := ingest.CopyInBatches(t.Context(), w, from, size, func(done, total uint64) {
			if total != uint64(len(want)) || done > total {
				t.Errorf("%d of %d events, want %d", done, total, len(want))
			}
		})
		if err != nil || copied.Inserted != len(want) || copied.Attributed > 0 || copied.Duplicates > 0 {
			t.Fatalf("%+v, want %d events; %v", copied, len(want), err)
		}
		compareRows(t, storedRows(t, to), want)
		again, err := ingest.CopyEvents(t.Context(), w, from, func(uint64, uint64) {})
		if err != nil || again.Inserted > 0 || again.Conflicts > 0 || again.Duplicates != len(want) {
			t.Errorf("again: %+v, %v", again, err)
		}
		compareRows(t, storedRows(t, to), want)
		from = to
	}
}
