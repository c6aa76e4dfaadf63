package ingest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// stream returns random events of one visitor: views of few subjects and
// unattributed goals, at few different times, so that many events have equal
// times.
func stream(r *rand.Rand) []schema.Event {
	subjects := []schema.Event{
		{Subject: schema.SubjectCampaign, SubjectID: 1},
		{Subject: schema.SubjectCampaign, SubjectID: 2},
		{Subject: schema.SubjectWidget, SubjectID: 1},
		{Subject: schema.SubjectWidget, SubjectID: 1, ExperimentID: 4},
	}
	events := make([]schema.Event, 4+r.IntN(2))
	for i := range events {
		e := subjects[r.IntN(len(subjects))]
		e.Kind, e.VariationID = schema.KindView, r.Int64N(2)
		if i > 0 && r.IntN(2) == 0 {
			e = schema.Event{Subject: schema.SubjectNone, Kind: schema.KindGoal, GoalID: 3, Value: r.Int64N(100)}
		}
		e.WebsiteID, e.EventID = 1+r.Int64N(5)/4, r.Uint64()
		e.Time = time.Date(2026, 4, 30, 20+r.IntN(8), 0, 0, 0, time.UTC) // in two months
		events[i] = e
	}
	return events
}

// wantGoals returns the goal rows that must be stored: each goal, and a derived
// row for each subject that was seen not later than the goal.
func wantGoals(events []schema.Event) []string {
	want := map[string]bool{}
	for _, goal := range events {
		if goal.Kind != schema.KindGoal {
			continue
		}
		want[place(goal, goal.EventID)] = true
		for _, view := range events {
			if view.Kind == schema.KindView && view.WebsiteID == goal.WebsiteID && !view.Time.After(goal.Time) {
				want[place(view, goal.EventID)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(want))
}

func place(of schema.Event, eventID uint64) string {
	return fmt.Sprint(of.WebsiteID, of.Subject, of.SubjectID, of.ExperimentID, eventID)
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// TestUnattributedGoalsInAnyOrder uses a separate visitor for each order of
// arrival of a stream. A call has one or more events of each visitor. One writer looks up
// everything, the others know the visitors of the stored events.
func TestUnattributedGoalsInAnyOrder(t *testing.T) {
	calls, want := callsInAnyOrder()
	check := func(t *testing.T, restart func(*ingest.Writer) error, every int) {
		t.Helper()
		conn := schematest.Open(t)
		var w *ingest.Writer
		for i, events := range calls {
			if i%every == 0 {
				w = ingest.NewWriter(conn)
				if err := restart(w); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Write(t.Context(), events); err != nil {
				t.Fatal(err)
			}
		}
		got := storedGoals(t, conn)
		for visitor, goals := range want {
			if !slices.Equal(got[visitor], goals) {
				t.Fatalf("%d goals stored, want %d\n got %q\nwant %q", len(got[visitor]), len(goals), got[visitor], goals)
			}
		}
	}
	t.Run("looked up", func(t *testing.T) {
		check(t, func(*ingest.Writer) error { return nil }, len(calls))
	})
	t.Run("known", func(t *testing.T) {
		check(t, func(w *ingest.Writer) error {
			w.SetExclusive()
			return w.LoadIDs(t.Context())
		}, 2)
	})
}

// callsInAnyOrder returns the events of each call, and the goal rows that must be stored for
// each visitor.
func callsInAnyOrder() (calls [6][]schema.Event, want map[uint64][]string) {
	r := rand.New(rand.NewPCG(6, 6))
	want = map[uint64][]string{}
	streams := tier.Of(5, 8, 25)
	for s := range streams {
		events := stream(r)
		for i, order := range permutations(len(events)) {
			visitor := schema.Hash(fmt.Sprint(s, " ", i))
			want[visitor] = wantGoals(events)
			call := 0
			for _, at := range order {
				e := events[at]
				e.VisitorID = visitor
				calls[call] = append(calls[call], e)
				if r.IntN(10) == 0 { // send the event again, immediately or later
					again := call + r.IntN(len(calls)-call)
					calls[again] = append(calls[again], e)
				}
				if r.IntN(4) > 0 {
					call++
				}
			}
		}
	}
	return calls, want
}

// TestMissingDerivedRowsAreAdded checks that a retry adds derived rows that are
// missing after a crash.
func TestMissingDerivedRowsAreAdded(t *testing.T) {
	const itsRows, all = "subject != 'none' AND event = 'goal'", "event = 'goal'"
	for _, c := range []struct {
		name, cut string
		resent    int // events sent again: the view, or both
	}{{"its rows, both sent again", itsRows, 2}, {"its rows, the view sent again", itsRows, 1}, {"all, both sent again", all, 2}} {
		t.Run(c.name, func(t *testing.T) {
			conn := schematest.Open(t)
			w := ingest.NewWriter(conn)
			seen := view("e", 12)
			goal := schema.Event{WebsiteID: 1, Subject: schema.SubjectNone, Kind: schema.KindGoal, GoalID: 3, EventID: 5, VisitorID: seen.VisitorID, Time: seen.Time}
			events := []schema.Event{seen, goal}
			outcome, err := w.Write(t.Context(), events)
			if want := (ingest.Outcome{Inserted: 2, Attributed: 1}); err != nil || outcome != want {
				t.Fatalf("%+v, %v; want %+v", outcome, err, want)
			}
			if err := conn.Exec(t.Context(), "ALTER TABLE events DELETE WHERE "+c.cut+" SETTINGS mutations_sync = 1"); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(t.Context(), events[:c.resent]); err != nil {
				t.Fatal(err)
			}
			if got, want := storedGoals(t, conn)[seen.VisitorID], wantGoals(events); !slices.Equal(got, want) {
				t.Errorf("stored %q, want %q", got, want)
			}
			outcome, err = w.Write(t.Context(), events)
			if want := (ingest.Outcome{Duplicates: 2}); err != nil || outcome != want {
				t.Errorf("second retry: %+v, %v; want %+v", outcome, err, want)
			}
		})
	}
}

// storedGoals returns the stored goal rows by visitor.
func storedGoals(t *testing.T, conn driver.Conn) map[uint64][]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT visitor_id, website_id, subject, subject_id, experiment_id, event_id FROM events WHERE event = 'goal'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	stored := map[uint64][]string{}
	for rows.Next() {
		var visitor uint64
		var e schema.Event
		var of string
		if err := rows.Scan(&visitor, &e.WebsiteID, &of, &e.SubjectID, &e.ExperimentID, &e.EventID); err != nil {
			t.Fatal(err)
		}
		e.Subject = schema.Subject(of)
		stored[visitor] = append(stored[visitor], place(e, e.EventID))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, places := range stored {
		slices.Sort(places)
	}
	return stored
}
