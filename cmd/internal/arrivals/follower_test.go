package arrivals

import (
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// TestFollowerReturnsEachArrivalOnce has events arrive between calls: each call returns the new ones, in the order of
// arrival, and at most the last 200.
func TestFollowerReturnsEachArrivalOnce(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	visitor := uint64(0)
	send := func(n int) {
		var events []schema.Event
		for range n {
			visitor++
			events = append(events, schema.Event{
				WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: visitor, EventID: visitor,
				Kind: schema.KindView, Time: time.Now().Add(-time.Hour),
			})
		}
		must.OK(t, w.WriteEvents(t.Context(), events))
	}
	f := NewFollower(conn, Query{Last: 2}, func(schema.NamedID) string { return "" })
	send(5)
	check.Equal(t, len(must.Get(f.NextArrivals(t.Context()))(t)), 2, "at first, the last ones that the query asks for")
	check.Equal(t, len(must.Get(f.NextArrivals(t.Context()))(t)), 0, "nothing has arrived")
	send(3)
	check.Equal(t, len(must.Get(f.NextArrivals(t.Context()))(t)), 3, "new arrivals")
	send(2 * maxNew)
	check.Equal(t, len(must.Get(f.NextArrivals(t.Context()))(t)), maxNew, "of many, the last ones")
	check.Equal(t, len(must.Get(f.NextArrivals(t.Context()))(t)), 0, "nothing has arrived since")
}
