package ingest_test

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/rollup"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// newEraser returns a writer that can delete events.
func newEraser(conn driver.Conn) *ingest.Writer {
	w := ingest.NewWriter(conn)
	w.SetRollups(rollup.NewIndex(conn, 0, nil, nil))
	return w
}

// digests returns hashes of all events and of the counters.
func digests(t *testing.T, conn driver.Conn) (events, counters uint64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT sum(cityHash64(* EXCEPT ingested_at)) FROM events").Scan(&events); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), `
		SELECT sum(cityHash64(*))
		FROM (SELECT website_id, subject, subject_id, experiment_id, event, goal_id, sum(rows), sum(value), max(newest_event) FROM subject_stats GROUP BY ALL HAVING sum(rows) > 0)`,
	).Scan(&counters); err != nil {
		t.Fatal(err)
	}
	return events, counters
}

// TestForget compares the store after forgetting a visitor with a store that never
// had the visitor's events.
func TestForget(t *testing.T) {
	var others, own []schema.Event
	for i, visitor := range []string{"a", "b", "c", "forgotten"} {
		for website := range int64(2) {
			seen := view("e"+visitor, 12)
			seen.VisitorID, seen.WebsiteID = schema.Hash(visitor), 1+website
			goal := seen
			goal.Kind, goal.GoalID, goal.Value, goal.EventID = schema.KindGoal, 3, int64(i+1), 7
			goal.Subject, goal.SubjectID, goal.Time = schema.SubjectNone, 0, seen.Time.Add(40*24*time.Hour)
			if visitor == "forgotten" && website == 1 { // with the latest event
				goal.Time = goal.Time.Add(time.Hour)
				own = append(own, seen, goal)
			} else {
				others = append(others, seen, goal)
			}
		}
	}
	never, knew := schematest.Open(t), schematest.Open(t)
	if _, err := ingest.NewWriter(never).Write(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	w := newEraser(knew)
	for _, events := range [][]schema.Event{others, own} {
		if _, err := w.Write(t.Context(), events); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []ingest.Erased{{Events: 3, Subjects: 2}, {}} {
		if got, err := w.Forget(t.Context(), []string{"forgotten"}, []int64{2}); err != nil || got != want {
			t.Errorf("erased %+v, %v; want %+v", got, err, want)
		}
	}
	wantEvents, wantCounters := digests(t, never)
	if events, counters := digests(t, knew); events != wantEvents || counters != wantCounters {
		t.Errorf("events %d, counters %d; want %d, %d", events, counters, wantEvents, wantCounters)
	}
	if got, err := w.Forget(t.Context(), []string{"forgotten", "a"}, nil); err != nil || got.Events != 9 {
		t.Errorf("on all websites erased %+v, %v; want 9 events", got, err)
	}
}
