package facts_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"lifthouse/engine/books"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/worlds"
)

// world has the events of a store, in the order in which they were accepted.
type world struct {
	worlds.World
	conn driver.Conn
	at   time.Time // last acceptance time
	sent []schema.Event
	all  []acceptedEvent
	most int // events of a visitor who is not automated; 0: the default

	books map[int64]*books.Book // by website
}

type acceptedEvent struct {
	schema.Event
	at int64
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	return newWorldOn(t, seed, schematest.OpenEmpty(t))
}

func newWorldOn(t *testing.T, seed uint64, conn driver.Conn) *world {
	t.Helper()
	must.Get(schema.Migrate(t.Context(), conn))(t)
	return &world{World: severalDays(seed), conn: conn, at: worlds.Start.AddDate(0, 1, 0)}
}

// severalDays returns a world of five days and two websites.
func severalDays(seed uint64) worlds.World {
	w := worlds.New(seed)
	w.Websites, w.Visitors, w.Days = 2, 40, 5
	w.Customers = 12
	return w
}

// batch returns events of different identities: of copies in a batch, a writer stores the first one.
func (w *world) batch(n int) (events []schema.Event) {
	has := map[uint64]bool{}
	for range n {
		e := w.NextEvent(1+w.Int64N(3), w.sent)
		if has[e.EventID] {
			continue
		}
		has[e.EventID] = true
		events, w.sent, w.all = append(events, e), append(w.sent, e), append(w.all, acceptedEvent{e, w.at.UnixMilli()})
	}
	return events
}

// send stores some events, and returns their visitors and when they were accepted.
func (w *world) send(t *testing.T, n int) (visitors []schema.Visitor, through int64) {
	t.Helper()
	w.at = w.at.Add(time.Millisecond)
	events := w.batch(n)
	for i := range events {
		visitors = append(visitors, schema.Visitor{WebsiteID: events[i].WebsiteID, ID: events[i].VisitorID})
	}
	must.OK(t, schema.InsertEvents(t.Context(), w.conn, events, w.at))
	return visitors, w.at.UnixMilli()
}

var kinds = map[schema.Kind]moments.Kind{
	schema.KindView: moments.View, schema.KindClick: moments.Click, schema.KindSubmit: moments.Submit,
	schema.KindCompletion: moments.Completion,
	schema.KindConversion: moments.Conversion, schema.KindContact: moments.Contact, schema.KindGoal: moments.Goal,
}

// wanted returns the rows that the facts should have.
func (w *world) wanted() []fold.FactRow {
	byVisitor := map[schema.Visitor][]fold.Event{}
	var rowsOf []fold.Event // of customers
	for i := range w.all {
		e := &w.all[i]
		of := schema.Visitor{WebsiteID: e.WebsiteID, ID: e.VisitorID}
		folded := fold.Event{
			Subject: schema.Subject{
				WebsiteID: e.WebsiteID, Kind: e.Subject, ID: e.SubjectID,
				ExperimentID: e.ExperimentID,
			}, Visitor: e.VisitorID, ID: e.EventID, Revision: e.Revision,
			Cancelled: e.Cancelled,
			At:        e.Time.UnixMilli(), Variation: e.VariationID, Kind: kinds[e.Kind], Goal: e.GoalID,
			Amounts: [3]int64{e.Value, e.Profit, e.ExtraValue}, Accepted: e.at,
		}
		if e.Kind == schema.KindView {
			folded.Attributes = e.Join()
		}
		folded.SetDetails(e.EncodeDetails(), &e.Details, w.books[e.WebsiteID])
		if isNobody := e.VisitorID == 0 && e.Customer != ""; !isNobody {
			byVisitor[of] = append(byVisitor[of], folded)
		}
		if folded.Customer != 0 || e.Kind == schema.KindCustomer {
			rowsOf = append(rowsOf, rowOfCustomer(e, folded))
		}
	}
	for of, events := range byVisitor {
		named := map[uint64]bool{}
		for i := range events {
			named[events[i].Customer] = events[i].Customer != 0
		}
		for i := range rowsOf {
			if row := rowsOf[i]; named[row.Customer] && row.Subject.WebsiteID == of.WebsiteID {
				row.Visitor = of.ID
				events = append(events, row)
			}
		}
		byVisitor[of] = events
	}
	var rows []fold.FactRow
	for _, events := range byVisitor {
		rows = fold.AppendVisitorRows(events, cmp.Or(w.most, fold.MaxVisitorEvents), rows)
	}
	return rows
}

// rowOfCustomer returns the row of a customer for an event, which is folded as one of a visitor, too.
func rowOfCustomer(e *acceptedEvent, folded fold.Event) fold.Event {
	row := folded
	row.Subject = schema.Subject{WebsiteID: e.WebsiteID, Kind: schema.SubjectNone}
	row.Variation = 0
	row.Kind = moments.Goal
	row.Customer = e.CustomerID()
	row.OfCustomer = true
	row.Buyer = e.VisitorID
	return row
}

// check compares the stored rows and cells with those of all events.
func (w *world) check(t *testing.T) {
	t.Helper()
	want := w.wanted()
	stored := must.Get(facts.ReadAll(t.Context(), w.conn))(t)
	if changes := fold.AppendChanges(nil, stored, want); len(changes) > 0 {
		t.Fatalf("%d of %d rows differ, such as %+v", len(changes), len(want), *changes[0].FactRow)
	}
	w.checkSums(t)
}

// checkSums compares the stored cells with the sums over all events.
func (w *world) checkSums(t *testing.T) {
	t.Helper()
	want := w.wanted()
	cells := fold.Cells{}
	for from, to := 0, 0; from < len(want); from = to {
		for to = from + 1; to < len(want) && want[to].Subject == want[from].Subject &&
			want[to].Visitor == want[from].Visitor; to++ {
		}
		cells.AddRows(want[from:to], 1, false)
	}
	found := must.Get(facts.ReadAllCells(t.Context(), w.conn))(t)
	for key, cell := range cells {
		must.That(t, found[key] != nil, "cell %+v: %v, want %v", key, found[key], cell)
		must.Equal(t, found[key].CellSums, cell.CellSums, "cell %+v: %v, want %v", key, found[key], cell)
		must.That(t, found[key].Newest >= cell.Newest, "cell %+v: %v, want %v", key, found[key], cell)
	}
	for key := range found {
		must.That(t, cells[key] != nil, "cell %+v is stored, but has no visitors", key)
	}
}

// TestRefreshesOfARandomWalk checks the facts after refreshes of random events, by a process that knows the facts, by
// one that reads them, and after merges.
func TestRefreshesOfARandomWalk(t *testing.T) {
	w := newWorld(t, 1)
	r := facts.NewRefresher(w.conn, false)
	for step := range 25 {
		_, through := w.send(t, 1+w.IntN(60))
		if step%5 == 4 {
			r = facts.NewRefresher(w.conn, false)
		}
		refresh(t, r, through)
		w.check(t)
		if step%8 == 7 {
			merge(t, w.conn)
			w.check(t)
		}
	}
}

func refresh(t *testing.T, r *facts.Refresher, through int64) {
	t.Helper()
	at, err := r.RefreshFacts(t.Context())
	must.That(t, err == nil, "%+v, %v; want events until %d", at, err, through)
	must.Equal(t, at.Through, through, "%+v, %v; want events until %d", at, err, through)
}

func merge(t *testing.T, conn driver.Conn) {
	t.Helper()
	for _, table := range []string{"facts", "events", "customers"} {
		must.OK(t, conn.Exec(context.WithoutCancel(t.Context()), "OPTIMIZE TABLE "+table+" FINAL"))
	}
}

// TestRefreshesWithoutNewEvents checks that refreshes of a server read no visitors again while no event arrives, and
// still fold an event that another process accepted earlier and stored late.
func TestRefreshesWithoutNewEvents(t *testing.T) {
	w := newWorld(t, 9)
	left := math.MaxInt
	r := facts.NewRefresher(schematest.KilledConn{Conn: w.conn, Left: &left}, false)
	for range 3 {
		refresh(t, r, 0) // an empty store
	}
	_, through := w.send(t, 50)
	for round := range 3 {
		refresh(t, r, through)
		before := left
		refresh(t, r, through)
		if isFirst := round == 0; !isFirst { // it looks at the last events once more
			check.That(t, before-left >= 2, "%d statements, want also those of visitors and events", before-left)
		}
		before = left
		refresh(t, r, through)
		check.That(t, before-left <= 1, "%d statements, want only that of the position", before-left)
		now := w.at
		w.at = w.at.Add(time.Duration(round)*time.Millisecond - 5*time.Second)
		w.send(t, 20)
		w.at = now
	}
	refresh(t, r, through)
	w.check(t)
}

// TestKilledRefreshes kills refreshers after each of their operations. The next one continues.
func TestKilledRefreshes(t *testing.T) {
	w := newWorld(t, 2)
	for operations := 1; ; operations++ {
		_, through := w.send(t, 20)
		left := operations
		dying := facts.NewRefresher(schematest.KilledConn{Conn: w.conn, Left: &left}, operations%2 == 0)
		_, err := dying.RefreshFacts(t.Context())
		refresh(t, facts.NewRefresher(w.conn, false), through)
		w.check(t)
		if err == nil && operations > 10 {
			return
		}
	}
}

// TestRefreshersRace lets several refreshers fold the same events at the same time, of which each but one is overtaken.
func TestRefreshersRace(t *testing.T) {
	w := newWorld(t, 3)
	refreshers := []*facts.Refresher{
		facts.NewRefresher(w.conn, false), facts.NewRefresher(w.conn, false),
		facts.NewRefresher(w.conn, false),
	}
	for range 10 {
		_, through := w.send(t, 30)
		race(t, through, refreshers...)
		w.check(t)
	}
}

// TestScrubHeals checks that a scrub adds what the facts lack, also of events that became visible late, and changes
// nothing else.
func TestScrubHeals(t *testing.T) {
	w := newWorld(t, 4)
	r := facts.NewRefresher(w.conn, true)
	_, through := w.send(t, 300)
	refresh(t, r, through)
	found := scrub(t, r)
	check.Equal(t, found.Wrong, 0, "%+v of correct facts", found)
	check.Equal(t, len(found.Lost), 0, "%+v of correct facts", found)
	check.That(t, found.Visitors >= 40, "%+v of correct facts", found)
	now := w.at
	w.at = w.at.Add(-time.Hour)
	w.send(t, 50) // accepted before what is folded
	w.at = now
	_, through = w.send(t, 1)
	refresh(t, r, through)
	found = scrub(t, r)
	check.That(t, found.Wrong != 0, "%+v of facts that lack events", found)
	check.Equal(t, len(found.Lost), 0, "%+v of facts that lack events", found)
	w.check(t)
	found = scrub(t, r)
	check.That(t, found.Wrong == 0, "%+v after a scrub", found)
}

func scrub(t *testing.T, r *facts.Refresher) facts.Scrubbed {
	t.Helper()
	return must.Get(r.ScrubFacts(t.Context(), 0, math.MaxUint64))(t)
}

// TestLostEventsAreReported deletes stored events of some visitors: all events, all views, the goals, or those that
// were accepted first. Facts keep what they counted and add new events, in refreshes and in scrubs, until the lost
// events are sent again.
func TestLostEventsAreReported(t *testing.T) {
	for name, lost := range map[string]string{
		"all": "true", "views": "event = 'view'", "goals": "event = 'goal'",
		"first": "ingested_at = (SELECT min(ingested_at) FROM events)", "without exposures": "subject = 'none'",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 5)
			r := facts.NewRefresher(w.conn, true)
			for range 2 {
				w.sent = nil // no copies
				_, through := w.send(t, 150)
				refresh(t, r, through)
			}
			lost := "visitor_id % 3 = 0 AND " + lost
			victims := countOf(t, w.conn, "SELECT uniqExact(website_id, visitor_id) FROM events WHERE "+lost)
			execute(t, w.conn, fmt.Sprintf("ALTER TABLE events DELETE WHERE %s SETTINGS mutations_sync = 2", lost))
			reported := func(want int) {
				t.Helper()
				verified, err := r.VerifyFacts(t.Context(), func(float64) {})
				found := scrub(t, r)
				must.That(t, err == nil, "%d wrong, %d, %d and %d lost, %v; want %d lost", found.Wrong+verified.Wrong,
					len(found.Lost), len(verified.Lost), r.LostVisitors(), err, want)
				check.Equal(t, found.Wrong+verified.Wrong, 0, "%d wrong, %d, %d and %d lost, %v; want %d lost",
					found.Wrong+verified.Wrong, len(found.Lost), len(verified.Lost), r.LostVisitors(), err, want)
				check.Equal(t, len(found.Lost), want, "%d wrong, %d, %d and %d lost, %v; want %d lost",
					found.Wrong+verified.Wrong, len(found.Lost), len(verified.Lost), r.LostVisitors(), err, want)
				check.Equal(t, len(verified.Lost), want, "%d wrong, %d, %d and %d lost, %v; want %d lost",
					found.Wrong+verified.Wrong, len(found.Lost), len(verified.Lost), r.LostVisitors(), err, want)
				check.Equal(t, r.LostVisitors(), want, "%d wrong, %d, %d and %d lost, %v; want %d lost",
					found.Wrong+verified.Wrong, len(found.Lost), len(verified.Lost), r.LostVisitors(), err, want)
			}
			before := w.all
			reported(victims)
			w.checkSums(t)
			r = facts.NewRefresher(w.conn, true)
			if err := r.FindLosses(t.Context()); err != nil || r.LostVisitors() != victims {
				t.Errorf("%d of %d lost visitors are found, %v", r.LostVisitors(), victims, err)
			}
			for range 3 {
				w.sent = nil
				_, through := w.send(t, 60)
				refresh(t, r, through)
				reported(victims)
				w.checkSums(t)
			}
			w.at = w.at.Add(time.Millisecond)
			var again []schema.Event
			for i := range before {
				again = append(again, before[i].Event)
			}
			must.OK(t, schema.InsertEvents(t.Context(), w.conn, again, w.at))
			refresh(t, r, w.at.UnixMilli())
			reported(0)
			w.check(t)
			if err := r.FindLosses(t.Context()); err != nil || r.LostVisitors() > 0 {
				t.Errorf("%d lost visitors after all events were sent again, %v", r.LostVisitors(), err)
			}
		})
	}
}

func countOf(t *testing.T, conn driver.Conn, statement string) int {
	t.Helper()
	var n uint64
	must.OK(t, conn.QueryRow(t.Context(), statement).Scan(&n))
	return int(n) //nolint:gosec // few
}

func execute(t *testing.T, conn driver.Conn, statement string) {
	t.Helper()
	must.OK(t, conn.Exec(t.Context(), statement))
}

// TestAutomatedVisitors checks that later events of automated visitors are not read, and that a restart, an erasure, a
// scrub and another limit leave the facts of all events.
func TestAutomatedVisitors(t *testing.T) {
	w := newWorld(t, 12)
	w.most = 8
	reading := &countedReads{Conn: w.conn}
	open := func(alone bool) *facts.Refresher {
		r := facts.NewRefresher(reading, alone)
		r.MaxVisitorEvents = w.most
		return r
	}
	automated := func() int {
		return countOf(t, w.conn, "SELECT uniqExact(website_id, visitor_id) FROM (SELECT website_id, visitor_id FROM facts "+
			"WHERE grain = 'visitor' AND endsWith(variation, '!') GROUP BY ALL HAVING sum(sign) > 0)")
	}
	r := open(true)
	for i := range 6 {
		_, through := w.send(t, 200)
		refresh(t, r, through)
		w.check(t)
		if i%2 == 1 {
			r = open(i != 3)
		}
	}
	before := automated()
	must.That(t, before >= 5, "%d automated visitors", before)
	var one schema.Visitor
	row := w.conn.QueryRow(t.Context(), "SELECT website_id, visitor_id FROM facts WHERE grain = 'visitor' GROUP BY ALL "+
		"HAVING sumIf(sign, endsWith(variation, '!')) > 1 LIMIT 1")
	must.OK(t, row.Scan(&one.WebsiteID, &one.ID))
	refresh(t, r, w.at.UnixMilli())
	n := reading.events
	for range 3 {
		w.sendGoal(t, one)
		refresh(t, r, w.at.UnixMilli())
		w.check(t)
	}
	check.That(t, reading.events == n, "%d statements read events of an automated visitor", reading.events-n)
	found := scrub(t, r)
	check.That(t, found.Wrong == 0, "%+v", found)
	w.erase(t, r, one)
	w.sendGoal(t, one)
	refresh(t, r, w.at.UnixMilli())
	w.check(t)                                // the visitor counts again
	for _, w.most = range []int{5, 1000, 8} { // another limit
		r = open(true)
		must.Get(r.OpenFacts(t.Context()))(t)
		scrub(t, r)
		w.check(t)
	}
}

// TestErasure checks that the facts of erased visitors are gone, in cells and from disk, too.
func TestErasure(t *testing.T) {
	w := newWorld(t, 6)
	r := facts.NewRefresher(w.conn, true)
	visitors, through := w.send(t, 300)
	refresh(t, r, through)
	w.erase(t, r, visitors[0])
	w.erase(t, r, visitors[7])
	w.check(t)
	found := scrub(t, r)
	check.Equal(t, found.Wrong, 0, "%+v after an erasure", found)
	check.Equal(t, len(found.Lost), 0, "%+v after an erasure", found)
	merge(t, w.conn)
	_, through = w.send(t, 100)
	refresh(t, r, through)
	w.check(t)
}

// sendGoal stores an event of a visitor.
func (w *world) sendGoal(t *testing.T, of schema.Visitor) {
	t.Helper()
	w.at = w.at.Add(time.Minute)
	e := schema.Event{
		WebsiteID: of.WebsiteID, VisitorID: of.ID, EventID: uint64(w.at.UnixMilli()), Time: w.at,
		Kind: schema.KindGoal, Subject: schema.SubjectNone, GoalID: 1,
	}
	must.OK(t, schema.InsertEvents(t.Context(), w.conn, []schema.Event{e}, w.at))
	w.all = append(w.all, acceptedEvent{e, w.at.UnixMilli()})
}

// countedReads counts the statements that read events of visitors.
type countedReads struct {
	driver.Conn
	events int
}

func (c *countedReads) Query(ctx context.Context, statement string, args ...any) (driver.Rows, error) {
	if strings.HasPrefix(statement, "-- one row per stored event,") {
		c.events++
	}
	return c.Conn.Query(ctx, statement, args...)
}

// erase erases a visitor.
func (w *world) erase(t *testing.T, r *facts.Refresher, v schema.Visitor) {
	t.Helper()
	execute(t, w.conn, fmt.Sprintf("ALTER TABLE events DELETE WHERE website_id = %d AND visitor_id = %d SETTINGS mutations_sync = 2", v.WebsiteID, v.ID))
	must.OK(t, r.EraseVisitors(t.Context(), []schema.Visitor{v}))
	ofVisitor := fmt.Sprintf("website_id = %d AND visitor_id = %d", v.WebsiteID, v.ID)
	statement := "SELECT DISTINCT website_id, visitor_id FROM customers WHERE NOT (" + ofVisitor + ") " +
		"AND visitor_id != 0 AND (website_id, customer_id) IN (SELECT website_id, customer_id FROM customers WHERE " + ofVisitor + ")"
	scan := func(row driver.Rows, v *schema.Visitor) error { return row.Scan(&v.WebsiteID, &v.ID) }
	related := must.Get(schema.QueryRows(t.Context(), w.conn, statement, scan))(t)
	execute(t, w.conn, "ALTER TABLE customers DELETE WHERE "+ofVisitor+" SETTINGS mutations_sync = 2")
	must.OK(t, r.RefoldVisitors(t.Context(), related))
	var left uint64
	err := w.conn.QueryRow(t.Context(), fmt.Sprintf("SELECT count() FROM facts WHERE grain IN ('visitor', 'goal') AND website_id = %d AND visitor_id = %d", v.WebsiteID, v.ID)).Scan(&left)
	must.That(t, err == nil, "%d rows are left, %v", left, err)
	check.Equal(t, left, 0, "%d rows are left, %v", left, err)
	w.all = slices.DeleteFunc(w.all,
		func(e acceptedEvent) bool { return e.WebsiteID == v.WebsiteID && e.VisitorID == v.ID })
	w.sent = nil
}

// TestFactsOfAServer checks refreshes of several processes on a real server.
func TestFactsOfAServer(t *testing.T) {
	server := schematest.SharedServer(t)
	address := server.DatabaseAddress(server.CreateDatabase(t))
	w := newWorldOn(t, 7, schematest.OpenConnection(t, address))
	for range 5 {
		_, through := w.send(t, 40)
		race(t, through, facts.NewRefresher(schematest.OpenConnection(t, address), false),
			facts.NewRefresher(schematest.OpenConnection(t, address), false))
		w.check(t)
	}
}

// race lets refreshers fold the same events at the same time.
func race(t *testing.T, through int64, refreshers ...*facts.Refresher) {
	t.Helper()
	var all errgroup.Group
	for _, r := range refreshers {
		all.Go(func() error {
			at, err := r.RefreshFacts(t.Context())
			if err == nil && at.Through != through {
				err = fmt.Errorf("folded until %d, want %d", at.Through, through)
			}
			return err
		})
	}
	must.OK(t, all.Wait())
}

// TestTotalsAfterAnotherProcessErases checks that a process learns what another one deletes.
func TestTotalsAfterAnotherProcessErases(t *testing.T) {
	w := newWorld(t, 11)
	_, through := w.send(t, 200)
	one, other := facts.NewRefresher(w.conn, false), facts.NewRefresher(w.conn, false)
	refresh(t, one, through)
	refresh(t, other, through)
	subjects := slices.SortedFunc(maps.Keys(one.AllCounters()), schema.Subject.Compare)
	dropped, visitor := subjects[0], schema.Visitor{WebsiteID: w.all[0].WebsiteID, ID: w.all[0].VisitorID}
	must.OK(t, other.DropSubjects(t.Context(), []schema.Subject{dropped}))
	must.OK(t, other.EraseVisitors(t.Context(), []schema.Visitor{visitor}))
	must.Get(one.OpenFacts(t.Context()))(t)
	for _, subject := range subjects {
		got, want := one.SubjectCounters(subject), other.SubjectCounters(subject)
		check.That(t, reflect.DeepEqual(got, want), "%s: %+v, want %+v", subject, got, want)
	}
	got := one.SubjectCounters(dropped)
	check.That(t, got.AllEvents() == 0, "dropped: %+v", got)
}

// TestNotedEventsWaitUntilTheyAreStored pauses a refresh before its insert: its events wait until they are stored, so
// that a second report waits for them, too.
func TestNotedEventsWaitUntilTheyAreStored(t *testing.T) {
	w := newWorld(t, 12)
	left := math.MaxInt
	paused := schematest.PausedConn{Conn: w.conn, Left: &left, Paused: make(chan struct{}), Resume: make(chan struct{})}
	r := facts.NewRefresher(paused, true)
	must.OK(t, r.RefreshNoted(t.Context()))
	w.send(t, 30)
	r.NoteEvents(w.at)
	left = 4 // visitors, events, what is stored, then the insert
	var refreshes errgroup.Group
	refreshes.Go(func() error { return r.RefreshNoted(t.Context()) })
	<-paused.Paused
	check.That(t, r.HasUnfolded(), "events that are not stored do not wait")
	refreshes.Go(func() error {
		err := r.RefreshNoted(t.Context())
		at, _ := r.StoredPosition(t.Context())
		check.That(t, at.Through >= w.at.UnixMilli(), "position %+v after a refresh of events until %d", at,
			w.at.UnixMilli())
		return err
	})
	close(paused.Resume)
	must.OK(t, refreshes.Wait())
	check.That(t, !r.HasUnfolded(), "stored events wait")
	w.check(t)
}

// TestReportsDoNotWaitLong holds up the refresh of a server. A report waits for a limited time and then says how many
// events wait, and the next report does not wait at all. If the disk is full, reports say so. They do not wait any more
// once the events are folded.
func TestReportsDoNotWaitLong(t *testing.T) {
	w := newWorld(t, 14)
	conn := schematest.HeldConn{Conn: w.conn, Held: make(chan error)}
	r := facts.NewRefresher(conn, true)
	w.send(t, 30)
	r.NoteEvents(w.at)
	ctx, stop := context.WithCancel(t.Context())
	var server errgroup.Group
	server.Go(func() error {
		r.FollowEvents(ctx)
		return nil
	})
	for !r.IsFollowing() {
		runtime.Gosched()
	}
	says := func(want moments.Waiting) {
		t.Helper()
		waits, err := r.AwaitNoted(t.Context())
		must.OK(t, err)
		waits.Fold = nil // the first fold has begun, or not yet
		check.Equal(t, waits, want)
	}
	r.LongestWait = time.Nanosecond
	says(moments.Waiting{Events: int64(len(w.all)), Reason: moments.Folding})
	r.LongestWait = time.Hour
	says(moments.Waiting{Events: int64(len(w.all)), Reason: moments.Folding})
	conn.Held <- schematest.ErrFull
	conn.Held <- schematest.ErrFull // the first failure has ended
	says(moments.Waiting{Events: int64(len(w.all)), Reason: moments.DiskFull})
	close(conn.Held)
	must.OK(t, r.RefreshNoted(t.Context()))
	says(moments.Waiting{})
	w.check(t)
	stop()
	_ = server.Wait()
}

// TestNotedEventsAreFolded checks that a refresh folds the visitors of noted events, and finds them again after one
// that failed.
func TestNotedEventsAreFolded(t *testing.T) {
	w := newWorld(t, 10)
	left := math.MaxInt
	r := facts.NewRefresher(schematest.KilledConn{Conn: w.conn, Left: &left}, true)
	for round := range 6 {
		w.send(t, 30)
		r.NoteEvents(w.at)
		check.That(t, r.HasUnfolded(), "noted events do not wait")
		if round%2 == 1 {
			left = 1
			check.That(t, r.RefreshNoted(t.Context()) != nil, "no error")
			left = math.MaxInt
		}
		must.OK(t, r.RefreshNoted(t.Context()))
		check.That(t, !r.HasUnfolded(), "folded events wait")
		w.check(t)
	}
	w.send(t, 30)
	at := w.at
	_, through := w.send(t, 30)
	refresh(t, r, through) // includes the last events, which are noted only now
	r.NoteEvents(at)
	must.OK(t, r.RefreshNoted(t.Context()))
	w.check(t)
	now, err := r.StoredPosition(t.Context())
	must.That(t, err == nil, "%+v, %v; want events until %d", now, err, through)
	check.Equal(t, now.Through, through, "%+v, %v; want events until %d", now, err, through)
}

// TestTiesOfCopies stores copies of events with other content, accepted in the same millisecond, by one insert or by
// two. Of each event, facts have the same copy before and after a merge.
func TestTiesOfCopies(t *testing.T) {
	for name, inserts := range map[string]int{"one insert": 1, "two inserts": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 15)
			w.Customers = 0 // all events are in the table events
			both := [2][]schema.Event{}
			distinct := w.batch(200)
			for _, e := range distinct {
				other := e
				other.Time, other.Value, other.Device = e.Time.Add(time.Minute), e.Value/2, "tablet"
				first := w.IntN(2)
				both[first], both[1-first] = append(both[first], e), append(both[1-first], other)
			}
			if inserts == 1 {
				both = [2][]schema.Event{slices.Concat(both[0], both[1])}
			}
			for _, events := range both[:inserts] {
				must.OK(t, schema.InsertEvents(t.Context(), w.conn, events, w.at))
			}
			r := facts.NewRefresher(w.conn, false)
			refresh(t, r, w.at.UnixMilli())
			merge(t, w.conn)
			left := countOf(t, w.conn, "SELECT count() FROM events")
			must.That(t, left == len(distinct), "%d rows are left after a merge", left)
			found, err := r.VerifyFacts(t.Context(), func(float64) {})
			must.That(t, err == nil, "%d visitors count another copy after a merge, %d lost events, %v", found.Wrong, len(found.Lost), err)
			check.Equal(t, found.Wrong, 0, "%d visitors count another copy after a merge, %d lost events, %v", found.Wrong, len(found.Lost), err)
			check.Equal(t, len(found.Lost), 0, "%d visitors count another copy after a merge, %d lost events, %v", found.Wrong, len(found.Lost), err)
		})
	}
}
