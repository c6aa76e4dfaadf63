package api_test

import (
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

// createShare creates a share link with the token of an administrator.
func (s *server) createShare(admin, body string) (made createdShare) {
	s.t.Helper()
	s.Post("/shares", body).Token(admin).Type("application/json").Send().JSON(&made)
	return made
}

// TestShareLinksReadOnlyTheirSubject tries the token of each kind of share link on every operation of the document, and
// on every other subject.
func TestShareLinksReadOnlyTheirSubject(t *testing.T) {
	s, _ := newTwoSites(t, func(o *api.Options) { o.PublicURL = "https://lift.example.com" })
	s.apply(strings.Replace(twoSites, "domain: shop.example.com", "domain: shop.example.com\n        currency: EUR\n        timezone: Europe/Berlin", 1))
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
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
			made := s.createShare(admin, test.body)
			want := regexp.MustCompile(`^https://lift\.example\.com/\?` + regexp.QuoteMeta(test.address) + `#currency=EUR&share=lh_[\w-]{43}&timezone=Europe%2FBerlin$`)
			link, err := url.Parse(made.URL)
			must.That(t, err == nil, "%v, %+v, want %s", err, made, want)
			must.That(t, want.MatchString(made.URL), "%v, %+v, want %s", err, made, want)
			must.Equal(t, made.Secret, "", "%v, %+v, want %s", err, made, want)
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
					s.Get(own + path).Token(token).Send().CheckStatus(want)
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
			ids := []string{"12", "13", "20", "99", "7", "8"}
			hasHash := regexp.MustCompile(`^/v1/(readouts|pictures)/`).MatchString(path.template)
			if hasHash {
				ids = []string{strings.Repeat("0", 32)}
			}
			for _, id := range ids {
				for _, experiment := range []string{"2", "3"} {
					targets = append(targets,
						strings.NewReplacer("{id}", id, "{experimentId}", experiment, "{name}",
							"country").Replace(path.template))
				}
			}
			slices.Sort(targets)
			targets = slices.Compact(targets)
			shares := method == http.MethodGet && regexp.MustCompile(`^/v1/((campaigns|widgets)/\{id\}($|/results|/dim|/experiments)|readouts/|pictures/)`).MatchString(path.template) &&
				!strings.HasSuffix(path.template, "/visitors.parquet") && !strings.HasSuffix(path.template, "/readouts")
			for _, target := range targets {
				request := s.Request(method, target, "").Token(token).Undocumented() // too many to validate each
				response := request.Send()
				tried++
				isAllowed := method == http.MethodGet && slices.Contains(own, target)
				switch {
				case isAllowed:
					response.CheckStatus(http.StatusOK)
				case shares:
					response.CheckStatus(http.StatusNotFound)
				case path.template == "/v1/query": // without questions; TestShareLinksAskAboutTheirSubject has some
					response.CheckStatus(http.StatusBadRequest)
				default:
					response.CheckStatus(http.StatusForbidden)
					check.Equal(t, response.Code(), "insufficient_scope", "%v", response)
				}
				if isAllowed && response.Status == http.StatusOK {
					found++
				}
				challenge := response.Header.Get("WWW-Authenticate")
				isForbidden := response.Status == http.StatusForbidden
				check.Equal(t, strings.Contains(challenge, `error="insufficient_scope"`), isForbidden, "%v", response)
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
		response := s.Get(results).Token(token).Header("Accept", accept).Send().CheckStatus(http.StatusOK)
		check.Equal(t, response.Header.Get("X-Token-Scopes"), "share", "%s as %s", results, accept)
	}
	parameters := "?interval=day&goal=3&filters%5Bdevice%5D%5B%5D=mobile"
	if !strings.HasPrefix(results, "/v1/widgets/7/results") {
		parameters += "&scorecard=true&dimension=country"
	}
	s.Get(results + parameters).Token(token).Send().CheckStatus(http.StatusOK)
	response := s.Get(results + "?goal=30").Token(token).Send().CheckStatus(http.StatusBadRequest)
	check.Equal(t, response.Code(), "unknown_goal", "a goal of another website: %v", response)
}

func TestEndedShareLinks(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	made := s.createShare(admin, `{"widgetId": 7, "experimentId": 2, "expires": "7d"}`)
	token := regexp.MustCompile(`lh_[\w-]+`).FindString(made.URL)
	var widget struct{ Experiments []any }
	s.Get("/v1/widgets/7").Token(token).Send().JSON(&widget)
	check.Equal(t, len(widget.Experiments), 1, "the link to an experiment shows %v", widget.Experiments)
	expired := catalogue.NewShare(1, "", schema.SubjectIDs{CampaignID: 12}, time.Hour)
	past := time.Now().Add(-time.Second)
	expired.ExpiresAt = &past
	secret, _, err := s.catalogue.CreateToken(t.Context(), expired)
	must.OK(t, err)
	refused := s.Get("/v1/campaigns/12").Token(secret).Send().CheckStatus(http.StatusUnauthorized)
	check.Equal(t, refused.Code(), "invalid_token", "expired: %v", refused)
	s.apply(strings.Replace(twoSites, "{id: 2, name: Wording,", "{id: 5, name: Wording,", 1))
	s.Get("/v1/widgets/7").Token(token).Send().CheckStatus(http.StatusNotFound)
	s.apply(twoSites)
	revoked := s.Request(http.MethodDelete, fmt.Sprint("/tokens/", made.ID), "").Token(admin).Send()
	revoked.CheckStatus(http.StatusNoContent)
	s.Get("/v1/widgets/7").Token(token).Send().CheckStatus(http.StatusUnauthorized)
}
