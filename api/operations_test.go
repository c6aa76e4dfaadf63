package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

// twoSites declares an account with two websites, and another account with the
// same ids.
const twoSites = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase, system: true, action: buy, default: true, value: 0}, {id: 4, name: Signup}]
        targets: [{id: 5, name: Everyone, createDate: 2025-01-02}, {id: 6, name: Nobody}]
        campaigns:
          - {id: 12, name: Banner, type: experiment, primaryGoalId: 3, targetId: 5, controlShare: 50, active: true, startDate: 2025-03-04, description: "Ünder", variations: [{id: 1, name: New, share: 100, order: 1, targetId: 6}, {id: 2, name: Newer, share: 0}]}
          - {id: 13, name: Button}
        widgets:
          - id: 7
            name: Newsletter
            type: popup
            primaryGoalId: 4
            variations: [{id: 1, name: Plain, share: 60}, {id: 9, name: Bold}]
            experiments:
              - {id: 2, name: Wording, primaryMetric: completions, controlShare: 50, active: true, createDate: 2025-01-04, startDate: 2025-01-05, endDate: 2025-01-06, variations: [{id: 1, name: Short, share: 50}]}
              - {id: 3}
          - {id: 8, name: Ribbon, type: bar, active: true}
      - {id: 2, domain: other.example.com, goals: [{id: 30, name: Elsewhere}], campaigns: [{id: 20, name: Elsewhere}]}
  - id: 2
    name: Rival
    websites:
      - {id: 9, domain: rival.example.com, goals: [{id: 99, name: Theirs}], targets: [{id: 99, name: Theirs}], campaigns: [{id: 99, name: Theirs}], widgets: [{id: 99, name: Theirs, type: popup, experiments: [{id: 1}]}]}
`

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

// TestEveryOperation checks the responses of each operation, and the order of
// errors: 401, 403, 400, 404.
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
				if response.status != test.status || code != test.code || !strings.Contains(text, test.says) {
					t.Errorf("%s = %d %s\nwant %d %s saying %q", test.path, response.status, text, test.status, test.code, test.says)
				}
				challenge := response.Get("WWW-Authenticate")
				if want := map[int]string{401: `Bearer realm="lifthouse"`, 403: `, error="insufficient_scope", scope="`}[test.status]; !strings.Contains(challenge, want) || want == "" && challenge != "" {
					t.Errorf("WWW-Authenticate: %s", challenge)
				}
			})
		}
	}
}

func TestListsOfEveryKind(t *testing.T) {
	s, _ := newTwoSites(t)
	for _, test := range []struct{ query, want string }{
		{"/v1/campaigns?websiteId=1", "12 13 of 2"},
		{"/v1/campaigns?websiteId=2", "20 of 1"},
		{"/v1/campaigns?websiteId=1&type=experiment&active=true", "12 of 1"},
		{"/v1/widgets?websiteId=1", "7 8 of 2"},
		{"/v1/widgets?websiteId=1&active=true", "8 of 1"},
		{"/v1/widgets?websiteId=1&active=false", "7 of 1"},
		{"/v1/widgets?websiteId=1&type=bar", "8 of 1"},
		{"/v1/widgets?websiteId=1&type=embedded", "of 0"},
		{"/v1/widgets?websiteId=2", "of 0"},
		{"/v1/widgets?websiteId=1&offset=1&limit=500", "8 of 2"},
		{"/v1/goals?websiteId=1", "3 4 of 2"},
		{"/v1/goals?websiteId=1&limit=1", "3 of 2"},
		{"/v1/goals?websiteId=1&limit=1000&offset=2", "of 2"},
		{"/v1/targets?websiteId=1&limit=1000", "5 6 of 2"},
		{"/v1/targets?websiteId=1&offset=1", "6 of 2"},
		{"/v1/targets?websiteId=2", "of 0"},
		{"/v1/websites", "1 2 of 2"},
	} {
		response, _, text := s.do("GET", test.query, s.token)
		var list []struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil || list == nil {
			t.Errorf("%s = %d %s, want a list", test.query, response.status, text)
		}
		got := "of " + response.Get("X-Total-Count")
		for _, item := range slices.Backward(list) {
			got = fmt.Sprint(item.ID, " ", got)
		}
		if got != test.want {
			t.Errorf("%s = %q, want %q", test.query, got, test.want)
		}
	}
	for path, want := range map[string]string{
		"/v1/campaigns?websiteId=1&limit=0": "1 to 500", "/v1/campaigns?websiteId=1&limit=501": "1 to 500",
		"/v1/widgets?websiteId=1&limit=501": "1 to 500", "/v1/widgets?websiteId=1&type=experiment": "popup, callout, bar, embedded",
		"/v1/widgets?websiteId=1&active=1": "true, false", "/v1/goals?websiteId=1&limit=1001": "1 to 1000", "/v1/targets?websiteId=1&limit=1001": "1 to 1000",
		"/v1/goals?websiteId=1&offset=-1": "from 0", "/v1/targets?websiteId=1&offset=99999999999999999999": "from 0", "/v1/goals?websiteId=1&active=true": "unknown parameter",
		"/v1/targets?websiteId=1&type=bar": "unknown parameter", "/v1/campaigns?websiteId=1&limit=": "1 to 500", "/v1/campaigns?websiteId=1&limit=1e2": "1 to 500",
	} {
		if response, _, text := s.do("GET", path, s.token); response.status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s = %d %s, want 400 saying %q", path, response.status, text, want)
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
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != want {
			t.Errorf("%s has %d, %v, want %d", path, len(list), err, want)
		}
	}
}

func TestWidgetWithItsCountersVariationsAndExperiments(t *testing.T) {
	s, _ := newTwoSites(t)
	goal := func(minute int, experiment, goal, value, extra int64) schema.Event {
		e := shown(minute, "g", experiment, 1, schema.KindGoal)
		e.GoalID, e.Value, e.ExtraValue = goal, value, extra
		return e
	}
	other := shown(30, "h", 0, 1, schema.KindClick)
	other.SubjectID = 8
	bar := goal(31, 0, 3, 15_000, 0)
	bar.SubjectID = 8
	barToo := goal(32, 0, 4, 20_000, 0)
	barToo.SubjectID = 8
	events := []schema.Event{
		shown(0, "a", 0, 1, schema.KindView), shown(1, "a", 0, 9, schema.KindView), shown(2, "b", 2, 1, schema.KindView),
		shown(3, "a", 0, 1, schema.KindClick), shown(4, "a", 0, 1, schema.KindClick), shown(5, "a", 2, 0, schema.KindSubmit),
		shown(6, "a", 0, 1, schema.KindCompletion), shown(7, "a", 2, 1, schema.KindConversion), shown(8, "a", 0, 1, schema.KindContact),
		goal(9, 0, 4, 12_000, -25_000), goal(10, 2, 4, 12_999, 0), goal(11, 0, 3, 990_000, 990_000), // 2.4999; -2.5
		other, bar, barToo,
	}
	s.fold(events...)
	want := map[string]any{
		"id": 7.0, "name": "Newsletter", "type": "popup", "active": false, "primaryGoalId": 4.0,
		"views": 3.0, "clicks": 2.0, "submits": 1.0, "completions": 1.0, "conversions": 1.0, "contacts": 1.0, "goalsReached": 2.0, "value": 2.0, "extraValue": -3.0,
	}
	_, detail, text := s.do("GET", "/v1/widgets/7", s.token)
	var list []map[string]any
	if _, _, text := s.do("GET", "/v1/widgets?websiteId=1", s.token); json.Unmarshal([]byte(text), &list) != nil || len(list) != 2 {
		t.Fatal(text)
	}
	for field, value := range want {
		if detail[field] != value || list[0][field] != value {
			t.Errorf("%s = %v, in the list %v, want %v", field, detail[field], list[0][field], value)
		}
	}
	if list[0]["variations"] != nil || list[0]["experiments"] != nil {
		t.Error("the list has variations or experiments")
	}
	if bar := list[1]; bar["clicks"] != 1.0 || bar["goalsReached"] != 2.0 || bar["value"] != 4.0 { // 3.5, all goals: there is no primary one
		t.Errorf("the other widget: %v", bar)
	}
	var nested struct {
		Variations, Experiments json.RawMessage
	}
	must.OK(t, json.Unmarshal([]byte(text), &nested))
	if got := string(nested.Variations); got != `[{"id":1,"share":60,"name":"Plain"},{"id":9,"share":100,"name":"Bold"}]` {
		t.Errorf("variations = %s", got)
	}
	var experiments []map[string]any
	if err := json.Unmarshal(nested.Experiments, &experiments); err != nil || len(experiments) != 2 {
		t.Fatalf("experiments = %s", nested.Experiments)
	}
	first, second := experiments[0], experiments[1]
	variations, _ := json.Marshal(first["variations"])
	if first["createDate"] != "2025-01-04T00:00:00Z" || first["startDate"] != "2025-01-05T00:00:00Z" || first["endDate"] != "2025-01-06T00:00:00Z" ||
		first["active"] != true || first["controlShare"] != 50.0 || first["primaryMetric"] != "completions" || string(variations) != `[{"id":1,"name":"Short","share":50}]` {
		t.Errorf("experiment 2 = %v", first)
	}
	if second["active"] != false || second["name"] != nil || second["createDate"] == nil || second["startDate"] != nil {
		t.Errorf("experiment 3 = %v", second)
	}
}

func TestGoalTargetWebsiteAndCampaignFields(t *testing.T) {
	s, _ := newTwoSites(t)
	for path, want := range map[string]string{
		"/v1/goals/3":  `{"id":3,"name":"Purchase","system":true,"action":"buy","default":true,"value":0}`,
		"/v1/goals/4":  `{"id":4,"name":"Signup","system":false,"default":false}`,
		"/v1/websites": `[{"id":1,"domain":"shop.example.com"},{"id":2,"domain":"other.example.com"}]`,
	} {
		if _, _, text := s.do("GET", path, s.token); strings.TrimSpace(text) != want {
			t.Errorf("%s = %s, want %s", path, text, want)
		}
	}
	_, target, text := s.do("GET", "/v1/targets/5?websiteId=1", s.token)
	updated, _ := target["updateDate"].(string)
	if at, err := time.Parse(time.RFC3339, updated); target["id"] != 5.0 || target["name"] != "Everyone" || target["createDate"] != "2025-01-02T00:00:00Z" || err != nil || time.Since(at) > time.Hour {
		t.Errorf("target = %s", text)
	}
	_, c, text := s.do("GET", "/v1/campaigns/12", s.token)
	variations, _ := json.Marshal(c["variations"])
	if c["description"] != "Ünder" || c["targetId"] != 5.0 || c["startDate"] != "2025-03-04T00:00:00Z" || c["endDate"] != nil ||
		string(variations) != `[{"id":1,"name":"New","order":1,"share":100,"targetId":6},{"id":2,"name":"Newer","order":0,"share":0}]` {
		t.Errorf("campaign = %s", text)
	}
	bound := s.newToken(1, 2, catalogue.ScopeRead)
	if _, _, text := s.do("GET", "/v1/websites", bound); strings.TrimSpace(text) != `[{"id":2,"domain":"other.example.com"}]` {
		t.Errorf("a token of website 2 sees %s", text)
	}
	if response, _, _ := s.do("GET", "/v1/goals/3", bound); response.status != http.StatusNotFound {
		t.Errorf("a token of website 2 sees a goal of website 1: %d", response.status)
	}
}

func TestStartAndStop(t *testing.T) {
	s, _ := newTwoSites(t)
	for _, path := range []string{"/v1/campaigns/13", "/v1/widgets/7"} {
		change := func(verb string) map[string]any {
			t.Helper()
			request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path+"/"+verb, strings.NewReader(`{"a body": "is not read"}`)))(t)
			request.Header.Set("Authorization", "Bearer "+s.token)
			response, text := exchange(t, request)
			var body map[string]any
			if err := json.Unmarshal(text, &body); err != nil || response.status != http.StatusOK || body["active"] != (verb == "start") {
				t.Fatalf("%s %s = %d %s", verb, path, response.status, text)
			}
			_, detail, _ := s.do("GET", path, s.token)
			for field, value := range body {
				if detail[field] != value {
					t.Errorf("%s %s answers %s %v, and at once it is %v", verb, path, field, value, detail[field])
				}
			}
			return body
		}
		first := change("start")
		if first["startDate"] != first["updateDate"] || first["startDate"] == nil || first["endDate"] != nil {
			t.Errorf("started: %v", first)
		}
		if again := change("start"); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("started again: %v, want %v", again, first)
		}
		stopped := change("stop")
		if stopped["endDate"] != stopped["updateDate"] || stopped["startDate"] != first["startDate"] {
			t.Errorf("stopped: %v", stopped)
		}
		if again := change("stop"); fmt.Sprint(again) != fmt.Sprint(stopped) {
			t.Errorf("stopped again: %v, want %v", again, stopped)
		}
		if restarted := change("start"); restarted["startDate"] != first["startDate"] || restarted["endDate"] != nil {
			t.Errorf("restarted: %v", restarted)
		}
	}
}
