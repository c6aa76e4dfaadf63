package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestTracesGoToTheCollectorThatTheEnvironmentNames(t *testing.T) {
	var sent atomic.Int64
	var service atomic.Bool
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil && request.URL.Path == "/v1/traces" {
			sent.Add(1)
			service.Store(strings.Contains(string(body), "lifthouse"))
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	p := start(t, "serve", "--store", "embedded:"+t.TempDir()+"/store")
	p.status("none")
	p.interrupt() // what is left is sent
	if sent.Load() == 0 || !service.Load() {
		t.Errorf("%d deliveries of traces, with the service's name: %v\n%s", sent.Load(), service.Load(), p.log.String())
	}
}
