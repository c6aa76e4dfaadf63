package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const operatedEvents = `{"eventId":"1","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"a","event":"view","campaignId":12,"variationId":1}
{"eventId":"2","time":"2026-05-01T12:01:00Z","websiteId":1,"visitor":"a","event":"goal","goalId":3,"value":19.9,"campaignId":12,"variationId":1}
{"eventId":"3","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"b","event":"view","widgetId":7,"variationId":1}
{"eventId":"4","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"c","event":"view","widgetId":7,"experimentId":2,"variationId":1}
`

// TestAllOperationsOfAStartedProgram starts lifthouse and calls each of the 16 operations over HTTP.
func TestAllOperationsOfAStartedProgram(t *testing.T) {
	t.Parallel()
	store := "--store=embedded:" + filepath.Join(t.TempDir(), "data")
	p := start(t, "serve", store)
	do := func(stdin string, args ...string) string {
		t.Helper()
		out, _ := succeed(t, strings.NewReader(stdin), append(args, store)...)
		return strings.TrimSpace(out)
	}
	do("", "apply", "-f", "../testdata/operated.catalog.yaml")
	do(operatedEvents, "import", "-")
	do("", "facts")
	write, read := do("", "token", "create", "--scope", "write"), do("", "token", "create")
	ask := func(method, path, token string) (int, string) {
		t.Helper()
		status, text, err := send(t.Context(), http.DefaultClient, method, p.url+path, token, "")
		must.OK(t, err)
		var compact bytes.Buffer
		must.OK(t, json.Compact(&compact, []byte(text)), "%s %s = %d %s", method, path, status, text)
		return status, compact.String()
	}
	for _, test := range []struct{ method, path, says string }{
		{"GET", "/v1/websites", `[{"id":1,"domain":"shop.example.com"}]`},
		{"GET", "/v1/goals", `[{"id":3,"name":"Purchase","system":false,"default":false}]`},
		{"GET", "/v1/goals/3", `{"id":3,"name":"Purchase","system":false,"default":false}`},
		{"GET", "/v1/targets", `[{"id":5,"name":"Everyone",`},
		{"GET", "/v1/targets/5", `{"id":5,"name":"Everyone",`},
		{"GET", "/v1/campaigns", `"goalsReached":1,"views":1,"value":20,`},
		{"GET", "/v1/campaigns/12", `"variations":[{"id":1,"name":"New","share":100,"order":0}]`},
		{"POST", "/v1/campaigns/12/start", `"active":true`},
		{"GET", "/v1/campaigns?active=true", `"id":12`},
		{"POST", "/v1/campaigns/12/stop", `"active":false`},
		{"GET", "/v1/campaigns?active=true", `[]`},
		{"GET", "/v1/campaigns/12/results", `"totals":{"visitors":1,"views":1,"convertedVisitors":1,"goalsReached":1,"value":19.9,`},
		{"GET", "/v1/widgets", `"name":"Newsletter","clicks":0,"views":2,`},
		{"GET", "/v1/widgets/7", `"experiments":[{"id":2,"name":"Wording",`},
		{"POST", "/v1/widgets/7/start", `"active":true`},
		{"GET", "/v1/widgets?active=true&type=popup", `"id":7`},
		{"POST", "/v1/widgets/7/stop", `"active":false`},
		{"GET", "/v1/widgets/7/results", `"totals":{"visitors":1,`},
		{"GET", "/v1/widgets/7/experiments/2/results", `"compareMetric":"conversionRate"`},
	} {
		status, body := ask(test.method, test.path, write)
		check.That(t, status == http.StatusOK && strings.Contains(body, test.says), "%s %s = %d %.800s, want %s", test.method, test.path, status, body, test.says)
	}
	for path, says := range map[string]string{"/v1/campaigns/12/start": "insufficient_scope", "/v1/widgets/7/stop": "insufficient_scope"} {
		status, body := ask("POST", path, read)
		check.That(t, status == http.StatusForbidden && strings.Contains(body, says), "POST %s with a token to read = %d %s", path, status, body)
	}
	if status, body := ask("GET", "/v1/websites", "lh_nobody"); status != http.StatusUnauthorized {
		t.Errorf("an unknown token gives %d %s", status, body)
	}
	if status, body := ask("GET", "/openapi.json", ""); status != http.StatusOK || !strings.HasPrefix(body, `{"openapi":"3.1.0"`) {
		t.Errorf("/openapi.json = %d %.100s", status, body)
	}

	do("", "token", "revoke", "1")
	if status, _ := ask("GET", "/v1/websites", write); status != http.StatusUnauthorized {
		t.Errorf("a revoked token gives %d", status)
	}
	p.interrupt()
	p = start(t, "serve", store)
	if _, body := ask("GET", "/v1/campaigns/12", read); !strings.Contains(body, `"active":false`) || !strings.Contains(body, `"startDate"`) {
		t.Errorf("after a second start: %s", body)
	}
	check.Contains(t, do("", "export"), "startDate:", "exported")
}
