package ingest_test

import (
	"maps"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestDropSubjects compares the store after dropping subjects with a store that never had their events.
func TestDropSubjects(t *testing.T) {
	never, knew := schematest.OpenMigrated(t), schematest.OpenMigrated(t)
	var others, own []schema.Event
	for _, visitor := range []string{"a", "b"} {
		for website := range int64(2) {
			seen := view("e" + visitor)
			seen.VisitorID, seen.WebsiteID = schema.HashID(visitor), 1+website
			goal := seen
			goal.Kind, goal.GoalID, goal.Value, goal.EventID = schema.KindGoal, 3, 5, 7
			goal.Subject, goal.SubjectID, goal.Time = schema.SubjectNone, 0, seen.Time.Add(40*24*time.Hour)
			widget, experiment, other := seen, seen, seen
			widget.Subject, experiment.Subject, experiment.ExperimentID, other.SubjectID = schema.SubjectWidget, schema.SubjectWidget, 4, 13
			others = append(others, goal, other)
			if website == 1 {
				own = append(own, seen, widget, experiment)
			} else {
				others = append(others, seen, widget, experiment)
			}
		}
	}
	other, otherFacts := newEraser(never)
	must.OK(t, other.WriteEvents(t.Context(), others))
	w, r := newEraser(knew)
	for _, events := range [][]schema.Event{others, own} {
		must.OK(t, w.WriteEvents(t.Context(), events))
		must.Get(r.RefreshFacts(t.Context()))(t)
	}
	campaign, widget := schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 12}, schema.Subject{WebsiteID: 2, Kind: schema.SubjectWidget, ID: 12}
	subjects := []schema.Subject{campaign, widget, {WebsiteID: 9, Kind: schema.SubjectCampaign, ID: 12}}
	for _, want := range []map[schema.Subject]uint64{{campaign: 2, widget: 4}, {}} {
		stored := must.Get(w.CountSubjects(t.Context(), subjects))(t)
		got := map[schema.Subject]uint64{}
		for subject, of := range stored {
			if got[subject] = of.Events; time.Since(of.Accepted) > time.Hour {
				t.Errorf("accepted at %v", of.Accepted)
			}
		}
		check.That(t, maps.Equal(got, want), "stored %v; want %v", got, want)
		must.OK(t, w.DropSubjects(t.Context(), subjects))
	}
	wantEvents, wantFacts := digests(t, never, otherFacts)
	if events, folded := digests(t, knew, r); events != wantEvents || folded != wantFacts {
		t.Errorf("events %d, facts %d; want %d, %d", events, folded, wantEvents, wantFacts)
	}
}

// TestDropSubjectsAfterCrash kills a process between the deletion of the events and the deletion of the facts.
func TestDropSubjectsAfterCrash(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w, r := newEraser(conn)
	must.OK(t, w.WriteEvents(t.Context(), []schema.Event{view("e")}))
	must.Get(r.RefreshFacts(t.Context()))(t)
	subject := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	left := 2 // the query for the experiments, and the deletion of the events
	killed, _ := newEraser(schematest.KilledConn{Conn: conn, Left: &left})
	err := killed.DropSubjects(t.Context(), []schema.Subject{subject})
	must.That(t, err != nil, "the process was not killed")
	must.Equal(t, number(t, conn, "SELECT count() FROM events"), 0, "events remain")
	must.OK(t, w.DropSubjects(t.Context(), []schema.Subject{subject}))
	check.Equal(t, number(t, conn, "SELECT sum(sign) FROM facts WHERE grain != 'position'"), 0, "facts remain")
}
