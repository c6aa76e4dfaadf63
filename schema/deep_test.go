package schema_test

import (
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

func TestCheckRowsFindsWhatDoesNotFollowFromTheEvents(t *testing.T) {
	conn := schematest.Open(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	view := schema.Event{EventID: 1, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, VisitorID: 7, Kind: schema.KindView}
	bare := schema.Event{EventID: 2, Time: at.Add(time.Hour), WebsiteID: 1, Subject: schema.SubjectNone, VisitorID: 7, Kind: schema.KindGoal, GoalID: 3}
	early := bare
	early.EventID, early.Time = 4, at.Add(-time.Hour)
	counted := bare
	counted.Subject, counted.SubjectID = schema.SubjectCampaign, 12
	insert := func(events ...schema.Event) {
		t.Helper()
		if err := schema.InsertEvents(t.Context(), conn, events, at.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want ...string) {
		t.Helper()
		faults, err := schema.CheckRows(t.Context(), conn)
		if err != nil || len(faults) != len(want) {
			t.Fatalf("%q, %v; want %q", faults, err, want)
		}
		for i, fault := range faults {
			if !strings.HasPrefix(fault, want[i]) {
				t.Errorf("%q; want %q", fault, want[i])
			}
		}
	}
	if err := conn.Exec(t.Context(), "SYSTEM STOP MERGES"); err != nil { // which drop copies
		t.Fatal(err)
	}
	defer func() { _ = conn.Exec(t.Context(), "SYSTEM START MERGES") }()
	says()
	insert(view, bare, early)
	says("1 goals that name no exposure")
	insert(counted)
	says()
	insert(view)
	says("1 rows are copies")
	if err := conn.Exec(t.Context(), "TRUNCATE TABLE subject_stats"); err != nil {
		t.Fatal(err)
	}
	says("1 rows are copies", "3 live counters")
}
