package ingest

import (
	"math/rand/v2"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

// TestExclusiveWriterEqualsOther writes the same events, many of them several
// times, with a writer that looks up every event and with exclusive writers that
// are restarted repeatedly.
func TestExclusiveWriterEqualsOther(t *testing.T) {
	plain, alone := schematest.Open(t), schematest.Open(t)
	random := rand.New(rand.NewPCG(6, 9)) //nolint:gosec // reproducible
	looks := NewWriter(plain)
	for round := range 12 {
		knows := NewWriter(alone)
		if round%3 > 0 {
			knows.SetExclusive()
			if err := knows.LoadIDs(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !knows.idFilter.complete {
				t.Fatal("the filter is not complete")
			}
		}
		for range 3 {
			events := make([]schema.Event, 1+random.IntN(200))
			for i := range events {
				id := random.Uint64N(3000)
				events[i] = schema.Event{
					EventID: schema.Hash(string(rune(id))), VisitorID: id % 700, Time: time.UnixMilli(1_777_777_777_000 + int64(id)).UTC(), WebsiteID: 1 + int64(id%2), //nolint:gosec // small
					Subject: schema.SubjectCampaign, SubjectID: 1 + int64(random.IntN(3)), Kind: schema.KindView, VariationID: int64(random.IntN(50) / 49),
				}
				if id%10 == 9 { // an unattributed goal
					events[i].Subject, events[i].SubjectID, events[i].Kind, events[i].GoalID, events[i].WebsiteID = schema.SubjectNone, 0, schema.KindGoal, 1, 1
					if round > 5 {
						events[i].WebsiteID = 2
					}
				}
			}
			want, wantOutcome, err := looks.WriteEach(t.Context(), events)
			if err != nil {
				t.Fatal(err)
			}
			got, gotOutcome, err := knows.WriteEach(t.Context(), events)
			if err != nil {
				t.Fatal(err)
			}
			if gotOutcome != wantOutcome {
				t.Fatalf("round %d: %+v, want %+v", round, gotOutcome, wantOutcome)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("round %d, event %d: verdict %v, want %v", round, i, got[i], want[i])
				}
			}
		}
	}
}

func TestIDFilterFalsePositives(t *testing.T) {
	var k idFilter
	k.reset()
	k.complete = true
	const stored = 200_000
	for id := range uint64(stored) {
		k.add(schema.Hash(string(rune(id))))
	}
	var events []schema.Event
	for id := range uint64(2 * stored) {
		events = append(events, schema.Event{EventID: schema.Hash(string(rune(id)))})
	}
	if maybe := k.possiblyStored(events, make([]Verdict, len(events))); len(maybe) < stored || len(maybe) > stored+stored/50 {
		t.Errorf("%d of %d may be stored; %d are", len(maybe), len(events), stored)
	}
}

func TestIDFilterCapacity(t *testing.T) {
	var k idFilter
	k.reset()
	k.complete = true
	k.add(1)
	for k.free = 0; len(k.filters) > 0; k.free = 0 {
		if !k.contains(1) {
			t.Fatal("the filter lacks an id")
		}
		k.add(2)
	}
	if k.capacity <= maxFilterIDs || k.complete || len(k.possiblyStored(make([]schema.Event, 3), make([]Verdict, 3))) != 3 {
		t.Errorf("capacity %d, complete %v; want it to be disabled above %d", k.capacity, k.complete, maxFilterIDs)
	}
}
