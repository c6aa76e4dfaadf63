package api_test

import (
	_ "embed"
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

//go:embed testdata/operations.txt
var operationRequests string

// TestEveryOperation checks the responses of each operation, and the order of errors: 401, 403, 400, 404.
func TestEveryOperation(t *testing.T) {
	s, ingests := newTwoSites(t)
	tokens := map[string]string{
		"": "", "unknown": "lh_unknown", "write": s.token, "ingest": ingests,
		"read": s.newToken(1, 0, catalogue.ScopeRead),
	}
	_, requests, _ := strings.Cut(operationRequests, "\n\n")
	for _, o := range operations {
		applies := map[string]bool{
			"all": true, "sited": o.kind != "website", "unsited": o.kind == "website", "one": !o.list,
			"write":   o.method == "POST",
			"results": strings.HasSuffix(o.path, "/results"), "list": o.list && o.kind != "website",
		}
		for line := range strings.Lines(requests) {
			test := strings.Split(strings.NewReplacer("ID", fmt.Sprint(o.id), "KIND", o.kind).Replace(line), "|")
			for i, field := range test {
				test[i] = strings.TrimSpace(field)
			}
			if !applies[test[1]] {
				continue
			}
			id, query, asks := strings.Cut(test[2], "?")
			path := strings.Replace(o.path, "%d", id, 1)
			switch {
			case asks:
				path += "?" + query
			case test[0] == "right" && applies["list"]:
				path += "?websiteId=1"
			}
			t.Run(o.method+" "+o.path+"/"+test[0], func(t *testing.T) {
				response := s.Request(o.method, path, "").Token(tokens[test[3]]).Send()
				answered := strings.TrimSpace(fmt.Sprint(response.Status, " ", response.Code()))
				check.Equal(t, answered, test[4], "%v", response)
				check.Contains(t, response.Text, test[5], "%v", response)
				challenge := response.Header.Get("WWW-Authenticate")
				want := map[int]string{401: `Bearer realm="lifthouse"`, 403: `, error="insufficient_scope", scope="`}[response.Status]
				check.Contains(t, challenge, want, "WWW-Authenticate: %s", challenge)
				check.That(t, want != "" || challenge == "", "WWW-Authenticate: %s", challenge)
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
			ID: id, WebsiteID: 1, Name: "C", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist,
			SignificanceLevel: 90, Power: 80, MDE: 20,
		})
	}
	must.Get(s.catalogue.ApplyFile(t.Context(),
		catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "A", Websites: []catalogue.Website{site}}}},
		false))(t)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	for path, want := range map[string]int{
		"campaigns": 100, "widgets": 100, "goals": 500, "targets": 500, // one website: it need not be named
		"campaigns?limit=500": 500, "widgets?limit=500": 500, "goals?limit=1000": 501, "targets?limit=1000": 501,
	} {
		var list []any
		s.Get("/v1/" + path).Send().JSON(&list)
		check.Equal(t, len(list), want, path)
	}
}
