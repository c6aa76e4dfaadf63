package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

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

// TestVisitorsOfTheFilter reads the visitors of stored events. The filter must contain all of
// them, of their website and with what they have, and few others.
func TestVisitorsOfTheFilter(t *testing.T) {
	conn := schematest.Open(t)
	const n = 20_000
	events := someViews(0, 3*n)
	for i := range events {
		switch e := &events[i]; i % 3 {
		case 1:
			e.Subject, e.SubjectID, e.Kind, e.GoalID = schema.SubjectNone, 0, schema.KindGoal, 1
		case 2:
			e.WebsiteID = 2
		}
	}
	before := NewWriter(conn)
	before.SetExclusive()
	for i := range 2 { // the second time, they are stored already
		if _, err := before.Write(t.Context(), events); err != nil {
			t.Fatal(i, err)
		}
	}
	after := NewWriter(conn)
	after.SetExclusive()
	if err := after.LoadIDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := firstCapacity - after.idFilter.free; used < 6*n*98/100 || used > 6*n {
		t.Errorf("%d ids, want up to %d: an event and a visitor for each view and goal", used, 6*n)
	}
	before.idFilter.complete = true // the store was empty
	before.idFilter.markVisitors()
	for name, f := range map[string]*idFilter{"read": &after.idFilter, "written": &before.idFilter} {
		for kind := range 3 { // of website 1 with views, with goals; of website 2 with views
			website, of := int64(1+kind/2), []schema.Kind{schema.KindView, schema.KindGoal, schema.KindView}[kind]
			all := make([]uint64, 3*n)
			for i := range all {
				all[i] = uint64(i) //nolint:gosec // not negative
			}
			found := f.possiblyWith(of, website, all)
			var has int
			for _, id := range found {
				if int(id)%3 == kind { //nolint:gosec // small
					has++
				}
			}
			if has != n || len(found) > n+n/50 {
				t.Errorf("%s, website %d, %s: %d of the %d visitors that have them, and %d others", name, website, of, has, n, len(found)-has)
			}
		}
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

// savingWriter returns an exclusive writer that uses saved ids, and whether there were any.
func savingWriter(t *testing.T, conn driver.Conn, path string) (*Writer, bool) {
	t.Helper()
	w := NewWriter(conn)
	w.leastSaved = 0
	if err := w.LoadLastAccepted(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.SetExclusive()
	saved, err := w.UseSavedIDs(t.Context(), path)
	if err == nil && !saved {
		err = w.LoadIDs(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w, saved
}

// someViews returns views of a range of visitors.
func someViews(from, to uint64) []schema.Event {
	var events []schema.Event
	for id := from; id < to; id++ {
		events = append(events, schema.Event{
			EventID: schema.Hash(string(rune(id))), VisitorID: id, Time: time.UnixMilli(1_777_777_777_000).UTC(), WebsiteID: 1, //nolint:gosec // small
			Subject: schema.SubjectCampaign, SubjectID: 1, Kind: schema.KindView,
		})
	}
	return events
}

// TestSavedIDs saves the ids at the end of a writer. The next one reads them at its first
// write, and uses no file of other events.
func TestSavedIDs(t *testing.T) {
	conn, path := schematest.Open(t), filepath.Join(t.TempDir(), "ids")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	exists := func() bool { _, err := os.Stat(path); return err == nil }
	write := func(w *Writer, from, to uint64, inserted, duplicates int) {
		t.Helper()
		outcome, err := w.Write(t.Context(), someViews(from, to))
		if must(err); outcome.Inserted != inserted || outcome.Duplicates != duplicates {
			t.Errorf("%+v, want %d inserted, %d duplicates", outcome, inserted, duplicates)
		}
	}
	w, saved := savingWriter(t, conn, path)
	if saved {
		t.Fatal("a new store has saved ids")
	}
	write(w, 1, 100, 99, 0)
	must(w.SaveIDs(t.Context(), path))

	w, saved = savingWriter(t, conn, path) // writes nothing
	must(w.SaveIDs(t.Context(), path))
	if !saved || !exists() {
		t.Errorf("saved %v, file %v", saved, exists())
	}
	w, saved = savingWriter(t, conn, path)
	write(w, 50, 150, 50, 50)
	if !saved || !w.idFilter.isComplete() || exists() { // it is killed now
		t.Errorf("saved %v, file %v", saved, exists())
	}
	w, saved = savingWriter(t, conn, path)
	write(w, 140, 160, 10, 10)
	if saved {
		t.Error("ids were saved by a killed process")
	}
	must(w.SaveIDs(t.Context(), path))

	stale, err := os.ReadFile(path)
	must(err)
	must(schema.InsertEvents(t.Context(), conn, "", someViews(160, 161), time.Now().UTC().Add(time.Second))) // by another process
	w, saved = savingWriter(t, conn, path)
	if saved || exists() {
		t.Errorf("the ids of fewer events are used; file %v", exists())
	}
	write(w, 150, 170, 9, 11)
	must(w.SaveIDs(t.Context(), path))

	// damaged files: no event is taken for a new one
	whole, err := os.ReadFile(path)
	must(err)
	damaged := map[string][]byte{"empty": nil, "header": whole[:20], "cut": whole[:len(whole)/2], "other": stale}
	for _, at := range []int{3, 30, 60, len(whole) / 2, len(whole) - 1} {
		changed := slices.Clone(whole)
		changed[at] ^= 4
		damaged[fmt.Sprint("byte ", at)] = changed
	}
	for name, content := range damaged {
		must(os.WriteFile(path, content, 0o600))
		w, _ := savingWriter(t, conn, path)
		write(w, 1, 170, 0, 169)
		if exists() {
			t.Errorf("%s: the file is left", name)
		}
	}
}
