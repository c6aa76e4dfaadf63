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

// send sends a request with headers, given as alternating names and values, and returns the response and its body.
func (s *server) send(method, path string, body io.Reader, headers ...string) (answer, string) {
	s.t.Helper()
	response, text := exchange(s.t, s.request(method, path, body, headers...))
	return response, string(text)
}

// raw is like send, for compressed responses.
func (s *server) raw(method, path string, headers ...string) (answer, string) {
	s.t.Helper()
	response, err := http.DefaultClient.Do(s.request(method, path, http.NoBody, headers...))
	must.OK(s.t, err)
	defer func() { _ = response.Body.Close() }()
	text := must.Get(io.ReadAll(response.Body))(s.t)
	return answer{status: response.StatusCode, Header: response.Header}, string(text)
}

func (s *server) request(method, path string, body io.Reader, headers ...string) *http.Request {
	s.t.Helper()
	request := must.Get(http.NewRequestWithContext(s.t.Context(), method, s.URL+path, body))(s.t)
	request.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

// withToken returns headers with a token of account 1.
func (s *server) withToken(headers ...string) []string {
	return append([]string{"Authorization", "Bearer " + s.token}, headers...)
}

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
	_, plain := s.send(http.MethodGet, path, http.NoBody, s.withToken()...)
	for accepted, open := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		response, body := s.raw(http.MethodGet, path, s.withToken("Accept-Encoding", accepted)...)
		reader, err := open(strings.NewReader(body))
		must.OK(t, err, "%v", accepted)
		text, err := io.ReadAll(reader)
		must.That(t, err == nil, "%s: %v, %q, %d bytes of %d", accepted, err, response.Get("Content-Encoding"),
			len(body), len(plain))
		check.Equal(t, response.Get("Content-Encoding"), accepted, "%s: %v, %q, %d bytes of %d", accepted, err,
			response.Get("Content-Encoding"), len(body), len(plain))
		check.That(t, len(body) <= len(plain)/2, "%s: %v, %q, %d bytes of %d", accepted, err,
			response.Get("Content-Encoding"), len(body), len(plain))
		check.That(t, len(text) >= len(plain)-100, "%s: %v, %q, %d bytes of %d", accepted, err,
			response.Get("Content-Encoding"), len(body), len(plain))
		check.That(t, strings.Contains(strings.Join(response.Values("Vary"), ","), "Accept-Encoding"), "%s: Vary %q",
			accepted, response.Values("Vary"))
	}
	response, body := s.send(http.MethodHead, path, http.NoBody, s.withToken("Accept-Encoding", "gzip")...)
	check.Equal(t, response.status, http.StatusOK, "HEAD: %d, %d bytes", response.status, len(body))
	check.Equal(t, body, "", "HEAD: %d, %d bytes", response.status, len(body))
}

func TestProbes(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	s := newServerWith(t, conn)
	for _, path := range []string{"/healthz", "/readyz"} {
		_, text := s.send(http.MethodGet, path, http.NoBody, "If-None-Match", "*")
		check.Equal(t, text, "{\"status\":\"ok\"}\n", path)
	}
	s.api.StartDraining()
	check.Contains(t, s.wants(http.StatusServiceUnavailable, http.MethodGet, "/readyz", ""), "draining")
	s.wants(http.StatusOK, http.MethodGet, "/v1/campaigns", s.token)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO migrations (name, checksum) VALUES ('9999_newer.sql', '')"))
	newer := newServerOn(t, conn)
	check.Contains(t, newer.wants(http.StatusServiceUnavailable, http.MethodGet, "/readyz", ""), "not_ready")
	newer.wants(http.StatusOK, http.MethodGet, "/healthz", "")
}

func TestLogAndMetricsTellOfRequestsButNotTheirSecrets(t *testing.T) {
	log := logged(t)
	s := newServer(t)
	response, _ := s.send(http.MethodGet, "/v1/campaigns/12", http.NoBody, s.withToken()...)
	s.send(http.MethodGet, "/v1/campaigns/99/results", http.NoBody, s.withToken()...)
	var answers strings.Builder
	s.must(bannerResults)
	for _, path := range []string{
		"/v1/campaigns?access_token=" + s.token, "/v1/campaigns/" + s.token, "/" + s.token,
		"/v1/campaigns?" + s.token + "=1",
		"/v1/campaigns/12/results?filters%5BdateFrom%5D=" + s.token,
	} {
		_, text := s.send(http.MethodGet, path, http.NoBody, s.withToken("X-Request-Id", s.token, "Accept", "*/*")...)
		answers.WriteString(text)
	}
	s.send("MADEUP", "/v1/campaigns", http.NoBody)
	s.Close() // the last lines are written

	requests := lines(t, log.String(), "request")
	must.Equal(t, len(requests), 9, "lines of %s", log)
	first, second := requests[0], requests[1]
	for name, want := range map[string]any{
		"method": "GET", "route": "/v1/campaigns/:id", "status": 200.0, "requestId": response.Get("X-Request-Id"),
		"account": 1.0, "token": 1.0,
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
	request := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodGet, admin.URL+"/metrics",
		http.NoBody))(s.t)
	response, err := http.DefaultClient.Do(request)
	must.OK(s.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must.That(s.t, err == nil, "metrics: %s, %v", response.Status, err)
	must.Equal(s.t, response.StatusCode, http.StatusOK, "metrics: %s, %v", response.Status, err)
	return string(text)
}
