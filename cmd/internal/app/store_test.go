package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/engine/facts"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/daily"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// TestSeveralProcessesOpenANewStoreOnAServer at once, and fold the same event, which all of them store and which counts
// once.
func TestSeveralProcessesOpenANewStoreOnAServer(t *testing.T) {
	server := schematest.SharedServer(t)
	database := server.CreateDatabase(t)
	const processes = 4
	event := schema.Event{
		EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1,
		Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView,
	}
	stores := make([]*app.Store, processes)
	var group errgroup.Group
	for i := range processes {
		group.Go(func() error {
			home, err := schema.ParseAddress([]string{
				server.DatabaseAddress(database),
				server.HTTPAddress(database),
			}[i%2], func(string) string { return "" })
			if err != nil {
				return err
			}
			stores[i], err = app.OpenStore(t.Context(), home,
				app.Options{Limits: source.DefaultLimits, Concurrency: 3, Times: ingest.DefaultTimes})
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
	must.OK(t, group.Wait())
	got := stores[0].Conn.Stats().MaxOpenConns
	check.That(t, got == 3+schema.SpareConns, "%d connections, want those of 3 requests and %d more", got,
		schema.SpareConns)
	for _, s := range stores {
		if _, err := s.Facts[0].RefreshFacts(t.Context()); err != nil { // reads what the others stored
			t.Error(err)
		}
		totals := s.Facts.SubjectCounters(schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1})
		check.Equal(t, s.Dir, "", "%d visitors, %d events; want 1", totals.Visitors, totals.AllEvents())
		check.Equal(t, totals.Visitors, 1, "%d visitors, %d events; want 1", totals.Visitors, totals.AllEvents())
		check.Equal(t, totals.AllEvents(), 1, "%d visitors, %d events; want 1", totals.Visitors, totals.AllEvents())
		check.OK(t, s.Close())
	}
}

// TestEventsCountAfterAWrongClockAndAnErasure stores an event while the clock is two hours ahead, and erases its
// visitor. Events that are accepted once the clock is right count at once.
func TestEventsCountAfterAWrongClockAndAnErasure(t *testing.T) {
	server := schematest.SharedServer(t)
	address := server.DatabaseAddress(server.CreateDatabase(t))
	open := func() *app.Store {
		t.Helper()
		home := must.Get(schema.ParseAddress(address, func(string) string { return "" }))(t)
		return must.Get(app.OpenStore(t.Context(), home,
			app.Options{Limits: source.DefaultLimits, Times: ingest.DefaultTimes}))(t)
	}
	event := schema.Event{
		EventID: 1, Time: time.UnixMilli(1_800_000_000_000), WebsiteID: 1,
		Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: schema.HashID("v"), Kind: schema.KindView,
	}
	s := open()
	ahead := time.Now().Add(2 * time.Hour)
	must.OK(t, schema.InsertEvents(t.Context(), s.Conn, []schema.Event{event}, ahead))
	must.OK(t, s.Facts.RefreshFacts(t.Context()))
	must.Get(s.Writer.ForgetVisitors(t.Context(), []string{"v"}, nil))(t)
	must.OK(t, s.Close())
	s = open()
	event.VisitorID = 7
	must.OK(t, s.Writer.WriteEvents(t.Context(), []schema.Event{event}))
	must.OK(t, s.Facts.RefreshFacts(t.Context()))
	of := s.Facts.SubjectCounters(schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1})
	check.Equal(t, of.Visitors, 1, "%d visitors, folded until %s", of.Visitors, s.Facts.FoldedThrough())
	check.That(t, s.Facts.FoldedThrough().After(ahead), "%d visitors, folded until %s", of.Visitors,
		s.Facts.FoldedThrough())
	must.OK(t, s.Close())
}

// TestRetentionOfWhatIsNotDeclared imports events of the past of three campaigns: one is declared, one was archived,
// and one was never declared. Only the last one expires, counted from the arrival of its events.
func TestRetentionOfWhatIsNotDeclared(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	shards := facts.Shards{facts.NewRefresher(conn, true)}
	declared := must.Get(catalogue.Open(t.Context(), conn))(t)
	s := &app.Store{
		Conn: conn, Catalogue: declared, Facts: shards, Writer: ingest.NewWriter(conn, shards),
		Engine: engine.New(conn, declared, source.DefaultLimits, shards),
	}
	rowsOf := func(campaign int64) daily.Row {
		t.Helper()
		must.OK(t, s.Engine.ReadDaily(t.Context()))
		subject := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: campaign}
		return s.Engine.Daily.LastRow(daily.Key{Kind: daily.Judged, Subject: subject})
	}
	for campaign := range int64(3) {
		subject := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: campaign + 1}
		s.Engine.Daily.NoteDone(daily.Row{Key: daily.Key{Kind: daily.Judged, Subject: subject}, Day: time.Now()})
	}
	must.OK(t, s.Engine.Daily.WriteNoted(t.Context()))
	for _, campaigns := range []string{"{id: 1, name: Runs}, {id: 2, name: Archived}", "{id: 1, name: Runs}"} {
		file := must.Get(catalogue.ReadYAML(strings.NewReader("accounts: [{id: 1, name: Shop, websites: [" +
			"{id: 1, domain: shop.example.com, campaigns: [" + campaigns + "]}]}]")))(t)
		file.Prune = true
		must.Get(s.Catalogue.ApplyFile(t.Context(), file, false))(t)
	}
	var events []schema.Event
	for campaign := range int64(3) {
		events = append(events, schema.Event{
			EventID: 1, Time: time.UnixMilli(1_600_000_000_000), WebsiteID: 1, Subject: schema.SubjectCampaign,
			SubjectID: campaign + 1, VisitorID: 7, Kind: schema.KindView,
		})
	}
	must.OK(t, s.Writer.WriteEvents(t.Context(), events))
	must.Get(s.Facts[0].RefreshFacts(t.Context()))(t)
	expired := func(after int) string {
		t.Helper()
		found := must.Get(s.ExpiredSubjects(t.Context(), 30, time.Now().AddDate(0, 0, after)))(t)
		text := ""
		for _, e := range found {
			text += fmt.Sprint(e.Kind, e.ID, e.Undeclared, e.Events)
		}
		return text
	}
	check.Equal(t, expired(29), "", "after 29 days")
	check.Equal(t, expired(31), "campaign3 true 1", "after 31 days")
	found := must.Get(s.ExpiredSubjects(t.Context(), 30, time.Now().AddDate(0, 0, 31)))(t)
	must.OK(t, s.EraseSubjects(t.Context(), found))
	check.Equal(t, expired(31), "", "after the deletion")
	check.Equal(t, len(s.Facts.StoredSubjects()), 2, "subjects that remain")
	account, _ := s.Catalogue.Snapshot().AccountOfWebsite(1)
	changed := must.Get(s.Catalogue.ReadFactsChanges(t.Context(), account))(t)
	check.That(t, !changed[1].IsZero(), "the audit log does not have the deletion")
	s.Engine = engine.New(conn, declared, source.DefaultLimits, shards) // after a restart
	check.That(t, !rowsOf(1).Day.IsZero(), "nothing was done for a campaign that remains")
	check.That(t, rowsOf(3).Day.IsZero(), "something was done for a campaign that was erased")
}
