package ingest_test

import (
	"fmt"
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

// model is a reference implementation of the store, which adds events one by one.
type model map[string]schema.Event

func (s model) identity(e *schema.Event) string {
	return fmt.Sprint(e.VisitorID, " ", place(*e, e.EventID))
}

func (s model) put(e schema.Event) ingest.Verdict {
	earlier, known := s[s.identity(&e)]
	if !known {
		s[s.identity(&e)] = e
		return ingest.Stored
	}
	earlier.Derived, e.Derived = false, false
	if earlier == e {
		return ingest.Duplicate
	}
	return ingest.Conflict
}

// firstView returns the visitor's first view of the subject.
func (s model) firstView(visitor uint64, subject string) (first schema.Event, found bool) {
	for _, e := range s {
		if e.Kind != schema.KindView || e.VisitorID != visitor || place(e, 0) != subject {
			continue
		}
		earlier := e.Time.Before(first.Time) || e.Time.Equal(first.Time) &&
			(e.VariationID < first.VariationID || e.VariationID == first.VariationID && e.EventID < first.EventID)
		if !found || earlier {
			first, found = e, true
		}
	}
	return first, found
}

// arrive stores the event if it is not stored, and all derived rows that follow.
func (s model) arrive(e schema.Event) ingest.Verdict {
	verdict := s.put(e)
	if verdict != ingest.Stored {
		return verdict
	}
	subjects := map[string]bool{}
	for _, view := range s {
		if view.Kind == schema.KindView && view.VisitorID == e.VisitorID && view.WebsiteID == e.WebsiteID {
			subjects[place(view, 0)] = true
		}
	}
	var goals []schema.Event
	for _, goal := range s {
		if goal.Subject == schema.SubjectNone && goal.VisitorID == e.VisitorID && goal.WebsiteID == e.WebsiteID {
			goals = append(goals, goal)
		}
	}
	for subject := range subjects {
		first, _ := s.firstView(e.VisitorID, subject)
		for _, goal := range goals {
			if first.Time.After(goal.Time) {
				continue
			}
			row := goal
			row.Subject, row.SubjectID, row.ExperimentID, row.VariationID, row.Derived = first.Subject, first.SubjectID, first.ExperimentID, first.VariationID, true
			s.put(row)
		}
	}
	return verdict
}

// arrivals returns random events of a visitor: views of two subjects, goals with
// and without exposures. There are few different ids, so many events are
// duplicates, often with other content.
func arrivals(r *rand.Rand, visitor uint64) []schema.Event {
	events := make([]schema.Event, 3+r.IntN(7))
	for i := range events {
		e := schema.Event{
			WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1 + r.Int64N(2), VariationID: r.Int64N(2), VisitorID: visitor,
			Kind: schema.KindView, EventID: 1 + r.Uint64N(2), Time: time.Date(2026, 4, 30, 22+r.IntN(4), 0, 0, 0, time.UTC),
		}
		switch r.IntN(3) {
		case 0:
			e.Kind, e.EventID, e.GoalID, e.Value = schema.KindGoal, 3+r.Uint64N(2), 3, r.Int64N(3)
		case 1:
			e.Kind, e.EventID, e.GoalID, e.Value = schema.KindGoal, 3+r.Uint64N(2), 3, r.Int64N(3)
			e.Subject, e.SubjectID, e.VariationID = schema.SubjectNone, 0, 0
		}
		events[i] = e
	}
	return events
}

// writers are the two modes of a writer.
var writers = map[string]func(*testing.T, *ingest.Writer){
	"alone":  func(_ *testing.T, w *ingest.Writer) { w.SetExclusive() },
	"shared": share,
}

// TestWriterEqualsModel writes the same events in calls of different sizes. The
// stored rows and the verdicts must equal those of the model, which adds events
// one by one.
func TestWriterEqualsModel(t *testing.T) {
	visitors := tier.Of(500, 1000, 3000)
	for name, set := range writers {
		t.Run(name, func(t *testing.T) {
			conn := schematest.Open(t)
			w := ingest.NewWriter(conn)
			set(t, w)
			r := rand.New(rand.NewPCG(16, 6))
			want := model{}
			var calls [5][]schema.Event
			var verdicts [5][]ingest.Verdict
			for visitor := range uint64(visitors) {
				call, sticks := 0, 1+r.IntN(8) // calls have one or more events of a visitor
				for _, e := range arrivals(r, visitor) {
					calls[call] = append(calls[call], e)
					verdicts[call] = append(verdicts[call], want.arriveOf(e))
					if call < len(calls)-1 && r.IntN(8) >= sticks {
						call++
					}
				}
			}
			for i, events := range calls {
				got, _, err := w.WriteEach(t.Context(), events)
				if err != nil {
					t.Fatal(err)
				}
				for at := range events {
					if got[at] != verdicts[i][at] {
						t.Fatalf("call %d, event %d: verdict %d, want %d: %+v", i, at, got[at], verdicts[i][at], events[at])
					}
				}
			}
			compareRows(t, storedRows(t, conn), want)
			wrong, err := schema.CheckRows(t.Context(), conn)
			if err != nil || len(wrong) > 0 {
				t.Errorf("check: %q, %v", wrong, err)
			}
		})
	}
}

// arriveOf is like arrive, restricted to the rows of the event's visitor, which
// is faster.
func (s model) arriveOf(e schema.Event) ingest.Verdict {
	own := model{}
	for subjectID := range int64(3) { // 0: none
		for id := range uint64(5) {
			at := schema.Event{WebsiteID: e.WebsiteID, Subject: schema.SubjectCampaign, SubjectID: subjectID, VisitorID: e.VisitorID, EventID: id}
			if subjectID == 0 {
				at.Subject = schema.SubjectNone
			}
			if row, known := s[s.identity(&at)]; known {
				own[s.identity(&at)] = row
			}
		}
	}
	verdict := own.arrive(e)
	for key, row := range own {
		s[key] = row
	}
	return verdict
}

func compareRows(t *testing.T, got, want model) {
	t.Helper()
	var different []string
	for key, row := range want {
		if got[key] != row {
			different = append(different, fmt.Sprintf("%s: have %+v, want %+v", key, got[key], row))
		}
	}
	for key := range got {
		if _, known := want[key]; !known {
			different = append(different, key+": not wanted")
		}
	}
	if slices.Sort(different); len(different) > 0 {
		t.Errorf("%d of %d rows differ, such as %s", len(different), len(want), different[0])
	}
}

// storedRows returns the stored rows of the test's visitors.
func storedRows(t *testing.T, conn driver.Conn) model {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT website_id, toString(subject), subject_id, experiment_id, visitor_id, event_id, time, variation_id,
		toString(event), goal_id, value, derived FROM events`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	stored := model{}
	for rows.Next() {
		var e schema.Event
		var of, kind string
		if err := rows.Scan(&e.WebsiteID, &of, &e.SubjectID, &e.ExperimentID, &e.VisitorID, &e.EventID, &e.Time, &e.VariationID, &kind, &e.GoalID, &e.Value, &e.Derived); err != nil {
			t.Fatal(err)
		}
		e.Subject, e.Kind, e.Time = schema.Subject(of), schema.Kind(kind), e.Time.UTC()
		if key := stored.identity(&e); stored[key] != (schema.Event{}) {
			t.Errorf("%s is stored twice", key)
		}
		stored[stored.identity(&e)] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return stored
}

// TestConflictDerivesNothing checks that derived rows are built from the stored
// content of a goal or a view, not from a duplicate with other content.
func TestConflictDerivesNothing(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC) }
	seen := schema.Event{WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, VisitorID: 7, Kind: schema.KindView, EventID: 1, Time: at(10)}
	goal := schema.Event{WebsiteID: 1, Subject: schema.SubjectNone, VisitorID: 7, Kind: schema.KindGoal, GoalID: 3, EventID: 2, Time: at(5), Value: 7_0000}
	otherGoal, otherView := goal, seen
	otherGoal.Time, otherGoal.Value = at(20), 99_0000
	otherView.Time = at(1)
	for name, set := range writers {
		for repeat, again := range map[string]schema.Event{"the goal after the view": otherGoal, "the view before the goal": otherView} {
			conn := schematest.Open(t)
			w := ingest.NewWriter(conn)
			set(t, w)
			for _, e := range []schema.Event{seen, goal} {
				if _, err := w.Write(t.Context(), []schema.Event{e}); err != nil {
					t.Fatal(err)
				}
			}
			verdicts, outcome, err := w.WriteEach(t.Context(), []schema.Event{again})
			if err != nil || verdicts[0] != ingest.Conflict || outcome.Attributed != 0 {
				t.Errorf("%s, %s: %v, %+v, %v", name, repeat, verdicts, outcome, err)
			}
			if n := number(t, conn, "SELECT sum(rows) FROM subject_stats WHERE subject != 'none'"); n != 1 {
				t.Errorf("%s, %s: %d events are counted, want only the view", name, repeat, n)
			}
		}
	}
}

// TestOrderWithinCall sends an unattributed goal, and then the same goal with an
// exposure.
func TestOrderWithinCall(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	first := schema.Event{WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView, EventID: 1, Time: at}
	second := first
	second.SubjectID, second.EventID = 2, 2
	goal := schema.Event{WebsiteID: 1, Subject: schema.SubjectNone, VisitorID: 7, Kind: schema.KindGoal, GoalID: 3, EventID: 3, Time: at, Value: 7_0000}
	attributed := goal
	attributed.Subject, attributed.SubjectID, attributed.Value = schema.SubjectCampaign, 1, 5_0000
	for name, set := range writers {
		for _, calls := range [][][]schema.Event{{{first, second, goal, attributed}}, {{first}, {second}, {goal}, {attributed}}} {
			conn := schematest.Open(t)
			w := ingest.NewWriter(conn)
			set(t, w)
			for _, call := range calls {
				if _, err := w.Write(t.Context(), call); err != nil {
					t.Fatal(err)
				}
			}
			if n := number(t, conn, "SELECT sum(value) FROM events WHERE subject_id = 1"); n != 7_0000 {
				t.Errorf("%s, %d calls: campaign 1 has %d, want the value of the first goal", name, len(calls), n)
			}
		}
	}
}
