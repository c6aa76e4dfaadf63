package ingest_test

import (
	"maps"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// TestDropSubjects compares the store after dropping subjects with a store that
// never had their events.
func TestDropSubjects(t *testing.T) {
	never, knew := schematest.Open(t), schematest.Open(t)
	var others, own []schema.Event
	for _, visitor := range []string{"a", "b"} {
		for website := range int64(2) {
			seen := view("e"+visitor, 12)
			seen.VisitorID, seen.WebsiteID = schema.Hash(visitor), 1+website
			goal := seen
			goal.Kind, goal.GoalID, goal.Value, goal.EventID = schema.KindGoal, 3, 5, 7
			goal.Subject, goal.SubjectID, goal.Time = schema.SubjectNone, 0, seen.Time.Add(40*24*time.Hour)
			widget, experiment, other := seen, seen, seen
			widget.Subject, experiment.Subject, experiment.ExperimentID, other.SubjectID = schema.SubjectWidget, schema.SubjectWidget, 4, 13
			others = append(others, goal, other)
			if website == 1 {
				own = append(own, seen, widget, experiment) // each has a derived row of the goal
			} else {
				others = append(others, seen, widget, experiment)
			}
		}
	}
	if _, err := ingest.NewWriter(never).Write(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	w := newEraser(knew)
	for _, events := range [][]schema.Event{others, own} {
		if _, err := w.Write(t.Context(), events); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	w.AfterWrite(func([]ingest.Subject) { calls++ })
	campaign, widget := ingest.SubjectID{WebsiteID: 2, Subject: schema.SubjectCampaign, ID: 12}, ingest.SubjectID{WebsiteID: 2, Subject: schema.SubjectWidget, ID: 12}
	subjects := []ingest.SubjectID{campaign, widget, {WebsiteID: 9, Subject: schema.SubjectCampaign, ID: 12}}
	for _, want := range []map[ingest.SubjectID]uint64{{campaign: 4, widget: 8}, {}} {
		if got, err := w.CountSubjects(t.Context(), subjects); err != nil || !maps.Equal(got, want) {
			t.Errorf("stored %v, %v; want %v", got, err, want)
		}
		if err := w.DropSubjects(t.Context(), subjects); err != nil {
			t.Fatal(err)
		}
	}
	wantEvents, wantCounters := digests(t, never)
	if events, counters := digests(t, knew); events != wantEvents || counters != wantCounters || calls != 2 {
		t.Errorf("events %d, counters %d, %d calls of AfterWrite; want %d, %d, 2", events, counters, calls, wantEvents, wantCounters)
	}
}

// TestDropSubjectsAfterCrash kills a process between the deletion of the events
// and the deletion of the counters.
func TestDropSubjectsAfterCrash(t *testing.T) {
	conn := schematest.Open(t)
	if _, err := ingest.NewWriter(conn).Write(t.Context(), []schema.Event{view("e", 12)}); err != nil {
		t.Fatal(err)
	}
	subject := ingest.SubjectID{WebsiteID: 1, Subject: schema.SubjectCampaign, ID: 12}
	left := 5 // the queries for the states and for the generations of three tables, and the deletion of the events
	if err := newEraser(schematest.KilledConn{Conn: conn, Left: &left}).DropSubjects(t.Context(), []ingest.SubjectID{subject}); err == nil {
		t.Fatal("the process was not killed")
	}
	w := newEraser(conn)
	if got, err := w.CountSubjects(t.Context(), []ingest.SubjectID{subject}); err != nil || !maps.Equal(got, map[ingest.SubjectID]uint64{subject: 0}) {
		t.Fatalf("stored %v, %v; want counters without events", got, err)
	}
	if err := w.DropSubjects(t.Context(), []ingest.SubjectID{subject}); err != nil {
		t.Fatal(err)
	}
	if counted := number(t, conn, "SELECT count() FROM subject_stats"); counted != 0 {
		t.Errorf("%d rows of counters remain", counted)
	}
}
