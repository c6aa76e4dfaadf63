package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// admin returns headers with a token of account 1 of the scope admin, and further headers.
func (s *server) admin(headers ...string) []string {
	s.t.Helper()
	return append([]string{"Authorization", "Bearer " + s.newToken(1, 0, catalogue.ScopeAdmin)}, headers...)
}

// putCatalogue sends a catalogue and returns the response and its body.
func (s *server) putCatalogue(admin []string, query, match, text string, headers ...string) (answer, string) {
	s.t.Helper()
	headers = slices.Concat(admin, []string{"Content-Type", "application/yaml"}, headers)
	if match != "" {
		headers = append(headers, "If-Match", match)
	}
	return s.send(http.MethodPut, "/catalogue"+query, strings.NewReader(text), headers...)
}

// getCatalogue returns the catalogue as YAML and its entity tag.
func (s *server) getCatalogue(admin []string) (text, tag string) {
	s.t.Helper()
	response, text := s.send(http.MethodGet, "/catalogue", http.NoBody, admin...)
	must.Equal(s.t, response.status, http.StatusOK, "GET /catalogue %s", text)
	return text, response.Get("ETag")
}

// TestAnotherServerTakesTheTag sends a tag to a server that has not read this version of the catalogue yet.
func TestAnotherServerTakesTheTag(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.admin()
	other := newServerOn(t, s.conn)
	s.apply(strings.Replace(twoSites, "name: Button", "name: Knob", 1))
	text, tag := s.getCatalogue(admin)
	response, answer := other.putCatalogue(admin, "", tag, text)
	check.Equal(t, response.status, http.StatusOK, "%d %s, tag %s", response.status, answer, tag)
	check.Equal(t, response.Get("ETag"), tag, "%d %s, tag %s", response.status, answer, tag)
	check.That(t, regexp.MustCompile(`^"[0-9a-f]{16}"$`).MatchString(tag), "%d %s, tag %s", response.status, answer, tag)
}

// TestConcurrentCatalogueChangesLoseNothing has 200 clients that each add a goal: first all at the same time, with the
// same entity tag, which one may do. Then they get the catalogue and send it again until each has succeeded, outside
// the long tier only 20 of them.
func TestConcurrentCatalogueChangesLoseNothing(t *testing.T) {
	const clients, atOnce = 200, 4
	s := newEmptyServer(t, func(o *api.Options) { o.TokenRate = 0 })
	s.apply("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, goals: [{id: 1000, name: First}]}]}]")
	admin := s.admin("Content-Type", "application/yaml")
	before, tag := s.getCatalogue(admin)
	add := func(client int, text, tag string) int {
		goal := fmt.Sprintf("goals:\n          - {id: %d, name: Of client %d}\n", client+1, client+1)
		request := s.request(http.MethodPut, "/catalogue",
			strings.NewReader(strings.Replace(text, "goals:\n", goal, 1)), append(admin, "If-Match", tag)...)
		response, err := http.DefaultClient.Do(request)
		if !check.OK(t, err) {
			return 0
		}
		_ = response.Body.Close()
		check.That(t, response.StatusCode == http.StatusOK || response.StatusCode == http.StatusPreconditionFailed,
			"client %d: %d", client, response.StatusCode)
		return response.StatusCode
	}
	statuses := make([]int, clients)
	var together sync.WaitGroup
	for client := range clients {
		together.Go(func() { statuses[client] = add(client, before, tag) })
	}
	together.Wait()
	first := slices.Index(statuses, http.StatusOK)
	slices.Sort(statuses)
	must.That(t, first >= 0, "of the clients with one tag, all but one must get 412: %v", statuses)
	must.Equal(t, statuses[1], http.StatusPreconditionFailed,
		"of the clients with one tag, all but one must get 412: %v", statuses)
	retries := tier.Of(8, clients)
	var pending sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(retries))
	for range atOnce {
		pending.Go(func() {
			for client := int(left.Add(-1)); client >= 0; client = int(left.Add(-1)) {
				for status := http.StatusPreconditionFailed; client != first &&
					status == http.StatusPreconditionFailed; {
					response, text := s.raw(http.MethodGet, "/catalogue", admin...)
					status = add(client, text, response.Get("ETag"))
				}
			}
		})
	}
	pending.Wait()
	goals := s.catalogue.Snapshot().AccountResources(1).Goals
	for client := range retries {
		check.That(t, goals[int64(client+1)].Name == fmt.Sprint("Of client ", client+1),
			"the goal of client %d is lost: %+v", client, goals[int64(client+1)])
	}
}
