package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"lifthouse/api"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestRoutesAndDocumentAreTheSame(t *testing.T) {
	c := must.Get(theContract())(t)
	parameter := regexp.MustCompile(`:(\w+)`)
	var routed, heads, documented []string
	for _, route := range api.Routes() {
		path := parameter.ReplaceAllString(route.Path, "{$1}")
		if path == "/mcp" || path == "/in/{key}/*path" { // its protocol describes it; what follows a key is ignored
			continue
		}
		if strings.HasPrefix(path, "/guides/") {
			path = "/guides/{file}"
		}
		for _, folder := range []string{"/opinion/", "/dashboard/"} {
			if strings.HasPrefix(path, folder) {
				path = folder + "{part}"
			}
		}
		if route.Method == http.MethodHead { // wherever GET is; not in the document
			heads = append(heads, "GET "+path)
			continue
		}
		routed = append(routed, route.Method+" "+path)
	}
	for _, path := range c.paths {
		for method := range path.item.Operations() {
			if method != http.MethodOptions { // of every path; no route of its own
				documented = append(documented, method+" "+path.template)
			}
		}
		check.That(t, path.item.Options != nil, "%s does not document OPTIONS", path.template)
	}
	for _, route := range routed {
		check.That(t, slices.Contains(documented, route), "%s is routed and not documented", route)
		check.That(t, !strings.HasPrefix(route, "GET ") || slices.Contains(heads, route), "%s has no HEAD", route)
	}
	for _, route := range documented {
		check.That(t, slices.Contains(routed, route), "%s is documented and not routed", route)
	}
	if n := len(slices.DeleteFunc(documented,
		func(route string) bool { return !strings.Contains(route, " /v1/") })); n != 16+6+5+3+1+2+3+3+7+2+2 {
		t.Errorf("%d operations under /v1, want the contract's 16, 3 for pickers of filters, 3 for visitors, 6 for "+
			"worth, plans, undeclared and sources, 1 for all results, 2 for tables, 3 for questions, 3 for "+
			"the log, 7 for readouts, 2 for rates, 2 for pictures", n)
	}
}

func TestServedDocuments(t *testing.T) {
	s := newEmptyServer(t)
	response := s.Get("/openapi.yaml").Send()
	check.Equal(t, string(must.Get(os.ReadFile(documentFile))(t)), response.Text, "/openapi.yaml")
	again := s.Get("/openapi.yaml").Header("If-None-Match", response.Header.Get("ETag")).Send()
	check.Equal(t, again.Status, http.StatusNotModified, "If-None-Match")

	text := s.Get("/openapi.json").Send().Text
	fromJSON := must.Get(readContract([]byte(text)))(t)
	fromYAML := must.Get(theContract())(t)
	was, is := marshalled(t, fromYAML.doc), marshalled(t, fromJSON.doc)
	check.That(t, was == is, "/openapi.json says something else than /openapi.yaml")
	check.That(t, json.Valid([]byte(text)), "/openapi.json has its paths in another order")
	check.That(t, strings.Index(text, `"/v1/campaigns"`) <= strings.Index(text, `"/v1/websites"`),
		"/openapi.json has its paths in another order")
}

func marshalled(t *testing.T, doc *openapi3.T) string {
	t.Helper()
	text := must.Get(json.Marshal(doc))(t)
	return string(text)
}

// TestTheContractCanRefuse validates wrong exchanges.
func TestTheContractCanRefuse(t *testing.T) {
	c := must.Get(theContract())(t)
	const goal = `{"id":3,"name":"Purchase","system":false,"default":true}`
	problem := `{"type":"about:blank","title":"x","status":404,"instance":"/","code":"not_found","requestId":"x"}`
	for _, test := range []struct {
		name, path string
		status     int
		kind, body string
		header     http.Header
		wrong      bool
	}{
		{"right", "/v1/goals/3", 200, "application/json", goal, nil, false},
		{"right problem", "/v1/goals/9", 404, "application/problem+json", problem, nil, false},
		{"field of another type", "/v1/goals/3", 200, "application/json", strings.Replace(goal, "3", `"3"`, 1), nil, true},
		{"field missing", "/v1/goals/3", 200, "application/json", strings.Replace(goal, `"system":false,`, "", 1), nil, true},
		{"field unknown", "/v1/goals/3", 200, "application/json", strings.Replace(goal, "{", `{"colour":"red",`, 1), nil, true},
		{"empty name", "/v1/goals/3", 200, "application/json", strings.Replace(goal, "Purchase", "", 1), nil, true},
		{"wrong domain", "/v1/websites", 200, "application/json", `[{"id":1,"domain":"-a.example"}]`, http.Header{"X-Total-Count": {"1"}}, true},
		{"right domain", "/v1/websites", 200, "application/json", `[{"id":1,"domain":"a.example"}]`, http.Header{"X-Total-Count": {"1"}}, false},
		{"header missing", "/v1/websites", 200, "application/json", `[]`, nil, true},
		{"request wrong and answered", "/v1/goals?limit=0", 200, "application/json", `[]`, http.Header{"X-Total-Count": {"1"}, "Link": {"x"}}, true},
		{"parameter unknown and answered", "/v1/goals/3?x=1", 200, "application/json", goal, nil, true},
		{"status unknown", "/v1/goals/3", 202, "application/json", goal, nil, true},
		{"type unknown", "/v1/goals/3", 200, "text/plain", goal, nil, true},
		{"path unknown and answered", "/v1/goal/3", 200, "application/json", goal, nil, true},
		{"problem without a code", "/v1/goals/9", 404, "application/problem+json", strings.Replace(problem, `"code":"not_found",`, "", 1), nil, true},
	} {
		request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+test.path,
			http.NoBody))(t)
		header := http.Header{"Content-Type": {test.kind}, "X-Request-Id": {"x"}}
		for name, values := range test.header {
			header[name] = values
		}
		err := c.check(request, reply{Status: test.status, Header: header, Text: test.body})
		check.Equal(t, err != nil, test.wrong, "%s: %v", test.name, err)
	}
}
