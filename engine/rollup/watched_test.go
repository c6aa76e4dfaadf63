package rollup_test

import (
	"sync"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// served is a shop in a server.
type served struct {
	*shop
	index   *rollup.Index
	subject plan.Subject
}

// newServed returns a shop whose campaign has a rollup that nobody watches.
func newServed(t *testing.T) *served {
	t.Helper()
	s := &served{shop: newShop(t, 26), subject: plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}}
	s.engine.SetOwn()
	s.writer.AfterInsert(s.engine.Inserted)
	s.writer.AfterWrite(func(subjects []ingest.Subject) {
		of := make([]plan.Subject, len(subjects))
		for i, each := range subjects {
			of[i] = plan.Subject(each)
		}
		s.engine.Written(of)
	})
	s.buyers(80)
	s.refresh()
	s.index = s.engine.Rollups.Indexes()[0]
	s.index.Serve()
	return s
}

// looks returns the number of events that some looks of the refresher add.
func (s *served) looks() uint64 {
	s.t.Helper()
	before, _ := s.index.State(s.subject)
	for range 2 { // few events wait for the second look
		s.must(s.refresher.Look(s.t.Context()))
	}
	after, _ := s.index.State(s.subject)
	return after.Events - before.Events
}

// wantAll checks that a report of the rollup has all events.
func (s *served) wantAll() {
	s.t.Helper()
	paths := map[string]int{}
	s.compareOne(&query.Request{AccountID: 1, SubjectID: 12, Metric: query.ValuePerVisitor}, paths)
	if !s.index.HasAll(s.subject) || paths[source.NameRollup] != 1 {
		s.t.Errorf("all events: %v; sources %v", s.index.HasAll(s.subject), paths)
	}
}

// TestFewEventsWaitUntilTheyAreWatched has a campaign whose reports are sometimes asked for.
func TestFewEventsWaitUntilTheyAreWatched(t *testing.T) {
	s := newServed(t)
	s.buyers(1)
	if n := s.looks(); n != 0 || !s.engine.Rollups.Postponed(s.subject, 0) || s.index.Lag() != 0 {
		t.Errorf("nobody watches: %d events added, postponed %v, lag %s", n, s.engine.Rollups.Postponed(s.subject, 0), s.index.Lag())
	}
	version, _ := s.engine.Version(t.Context(), s.subject)
	s.index.Age(time.Minute)
	if again, known := s.engine.Version(t.Context(), s.subject); again != version || !known {
		t.Error("the version changed although the rollup did not")
	}
	if !s.engine.Rollups.Postponed(s.subject, time.Minute) || s.engine.Rollups.Postponed(s.subject, 2*time.Minute) {
		t.Error("the events have waited for one minute")
	}

	s.engine.Watch(t.Context(), s.subject)
	s.wantAll()
	if after, _ := s.engine.Version(t.Context(), s.subject); after == version {
		t.Error("the version did not change with the rollup")
	}
	s.buyers(2)
	if n := s.looks(); n != 4 {
		t.Errorf("watched: %d events added, want 4", n)
	}
	s.buyers(1)
	s.index.Age(10 * time.Second)
	if s.index.Lag() < 10*time.Second || s.engine.Rollups.Postponed(s.subject, 0) {
		t.Errorf("watched, and no look: lag %s", s.index.Lag())
	}

	s.index.Age(50 * time.Second)
	if n := s.looks(); n != 0 {
		t.Errorf("watched a minute ago: %d events added", n)
	}
	s.index.Age(24 * time.Hour)
	if n := s.looks(); n != 0 || s.index.Lag() != 0 {
		t.Errorf("watched a day ago: %d events added, lag %s", n, s.index.Lag())
	}
	s.buyers(500)
	if n := s.looks(); n != 1002 {
		t.Errorf("many events: %d added, want 1002", n)
	}
	s.wantAll()
	s.verifyAll()
}

// TestReportsWaitForEventsThatNobodyWatched asks for several reports at the same time.
func TestReportsWaitForEventsThatNobodyWatched(t *testing.T) {
	s := newServed(t)
	for range 5 {
		s.buyers(1)
		s.index.Age(5 * time.Minute)
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				s.engine.Watch(t.Context(), s.subject)
				if !s.index.HasAll(s.subject) {
					t.Error("a report would lack events")
				}
			})
		}
		asking.Wait()
		s.wantAll()
		s.index.Age(time.Minute)
	}
}

// TestEventsOfTheLastProcessAreAddedFirst opens a store whose last process has not added an
// event.
func TestEventsOfTheLastProcessAreAddedFirst(t *testing.T) {
	s := newServed(t)
	s.buyers(1)
	s.openEngine()
	s.must(s.writer.LoadLastAccepted(t.Context()))
	s.index = s.engine.Rollups.Indexes()[0]
	s.index.Serve()
	s.must(s.refresher.Look(t.Context()))
	if s.index.HasAll(s.subject) || s.index.Lag() != 0 {
		t.Errorf("all events %v, lag %s; nobody watches", s.index.HasAll(s.subject), s.index.Lag())
	}
	s.engine.Watch(t.Context(), s.subject)
	s.wantAll()
}
