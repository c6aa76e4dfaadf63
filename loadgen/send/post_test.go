package send_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"lifthouse/loadgen/loadgentest"
	"lifthouse/loadgen/population"
	"lifthouse/loadgen/send"
)

// TestPost posts a scenario to a server that rejects the third request with
// status 503. Inserting the same events must give only duplicates.
func TestPost(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(2_500)
	served := loadgentest.StartServer(t, s.CatalogueFile())
	address, err := url.Parse(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	to := send.Server{URL: server.URL, Tokens: map[int64]string{1: served.Ingest}, Client: server.Client()}
	sent, err := to.PostScenario(t.Context(), &s, noReport)
	if err != nil {
		t.Fatal(err)
	}
	if n := requests.Load(); n < 5 {
		t.Errorf("%d requests, want at least 5", n)
	}
	stored := served.HashEvents(t)
	again, err := send.InsertScenario(t.Context(), &s, served.Writer, noReport)
	if err != nil {
		t.Fatal(err)
	}
	if after := served.HashEvents(t); again.Events != sent.Events || after != stored {
		t.Errorf("posted %d events, inserted %d: %d differs from %d, want only copies", sent.Events, again.Events, after, stored)
	}

	to.Tokens[1] = "lh_wrong"
	if _, err := to.PostScenario(t.Context(), &s, noReport); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("wrong token: error %v", err)
	}
}

// TestPostReportsRejectedLines uses a server that rejects lines.
func TestPostReportsRejectedLines(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"accepted":1,"rejected":2,"lines":[{"line":1,"detail":"time: too old"}]}`))
	}))
	defer server.Close()
	s := population.DefaultScenario()
	s.SetVisitors(100)
	to := send.Server{URL: server.URL, Tokens: map[int64]string{1: "lh_x"}, Client: server.Client()}
	if _, err := to.PostScenario(t.Context(), &s, noReport); err == nil || !strings.Contains(err.Error(), "2 lines rejected, for example: time: too old") {
		t.Errorf("rejected lines: error %v", err)
	}
}
