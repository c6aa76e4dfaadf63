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

// TestSeveralProcessesOpenANewStoreOnAServer at once, and the same event that
// all of them are given counts once.
func TestSeveralProcessesOpenANewStoreOnAServer(t *testing.T) {
	server := schematest.Server(t)
	database := server.Database(t)
	const processes = 4
	event := schema.Event{EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView}
	stores := make([]*app.Store, processes)
	var group errgroup.Group
	for i := range processes {
		group.Go(func() error {
			home, err := schema.ParseAddress([]string{server.Address(database), server.HTTPAddress(database)}[i%2], func(string) string { return "" })
			if err != nil {
				return err
			}
			stores[i], err = app.Open(t.Context(), home, app.Options{Limits: source.DefaultLimits, Concurrency: 3, Times: ingest.DefaultTimes, Complain: t.Logf})
			if err != nil {
				return err
			}
			err = stores[i].Writer.Write(t.Context(), []schema.Event{event})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	conn := stores[0].Conn
	var events, counted uint64
	if err := conn.QueryRow(t.Context(), "SELECT (SELECT count() FROM events), (SELECT sum(rows) FROM subject_counters)").Scan(&events, &counted); err != nil {
		t.Fatal(err)
	}
	if events != 1 || counted != 1 {
		t.Errorf("%d events, %d counted; want 1", events, counted)
	}
	if got := conn.Stats().MaxOpenConns; got != 3+schema.SpareConns {
		t.Errorf("%d connections, want those of 3 requests and %d more", got, schema.SpareConns)
	}
	for _, s := range stores {
		if s.Dir != "" || s.Refresher == nil {
			t.Error("is not taken for a server with rollups")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
