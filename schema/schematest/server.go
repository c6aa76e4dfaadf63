package schematest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// Server is ClickHouse's HTTP interface with the process's engine behind it,
// for a test that wants a server somewhere else.
func Server(tb testing.TB) http.Handler {
	tb.Helper()
	var greeted atomic.Value // the engine greets once by each transport, which a connection has one of
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var transport http.RoundTripper
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasPrefix(string(body), "SELECT displayName()") {
			transport, err = options.TransportFunc(nil)
		} else if err == nil {
			transport = *greeted.Load().(*http.RoundTripper)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		asked := r.Clone(r.Context())
		asked.Body = io.NopCloser(bytes.NewReader(body))
		asked.RequestURI, asked.URL.Scheme, asked.URL.Host = "", "http", r.Host
		answer, err := transport.RoundTrip(asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		greeted.Store(&transport)
		defer func() { _ = answer.Body.Close() }()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
}
