package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"

	"github.com/klauspost/compress/zstd"
)

// send sends a request with headers, given as alternating names and values, and
// returns the response and its body.
func (s *server) send(method, path string, body io.Reader, headers ...string) (answer, string) {
	s.t.Helper()
	response, text := exchange(s.t, s.request(method, path, body, headers...))
	return response, string(text)
}

// raw is like send, for compressed responses.
func (s *server) raw(method, path string, headers ...string) (answer, string) {
	s.t.Helper()
	response := must.Get(http.DefaultClient.Do(s.request(method, path, http.NoBody, headers...)))(s.t)
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
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry["msg"] == message {
			found = append(found, entry)
		}
	}
	return found
}

func TestOptionsNamesTheMethodsOfEveryPath(t *testing.T) {
	s := newServer(t)
	for path, want := range map[string]int{"/v1/campaigns": 204, "/v1/campaigns/12/results": 204, "/healthz": 204, "/nowhere": 404} {
		response, _ := s.send(http.MethodOptions, path, http.NoBody)
		if response.status != want || want == 204 && response.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("OPTIONS %s = %d, Allow %q, want %d", path, response.status, response.Get("Allow"), want)
		}
		if response.Get("Access-Control-Allow-Origin") != "" {
			t.Error("CORS is off and yet allows")
		}
	}
}

func TestPagesOfConfiguredOriginsMayReadAnswers(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.Origins = []string{"https://dash.example.com"} })
	for origin, want := range map[string]string{"https://dash.example.com": "https://dash.example.com", "https://evil.example.com": "", "": "", "null": ""} {
		response, _ := s.send(http.MethodGet, "/v1/campaigns", http.NoBody, s.withToken("Origin", origin)...)
		if got := response.Get("Access-Control-Allow-Origin"); got != want || response.status != http.StatusOK || !strings.Contains(strings.Join(response.Values("Vary"), ","), "Origin") {
			t.Errorf("origin %q: %d, allowed %q, Vary %q", origin, response.status, got, response.Values("Vary"))
		}
		response, _ = s.send(http.MethodOptions, "/v1/campaigns", http.NoBody, "Origin", origin, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
		if may := strings.Contains(response.Get("Access-Control-Allow-Headers"), "Authorization"); may != (want != "") || response.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("origin %q: asked before, %v", origin, response.Header)
		}
	}
	response, _ := s.send(http.MethodGet, "/v1/campaigns", http.NoBody, "Origin", "https://dash.example.com")
	if response.status != http.StatusUnauthorized || response.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("a page cannot read why it was refused: %d %v", response.status, response.Header)
	}
	s = newServer(t, func(o *api.Options) { o.Origins = []string{"*"} })
	response, _ = s.send(http.MethodGet, "/v1/campaigns", http.NoBody, s.withToken("Origin", "https://any.example.com")...)
	if got := response.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("any origin: allowed %q", got)
	}
}

func TestAcceptIsWeighed(t *testing.T) {
	s := newServer(t)
	const results, list = "/v1/campaigns/12/results", "/v1/campaigns"
	for _, test := range []struct{ path, accept, want string }{
		{results, "text/csv;q=0.5, application/json;q=0.9", "application/json; charset=utf-8"},
		{results, "text/csv;q=0.9, application/json;q=0.5", "text/csv; charset=utf-8"},
		{results, "application/*", "application/json; charset=utf-8"},
		{results, "*/*, application/json;q=0", "text/csv; charset=utf-8"},
		{results, "application/*;q=0.1, TEXT/CSV", "text/csv; charset=utf-8"},
		{results, "text/html, */*;q=0.1", "application/json; charset=utf-8"},
		{list, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "application/json; charset=utf-8"},
		{list, "", "application/json; charset=utf-8"},
		{list, "nonsense, application/json", "application/json; charset=utf-8"},
		{list, "text/csv", ""},
		{list, "*/*;q=0", ""},
		{results, "application/json;q=2", ""},
		{results, "text/*", "text/csv; charset=utf-8"},
		{results, "image/avif, image/*;q=0.8", "image/svg+xml; charset=utf-8"},
		{results, "image/png", ""},
		{results, "application/sql", ""},
	} {
		response, text := s.send(http.MethodGet, test.path, http.NoBody, s.withToken("Accept", test.accept)...)
		if test.want == "" && (response.status != http.StatusNotAcceptable || !strings.Contains(text, "application/json")) {
			t.Errorf("%s: %d %s, want 406 and what there is", test.accept, response.status, text)
		}
		if test.want != "" && response.Get("Content-Type") != test.want {
			t.Errorf("%s: %d %s, want %s", test.accept, response.status, response.Get("Content-Type"), test.want)
		}
	}
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
		if err != nil {
			t.Fatalf("%s: %v", accepted, err)
		}
		text, err := io.ReadAll(reader)
		if err != nil || response.Get("Content-Encoding") != accepted || len(body) > len(plain)/2 || len(text) < len(plain)-100 {
			t.Errorf("%s: %v, %q, %d bytes of %d", accepted, err, response.Get("Content-Encoding"), len(body), len(plain))
		}
		if !strings.Contains(strings.Join(response.Values("Vary"), ","), "Accept-Encoding") {
			t.Errorf("%s: Vary %q", accepted, response.Values("Vary"))
		}
	}
	if response, body := s.send(http.MethodHead, path, http.NoBody, s.withToken("Accept-Encoding", "gzip")...); response.status != http.StatusOK || body != "" {
		t.Errorf("HEAD: %d, %d bytes", response.status, len(body))
	}
}

func TestWhatIsTooLargeIsAProblem(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.MaxBody = 100 })
	for _, test := range []struct {
		name, path string
		body       io.Reader
		headers    []string
		status     int
		code       string
	}{
		{"query", "/v1/campaigns?" + strings.Repeat("a=1&", 10_000), http.NoBody, nil, 414, "uri_too_long"},
		{"path", "/v1/campaigns/" + strings.Repeat("1", 2000), http.NoBody, nil, 414, "uri_too_long"},
		{"headers", "/v1/campaigns", http.NoBody, []string{"X-Large", strings.Repeat("a", 40_000)}, 431, "headers_too_large"},
		{"body", "/v1/campaigns", strings.NewReader(strings.Repeat("a", 101)), nil, 413, "body_too_large"},
	} {
		response, text := s.send(http.MethodGet, test.path, test.body, s.withToken(test.headers...)...)
		if response.status != test.status || !strings.Contains(text, `"code":"`+test.code+`"`) || len(text) > 2000 {
			t.Errorf("%s: %d %.200s, want %d %s", test.name, response.status, text, test.status, test.code)
		}
	}
}

func TestProbes(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	s := newServerOn(t, conn)
	s.apply(twoAccounts)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	for _, path := range []string{"/healthz", "/readyz"} {
		if response, text := s.send(http.MethodGet, path, http.NoBody, "If-None-Match", "*"); response.status != http.StatusOK || text != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s = %d %s", path, response.status, text)
		}
	}
	s.api.StartDraining()
	if response, text := s.send(http.MethodGet, "/readyz", http.NoBody); response.status != http.StatusServiceUnavailable || !strings.Contains(text, "draining") {
		t.Errorf("while draining: %d %s", response.status, text)
	}
	if response, _ := s.send(http.MethodGet, "/v1/campaigns", http.NoBody, s.withToken()...); response.status != http.StatusOK {
		t.Errorf("while draining requests are answered with %d, want 200", response.status)
	}
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO migrations (name, checksum) VALUES ('9999_newer.sql', '')"))
	newer := newServerOn(t, conn)
	if response, text := newer.send(http.MethodGet, "/readyz", http.NoBody); response.status != http.StatusServiceUnavailable || !strings.Contains(text, "not_ready") {
		t.Errorf("with another release's tables: %d %s", response.status, text)
	}
	if response, _ := newer.send(http.MethodGet, "/healthz", http.NoBody); response.status != http.StatusOK {
		t.Errorf("the process is well, and yet %d", response.status)
	}
}

func TestLogAndMetricsTellOfRequestsButNotTheirSecrets(t *testing.T) {
	log := logged(t)
	s := newServer(t)
	response, _ := s.send(http.MethodGet, "/v1/campaigns/12", http.NoBody, s.withToken()...)
	s.send(http.MethodGet, "/v1/campaigns/99/results", http.NoBody, s.withToken()...)
	var answers strings.Builder
	s.must(bannerResults)
	for _, path := range []string{
		"/v1/campaigns?access_token=" + s.token, "/v1/campaigns/" + s.token, "/" + s.token, "/v1/campaigns?" + s.token + "=1",
		"/v1/campaigns/12/results?filters%5BdateFrom%5D=" + s.token,
	} {
		_, text := s.send(http.MethodGet, path, http.NoBody, s.withToken("X-Request-Id", s.token, "Accept", "*/*")...)
		answers.WriteString(text)
	}
	s.send("MADEUP", "/v1/campaigns", http.NoBody)
	s.Close() // the last lines are written

	requests := lines(t, log.String(), "request")
	if len(requests) != 9 {
		t.Fatalf("%d lines, want 9:\n%s", len(requests), log)
	}
	first, second := requests[0], requests[1]
	for name, want := range map[string]any{
		"method": "GET", "route": "/v1/campaigns/:id", "status": 200.0, "requestId": response.Get("X-Request-Id"), "account": 1.0, "token": 1.0,
	} {
		if first[name] != want {
			t.Errorf("%s = %v, want %v", name, first[name], want)
		}
	}
	if bytes, _ := first["bytes"].(float64); bytes < 100 || first["milliseconds"] == nil {
		t.Errorf("bytes %v, milliseconds %v", first["bytes"], first["milliseconds"])
	}
	if second["status"] != 404.0 || second["route"] != "/v1/campaigns/:id/results" {
		t.Errorf("second line: %v", second)
	}
	metrics := s.metrics()
	for _, want := range []string{
		`http_request_duration_seconds_count{method="GET",route="/v1/campaigns/:id",status="200"} 1`,
		`http_request_duration_seconds_count{method="other",route="none",status="405"} 1`,
		"http_requests_in_flight 0", `lifthouse_store_query_seconds_count{outcome="ok"}`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for name, text := range map[string]string{"log": log.String(), "errors": answers.String(), "metrics": metrics} {
		if strings.Contains(text, s.token[:20]) {
			t.Errorf("%s: the token is in them:\n%.2000s", name, text)
		}
	}
}

// metrics returns the metrics as text.
func (s *server) metrics() string {
	s.t.Helper()
	admin := httptest.NewServer(s.api.AdminHandler())
	defer admin.Close()
	request := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodGet, admin.URL+"/metrics", http.NoBody))(s.t)
	response := must.Get(http.DefaultClient.Do(request))(s.t)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("metrics: %s, %v", response.Status, err)
	}
	return string(text)
}

func TestMetricsAreNotWhereClientsAre(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if response, _ := s.send(http.MethodGet, path, http.NoBody, s.withToken()...); response.status != http.StatusNotFound {
			t.Errorf("%s = %d, want 404", path, response.status)
		}
	}
}

func TestExpiredTokenIsRefused(t *testing.T) {
	s := newServer(t)
	soon := s.catalogue.Snapshot().AccountTokens(1)[0].CreatedAt
	secret, _, err := s.catalogue.CreateToken(t.Context(), catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}, ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	if response, _, text := s.do("GET", "/v1/campaigns", secret); response.status != http.StatusUnauthorized || !strings.Contains(text, "expired") {
		t.Errorf("an expired token gives %d %s", response.status, text)
	}
}
