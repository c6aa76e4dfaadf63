package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/engine/packed"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// life is a store with one writer over some time, and the events that it should have.
type life struct {
	*testing.T
	world
	conn       driver.Conn
	engine     *Engine
	writer     *ingest.Writer
	events     []schema.Event
	owned      *catalogue.Owned
	nextID     uint64
	reports    int
	statements atomic.Int64 // of reports
}

// subjectsOfLife is the number of campaigns, and of widgets.
const subjectsOfLife = 3

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	w := world{rand.New(rand.NewPCG(20261124, seed))}
	l := &life{T: t, world: w, conn: schematest.Open(t), owned: w.owned(1, 2, 3)}
	l.restart(packed.MaxBytes)
	return l
}

// restart makes the writer and the engine again, as a new process does.
func (l *life) restart(limit int64) {
	l.Helper()
	l.engine, l.writer = New(l.conn, nil, source.DefaultLimits), ingest.NewWriter(l.conn)
	l.must(l.writer.LoadLastAccepted(l.Context()))
	l.writer.SetExclusive()
	l.must(l.writer.LoadIDs(l.Context()))
	l.engine.SetOwn()
	l.engine.store.Packed = packed.NewCache(limit)
	l.engine.Observe(func(time.Duration, error) { l.statements.Add(1) }, nil)
	l.writer.SetRollups(l.engine.Rollups)
	l.writer.AfterInsert(l.engine.Inserted)
	l.writer.AfterWrite(func(subjects []ingest.Subject) {
		var changed []plan.Subject
		for _, subject := range subjects {
			changed = append(changed, plan.Subject(subject))
		}
		l.engine.Written(changed)
	})
}

func (l *life) must(err error) {
	l.Helper()
	if err != nil {
		fatal(l.T, err)
	}
}

// nameOfVisitor returns the id of a visitor as sent.
func nameOfVisitor(n int) string { return "visitor " + strconv.Itoa(n) }

// draw returns new events.
func (l *life) draw(n int) []schema.Event {
	events := make([]schema.Event, n)
	for i := range events {
		events[i] = l.event(1 + l.Int64N(subjectsOfLife))
		l.nextID++
		events[i].EventID, events[i].VisitorID = schema.Hash(strconv.FormatUint(l.nextID, 10)), schema.Hash(nameOfVisitor(l.IntN(25)))
	}
	return events
}

// write writes new events, and some again.
func (l *life) write(n int) {
	l.Helper()
	events := l.draw(n)
	again := l.events[:min(len(l.events), l.IntN(3))]
	_, err := l.writer.Write(l.Context(), slices.Concat(events, again))
	l.must(err)
	l.events = append(l.events, events...)
}

// forget deletes a visitor, or a subject.
func (l *life) forget() {
	l.Helper()
	if l.IntN(3) == 0 {
		gone := ingest.SubjectID{WebsiteID: 1, Subject: schema.SubjectCampaign, ID: 1 + l.Int64N(subjectsOfLife)}
		l.must(l.writer.DropSubjects(l.Context(), []ingest.SubjectID{gone}))
		l.events = slices.DeleteFunc(l.events, func(e schema.Event) bool { return e.Subject == gone.Subject && e.SubjectID == gone.ID })
		return
	}
	name := nameOfVisitor(l.IntN(25))
	_, err := l.writer.Forget(l.Context(), []string{name}, nil)
	l.must(err)
	l.events = slices.DeleteFunc(l.events, func(e schema.Event) bool { return e.VisitorID == schema.Hash(name) })
}

// report compares a report with the fold.
func (l *life) report() {
	l.Helper()
	l.reports++
	r := l.request(1 + l.Int64N(subjectsOfLife))
	p, err := plan.New(r, l.owned)
	l.must(err)
	x := &source.Execution{Plan: p, Store: l.engine.store}
	x.Stored, err = l.engine.Totals.Stored(l.Context(), p.Subject)
	l.must(err)
	found, from, err := read(l.Context(), x, stateOf(x))
	l.must(err)
	if from != source.NameInProcess {
		l.Errorf("the source is %s", from)
	}
	x.Outliers, x.Limited = found.Outliers, found.Cap
	if r.Filters.ZScore != 0 {
		compareOutliers(l.T, x, l.events)
	}
	if x.Cap != nil {
		if want := limitOf(x, l.events); found.Cap.Limit != want {
			l.Errorf("limit %d, want %d\n%s", found.Cap.Limit, want, p)
		}
	}
	compareRows(l.T, x, found.Whole, l.events)
}

// compareTotals compares the totals in memory with those of the store.
func (l *life) compareTotals() {
	l.Helper()
	fresh := New(l.conn, nil, source.DefaultLimits)
	for id := int64(1); id <= subjectsOfLife; id++ {
		for _, subject := range []plan.Subject{
			{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: id},
			{WebsiteID: 1, Kind: schema.SubjectWidget, ID: id},
			{WebsiteID: 1, Kind: schema.SubjectWidget, ID: id, ExperimentID: 4},
		} {
			version, ingested, err := l.engine.Totals.Version(l.Context(), subject)
			l.must(err)
			wantVersion, wantIngested, err := fresh.Totals.Version(l.Context(), subject)
			l.must(err)
			got, err := l.engine.Totals.Stored(l.Context(), subject)
			l.must(err)
			want, err := fresh.Totals.Stored(l.Context(), subject)
			l.must(err)
			if version != wantVersion || !ingested.Equal(wantIngested) || fmt.Sprint(got) != fmt.Sprint(want) {
				l.Errorf("%s: version %d at %s of %v, want %d at %s of %v", subject, version, ingested, got, wantVersion, wantIngested, want)
			}
		}
	}
}

// TestReportsOfEventsInMemoryEqualTheFold writes, deletes, restarts and reports in any
// order.
func TestReportsOfEventsInMemoryEqualTheFold(t *testing.T) {
	l := newLife(t, 1)
	l.write(200)
	for step := range tier.Of(80, 100, 1_000) {
		switch n := l.IntN(100); {
		case n < 65:
			l.report()
		case n < 90:
			l.write(1 + l.IntN(5))
		case n < 92:
			l.write(300) // more than wait in memory
		case n < 94:
			l.forget()
		case n < 96:
			l.engine.Written(nil)
		case n < 98:
			l.compareTotals()
		default:
			l.restart([]int64{packed.MaxBytes, 20_000, 0}[l.IntN(3)])
		}
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	if n := l.statements.Load(); n > 4*int64(l.reports) {
		t.Errorf("%d statements for %d reports", n, l.reports)
	}
}

// TestReportsDuringWrites reports while events are written. The number of views of a
// report must be one of the numbers between its beginning and its end.
func TestReportsDuringWrites(t *testing.T) {
	l := newLife(t, 2)
	subject := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}
	var sent, stored atomic.Int64
	r := subject.Request(1)
	r.Metric = query.GoalConversionRate
	p, err := plan.New(r, l.owned)
	l.must(err)
	var done atomic.Bool
	var reports sync.WaitGroup
	for range 3 {
		reports.Go(func() {
			for !done.Load() {
				least := stored.Load()
				x := &source.Execution{Plan: p, Store: l.engine.store}
				var err error
				if x.Stored, err = l.engine.Totals.Stored(t.Context(), subject); err != nil {
					t.Error(err)
					return
				}
				found, _, err := read(t.Context(), x, stateOf(x))
				if err != nil {
					t.Error(err)
					return
				}
				views := int64(0)
				for i := range found.Whole {
					views += found.Whole[i].Views
				}
				if most := sent.Load(); views < least || views > most {
					t.Errorf("%d views, want %d to %d", views, least, most)
					return
				}
			}
		})
	}
	for n := range uint64(tier.Of(40, 60, 300)) {
		event := schema.Event{
			EventID: 1 + n, Time: start.Add(time.Duration(n) * time.Second), WebsiteID: 1, Subject: subject.Kind, SubjectID: subject.ID,
			VisitorID: schema.Hash(nameOfVisitor(int(n))), Kind: schema.KindView,
		}
		sent.Add(1)
		_, err := l.writer.Write(t.Context(), []schema.Event{event})
		l.must(err)
		stored.Add(1)
		if n%50 == 49 {
			name := nameOfVisitor(int(n))
			stored.Add(-1) // before the deletion begins
			_, err := l.writer.Forget(t.Context(), []string{name}, nil)
			l.must(err)
		}
		if t.Failed() {
			break
		}
	}
	done.Store(true)
	reports.Wait()
	l.compareTotals()
}

// comparePacked compares the answer from events in memory with the fold, and the steps of
// its series with those of the events that a statement returned.
func comparePacked(t *testing.T, x *source.Execution, in stored, inProcess *visit.Rows) {
	t.Helper()
	if in.packed == nil { // servers, on which nothing is kept
		return
	}
	of := *x
	of.Store, of.Outliers, of.Limited = in.packed, nil, nil
	for i := range in.events {
		if e := &in.events[i]; e.WebsiteID == x.Subject.WebsiteID && e.Subject == x.Subject.Kind && e.SubjectID == x.Subject.ID && e.ExperimentID == x.Subject.ExperimentID {
			of.Stored.Events++
		}
	}
	found := readFrom(t, &of, 0)
	compareRows(t, x, found.Whole, in.events)
	if got, want := sortedSteps(t, found.Steps), sortedSteps(t, inProcess.Steps); got != want {
		t.Errorf("%s\n in memory %s\nstatement %s", x.Plan, got, want)
	}
	if got, want := written(t, found.Outliers), written(t, x.Outliers); got != want {
		t.Errorf("%s\n in memory %s\nstatement %s", x.Plan, got, want)
	}
	if x.Limited != nil && x.Limited.Limit != found.Cap.Limit {
		t.Errorf("limit %d, want %d\n%s", found.Cap.Limit, x.Limited.Limit, x.Plan)
	}
}

// sortedSteps returns steps as text. Those of a bucket have no order.
func sortedSteps(t *testing.T, steps []visit.Step) string {
	t.Helper()
	lines := make([]string, len(steps))
	for i := range steps {
		lines[i] = written(t, steps[i])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
