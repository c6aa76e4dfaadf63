package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/engine/enginetest"
	"lifthouse/engine/facts"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	schematest.Main(m)
}

const twoAccounts = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}]
        campaigns:
          - {id: 12, name: Banner, type: experiment, primaryGoalId: 3, controlShare: 50, active: true, variations: [{id: 1, name: New, share: 100, order: 1}]}
          - {id: 13, name: Button}
          - {id: 14, name: Basket, type: experiment}
  - id: 2
    name: Chain
    websites:
      - id: 2
        domain: a.example.com
        goals: [{id: 9, name: Other}]
        campaigns: [{id: 12, name: Theirs}, {id: 99, name: Foreign}]
      - {id: 3, domain: b.example.com}
`

type server struct {
	t testing.TB
	*httptest.Server
	api       *api.API
	engine    *engine.Engine
	listed    *watch.Statuses
	outbox    *outbox.Outbox
	facts     facts.Shards
	catalogue *catalogue.Catalogue
	writer    *ingest.Writer
	conn      driver.Conn
	token     string // of account 1
}

// newServer serves a new store. change modifies the default options.
func newServer(tb testing.TB, change ...func(*api.Options)) *server {
	tb.Helper()
	s := newEmptyServer(tb, change...)
	s.apply(twoAccounts)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	return s
}

// newEmptyServer serves a store without accounts.
func newEmptyServer(tb testing.TB, change ...func(*api.Options)) *server {
	tb.Helper()
	return newServerOn(tb, schematest.OpenMigrated(tb), change...)
}

// newServerOn serves an existing store.
func newServerOn(tb testing.TB, conn driver.Conn, change ...func(*api.Options)) *server {
	tb.Helper()
	c := must.Get(catalogue.Open(tb.Context(), conn))(tb)
	options := api.DefaultOptions
	options.AuthFailures = 0 // tests present many
	for _, set := range change {
		set(&options)
	}
	e, w, shards := enginetest.OpenWithFacts(tb, conn, c)
	s := &server{t: tb, engine: e, listed: watch.NewStatuses(e, c), outbox: outbox.New(conn), facts: shards, catalogue: c, writer: w, conn: conn}
	s.api = api.New(api.Parts{
		Engine: e, Catalogue: c, Statuses: s.listed, Outbox: s.outbox,
		Collector: ingest.NewCollector(tb.Context(), w, options.WaitingEvents), Journal: ingest.NewJournal(conn),
	}, options)
	s.api.ExportFacts(shards)
	s.Server = httptest.NewServer(s.api)
	tb.Cleanup(s.Close)
	return s
}

func (s *server) newToken(account, website int64, scope catalogue.Scope) string {
	s.t.Helper()
	secret, _, err := s.catalogue.CreateToken(s.t.Context(), catalogue.Token{AccountID: account, WebsiteID: website, Scopes: []catalogue.Scope{scope}})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// answer is a response without its body.
type answer struct {
	status int
	http.Header
}

// do sends a request and returns the response, and its body as JSON and as
// text.
func (s *server) do(method, path, token string) (answer, map[string]any, string) {
	s.t.Helper()
	return s.with(method, path, token, nil)
}

// with is like do, with additional headers.
func (s *server) with(method, path, token string, header http.Header) (answer, map[string]any, string) {
	s.t.Helper()
	request := must.Get(http.NewRequestWithContext(s.t.Context(), method, s.URL+path, http.NoBody))(s.t)
	if header != nil {
		request.Header = header
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, text := exchange(s.t, request)
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	return response, body, string(text)
}

func TestRefusals(t *testing.T) {
	s := newServer(t)
	chain, ingests := s.newToken(2, 0, catalogue.ScopeRead), s.newToken(1, 1, catalogue.ScopeIngest)
	for _, test := range []struct {
		name, method, path, token string
		status                    int
		code                      string
		says                      string // in the body
	}{
		{"no token", "GET", "/v1/campaigns", "", 401, "unauthenticated", ""},
		{"no token before bad parameters", "GET", "/v1/campaigns/x?y=1", "", 401, "unauthenticated", ""},
		{"wrong token", "GET", "/v1/campaigns", "lh_wrong", 401, "invalid_token", ""},
		{"ingest token reads nothing", "GET", "/v1/campaigns", ingests, 403, "insufficient_scope", ""},
		{"foreign campaign", "GET", "/v1/campaigns/99", s.token, 404, "not_found", "campaign 99 not found"},
		{"foreign results", "GET", "/v1/campaigns/99/results", s.token, 404, "not_found", "campaign 99 not found"},
		{"foreign website", "GET", "/v1/campaigns?websiteId=2", s.token, 404, "not_found", "website 2 not found"},
		{"foreign website of a campaign", "GET", "/v1/campaigns/12?websiteId=2", s.token, 404, "not_found", "website 2 not found"},
		{"absent campaign", "GET", "/v1/campaigns/5/results", s.token, 404, "not_found", ""},
		{"id beyond int64", "GET", "/v1/campaigns/99999999999999999999/results", s.token, 404, "not_found", ""},
		{"id 0", "GET", "/v1/campaigns/0", s.token, 404, "not_found", "campaign not found"},
		{"encoded slash", "GET", "/v1/campaigns/12%2Fresults", s.token, 400, "invalid_parameter", ""},
		{"goal 0", "GET", "/v1/campaigns/12/results?goal=0", s.token, 400, "unknown_goal", ""},
		{"no id", "GET", "/v1/campaigns/x", s.token, 400, "invalid_parameter", `{"in":"path","name":"id","value":"x"`},
		{"several faults, path and query", "GET", "/v1/campaigns/x/results?goal=y", s.token, 400, "invalid_parameter", `{"in":"query","name":"goal","value":"y"`},
		{"bad parameters before absent campaigns", "GET", "/v1/campaigns/5/results?foo=1", s.token, 400, "invalid_parameter", "foo"},
		{"unknown filter", "GET", "/v1/campaigns/12/results?filters%5Bcolour%5D=red&filters%5BdateFrom%5D=tomorrow&dimension=size", s.token, 400, "invalid_parameter", "filters[colour]"},
		{"foreign goal", "GET", "/v1/campaigns/12/results?goal=9", s.token, 400, "unknown_goal", ""},
		{"list limit", "GET", "/v1/campaigns?limit=501&offset=-1&active=yes&type=none", s.token, 400, "invalid_parameter", "must be an integer from 1 to 500"},
		{"list limit with a sign", "GET", "/v1/campaigns?limit=%2B5&offset=-0", s.token, 400, "invalid_parameter", `"name":"limit","value":"+5","detail":"must be an integer from 1 to 500"`},
		{"several websites", "GET", "/v1/campaigns", chain, 400, "website_required", "2, 3"},
		{"method", "POST", "/v1/campaigns/12", s.token, 405, "method_not_allowed", "GET, HEAD"},
		{"nowhere", "GET", "/v1/nothing", s.token, 404, "not_found", ""},
		{"trailing slash", "GET", "/v1/campaigns/", s.token, 404, "not_found", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, body, text := s.do(test.method, test.path, test.token)
			if response.status != test.status || body["code"] != test.code || !strings.Contains(text, test.says) {
				t.Errorf("%s %s = %d %s\nwant %d %s, saying %q", test.method, test.path, response.status, text, test.status, test.code, test.says)
			}
			if got := response.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type = %q", got)
			}
			if body["requestId"] != response.Get("X-Request-Id") || body["status"] != float64(test.status) || body["title"] == "" {
				t.Errorf("problem = %s", text)
			}
			if challenge := response.Get("WWW-Authenticate"); (challenge != "") != (test.status == 401 || test.status == 403) {
				t.Errorf("WWW-Authenticate = %q", challenge)
			}
		})
	}
	_, body, _ := s.do("GET", "/v1/campaigns/12/results?filters%5Bcolour%5D=red&filters%5BdateFrom%5D=tomorrow&dimension=size", s.token)
	if faults, _ := body["errors"].([]any); len(faults) != 3 {
		t.Errorf("faults = %v, want all three", body["errors"])
	}
}

func TestCampaignList(t *testing.T) {
	s := newServer(t)
	ids := func(query string) string {
		response, _, text := s.do("GET", "/v1/campaigns"+query, s.token)
		var list []struct {
			ID         int64 `json:"id"`
			Variations []any `json:"variations"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil || response.status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, response.status, text)
		}
		var got []string
		for _, c := range list {
			got = append(got, string(rune('0'+c.ID-10)))
			if c.Variations != nil {
				t.Error("the list has variations")
			}
		}
		return strings.Join(got, " ") + " of " + response.Get("X-Total-Count")
	}
	for query, want := range map[string]string{
		"":                          "2 3 4 of 3",
		"?websiteId=1":              "2 3 4 of 3",
		"?limit=1&offset=1":         "3 of 3",
		"?offset=7":                 " of 3",
		"?active=true":              "2 of 1",
		"?active=false&type=":       "",
		"?type=experiment":          "2 4 of 2",
		"?type=experiment&limit=1":  "2 of 2",
		"?type=templateExperiment":  " of 0",
		"?offset=99999999&limit=10": " of 3",
	} {
		if want == "" {
			if response, _, _ := s.do("GET", "/v1/campaigns"+query, s.token); response.status != http.StatusBadRequest {
				t.Errorf("%s = %d, want 400", query, response.status)
			}
			continue
		}
		if got := ids(query); got != want {
			t.Errorf("%s = %q, want %q", query, got, want)
		}
	}
	response, _, _ := s.do("GET", "/v1/campaigns?limit=1&offset=1", s.token)
	for _, rel := range []string{`</v1/campaigns?limit=1&offset=0>; rel="first"`, `</v1/campaigns?limit=1&offset=0>; rel="prev"`, `</v1/campaigns?limit=1&offset=2>; rel="next"`, `</v1/campaigns?limit=1&offset=2>; rel="last"`, `rel="last"`} {
		if !strings.Contains(response.Get("Link"), rel) {
			t.Errorf("Link = %s, lacks %s", response.Get("Link"), rel)
		}
	}
}

// TestLinksLeadToPages checks that the links of a page lead to pages with resources. The
// list has three campaigns.
func TestLinksLeadToPages(t *testing.T) {
	s := newServer(t)
	for _, test := range []struct{ query, want string }{
		{"", "first 0, last 0"},
		{"limit=2", "first 0, next 2, last 2"},
		{"limit=1&offset=1", "first 0, prev 0, next 2, last 2"},
		{"limit=2&offset=1", "first 0, prev 0, last 1"},
		{"limit=500&offset=400", "first 0, prev 0, last 0"},
		{"limit=2&offset=1000000", "first 0, prev 2, last 2"},
		{"limit=2&offset=1000001", "first 0, prev 1, last 1"},
		{"limit=2&offset=4", "first 0, prev 2, last 2"},
	} {
		t.Run(test.query, func(t *testing.T) {
			response, _, _ := s.do("GET", "/v1/campaigns?"+test.query, s.token)
			var got []string
			for _, link := range regexp.MustCompile(`offset=(\d+)>; rel="(\w+)"`).FindAllStringSubmatch(response.Get("Link"), -1) {
				got = append(got, link[2]+" "+link[1])
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("links %s, want %s", got, test.want)
			}
		})
	}
}

// at returns an event of campaign 12, minutes after the start.
func at(minute int, visitor string, variation int64, kind schema.Kind, value int64) schema.Event {
	e := schema.Event{
		EventID: schema.HashID(visitor + string(rune(minute)) + string(kind)), Time: time.Date(2026, 5, 1, 0, minute, 0, 0, time.UTC),
		WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, VariationID: variation, VisitorID: schema.HashID(visitor), Kind: kind,
	}
	if kind == schema.KindGoal {
		e.GoalID, e.Value = 3, value
	}
	return e
}

func TestCampaignWithItsCountersAndVariations(t *testing.T) {
	s := newServer(t)
	events := []schema.Event{
		at(0, "a", 0, schema.KindView, 0), at(1, "b", 1, schema.KindView, 0), at(2, "b", 1, schema.KindView, 0),
		at(3, "b", 1, schema.KindGoal, 125_000), at(4, "c", 1, schema.KindGoal, 50_000),
	}
	s.fold(events...)
	_, body, text := s.do("GET", "/v1/campaigns/12", s.token)
	for field, want := range map[string]any{
		"id": 12.0, "name": "Banner", "type": "experiment", "views": 3.0, "goalsReached": 2.0, "value": 18.0, "active": true,
		"controlShare": 50.0, "trafficAllocation": 10.0, "targetMode": "live", "primaryGoalId": 3.0, "significanceLevel": 90.0,
		"methodology": "frequentist", "power": 80.0, "mde": 20.0,
	} {
		if body[field] != want {
			t.Errorf("%s = %v, want %v\n%s", field, body[field], want, text)
		}
	}
	if variations, _ := json.Marshal(body["variations"]); string(variations) != `[{"id":1,"name":"New","order":1,"share":100}]` {
		t.Errorf("variations = %s", variations)
	}
}

func TestResultsOfACampaignWithoutEvents(t *testing.T) {
	s := newServer(t)
	response, body, text := s.do("GET", "/v1/campaigns/13/results?dimension=device", s.token)
	if response.status != http.StatusOK || body["dataThrough"] != nil || body["goal"] != nil {
		t.Errorf("%d %s", response.status, text)
	}
	if list, ok := body["breakdown"].([]any); !ok || len(list) != 0 {
		t.Errorf("breakdown = %v, want an empty list", body["breakdown"])
	}
}

func TestHeadAndRequestID(t *testing.T) {
	s := newServer(t)
	response, _, text := s.do("HEAD", "/v1/campaigns/12", s.token)
	if response.status != http.StatusOK || text != "" || response.Get("X-Request-Id") == "" {
		t.Errorf("HEAD = %d %q", response.status, text)
	}
	for given, kept := range map[string]bool{"abc-1.2_3": true, "a b": false, strings.Repeat("x", 129): false} {
		response, _, _ := s.with("GET", "/v1/campaigns", "", http.Header{"X-Request-Id": {given}})
		if got := response.Get("X-Request-Id"); (got == given) != kept {
			t.Errorf("X-Request-Id %q answered as %q", given, got)
		}
	}
}

// TestTokenOfOneWebsite checks that a token of one website cannot read others.
func TestTokenOfOneWebsite(t *testing.T) {
	s := newServer(t)
	bound := s.newToken(2, 3, catalogue.ScopeRead)
	for path, want := range map[string]int{
		"/v1/campaigns": 200, "/v1/campaigns?websiteId=2": 404, "/v1/campaigns/99": 404, "/v1/campaigns/99/results": 404,
	} {
		if response, _, text := s.do("GET", path, bound); response.status != want {
			t.Errorf("%s = %d %s, want %d", path, response.status, text, want)
		}
	}
}

func TestRevokedTokenIsRefused(t *testing.T) {
	s := newServer(t)
	must.Get(s.catalogue.RevokeToken(t.Context(), 1, 1))(t)
	if response, _, _ := s.do("GET", "/v1/campaigns", s.token); response.status != http.StatusUnauthorized {
		t.Errorf("a revoked token gives %d", response.status)
	}
}
