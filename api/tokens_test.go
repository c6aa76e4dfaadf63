package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

// createdToken is a token in a response.
type createdToken struct {
	ID                                 int64
	Name                               string
	Scopes                             []string
	WebsiteID                          int64
	CampaignID, WidgetID, ExperimentID int64
	CreatedAt, ExpiresAt               time.Time
	Secret, URL                        string
}

// create sends a request that creates a token or a share link.
func (s *server) create(admin []string, path, body string) (answer, createdToken, string) {
	s.t.Helper()
	response, text := s.send(http.MethodPost, path, strings.NewReader(body), append(slices.Clone(admin), "Content-Type", "application/json")...)
	var made createdToken
	if response.status == http.StatusCreated {
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
		if want := fmt.Sprint("/tokens/", made.ID); response.Get("Location") != want || response.Get("Cache-Control") != "no-store" {
			s.t.Errorf("Location %q, Cache-Control %q, want %s and no-store", response.Get("Location"), response.Get("Cache-Control"), want)
		}
	}
	return response, made, text
}

func TestTokensAreCreatedListedAndRevoked(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	theirs := s.newToken(2, 0, catalogue.ScopeAdmin)
	_, made, _ := s.create(admin, "/tokens", `{"name": "dashboard", "scopes": ["read"], "websiteId": 1, "expires": "90d"}`)
	if left := time.Until(made.ExpiresAt); made.WebsiteID != 1 || made.Name != "dashboard" || left < 89*24*time.Hour || left > 90*24*time.Hour {
		t.Errorf("created %+v", made)
	}
	if response, _, text := s.do("GET", "/v1/campaigns", made.Secret); response.status != http.StatusOK || response.Get("X-Token-Scopes") != "read" {
		t.Errorf("the token gives %d %s", response.status, text)
	}
	list := func(headers []string) (ids []int64) {
		response, text := s.send(http.MethodGet, "/tokens", http.NoBody, headers...)
		var found []createdToken
		if err := json.Unmarshal([]byte(text), &found); err != nil || response.Get("Cache-Control") != "no-store" || strings.Contains(text, "lh_") || strings.Contains(text, "secret") {
			t.Fatalf("%v, %v: %s", response.Header, err, text)
		}
		for _, token := range found {
			ids = append(ids, token.ID)
		}
		return ids
	}
	if got := list(admin); !slices.Equal(got, []int64{1, 2, 3, 4}) || made.ID != 4 {
		t.Errorf("the tokens are %v, the last created is %d", got, made.ID)
	}
	if got := list([]string{"Authorization", "Bearer " + theirs}); !slices.Equal(got, []int64{1}) {
		t.Errorf("the other account sees %v", got)
	}
	_, shared, _ := s.create(admin, "/shares", `{"campaignId": 12}`)
	if got := list(admin); !slices.Contains(got, shared.ID) {
		t.Errorf("the tokens are %v, without the share link %d", got, shared.ID)
	}
	for _, test := range []struct {
		name, method, path, token string
		status                    int
		says                      string
	}{
		{"another account's", "DELETE", "/tokens/4", theirs, 404, "token 4 not found"},
		{"scope write", "DELETE", "/tokens/4", s.token, 403, "lacks the scope admin"},
		{"absent", "DELETE", "/tokens/99", admin[1][7:], 404, "token 99 not found"},
		{"beyond 64 bits", "DELETE", "/tokens/99999999999999999999", admin[1][7:], 404, "token not found"},
		{"no id", "DELETE", "/tokens/x?y=1", admin[1][7:], 400, `"in":"path","name":"id","value":"x"`},
		{"parameters", "GET", "/tokens?limit=1", admin[1][7:], 400, "no parameters"},
		{"right", "DELETE", "/tokens/4", admin[1][7:], 204, ""},
		{"again", "DELETE", "/tokens/4", admin[1][7:], 404, ""},
		{"the revoked one", "GET", "/v1/campaigns", made.Secret, 401, "revoked"},
		{"share link", "DELETE", fmt.Sprint("/tokens/", shared.ID), admin[1][7:], 204, ""},
		{"itself", "DELETE", "/tokens/3", admin[1][7:], 204, ""},
		{"itself again", "GET", "/tokens", admin[1][7:], 401, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if response, _, text := s.do(test.method, test.path, test.token); response.status != test.status || !strings.Contains(text, test.says) {
				t.Errorf("%s %s = %d %s, want %d %s", test.method, test.path, response.status, text, test.status, test.says)
			}
		})
	}
}

func TestInvalidTokensAndShareLinks(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	for _, test := range []struct {
		name, path, body string
		says             []string
	}{
		{"all faults of the fields", "/tokens", `{"nam": "x", "scopes": "read", "websiteId": "1"}`, []string{`unknown field \"nam\"; did you mean name?`, `"name":"scopes","value":"read","detail":"line 1: must be a list"`, `"name":"websiteId","value":"1"`}},
		{"all faults of the values", "/tokens", `{"name": "` + strings.Repeat("n", 256) + `", "scopes": ["read", "owner"], "websiteId": 9}`, []string{`"name":"name"`, `"name":"scopes[1]","value":"owner","detail":"must be one of read, write, admin, ingest"`, "account 1 has no such website"}},
		{"no scope", "/tokens", `{}`, []string{"must have at least one of read, write, admin, ingest"}},
		{"scope share", "/tokens", `{"scopes": ["share"]}`, []string{`"name":"scopes[0]"`}},
		{"ingest without a website", "/tokens", `{"scopes": ["ingest"]}`, []string{"requires a website"}},
		{"admin of a website", "/tokens", `{"scopes": ["admin"], "websiteId": 1}`, []string{"the scope admin is for the whole account"}},
		{"lifetime", "/tokens", `{"scopes": ["read"], "expires": "soon"}`, []string{`"name":"expires","value":"soon","detail":"must be a duration of a second or more`}},
		{"negative lifetime", "/shares", `{"campaignId": 12, "expires": "-1h"}`, []string{`"name":"expires"`}},
		{"long lifetime", "/shares", `{"campaignId": 12, "expires": "366d"}`, []string{"must be at most 365d"}},
		{"no subject", "/shares", `{}`, []string{`"name":"widgetId"`, "must name one campaign, one widget, or one experiment of a widget, of account 1"}},
		{"two subjects", "/shares", `{"campaignId": 12, "widgetId": 7}`, []string{`"name":"campaignId"`, "must name one campaign, one widget, or one experiment of a widget, of account 1"}},
		{"experiment of a campaign", "/shares", `{"campaignId": 12, "experimentId": 2}`, []string{`"name":"campaignId"`, "must name one campaign, one widget, or one experiment of a widget, of account 1"}},
		{"absent campaign", "/shares", `{"campaignId": 99}`, []string{`"name":"campaignId"`, "must name one campaign, one widget, or one experiment of a widget, of account 1"}},
		{"absent widget", "/shares", `{"widgetId": 99}`, []string{`"name":"widgetId"`, "must name one campaign, one widget, or one experiment of a widget, of account 1"}},
		{"absent experiment", "/shares", `{"widgetId": 7, "experimentId": 9}`, []string{`"name":"experimentId"`, "must name one campaign, one widget, or one experiment of a widget, of account 1"}},
		{"no JSON", "/shares", `{"campaignId"`, []string{"invalid_body"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, _, text := s.create(admin, test.path, test.body)
			for _, want := range test.says {
				if response.status != http.StatusBadRequest || !strings.Contains(text, want) {
					t.Errorf("%d %s\nwant 400 and %s", response.status, text, want)
				}
			}
		})
	}
	for _, path := range []string{"/tokens", "/shares"} {
		if response, _, text := s.create(admin, path, strings.Repeat(" ", 64<<10+1)); response.status != http.StatusRequestEntityTooLarge {
			t.Errorf("a huge body of %s: %d %s, want 413", path, response.status, text)
		}
		if response, text := s.send(http.MethodPost, path, strings.NewReader("{}"), append(admin, "Content-Type", "text/plain")...); response.status != http.StatusUnsupportedMediaType {
			t.Errorf("text for %s: %d %s, want 415", path, response.status, text)
		}
	}
	if tokens := s.catalogue.Snapshot().AccountTokens(1); len(tokens) != 3 {
		t.Errorf("%d tokens, want the three of the test", len(tokens))
	}
}

// TestShareLinksReadOnlyTheirSubject tries the token of each kind of share link on every
// operation of the document, and on every other subject.
func TestShareLinksReadOnlyTheirSubject(t *testing.T) {
	s, _ := newTwoSites(t, func(o *api.Options) { o.PublicURL = "https://lift.example.com" })
	s.apply(strings.Replace(twoSites, "domain: shop.example.com", "domain: shop.example.com\n        currency: EUR\n        timezone: Europe/Berlin", 1))
	admin := s.admin()
	c := must.Get(theContract())(t)
	const widget, campaign = "/v1/widgets/7", "/v1/campaigns/12"
	for _, test := range []struct {
		body, address string
		own           []string // paths that it may read
	}{
		{`{"campaignId": 12}`, "campaign=12", []string{campaign, campaign + "/results", campaign + "/dimensions/country"}},
		{`{"widgetId": 7}`, "widget=7", []string{widget, widget + "/results", widget + "/dimensions/country"}},
		{`{"widgetId": 7, "experimentId": 2}`, "experiment=2&widget=7", []string{widget, widget + "/experiments/2/results", widget + "/experiments/2/dimensions/country"}},
	} {
		t.Run(test.address, func(t *testing.T) {
			_, made, text := s.create(admin, "/shares", test.body)
			want := regexp.MustCompile(`^https://lift\.example\.com/\?` + regexp.QuoteMeta(test.address) + `#currency=EUR&share=lh_[\w-]{43}&timezone=Europe%2FBerlin$`)
			link, err := url.Parse(made.URL)
			if err != nil || !want.MatchString(made.URL) || made.Secret != "" {
				t.Fatalf("%v, %s, want %s", err, text, want)
			}
			if days := made.ExpiresAt.Sub(made.CreatedAt).Hours() / 24; days < 29.9 || days > 30 {
				t.Errorf("it is valid for %v days, want 30", days)
			}
			fragment := must.Get(url.ParseQuery(link.EscapedFragment()))(t)
			token := fragment.Get("share")
			s.triesEveryOperation(t, c, token, test.own)
			s.readsInEveryForm(t, token, test.own[1])
			for path, want := range map[string]int{"?websiteId=1": 200, "?websiteId=2": 404, "?websiteId=9": 404, "?colour=red": 400} {
				for _, own := range test.own {
					if response, _, text := s.do("GET", own+path, token); response.status != want {
						t.Errorf("GET %s%s = %d %s, want %d", own, path, response.status, text, want)
					}
				}
			}
		})
	}
	if _, widgetOnly, _ := s.create(admin, "/shares", `{"widgetId": 7, "experimentId": 2}`); widgetOnly.ExperimentID != 2 {
		t.Errorf("created %+v", widgetOnly)
	}
}

// triesEveryOperation sends each operation with the ids of all subjects of the store. Only the
// own paths may be read; an operation that no share link may use is refused for its scope.
func (s *server) triesEveryOperation(t *testing.T, c *contract, token string, own []string) {
	t.Helper()
	tried, found := 0, 0
	for _, path := range c.paths {
		for method, operation := range path.item.Operations() {
			if method == http.MethodOptions || operation.Security != nil && len(*operation.Security) == 0 {
				continue
			}
			targets := []string{}
			for _, id := range []string{"12", "13", "20", "99", "7", "8"} {
				for _, experiment := range []string{"2", "3"} {
					targets = append(targets, strings.NewReplacer("{id}", id, "{experimentId}", experiment, "{name}", "country").Replace(path.template))
				}
			}
			slices.Sort(targets)
			targets = slices.Compact(targets)
			shares := method == http.MethodGet && regexp.MustCompile(`^/v1/(campaigns|widgets)/\{id\}($|/results|/dim|/experiments)`).MatchString(path.template) &&
				!strings.HasSuffix(path.template, "/visitors.parquet")
			for _, target := range targets {
				response, text := s.raw(method, target, "Authorization", "Bearer "+token) // too many to validate each
				tried++
				switch allowed := slices.Contains(own, target) && method == http.MethodGet; {
				case allowed && response.status == http.StatusOK:
					found++
				case allowed:
					t.Errorf("%s %s = %d %s, want 200", method, target, response.status, text)
				case !shares && (response.status != http.StatusForbidden || !strings.Contains(text, `"code":"insufficient_scope"`)):
					t.Errorf("%s %s = %d %s, want 403 insufficient_scope", method, target, response.status, text)
				case shares && !allowed && response.status != http.StatusNotFound:
					t.Errorf("%s %s = %d %s, want 404", method, target, response.status, text)
				}
				if challenge := response.Get("WWW-Authenticate"); (response.status == http.StatusForbidden) != strings.Contains(challenge, `error="insufficient_scope"`) {
					t.Errorf("%s %s: WWW-Authenticate %q", method, target, challenge)
				}
			}
		}
	}
	if tried < 100 || found != len(own) {
		t.Errorf("%d requests, %d of what the link shows, want %d", tried, found, len(own))
	}
}

// readsInEveryForm reads results in each format, and with parameters.
func (s *server) readsInEveryForm(t *testing.T, token, results string) {
	t.Helper()
	for _, accept := range []string{"application/json", "text/csv", "image/svg+xml"} {
		if response, text := s.send(http.MethodGet, results, http.NoBody, "Authorization", "Bearer "+token, "Accept", accept); response.status != http.StatusOK || response.Get("X-Token-Scopes") != "share" {
			t.Errorf("%s as %s: %d %s", results, accept, response.status, text)
		}
	}
	parameters := "?interval=day&goal=3&filters%5Bdevice%5D%5B%5D=mobile"
	if !strings.HasPrefix(results, "/v1/widgets/7/results") {
		parameters += "&scorecard=true&dimension=country"
	}
	if response, _, text := s.do("GET", results+parameters, token); response.status != http.StatusOK {
		t.Errorf("%s%s = %d %s", results, parameters, response.status, text)
	}
	if response, body, text := s.do("GET", results+"?goal=30", token); response.status != http.StatusBadRequest || body["code"] != "unknown_goal" {
		t.Errorf("a goal of another website: %d %s", response.status, text)
	}
}

func TestEndedShareLinks(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	_, made, _ := s.create(admin, "/shares", `{"widgetId": 7, "experimentId": 2, "expires": "7d"}`)
	token := regexp.MustCompile(`lh_[\w-]+`).FindString(made.URL)
	_, body, text := s.do("GET", "/v1/widgets/7", token)
	if experiments, _ := body["experiments"].([]any); len(experiments) != 1 {
		t.Errorf("the link to an experiment shows %s", text)
	}
	expired := catalogue.NewShare(1, "", catalogue.PageSubject{CampaignID: 12}, time.Hour)
	past := time.Now().Add(-time.Second)
	expired.ExpiresAt = &past
	secret, _, err := s.catalogue.CreateToken(t.Context(), expired)
	if err != nil {
		t.Fatal(err)
	}
	if response, _, text := s.do("GET", "/v1/campaigns/12", secret); response.status != http.StatusUnauthorized || !strings.Contains(text, "invalid_token") {
		t.Errorf("expired: %d %s", response.status, text)
	}
	s.apply(strings.Replace(twoSites, "{id: 2, name: Wording,", "{id: 5, name: Wording,", 1))
	if response, _, text := s.do("GET", "/v1/widgets/7", token); response.status != http.StatusNotFound {
		t.Errorf("without its experiment: %d %s", response.status, text)
	}
	s.apply(twoSites)
	if response, _ := s.send(http.MethodDelete, fmt.Sprint("/tokens/", made.ID), http.NoBody, admin...); response.status != http.StatusNoContent {
		t.Errorf("revoke: %d", response.status)
	}
	if response, _, text := s.do("GET", "/v1/widgets/7", token); response.status != http.StatusUnauthorized {
		t.Errorf("revoked: %d %s", response.status, text)
	}
}
