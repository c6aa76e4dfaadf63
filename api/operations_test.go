package api_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// twoSites declares an account with two websites, and another account with the same ids.
//
//go:embed testdata/shop.yaml
var twoSites string

// operations are the 16 operations of the contract; %d is an id.
var operations = []struct {
	method, path string
	list         bool
	id           int64 // that exists
	kind         string
}{
	{"POST", "/v1/campaigns/%d/start", false, 12, "campaign"},
	{"POST", "/v1/campaigns/%d/stop", false, 12, "campaign"},
	{"POST", "/v1/widgets/%d/start", false, 7, "widget"},
	{"POST", "/v1/widgets/%d/stop", false, 7, "widget"},
	{"GET", "/v1/campaigns", true, 0, "campaign"},
	{"GET", "/v1/campaigns/%d", false, 12, "campaign"},
	{"GET", "/v1/campaigns/%d/results", false, 12, "campaign"},
	{"GET", "/v1/widgets", true, 0, "widget"},
	{"GET", "/v1/widgets/%d", false, 7, "widget"},
	{"GET", "/v1/widgets/%d/results", false, 7, "widget"},
	{"GET", "/v1/widgets/%d/experiments/2/results", false, 7, "widget"},
	{"GET", "/v1/goals", true, 0, "goal"},
	{"GET", "/v1/goals/%d", false, 3, "goal"},
	{"GET", "/v1/targets", true, 0, "target"},
	{"GET", "/v1/targets/%d", false, 5, "target"},
	{"GET", "/v1/websites", true, 0, "website"},
}

func newTwoSites(t *testing.T, change ...func(*api.Options)) (s *server, ingests string) {
	t.Helper()
	s = newEmptyServer(t, change...)
	s.apply(twoSites)
	s.token = s.newToken(1, 0, catalogue.ScopeWrite)
	return s, s.newToken(1, 1, catalogue.ScopeIngest)
}

// TestEveryOperation checks the responses of each operation, and the order of errors: 401, 403, 400, 404.
func TestEveryOperation(t *testing.T) {
	s, ingests := newTwoSites(t)
	reader := s.newToken(1, 0, catalogue.ScopeRead)
	for _, o := range operations {
		path := func(id any) string {
			if o.list {
				return o.path
			}
			return strings.Replace(o.path, "%d", fmt.Sprint(id), 1)
		}
		type exchange struct {
			name, path, token string
			status            int
			code, says        string
		}
		right := path(o.id)
		if o.list && o.kind != "website" {
			right += "?websiteId=1"
		}
		tests := []exchange{
			{name: "right", path: right, token: s.token, status: 200, code: "", says: ""},
			{name: "no token before everything else", path: path("x") + "?colour=red&websiteId=9", token: "", status: 401, code: "unauthenticated", says: ""},
			{name: "unknown token", path: path(o.id), token: "lh_unknown", status: 401, code: "invalid_token", says: ""},
			{name: "scope before parameters", path: path("x") + "?colour=red&websiteId=9", token: ingests, status: 403, code: "insufficient_scope", says: ""},
			{name: "parameters before what is absent", path: path(98) + "?colour=red", token: s.token, status: 400, code: "invalid_parameter", says: `"in":"query","name":"colour","value":"red"`},
			{name: "a semicolon", path: path(o.id) + "?a=1;b=2", token: s.token, status: 400, code: "invalid_parameter", says: ""},
		}
		if o.kind != "website" {
			tests = append(
				tests,
				exchange{name: "misspelt", path: path(o.id) + "?websiteid=1", token: s.token, status: 400, code: "invalid_parameter", says: "did you mean websiteId?"},
				exchange{name: "website is not a number", path: path(o.id) + "?websiteId=one", token: s.token, status: 400, code: "invalid_parameter", says: "digits only"},
				exchange{name: "website twice", path: path(o.id) + "?websiteId=1&websiteId=1", token: s.token, status: 400, code: "invalid_parameter", says: "must be given once"},
				exchange{name: "foreign website", path: path(o.id) + "?websiteId=9", token: s.token, status: 404, code: "not_found", says: "website 9 not found"},
				exchange{name: "absent website", path: path(o.id) + "?websiteId=77", token: s.token, status: 404, code: "not_found", says: "website 77 not found"},
				exchange{name: "website beyond 64 bits", path: path(o.id) + "?websiteId=99999999999999999999", token: s.token, status: 404, code: "not_found", says: "website not found"},
			)
		} else {
			tests = append(tests, exchange{name: "no parameters at all", path: path(0) + "?limit=1", token: s.token, status: 400, code: "invalid_parameter", says: "this operation has no parameters"})
		}
		if !o.list {
			tests = append(
				tests,
				exchange{name: "id is not a number", path: path("1x"), token: s.token, status: 400, code: "invalid_parameter", says: `"in":"path","name":"id","value":"1x"`},
				exchange{name: "id and parameter at once", path: path("x") + "?colour=red", token: s.token, status: 400, code: "invalid_parameter", says: `"name":"colour"`},
				exchange{name: "absent", path: path(98), token: s.token, status: 404, code: "not_found", says: o.kind + " 98 not found"},
				exchange{name: "another account's", path: path(99), token: s.token, status: 404, code: "not_found", says: o.kind + " 99 not found"},
				exchange{name: "beyond 64 bits", path: path("99999999999999999999"), token: s.token, status: 404, code: "not_found", says: o.kind + " not found"},
				exchange{name: "0", path: path(0), token: s.token, status: 404, code: "not_found", says: ""},
				exchange{name: "on another website", path: path(o.id) + "?websiteId=2", token: s.token, status: 404, code: "not_found", says: o.kind + " "},
			)
		}
		if o.method == "POST" {
			tests = append(tests, exchange{name: "read is not write", path: path("x") + "?colour=red", token: reader, status: 403, code: "insufficient_scope", says: "lacks the scope write"})
		}
		if strings.HasSuffix(o.path, "/results") {
			tests = append(
				tests,
				exchange{name: "goal before website", path: path(o.id) + "?websiteId=9&goal=77", token: s.token, status: 400, code: "unknown_goal", says: ""},
				exchange{name: "goal before what is absent", path: path(98) + "?goal=99", token: s.token, status: 400, code: "unknown_goal", says: ""},
				exchange{name: "goal of another website", path: path(98) + "?websiteId=1&goal=30", token: s.token, status: 400, code: "unknown_goal", says: ""},
				exchange{name: "goal known, website not", path: path(o.id) + "?websiteId=9&goal=3", token: s.token, status: 404, code: "not_found", says: "website 9 not found"},
			)
		}
		if o.list && o.kind != "website" {
			tests = append(tests, exchange{name: "which website?", path: path(0), token: s.token, status: 400, code: "website_required", says: "1, 2"})
		}
		for _, test := range tests {
			t.Run(o.method+" "+o.path+"/"+test.name, func(t *testing.T) {
				response, body, text := s.with(o.method, test.path, test.token, nil)
				code, _ := body["code"].(string)
				check.That(t, response.status == test.status && code == test.code && strings.Contains(text, test.says),
					"%s = %d %s\nwant %d %s saying %q", test.path, response.status, text, test.status, test.code, test.says)
				challenge := response.Get("WWW-Authenticate")
				want := map[int]string{401: `Bearer realm="lifthouse"`, 403: `, error="insufficient_scope", scope="`}[test.status]
				check.That(t, strings.Contains(challenge, want) && (want != "" || challenge == ""), "WWW-Authenticate: %s", challenge)
			})
		}
	}
}

// TestDefaultsOfTheLists has more than one page of each list.
func TestDefaultsOfTheLists(t *testing.T) {
	s := newEmptyServer(t)
	site := catalogue.Website{ID: 1, Domain: "shop.example.com"}
	for id := int64(1); id <= 501; id++ {
		site.Goals = append(site.Goals, catalogue.Goal{ID: id, WebsiteID: 1, Name: "G"})
		site.Targets = append(site.Targets, catalogue.Target{ID: id, WebsiteID: 1, Name: "T"})
		site.Widgets = append(site.Widgets, catalogue.Widget{ID: id, WebsiteID: 1, Name: "W", Type: "bar"})
		site.Campaigns = append(site.Campaigns, catalogue.Campaign{
			ID: id, WebsiteID: 1, Name: "C", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist, SignificanceLevel: 90, Power: 80, MDE: 20,
		})
	}
	must.Get(s.catalogue.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "A", Websites: []catalogue.Website{site}}}}, false))(t)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	for path, want := range map[string]int{
		"campaigns": 100, "widgets": 100, "goals": 500, "targets": 500, // one website: it need not be named
		"campaigns?limit=500": 500, "widgets?limit=500": 500, "goals?limit=1000": 501, "targets?limit=1000": 501,
	} {
		_, _, text := s.do("GET", "/v1/"+path, s.token)
		var list []any
		err := json.Unmarshal([]byte(text), &list)
		check.That(t, err == nil && len(list) == want, "%s has %d, %v, want %d", path, len(list), err, want)
	}
}
