package ingest_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// barrier makes writers wait for each other before they insert, so that none
// finds the rows that the others are about to store.
type barrier struct {
	mutex   sync.Mutex
	missing int
	met     chan struct{}
}

func newBarrier(writers int) *barrier { return &barrier{missing: writers, met: make(chan struct{})} }

func (m *barrier) arrive() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.missing--; m.missing == 0 {
		close(m.met)
	}
}

// racingConn is the connection of a writer that waits at a barrier before it
// inserts.
type racingConn struct {
	driver.Conn
	at      *barrier
	arrived bool
}

func (r *racingConn) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if strings.Contains(query, "INTO events ") {
		r.arrive()
		<-r.at.met
	}
	return r.Conn.PrepareBatch(ctx, query, opts...)
}

func (r *racingConn) arrive() {
	if !r.arrived {
		r.arrived = true
		r.at.arrive()
	}
}

func share(t *testing.T, w *ingest.Writer) {
	t.Helper()
	if err := w.Share(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// next sets another barrier.
func (r *racingConn) next(m *barrier) { r.at, r.arrived = m, false }

// results are the combined results of several writers.
type results struct {
	sync.Mutex
	outcome ingest.Outcome
	stored  []schema.Event // the events with the verdict Stored
}

func (w *results) add(events []schema.Event, verdicts []ingest.Verdict, o ingest.Outcome) {
	w.Lock()
	defer w.Unlock()
	w.outcome.Add(o)
	for i, v := range verdicts {
		if v == ingest.Stored {
			w.stored = append(w.stored, events[i])
		}
	}
}

// copies returns random events with few identities. Clicks with one identity may
// differ in content and in time, also by a month; views and goals do not.
func copies(r *rand.Rand) []schema.Event {
	events := make([]schema.Event, 1+r.IntN(30))
	for i := range events {
		n := r.Uint64N(40)
		e := schema.Event{
			WebsiteID: 1, EventID: n, VisitorID: n % 5, Time: time.Date(2026, 5, 1, int(n/4), 0, 0, 0, time.UTC),
			Subject: schema.SubjectCampaign, SubjectID: 1 + int64(n%2), Kind: schema.KindView,
		}
		switch n % 3 {
		case 1:
			e.Kind, e.Value, e.Time = schema.KindClick, r.Int64N(3), e.Time.Add(time.Duration(r.IntN(3))*20*24*time.Hour)
		case 2:
			e.Subject, e.SubjectID, e.Kind, e.GoalID, e.Value = schema.SubjectNone, 0, schema.KindGoal, 3, int64(n)
		}
		events[i] = e
	}
	return events
}

func identityText(e *schema.Event) string {
	return fmt.Sprint(e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID, e.VisitorID, " ", e.EventID)
}

// TestConcurrentWriters has two writers that insert each batch at the same time.
func TestConcurrentWriters(t *testing.T) {
	rounds, batches := tier.Of(3, 3, 6), 4
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, uint64(round)))
			conn := schematest.Server(t).Open(t)
			racers := [2]*racingConn{{Conn: conn}, {Conn: conn}}
			var writers [2]*ingest.Writer
			for i := range writers {
				writers[i] = ingest.NewWriter(racers[i])
				share(t, writers[i])
				if round%3 > 0 { // one of them, or both
					ingest.FollowBlocksFrom(writers[i], 1+100*(i*(2-round%3)), uint64(100*i)) // one reads the ids beside its writes
				}
			}
			var reported results
			var all []schema.Event
			for range batches {
				var running sync.WaitGroup
				m := newBarrier(len(writers))
				for i := range writers {
					events := copies(r)
					all = append(all, events...)
					racers[i].next(m)
					running.Go(func() {
						defer racers[i].arrive()
						verdicts, outcome, err := writers[i].WriteEach(t.Context(), events)
						if err != nil {
							t.Error(err)
						}
						reported.add(events, verdicts, outcome)
					})
				}
				running.Wait()
			}
			checkFold(t, conn, all, &reported)
		})
	}
}

// checkFold compares the stored rows with the expected rows, and with the results
// of the writers.
func checkFold(t *testing.T, conn driver.Conn, all []schema.Event, reported *results) {
	t.Helper()
	distinct, derived, goals := map[string]bool{}, 0, map[uint64][]schema.Event{}
	for i := range all {
		distinct[identityText(&all[i])] = true
		goals[all[i].VisitorID] = append(goals[all[i].VisitorID], all[i])
	}
	var want []string
	for _, events := range goals {
		want = append(want, wantGoals(events)...)
	}
	for _, goal := range want {
		if !strings.Contains(goal, string(schema.SubjectNone)) {
			derived++
		}
	}
	got := slices.Concat(slices.Collect(maps.Values(storedGoals(t, conn)))...)
	if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("goals\n got %q\nwant %q", got, want)
	}
	rows := number(t, conn, "SELECT count() FROM events")
	if int(rows) != len(distinct)+derived || reported.outcome.Inserted != len(distinct) || reported.outcome.Attributed != derived {
		t.Errorf("%d rows, reported %+v; want %d distinct and %d derived", rows, reported.outcome, len(distinct), derived)
	}
	for i := range reported.stored {
		e := &reported.stored[i]
		if found := number(t, conn, fmt.Sprintf(`SELECT count() FROM events WHERE event_id = %d AND visitor_id = %d AND subject = '%s' AND subject_id = %d
			AND value = %d AND toUnixTimestamp64Milli(time) = %d`, e.EventID, e.VisitorID, e.Subject, e.SubjectID, e.Value, e.Time.UnixMilli())); found != 1 {
			t.Errorf("%+v has the verdict Stored, and is found %d times", *e, found)
		}
	}
	if changed, err := schema.RepairStats(t.Context(), conn); changed || err != nil {
		t.Errorf("subject_stats disagreed with events: %v, %v", changed, err)
	}
}

// TestLaterInsertIsRemoved has one writer write completely between the look-up
// and the insert of another one, so that only the latter can detect the copies.
// The test is repeated because the names of writers are random. Merges change the
// order of the rows.
func TestLaterInsertIsRemoved(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			first, second := view(fmt.Sprint(n), 12), view(fmt.Sprint(n), 12)
			first.Time = first.Time.Add(time.Hour) // merges reverse the order
			second.VariationID = 1
			late := ingest.NewWriter(between{Conn: optimizing{Conn: conn}, work: func() {
				w := ingest.NewWriter(conn)
				share(t, w)
				if outcome, err := w.Write(t.Context(), []schema.Event{first}); err != nil || outcome.Inserted != 1 {
					t.Errorf("first: %+v, %v", outcome, err)
				}
			}})
			share(t, late)
			if n%2 > 0 {
				ingest.FollowBlocksFrom(late, 1, 100)
			}
			verdicts, outcome, err := late.WriteEach(t.Context(), []schema.Event{second})
			if err != nil || verdicts[0] != ingest.Conflict || outcome != (ingest.Outcome{Duplicates: 1, Conflicts: 1}) {
				t.Errorf("second: %v, %+v, %v; want a conflict", verdicts, outcome, err)
			}
			if outcome, err := ingest.NewWriter(conn).Write(t.Context(), []schema.Event{first}); err != nil || outcome != (ingest.Outcome{Duplicates: 1}) {
				t.Errorf("first again: %+v, %v; want a duplicate", outcome, err)
			}
		})
	}
	if counted := number(t, conn, "SELECT sum(rows) FROM subject_counters"); counted != 8 {
		t.Errorf("%d counted, want 8", counted)
	}
}

// between is a connection that calls a function between a writer's look-up and
// its insert.
type between struct {
	driver.Conn
	work func()
}

func (c between) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if strings.Contains(query, "INTO events ") {
		c.work()
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

// TestCopiesAreFoundAfterMerges merges between the inserts of two writers and
// their checks for copies.
func TestCopiesAreFoundAfterMerges(t *testing.T) {
	for _, following := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("%d follow blocks", following), func(t *testing.T) {
			conn := schematest.Server(t).Open(t)
			var reported results
			m := newBarrier(2)
			var running sync.WaitGroup
			for i := range 2 {
				r := &racingConn{Conn: optimizing{Conn: conn}, at: m}
				w := ingest.NewWriter(r)
				share(t, w)
				if i < following {
					ingest.FollowBlocksFrom(w, 1, 100)
				}
				running.Go(func() {
					verdicts, outcome, err := w.WriteEach(t.Context(), []schema.Event{view("e", 12)})
					if err != nil {
						t.Error(err)
					}
					reported.add([]schema.Event{view("e", 12)}, verdicts, outcome)
				})
			}
			running.Wait()
			checkFold(t, conn, []schema.Event{view("e", 12)}, &reported)
			if want := (ingest.Outcome{Inserted: 1, Duplicates: 1}); reported.outcome != want {
				t.Errorf("reported %+v, want %+v", reported.outcome, want)
			}
		})
	}
}

// optimizing is a connection that merges all events before a query for copies.
type optimizing struct{ driver.Conn }

func (c optimizing) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if strings.Contains(query, "_block_number") {
		if err := c.Exec(ctx, "OPTIMIZE TABLE events FINAL"); err != nil {
			return nil, err
		}
	}
	return c.Conn.Query(ctx, query, args...)
}

// TestConcurrentMove has two servers that move the same rows at the same time. The
// copies are removed by several statements that list them.
func TestConcurrentMove(t *testing.T) {
	const rows = 20_000
	conn := schematest.Server(t).Open(t)
	for n := range 2 {
		exec(t, conn, fmt.Sprintf(`INSERT INTO events_inbox (time, website_id, visitor, event, campaign_id, variation_id)
			SELECT '2026-05-01 12:00:00', 1, toString(number), 'view', 12, %d FROM numbers(%d)`, n, rows/2))
	}
	m := newBarrier(2)
	var reported [2]ingest.Moved
	var running sync.WaitGroup
	for i := range reported {
		w := ingest.NewWriter(&racingConn{Conn: conn, at: m})
		share(t, w)
		ingest.ListCopies(w)
		running.Go(func() {
			var err error
			if reported[i], err = ingest.NewInbox(conn, w).Move(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	stored, counted, left := number(t, conn, "SELECT count() FROM events"), number(t, conn, "SELECT sum(rows) FROM subject_counters"), number(t, conn, "SELECT count() FROM events_inbox")
	if stored != rows || counted != rows || left != 0 {
		t.Errorf("%d stored, %d counted, %d left; want %d, %d, 0", stored, counted, left, rows, rows)
	}
	if reported[0].Stored+reported[1].Stored != rows || reported[0].Duplicates+reported[1].Duplicates != rows {
		t.Errorf("reported %+v, want %d stored and as many duplicates", reported, rows)
	}
}
