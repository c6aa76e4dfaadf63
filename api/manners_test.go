package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// logged captures the log until the test ends.
func logged(t *testing.T) *bytes.Buffer {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

// lines returns the log entries with a message.
func lines(t *testing.T, log, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(log) {
		entry := must.JSON[map[string]any](t, line)
		if entry["msg"] == message {
			found = append(found, entry)
		}
	}
	return found
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	s := newServer(t)
	const path = "/v1/campaigns/12/results"
	plain := s.Get(path).Send().Text
	for accepted, open := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		response := s.Get(path).Header("Accept-Encoding", accepted).Undocumented().Send()
		reader := must.Get(open(strings.NewReader(response.Text)))(t)
		text := must.Get(io.ReadAll(reader))(t)
		check.Equal(t, response.Header.Get("Content-Encoding"), accepted)
		sent := len(response.Text)
		check.That(t, sent <= len(plain)/2, "%s: %d bytes of %d", accepted, sent, len(plain))
		check.That(t, len(text) >= len(plain)-100, "%s: %d bytes of %d decompressed", accepted, len(text), len(plain))
		check.Contains(t, strings.Join(response.Header.Values("Vary"), ","), "Accept-Encoding", accepted)
	}
	response := s.Request(http.MethodHead, path, "").Header("Accept-Encoding", "gzip").Send()
	check.Equal(t, response.Status, http.StatusOK)
	check.Equal(t, response.Text, "", "the body")
}

func TestProbes(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	s := newServerWith(t, conn)
	for _, path := range []string{"/healthz", "/readyz"} {
		text := s.Get(path).Token("").Header("If-None-Match", "*").Send().Text
		check.Equal(t, text, "{\"status\":\"ok\"}\n", path)
	}
	s.api.StartDraining()
	draining := s.Get("/readyz").Token("").Send().CheckStatus(http.StatusServiceUnavailable)
	check.Contains(t, draining.Text, "draining")
	s.Get("/v1/campaigns").Send().CheckStatus(http.StatusOK)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO migrations (name, checksum) VALUES ('9999_newer.sql', '')"))
	newer := newServerOn(t, conn)
	notReady := newer.Get("/readyz").Send().CheckStatus(http.StatusServiceUnavailable)
	check.Contains(t, notReady.Text, "not_ready")
	newer.Get("/healthz").Send().CheckStatus(http.StatusOK)
}

func TestLogAndMetricsTellOfRequestsButNotTheirSecrets(t *testing.T) {
	log := logged(t)
	s := newServer(t)
	response := s.Get("/v1/campaigns/12").Send()
	s.Get("/v1/campaigns/99/results").Send()
	var answers strings.Builder
	s.Get(bannerResults).Send().RequireStatus(http.StatusOK)
	for _, path := range []string{
		"/v1/campaigns?access_token=" + s.token, "/v1/campaigns/" + s.token, "/" + s.token,
		"/v1/campaigns?" + s.token + "=1",
		"/v1/campaigns/12/results?filters%5BdateFrom%5D=" + s.token,
	} {
		text := s.Get(path).Header("X-Request-Id", s.token).Header("Accept", "*/*").Send().Text
		answers.WriteString(text)
	}
	s.Request("MADEUP", "/v1/campaigns", "").Token("").Send()
	s.Close() // the last lines are written

	requests := lines(t, log.String(), "request")
	must.Equal(t, len(requests), 9, "lines of %s", log)
	first, second := requests[0], requests[1]
	for name, want := range map[string]any{
		"method": "GET", "route": "/v1/campaigns/:id", "status": 200.0,
		"requestId": response.Header.Get("X-Request-Id"), "account": 1.0, "token": 1.0,
	} {
		check.Equal(t, first[name], want, "%v", name)
	}
	if bytes, _ := first["bytes"].(float64); bytes < 100 || first["milliseconds"] == nil {
		t.Errorf("bytes %v, milliseconds %v", first["bytes"], first["milliseconds"])
	}
	check.That(t, second["status"] == 404.0, "second line: %v", second)
	check.That(t, second["route"] == "/v1/campaigns/:id/results", "second line: %v", second)
	metrics := s.metrics()
	for _, want := range []string{
		`http_request_duration_seconds_count{method="GET",route="/v1/campaigns/:id",status="200"} 1`,
		`http_request_duration_seconds_count{method="other",route="none",status="405"} 1`,
		"http_requests_in_flight 0", `lifthouse_store_query_seconds_count{outcome="ok"}`,
	} {
		check.Contains(t, metrics, want)
	}
	for name, text := range map[string]string{"log": log.String(), "errors": answers.String(), "metrics": metrics} {
		check.That(t, !strings.Contains(text, s.token[:20]), "%s: the token is in them:\n%.2000s", name, text)
	}
}

// metrics returns the metrics as text.
func (s *server) metrics() string {
	s.t.Helper()
	admin := httptest.NewServer(s.api.AdminHandler())
	defer admin.Close()
	request := s.Get("").Undocumented()
	request.url = admin.URL + "/metrics"
	return request.Send().RequireStatus(http.StatusOK).Text
}

// TestTheLogHasTheTrace sends traceparent headers. Only valid ones are logged.
func TestTheLogHasTheTrace(t *testing.T) {
	s := newEmptyServer(t)
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for header, want := range map[string]any{
		"":                                  nil,
		"00-" + id + "-00f067aa0ba902b7-01": id,
		"cc-" + id + "-00f067aa0ba902b7-01-what-follows":          id,
		"ff-" + id + "-00f067aa0ba902b7-01":                       nil,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": nil,
		"00-" + strings.ToUpper(id) + "-00f067aa0ba902b7-01":      nil,
		"00-" + id + "'); DROP TABLE events":                      nil,
	} {
		log := logged(t)
		s.Get("/healthz").Header("Traceparent", header).Send()
		requests := lines(t, log.String(), "request")
		must.Equal(t, len(requests), 1, log.String())
		check.Equal(t, requests[0]["traceId"], want, header)
	}
}
