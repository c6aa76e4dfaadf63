package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// model has the first arrival of each event.
type model map[string]schema.Event

func identity(e *schema.Event) string {
	return fmt.Sprint(e.VisitorID, " ", e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID, e.EventID)
}

// arrive adds the event unless one with its identity arrived before.
func (s model) arrive(e schema.Event) {
	if _, known := s[identity(&e)]; !known {
		s[identity(&e)] = e
	}
}

// arrivals returns random events of a visitor: views of two subjects, goals with and without exposures. There are few
// different ids, so many events are copies, often with other content.
func arrivals(r *rand.Rand, visitor uint64) []schema.Event {
	events := make([]schema.Event, 3+r.IntN(7))
	for i := range events {
		e := schema.Event{
			WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1 + r.Int64N(2), VariationID: r.Int64N(2),
			VisitorID: visitor,
			Kind:      schema.KindView, EventID: 1 + r.Uint64N(2),
			Time: time.Date(2026, 4, 30, 22+r.IntN(4), 0, 0, 0, time.UTC),
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

// TestFirstArrivalsRemain writes events and copies of them in calls of different sizes. Merges must leave the first
// arrival of each event.
func TestFirstArrivalsRemain(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	r := rand.New(rand.NewPCG(16, 6))
	want := model{}
	var calls [5][]schema.Event
	for visitor := range uint64(tier.Of(200, 3000)) {
		call, sticks := 0, 1+r.IntN(8) // calls have one or more events of a visitor
		for _, e := range arrivals(r, visitor) {
			calls[call] = append(calls[call], e)
			want.arrive(e)
			if call < len(calls)-1 && r.IntN(8) >= sticks {
				call++
			}
		}
	}
	for _, events := range calls {
		must.OK(t, w.WriteEvents(t.Context(), events))
	}
	compareRows(t, storedRows(t, conn), want)
}

func compareRows(t *testing.T, got, want model) {
	t.Helper()
	var different []string
	for key, row := range want {
		if !reflect.DeepEqual(got[key], row) {
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

// storedRows returns the stored rows of the test's visitors, as merges leave them.
func storedRows(t *testing.T, conn driver.Conn) model {
	t.Helper()
	rows := must.Get(conn.Query(t.Context(), `SELECT website_id, toString(subject), subject_id, experiment_id, visitor_id, event_id, time, variation_id,
		toString(event), goal_id, value FROM events FINAL`))(t)
	defer func() { _ = rows.Close() }()
	stored := model{}
	for rows.Next() {
		var e schema.Event
		var of, kind string
		must.OK(t,
			rows.Scan(&e.WebsiteID, &of, &e.SubjectID, &e.ExperimentID, &e.VisitorID, &e.EventID, &e.Time,
				&e.VariationID, &kind, &e.GoalID, &e.Value))
		e.Subject, e.Kind, e.Time = schema.SubjectKind(of), schema.Kind(kind), e.Time.UTC()
		_, isStored := stored[identity(&e)]
		check.That(t, !isStored, "%s is stored twice", identity(&e))
		stored[identity(&e)] = e
	}
	must.OK(t, rows.Err())
	return stored
}
