package rollup_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
)

// TestReportsAreNeverTorn requests reports in a loop while another goroutine
// refreshes, compacts, deletes and rebuilds rollups, and kills refreshers after each
// of their statements. Every visitor has one view and one goal of value 1, stored at
// once: a report that lacks rows has different numbers of them.
func TestReportsAreNeverTorn(t *testing.T) {
	s := newShop(t, 12)
	s.buyers(300)
	s.refresh()
	of := readers{shop: s, from: map[string]int{}}
	of.stored.Store(300)
	s.engine.Observe(nil, of.observe)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range tier.Of(2, 2, 3) {
		running.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
					of.read(n)
				}
			}
		})
	}
	for round := range tier.Of(8, 12, 150) {
		s.buyers(3)
		of.stored.Add(3)
		switch round % 4 {
		case 0:
			s.dies(round / 4)
		case 1:
			s.must(s.refresher.Compact(t.Context()))
		case 2:
			s.retire()
		case 3:
			s.must(s.refresher.Swept(t.Context()))
		}
		s.refresh()
	}
	close(stop)
	running.Wait()
	t.Log(of.from)
	if of.from[source.NameRollup] == 0 || of.from[source.NameVisitors] == 0 {
		t.Errorf("reports by source: %v", of.from)
	}
}

// buyers writes new visitors with a view and a goal of value 1.
func (s *shop) buyers(n int) {
	s.t.Helper()
	var events []schema.Event
	for range n {
		e := s.firstView()
		e.City = "Ulm"
		goal := e
		goal.Kind, goal.GoalID, goal.Value, goal.EventID, goal.Time = schema.KindGoal, 1, schema.MoneyScale, s.Uint64(), e.Time.Add(time.Minute)
		events = append(events, e, goal)
	}
	s.write(events...)
}

// firstView returns a view of campaign 12 by a new visitor.
func (s *shop) firstView() schema.Event {
	e := s.event()
	e.VisitorID, e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = s.Uint64(), schema.SubjectCampaign, 12, 0, int64(s.IntN(2))
	e.Kind, e.GoalID, e.Value, e.Profit, e.ExtraValue, e.EventID = schema.KindView, 0, 0, 0, 0, s.Uint64()
	return e
}

// dies kills a refresher of a new process after the given number of statements.
func (s *shop) dies(statements int) {
	left := statements
	_ = rollup.New(schematest.KilledConn{Conn: s.conn, Left: &left}, s.writer, s.engine.Rollups.Indexes()[0]).RefreshAll(s.t.Context())
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// readers compare the numbers of a report with each other.
type readers struct {
	*shop
	stored atomic.Int64 // visitors
	mu     sync.Mutex
	from   map[string]int
}

func (r *readers) observe(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from[source]++
}

func (r *readers) read(n int) {
	request := query.Request{AccountID: 1, SubjectID: 12, GoalID: 1, Metric: query.ValuePerVisitor}
	if n%4 != 0 {
		request.Filters.Lists = []query.ListFilter{{Attribute: "city", Values: []string{"Ulm"}}}
	}
	switch n % 3 {
	case 1:
		request.Dimension = query.ByDevice
	case 2:
		request.Interval = query.Daily
	}
	if n%5 == 0 {
		request.Filters.ZScore = 1000 // no value is removed, because all are equal
	}
	report, err := r.engine.Report(r.t.Context(), r.plan(request))
	atMost := r.stored.Load() + 3 // the next buyers may be stored already
	if err != nil {
		r.t.Error(err)
		return
	}
	text, _ := json.Marshal(report.Totals)
	var totals struct {
		Visitors, GoalsReached int64
		Value                  json.Number
	}
	if err := json.Unmarshal(text, &totals); err != nil {
		r.t.Error(err)
	}
	value, _, _ := strings.Cut(totals.Value.String(), ".")
	if totals.Visitors < 300 || totals.Visitors > atMost || totals.GoalsReached != totals.Visitors || value != fmt.Sprint(totals.Visitors) {
		r.t.Errorf("%+v: %s, with at most %d visitors stored", request, text, atMost)
	}
}
