package app_test

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// TestSeveralProcessesOpenANewStoreOnAServer at once, and fold the same event, which all of them store and which counts
// once.
func TestSeveralProcessesOpenANewStoreOnAServer(t *testing.T) {
	server := schematest.SharedServer(t)
	database := server.CreateDatabase(t)
	const processes = 4
	event := schema.Event{EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView}
	stores := make([]*app.Store, processes)
	var group errgroup.Group
	for i := range processes {
		group.Go(func() error {
			home, err := schema.ParseAddress([]string{server.DatabaseAddress(database), server.HTTPAddress(database)}[i%2], func(string) string { return "" })
			if err != nil {
				return err
			}
			stores[i], err = app.OpenStore(t.Context(), home, app.Options{Limits: source.DefaultLimits, Concurrency: 3, Times: ingest.DefaultTimes})
			if err != nil {
				return err
			}
			if err := stores[i].Writer.WriteEvents(t.Context(), []schema.Event{event}); err != nil {
				return err
			}
			_, err = stores[i].Facts[0].RefreshFacts(t.Context())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := stores[0].Conn.Stats().MaxOpenConns; got != 3+schema.SpareConns {
		t.Errorf("%d connections, want those of 3 requests and %d more", got, schema.SpareConns)
	}
	for _, s := range stores {
		if _, err := s.Facts[0].RefreshFacts(t.Context()); err != nil { // reads what the others stored
			t.Error(err)
		}
		totals := s.Facts.SubjectCounters(schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1})
		if s.Dir != "" || totals.Visitors != 1 || totals.AllEvents() != 1 {
			t.Errorf("%d visitors, %d events; want 1", totals.Visitors, totals.AllEvents())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEventsCountAfterAWrongClockAndAnErasure stores an event while the clock is two hours ahead, and erases its
// visitor. Events that are accepted once the clock is right count at once.
func TestEventsCountAfterAWrongClockAndAnErasure(t *testing.T) {
	server := schematest.SharedServer(t)
	address := server.DatabaseAddress(server.CreateDatabase(t))
	open := func() *app.Store {
		t.Helper()
		home, err := schema.ParseAddress(address, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		s, err := app.OpenStore(t.Context(), home, app.Options{Limits: source.DefaultLimits, Times: ingest.DefaultTimes})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	event := schema.Event{EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: schema.HashID("v"), Kind: schema.KindView}
	s := open()
	ahead := time.Now().Add(2 * time.Hour)
	if err := schema.InsertEvents(t.Context(), s.Conn, []schema.Event{event}, ahead); err != nil {
		t.Fatal(err)
	}
	if err := s.Facts.RefreshFacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Writer.ForgetVisitors(t.Context(), []string{"v"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	event.VisitorID = 7
	if err := s.Writer.WriteEvents(t.Context(), []schema.Event{event}); err != nil {
		t.Fatal(err)
	}
	if err := s.Facts.RefreshFacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if of := s.Facts.SubjectCounters(schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}); of.Visitors != 1 || !s.Facts.FoldedThrough().After(ahead) {
		t.Errorf("%d visitors, folded until %s", of.Visitors, s.Facts.FoldedThrough())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
