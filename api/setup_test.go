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

// TestAnotherServerTakesTheTag sends a tag to a server that has not read this version of the catalogue yet.
func TestAnotherServerTakesTheTag(t *testing.T) {
	s, _ := newTwoSites(t)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	other := newServerOn(t, s.conn)
	s.apply(strings.Replace(twoSites, "name: Button", "name: Knob", 1))
	read := s.Get("/catalogue").Token(admin).Send().RequireStatus(http.StatusOK)
	tag := read.Header.Get("ETag")
	request := other.Request(http.MethodPut, "/catalogue", read.Text).Token(admin).Type("application/yaml")
	response := request.Header("If-Match", tag).Send().CheckStatus(http.StatusOK)
	check.Equal(t, response.Header.Get("ETag"), tag, "tag %s: %v", tag, response)
	check.That(t, regexp.MustCompile(`^"[0-9a-f]{16}"$`).MatchString(tag), "tag %s: %v", tag, response)
}

// TestConcurrentCatalogueChangesLoseNothing has 200 clients that each add a goal: first all at the same time, with the
// same entity tag, which one may do. Then they get the catalogue and send it again until each has succeeded, outside
// the long tier only 20 of them.
func TestConcurrentCatalogueChangesLoseNothing(t *testing.T) {
	const clients, atOnce = 200, 4
	s := newEmptyServer(t, func(o *api.Options) { o.TokenRate = 0 })
	s.apply("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, goals: [{id: 1000, name: First}]}]}]")
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	before := s.Get("/catalogue").Token(admin).Send().RequireStatus(http.StatusOK)
	add := func(client int, text, tag string) int {
		goal := fmt.Sprintf("goals:\n          - {id: %d, name: Of client %d}\n", client+1, client+1)
		text = strings.Replace(text, "goals:\n", goal, 1)
		request := s.Request(http.MethodPut, "/catalogue", text).Token(admin).Type("application/yaml").Undocumented()
		response := request.Header("If-Match", tag).Send()
		isExpected := response.Status == http.StatusOK || response.Status == http.StatusPreconditionFailed
		check.That(t, isExpected, "client %d: %v", client, response)
		return response.Status
	}
	statuses := make([]int, clients)
	var together sync.WaitGroup
	for client := range clients {
		together.Go(func() { statuses[client] = add(client, before.Text, before.Header.Get("ETag")) })
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
					response := s.Get("/catalogue").Token(admin).Undocumented().Send()
					status = add(client, response.Text, response.Header.Get("ETag"))
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
