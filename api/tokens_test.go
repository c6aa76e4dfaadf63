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
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// createdShare is a share link in a response.
type createdShare struct {
	ID, ExperimentID     int64
	CreatedAt, ExpiresAt time.Time
	Secret, URL          string
}

// create sends a request that creates a share link.
func (s *server) create(admin []string, body string) (made createdShare, text string) {
	s.t.Helper()
	_, text = s.send(http.MethodPost, "/shares", strings.NewReader(body),
		append(slices.Clone(admin), "Content-Type", "application/json")...)
	must.OK(s.t, json.Unmarshal([]byte(text), &made))
	return made, text
}

// TestShareLinksReadOnlyTheirSubject tries the token of each kind of share link on every operation of the document, and
// on every other subject.
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
			made, text := s.create(admin, test.body)
			want := regexp.MustCompile(`^https://lift\.example\.com/\?` + regexp.QuoteMeta(test.address) + `#currency=EUR&share=lh_[\w-]{43}&timezone=Europe%2FBerlin$`)
			link, err := url.Parse(made.URL)
			must.That(t, err == nil, "%v, %s, want %s", err, text, want)
			must.That(t, want.MatchString(made.URL), "%v, %s, want %s", err, text, want)
			must.Equal(t, made.Secret, "", "%v, %s, want %s", err, text, want)
			days := made.ExpiresAt.Sub(made.CreatedAt).Hours() / 24
			check.That(t, days >= 29.9, "it is valid for %v days, want 30", days)
			check.That(t, days <= 30, "it is valid for %v days, want 30", days)
			fragment := must.Get(url.ParseQuery(link.EscapedFragment()))(t)
			token := fragment.Get("share")
			s.triesEveryOperation(t, c, token, test.own)
			s.readsInEveryForm(t, token, test.own[1])
			for path, want := range map[string]int{
				"?websiteId=1": 200, "?websiteId=2": 404, "?websiteId=9": 404,
				"?colour=red": 400,
			} {
				for _, own := range test.own {
					s.wants(want, "GET", own+path, token)
				}
			}
		})
	}
}

// triesEveryOperation sends each operation with the ids of all subjects of the store. Only the own paths may be read;
// an operation that no share link may use is refused for its scope.
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
					targets = append(targets,
						strings.NewReplacer("{id}", id, "{experimentId}", experiment, "{name}",
							"country").Replace(path.template))
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
				challenge := response.Get("WWW-Authenticate")
				check.That(t, (response.status == http.StatusForbidden) == strings.Contains(challenge, `error="insufficient_scope"`),
					"%s %s: WWW-Authenticate %q", method, target, challenge)
			}
		}
	}
	check.That(t, tried >= 100, "%d requests, %d of what the link shows, want %d", tried, found, len(own))
	check.Equal(t, found, len(own), "%d requests, %d of what the link shows, want %d", tried, found, len(own))
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
	s.wants(http.StatusOK, "GET", results+parameters, token)
	if response, body, text := s.do("GET", results+"?goal=30", token); response.status != http.StatusBadRequest ||
		body["code"] != "unknown_goal" {
		t.Errorf("a goal of another website: %d %s", response.status, text)
	}
}

func TestEndedShareLinks(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	made, _ := s.create(admin, `{"widgetId": 7, "experimentId": 2, "expires": "7d"}`)
	token := regexp.MustCompile(`lh_[\w-]+`).FindString(made.URL)
	_, body, text := s.do("GET", "/v1/widgets/7", token)
	experiments, _ := body["experiments"].([]any)
	check.That(t, len(experiments) == 1, "the link to an experiment shows %s", text)
	expired := catalogue.NewShare(1, "", schema.SubjectIDs{CampaignID: 12}, time.Hour)
	past := time.Now().Add(-time.Second)
	expired.ExpiresAt = &past
	secret, _, err := s.catalogue.CreateToken(t.Context(), expired)
	must.OK(t, err)
	if response, _, text := s.do("GET", "/v1/campaigns/12", secret); response.status != http.StatusUnauthorized || !strings.Contains(text, "invalid_token") {
		t.Errorf("expired: %d %s", response.status, text)
	}
	s.apply(strings.Replace(twoSites, "{id: 2, name: Wording,", "{id: 5, name: Wording,", 1))
	s.wants(http.StatusNotFound, "GET", "/v1/widgets/7", token)
	s.apply(twoSites)
	response, _ := s.send(http.MethodDelete, fmt.Sprint("/tokens/", made.ID), http.NoBody, admin...)
	check.That(t, response.status == http.StatusNoContent, "revoke: %d", response.status)
	s.wants(http.StatusUnauthorized, "GET", "/v1/widgets/7", token)
}
