package ingest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// manyCopies is more than one look-up holds, and than one statement lists.
const manyCopies = 9_000

// distinctViews returns events of as many visitors, in two months.
func distinctViews(from, n int) []schema.Event {
	events := make([]schema.Event, n)
	for i := range events {
		id := uint64(from + i)
		events[i] = schema.Event{
			WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, Kind: schema.KindView, EventID: id, VisitorID: id,
			Value: int64(id), Time: time.Date(2026, time.Month(5+id%2), 1, 12, 0, 0, 0, time.UTC),
		}
	}
	return events
}

// TestFourWritersOfTheSameEvents has four writers that insert the same events, or
// overlapping ranges of events, at the same time.
func TestFourWritersOfTheSameEvents(t *testing.T) {
	shifts := []int{manyCopies / 4}
	if tier.Long() {
		shifts = append(shifts, 0)
	}
	for _, shift := range shifts {
		t.Run(fmt.Sprintf("shifted by %d", shift), func(t *testing.T) {
			t.Parallel()
			conn := schematest.Server(t).Open(t)
			m := newBarrier(4)
			var writing sync.WaitGroup
			var reported results
			for i := range 4 {
				w := ingest.NewWriter(&racingConn{Conn: conn, at: m})
				share(t, w)
				if i%2 == 0 {
					ingest.FollowBlocksFrom(w, 1, 100)
				}
				writing.Go(func() {
					events := distinctViews(i*shift, manyCopies)
					_, outcome, err := w.WriteEach(t.Context(), events)
					if err != nil {
						t.Error(err)
					}
					reported.add(nil, nil, outcome)
				})
			}
			writing.Wait()
			events := manyCopies + 3*shift
			if want := (ingest.Outcome{Inserted: events, Duplicates: 4*manyCopies - events}); reported.outcome != want {
				t.Errorf("reported %+v, want %+v", reported.outcome, want)
			}
			const deletions = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND table = 'events' AND position(command, 'DELETE') > 0"
			if n := number(t, conn, deletions); n > 4 {
				t.Errorf("%d deletions, want at most one per writer", n)
			}
			storedOnce(t, conn, events)
		})
	}
}

// TestPartlyLostInsert has a writer that loses the first, the middle or the last of its
// rows to another one, and checks which rows remain.
func TestPartlyLostInsert(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	stored := 0
	for n, lost := range []struct{ from, until int }{{0, 1}, {0, manyCopies - 1}, {100, manyCopies - 100}} {
		offset := n * manyCopies
		own := distinctViews(offset, manyCopies)
		for i := range own {
			own[i].VariationID = 1
		}
		late := ingest.NewWriter(between{Conn: conn, work: func() {
			w := ingest.NewWriter(conn)
			share(t, w)
			if _, err := w.Write(t.Context(), distinctViews(offset+lost.from, lost.until-lost.from)); err != nil {
				t.Error(err)
			}
		}})
		share(t, late)
		if n > 0 {
			ingest.FollowBlocksFrom(late, 1, 100_000)
		}
		copies := lost.until - lost.from
		outcome, err := late.Write(t.Context(), own)
		if want := (ingest.Outcome{Inserted: manyCopies - copies, Duplicates: copies, Conflicts: copies}); err != nil || outcome != want {
			t.Errorf("%d: %+v, %v; want %+v", n, outcome, err, want)
		}
		stored += manyCopies
		wrong := number(t, conn, fmt.Sprintf(`SELECT count() FROM events WHERE event_id >= %d
			AND variation_id != if(event_id - %[1]d BETWEEN %d AND %d, 0, 1)`, offset, lost.from, lost.until-1))
		if wrong != 0 {
			t.Errorf("%d: %d rows are not the first copies", n, wrong)
		}
	}
	storedOnce(t, conn, stored)
}

// TestSweepAfterStoppedRemovals stops a writer after it has recorded the removal of many
// copies, and after it has sent the statement that removes them.
func TestSweepAfterStoppedRemovals(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	for n, statements := range []int{4, 5} { // the insert, the ids of the other writer, the copies, the record and the removal
		left := 1_000
		events := distinctViews(n*manyCopies, manyCopies)
		late := ingest.NewWriter(between{Conn: schematest.KilledConn{Conn: conn, Left: &left}, work: func() {
			w := ingest.NewWriter(conn)
			share(t, w)
			if _, err := w.Write(t.Context(), events); err != nil {
				t.Error(err)
			}
			left = statements
		}})
		share(t, late)
		ingest.FollowBlocksFrom(late, 1, 1_000_000)
		if _, err := late.Write(t.Context(), events); err == nil {
			t.Fatal("it was not killed")
		}
		if recorded := number(t, conn, "SELECT uniqExact(event_id) - uniqExactIf(event_id, done) FROM removed_copies"); recorded != manyCopies {
			t.Errorf("%d unfinished removals are recorded, want %d", recorded, manyCopies)
		}
		if removed := sweep(t, conn); removed < manyCopies {
			t.Errorf("%d removed, want %d", removed, manyCopies)
		}
		storedOnce(t, conn, (n+1)*manyCopies)
	}
}
