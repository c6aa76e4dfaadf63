package loadgen_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/loadgen"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// TestPost sends a population to a server that is too busy for the third
// request, and then into its store directly: all of it must be there.
func TestPost(t *testing.T) {
	s := loadgen.DefaultScenario()
	s.SetVisitors(2_500)
	conn := schematest.Open(t)
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), s.Catalogue(), false); err != nil {
		t.Fatal(err)
	}
	token, _, err := c.CreateToken(t.Context(), catalogue.Token{AccountID: 1, WebsiteID: 1, Scopes: []catalogue.Scope{catalogue.ScopeIngest}})
	if err != nil {
		t.Fatal(err)
	}
	writer := ingest.NewWriter(conn)
	in := api.Intake{
		Collector:  ingest.NewCollector(t.Context(), writer, api.DefaultOptions.WaitingEvents),
		Deliveries: ingest.NewDeliveries(conn), Rejects: ingest.NewRejects(conn),
	}
	handler := api.New(engine.New(conn, c, engine.DefaultLimits), c, in, api.DefaultOptions)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	to := loadgen.Receiver{URL: server.URL, Tokens: map[int64]string{1: token}, Client: server.Client()}
	sent, err := to.Post(t.Context(), &s, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if n := requests.Load(); n < 5 {
		t.Errorf("only %d requests", n)
	}
	_, stored, err := loadgen.Store(t.Context(), &s, writer, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Inserted != 0 || stored.Conflicts != 0 || stored.Duplicates != sent.Events {
		t.Errorf("sent %d events; stored then %+v, want only duplicates", sent.Events, stored)
	}

	to.Tokens[1] = "lh_wrong"
	if _, err := to.Post(t.Context(), &s, quiet); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token gives %v", err)
	}
}

// TestPostTellsRejects has a server that does not take every line.
func TestPostTellsRejects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"stored":1,"duplicates":0,"rejected":2,"lines":[{"line":1,"verdict":"rejected","detail":"time: too old"}]}`))
	}))
	defer server.Close()
	s := loadgen.DefaultScenario()
	s.SetVisitors(100)
	to := loadgen.Receiver{URL: server.URL, Tokens: map[int64]string{1: "lh_x"}, Client: server.Client()}
	if _, err := to.Post(t.Context(), &s, quiet); err == nil || !strings.Contains(err.Error(), "2 lines rejected, such as: rejected: time: too old") {
		t.Errorf("rejected lines give %v", err)
	}
}
