package arrivals

import (
	"fmt"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// TestFollowerSkipsOldArrivals has more events arrive than New returns: the follower returns the last ones, in order,
// and continues after them.
func TestFollowerSkipsOldArrivals(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	f := NewFollower(conn, Query{}, func(schema.NamedID) string { return "" })
	w := ingest.NewWriter(conn, nil)
	var events []schema.Event
	for visitor := range 2 * maxNew {
		events = append(events, schema.Event{
			WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: uint64(visitor), EventID: schema.HashID(fmt.Sprint(visitor)), //nolint:gosec // small
			Kind: schema.KindView, Time: time.Now().Add(-time.Hour),
		})
	}
	must.OK(t, w.WriteEvents(t.Context(), events))
	for round, shown := range []int{maxNew, 0} {
		got, err := f.NewArrivals(t.Context())
		must.That(t, err == nil && len(got) == shown, "round %d: %d arrivals, %v; want %d", round, len(got), err, shown)
	}
}
