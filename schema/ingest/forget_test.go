package ingest_test

import (
	"maps"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// newEraser returns a writer that can delete events, and the facts of the store.
func newEraser(conn driver.Conn) (*ingest.Writer, *facts.Refresher) {
	r := facts.NewRefresher(conn, false)
	return ingest.NewWriter(conn, r), r
}

// digests returns hashes of all events and of the facts.
func digests(t *testing.T, conn driver.Conn, r *facts.Refresher) (events, folded uint64) {
	t.Helper()
	must.Get(r.RefreshFacts(t.Context()))(t)
	for statement, to := range map[string]*uint64{
		"SELECT sum(cityHash64(* EXCEPT (ingested_at))) FROM events FINAL": &events,
		`SELECT sum(cityHash64(row)) FROM (
			SELECT tuple(* EXCEPT (sign, refresh)) AS row, sum(sign) AS n FROM facts WHERE grain IN ('visitor', 'goal') GROUP BY row HAVING n > 0)`: &folded,
	} {
		must.OK(t, conn.QueryRow(t.Context(), statement).Scan(to))
	}
	return events, folded
}

// visit returns a view, and a goal 40 days later.
func visit(visitor string, website int64, value int64) (seen, goal schema.Event) {
	seen = view("e" + visitor)
	seen.VisitorID, seen.WebsiteID = schema.HashID(visitor), website
	goal = seen
	goal.Kind, goal.GoalID, goal.Value, goal.EventID = schema.KindGoal, 3, value, 7
	goal.Subject, goal.SubjectID, goal.Time = schema.SubjectNone, 0, seen.Time.Add(40*24*time.Hour)
	return seen, goal
}

// checkErased compares a store after the own events were erased with a store that never had them.
func checkErased(t *testing.T, others, own []schema.Event, erase func(w *ingest.Writer)) *ingest.Writer {
	t.Helper()
	never, knew := schematest.OpenMigrated(t), schematest.OpenMigrated(t)
	other, otherFacts := newEraser(never)
	must.OK(t, other.WriteEvents(t.Context(), others))
	w, r := newEraser(knew)
	for _, events := range [][]schema.Event{others, own} {
		must.OK(t, w.WriteEvents(t.Context(), events))
		must.Get(r.RefreshFacts(t.Context()))(t)
	}
	erase(w)
	wantEvents, wantFacts := digests(t, never, otherFacts)
	events, folded := digests(t, knew, r)
	check.Equal(t, events, wantEvents, "events %d, facts %d; want %d, %d", events, folded, wantEvents, wantFacts)
	check.Equal(t, folded, wantFacts, "events %d, facts %d; want %d, %d", events, folded, wantEvents, wantFacts)
	return w
}

func TestForget(t *testing.T) {
	var others, own []schema.Event
	for i, visitor := range []string{"a", "b", "c", "forgotten"} {
		for website := range int64(2) {
			seen, goal := visit(visitor, 1+website, int64(i+1))
			if visitor == "forgotten" && website == 1 { // with the latest event
				goal.Time = goal.Time.Add(time.Hour)
				own = append(own, seen, goal)
			} else {
				others = append(others, seen, goal)
			}
		}
	}
	w := checkErased(t, others, own, func(w *ingest.Writer) {
		for _, want := range []ingest.Erased{{Events: 2, Subjects: 2}, {}} {
			check.Equal(t, must.Get(w.ForgetVisitors(t.Context(), []string{"forgotten"}, []int64{2}))(t), want,
				"erased")
		}
	})
	got, err := w.ForgetVisitors(t.Context(), []string{"forgotten", "a"}, nil)
	must.That(t, err == nil, "on all websites erased %+v, %v; want 6 events", got, err)
	check.Equal(t, got.Events, 6, "on all websites erased %+v, %v; want 6 events", got, err)
}

func TestDropSubjects(t *testing.T) {
	var others, own []schema.Event
	for _, visitor := range []string{"a", "b"} {
		for website := range int64(2) {
			seen, goal := visit(visitor, 1+website, 5)
			widget := seen
			widget.Subject = schema.SubjectWidget
			experiment := widget
			experiment.ExperimentID = 4
			other := seen
			other.SubjectID = 13
			others = append(others, goal, other)
			if website == 1 {
				own = append(own, seen, widget, experiment)
			} else {
				others = append(others, seen, widget, experiment)
			}
		}
	}
	campaign, widget := schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 12}, schema.Subject{
		WebsiteID: 2,
		Kind:      schema.SubjectWidget, ID: 12,
	}
	subjects := []schema.Subject{campaign, widget, {WebsiteID: 9, Kind: schema.SubjectCampaign, ID: 12}}
	checkErased(t, others, own, func(w *ingest.Writer) {
		for _, want := range []map[schema.Subject]uint64{{campaign: 2, widget: 4}, {}} {
			got := map[schema.Subject]uint64{}
			for subject, of := range must.Get(w.CountSubjects(t.Context(), subjects))(t) {
				got[subject] = of.Events
				check.That(t, time.Since(of.Accepted) <= time.Hour, "accepted at %v", of.Accepted)
			}
			check.That(t, maps.Equal(got, want), "stored %v; want %v", got, want)
			must.OK(t, w.DropSubjects(t.Context(), subjects))
		}
	})
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
