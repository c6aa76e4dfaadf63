// Package loadgentest starts servers of the real API for tests of load
// generation.
package loadgentest

import (
	"net/http/httptest"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/engine/enginetest"
	"lifthouse/engine/facts"
	"lifthouse/engine/watch"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/ingest"
	"lifthouse/schema/notes"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest"
)

// Server is a server with its own store.
type Server struct {
	URL, AdminURL string
	Read, Ingest  string // tokens of the first account and its first website
	Engine        *engine.Engine
	Facts         facts.Shards
	Writer        *ingest.Writer
	Catalogue     *catalogue.Catalogue
}

// StartServer serves a new store with the catalogue until the test ends. The first
// account must have a website. The TestMain function of the calling package
// must call schematest.Main.
func StartServer(tb testing.TB, file catalogue.File) *Server {
	tb.Helper()
	conn := schematest.OpenMigrated(tb)
	c, err := catalogue.Open(tb.Context(), conn)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := c.ApplyFile(tb.Context(), file, false); err != nil {
		tb.Fatal(err)
	}
	e, w, shards := enginetest.OpenWithFacts(tb, conn, c)
	options := api.DefaultOptions
	options.TokenRate = 0
	options.Timeout = time.Hour
	options.StoreQueue = 1 << 20
	options.StoreWait = time.Hour // no request fails on slow machines
	handler := api.New(api.Parts{
		Engine: e, Catalogue: c, Summaries: watch.NewSummaries(e, c), Outbox: outbox.New(conn), Notes: notes.New(conn),
		Documents: documents.New(conn), Times: ingest.DefaultTimes,
		Collector: ingest.NewCollector(tb.Context(), w, options.WaitingEvents), Journal: ingest.NewJournal(conn),
	}, options)
	served := httptest.NewServer(handler)
	admin := httptest.NewServer(handler.AdminHandler())
	tb.Cleanup(served.Close)
	tb.Cleanup(admin.Close)
	s := &Server{URL: served.URL, AdminURL: admin.URL, Engine: e, Facts: shards, Writer: w, Catalogue: c}
	account := file.Accounts[0].ID
	website := file.Accounts[0].Websites[0].ID
	token := func(website int64, scope catalogue.Scope) string {
		secret, _, err := c.CreateToken(tb.Context(), catalogue.Token{AccountID: account, WebsiteID: website, Scopes: []catalogue.Scope{scope}})
		if err != nil {
			tb.Fatal(err)
		}
		return secret
	}
	s.Read = token(0, catalogue.ScopeRead)
	s.Ingest = token(website, catalogue.ScopeIngest)
	return s
}
