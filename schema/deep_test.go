package schema_test

import (
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

func TestCheckRows(t *testing.T) {
	conn := schematest.Open(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	view := schema.Event{EventID: 1, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, VisitorID: 7, Kind: schema.KindView}
	unattributed := schema.Event{EventID: 2, Time: at.Add(time.Hour), WebsiteID: 1, Subject: schema.SubjectNone, VisitorID: 7, Kind: schema.KindGoal, GoalID: 3}
	early := unattributed
	early.EventID, early.Time = 4, at.Add(-time.Hour)
	counted := unattributed
	counted.Subject, counted.SubjectID = schema.SubjectCampaign, 12
	insert := func(events ...schema.Event) {
		t.Helper()
		if err := schema.InsertEvents(t.Context(), conn, "", events, at.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
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
	if err := conn.Exec(t.Context(), "SYSTEM STOP MERGES"); err != nil { // merges drop duplicates
		t.Fatal(err)
	}
	defer func() { _ = conn.Exec(t.Context(), "SYSTEM START MERGES") }()
	check()
	insert(view, unattributed, early)
	check("1 unattributed goals do not count")
	insert(counted)
	check()
	insert(view)
	check("1 rows are duplicates")
	if err := conn.Exec(t.Context(), "TRUNCATE TABLE subject_stats"); err != nil {
		t.Fatal(err)
	}
	check("1 rows are duplicates", "3 live counters")
}

func TestCheckRowsComparesDerivedRowsWithTheirGoal(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	view := schema.Event{EventID: 1, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, VisitorID: 7, Kind: schema.KindView}
	goal := schema.Event{EventID: 2, Time: at.Add(time.Hour), WebsiteID: 1, Subject: schema.SubjectNone, VisitorID: 7, Kind: schema.KindGoal, GoalID: 3, Value: 5}
	row := goal
	row.Subject, row.SubjectID, row.Derived = schema.SubjectCampaign, 12, true
	for name, wrong := range map[string]func(goal, row *schema.Event){
		"":                                func(*schema.Event, *schema.Event) {},
		"another value":                   func(_, row *schema.Event) { row.Value = 7 },
		"another device":                  func(_, row *schema.Event) { row.Device = "mobile" },
		"before the view":                 func(goal, row *schema.Event) { goal.Time = at.Add(-time.Hour); row.Time = goal.Time },
		"attributed by the sender: right": func(_, row *schema.Event) { row.Value, row.Derived = 7, false },
	} {
		conn := schematest.Open(t)
		goal, row := goal, row
		wrong(&goal, &row)
		if err := schema.InsertEvents(t.Context(), conn, "", []schema.Event{view, goal, row}, at.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		faults, err := schema.CheckRows(t.Context(), conn)
		want := name != "" && !strings.HasSuffix(name, "right")
		if err != nil || (len(faults) == 1 && strings.HasPrefix(faults[0], "1 rows of unattributed goals differ")) != want || len(faults) > 1 {
			t.Errorf("%s: %q, %v", name, faults, err)
		}
	}
}
