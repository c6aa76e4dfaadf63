package ingest_test

import (
	"math/rand/v2"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestCopyEvents copies random events from an embedded store to a server and back, twice each. The oracle is the first
// store.
func TestCopyEvents(t *testing.T) {
	tier.OnlyLong(t)
	r := rand.New(rand.NewPCG(61, 0))
	from := schematest.OpenMigrated(t)
	w := ingest.NewWriter(from, nil)
	for visitor := range uint64(tier.Of(6, 80)) {
		for _, e := range arrivals(r, visitor) { // one by one, so that the order of their arrival counts
			must.OK(t, w.WriteEvents(t.Context(), []schema.Event{e}))
		}
	}
	want := storedRows(t, from)
	server := schematest.SharedServer(t)
	for i := range 3 {
		to := schematest.OpenMigrated(t)
		if i%2 == 0 {
			to = server.OpenMigrated(t)
		}
		for range 2 {
			copied, err := ingest.CopyEvents(t.Context(), ingest.NewWriter(to, nil), from, func(done, total uint64) {
				check.That(t, done <= total, "%d of %d events", done, total)
			})
			must.That(t, err == nil && copied >= uint64(len(want)), "%d copied, want %d events; %v", copied, len(want), err)
			compareRows(t, storedRows(t, to), want)
		}
		from = to
	}
}
