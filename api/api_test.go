package api_test

import (
	_ "embed"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/engine/enginetest"
	"lifthouse/engine/facts"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/books"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/ingest"
	"lifthouse/schema/notes"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/secrets"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	schematest.Main(m)
}

//go:embed testdata/accounts.yaml
var twoAccounts string

type server struct {
	t testing.TB
	*httptest.Server
	api       *api.API
	engine    *engine.Engine
	listed    *watch.Summaries
	outbox    *outbox.Outbox
	facts     facts.Shards
	catalogue *catalogue.Catalogue
	writer    *ingest.Writer
	conn      driver.Conn
	token     string // of account 1
}

// newServer serves a new store. change modifies the default options.
func newServer(tb testing.TB, change ...func(*api.Options)) *server {
	tb.Helper()
	return newServerWith(tb, schematest.OpenMigrated(tb), change...)
}

// newServerWith serves a store whose connection a test has changed.
func newServerWith(tb testing.TB, conn driver.Conn, change ...func(*api.Options)) *server {
	tb.Helper()
	s := newServerOn(tb, conn, change...)
	s.apply(twoAccounts)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	return s
}

// newEmptyServer serves a store without accounts.
func newEmptyServer(tb testing.TB, change ...func(*api.Options)) *server {
	tb.Helper()
	return newServerOn(tb, schematest.OpenMigrated(tb), change...)
}

// newServerOn serves an existing store.
func newServerOn(tb testing.TB, conn driver.Conn, change ...func(*api.Options)) *server {
	tb.Helper()
	return openServerOn(tb, conn, enginetest.OpenWithFacts, change...)
}

// openServerOn serves an existing store with an engine that open returns.
func openServerOn(
	tb testing.TB, conn driver.Conn,
	open func(testing.TB, driver.Conn, *catalogue.Catalogue) (*engine.Engine, *ingest.Writer, facts.Shards),
	change ...func(*api.Options),
) *server {
	tb.Helper()
	c := must.Get(catalogue.Open(tb.Context(), conn))(tb)
	options := api.DefaultOptions
	options.AuthFailures = 0 // tests present many
	for _, set := range change {
		set(&options)
	}
	e, w, shards := open(tb, conn, c)
	s := &server{
		t: tb, engine: e, listed: watch.NewSummaries(e, c), outbox: outbox.New(conn), facts: shards,
		catalogue: c, writer: w, conn: conn,
	}
	s.api = api.New(api.Parts{
		Engine: e, Catalogue: c, Summaries: s.listed, Outbox: s.outbox, Notes: notes.New(conn),
		Documents: documents.New(conn), Books: books.New(conn),
		Collector: ingest.NewCollector(tb.Context(), w, options.WaitingEvents), Journal: ingest.NewJournal(conn),
		Secrets: secrets.NewFolder(os.TempDir()),
	}, options)
	s.api.ExportFacts(shards)
	s.Server = httptest.NewServer(s.api)
	tb.Cleanup(s.Close)
	return s
}

func (s *server) newToken(account, website int64, scope catalogue.Scope) string {
	s.t.Helper()
	secret, _, err := s.catalogue.CreateToken(s.t.Context(),
		catalogue.Token{AccountID: account, WebsiteID: website, Scopes: []catalogue.Scope{scope}})
	must.OK(s.t, err)
	return secret
}

// at returns an event of campaign 12, minutes after the start.
func at(minute int, visitor string, variation int64, kind schema.Kind, value int64) schema.Event {
	e := schema.Event{
		EventID:   schema.HashID(visitor + string(rune(minute)) + string(kind)),
		Time:      time.Date(2026, 5, 1, 0, minute, 0, 0, time.UTC),
		WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, VariationID: variation,
		VisitorID: schema.HashID(visitor), Kind: kind,
	}
	if kind == schema.KindGoal {
		e.GoalID, e.Value = 3, value
	}
	return e
}

// shown returns an event of widget 7, or of its experiment if that is not 0.
func shown(minute int, visitor string, experiment, variation int64, kind schema.Kind) schema.Event {
	e := at(minute, visitor, variation, kind, 70_000)
	e.Subject, e.SubjectID, e.ExperimentID = schema.SubjectWidget, 7, experiment
	if kind == schema.KindGoal {
		e.GoalID = 4
	}
	return e
}
