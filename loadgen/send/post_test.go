package send_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/loadgen/population"
	"lifthouse/loadgen/send"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// TestPost posts a scenario to a server that rejects the third request with
// status 503. Inserting the same events must give only duplicates.
func TestPost(t *testing.T) {
	s := population.DefaultScenario()
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
	to := send.Server{URL: server.URL, Tokens: map[int64]string{1: token}, Client: server.Client()}
	sent, err := to.Post(t.Context(), &s, noReport)
	if err != nil {
		t.Fatal(err)
	}
	if n := requests.Load(); n < 5 {
		t.Errorf("%d requests, want at least 5", n)
	}
	_, stored, err := send.Insert(t.Context(), &s, writer, noReport)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Inserted != 0 || stored.Conflicts != 0 || stored.Duplicates != sent.Events {
		t.Errorf("posted %d events; inserting them again: %+v, want only duplicates", sent.Events, stored)
	}

	to.Tokens[1] = "lh_wrong"
	if _, err := to.Post(t.Context(), &s, noReport); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("wrong token: error %v", err)
	}
}

// TestPostReportsRejectedLines uses a server that rejects lines.
func TestPostReportsRejectedLines(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"stored":1,"duplicates":0,"rejected":2,"lines":[{"line":1,"verdict":"rejected","detail":"time: too old"}]}`))
	}))
	defer server.Close()
	s := population.DefaultScenario()
	s.SetVisitors(100)
	to := send.Server{URL: server.URL, Tokens: map[int64]string{1: "lh_x"}, Client: server.Client()}
	if _, err := to.Post(t.Context(), &s, noReport); err == nil || !strings.Contains(err.Error(), "2 lines rejected, for example: rejected: time: too old") {
		t.Errorf("rejected lines: error %v", err)
	}
}
