package catalogue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestConcurrentChanges has two catalogues of one store, each with clients that start and stop campaigns, apply shares
// and names, and create tokens concurrently.
func TestConcurrentChanges(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	var servers []*catalogue.Catalogue
	for range 2 {
		c := must.Get(catalogue.Open(t.Context(), conn))(t)
		servers = append(servers, c)
	}
	mustApply(t, servers[0], whole)
	rounds := tier.Of(2, 12)
	var clients sync.WaitGroup
	var mu sync.Mutex
	applied, secrets := map[int]bool{}, []string{}
	for client := range 6 {
		server := servers[client%2]
		random := rand.New(rand.NewPCG(1, uint64(client)))
		clients.Go(func() {
			for round := range rounds {
				active := random.IntN(2) == 0
				owned, found, err := server.Switch(t.Context(), 1, 1, schema.SubjectCampaign, 12, active)
				live := owned.Campaigns[12]
				must.That(t, err == nil, "switch to %v: %+v, %v, %v", active, live, found, err)
				must.That(t, found, "switch to %v: %+v, %v, %v", active, live, found, err)
				check.Equal(t, live.Active, active, "switch to %v: %+v, %v, %v", active, live, found, err)
				check.Equal(t, len(live.Variations), 2, "switch to %v: %+v, %v, %v", active, live, found, err)
				if round%3 != 0 {
					continue
				}
				share := 1 + client*rounds + round
				file := servers[0].Snapshot().CatalogueFile()
				campaign := &file.Accounts[0].Websites[0].Campaigns[0]
				campaign.ControlShare, campaign.MDE = share%100, 1+float64(share%100)/2
				if _, err := server.ApplyFile(t.Context(), file, false); err != nil {
					t.Errorf("apply: %v", err)
				}
				secret, _, err := server.CreateToken(t.Context(),
					catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
				check.That(t, err == nil, "token: %v", err)
				mu.Lock()
				applied[share%100] = true
				secrets = append(secrets, secret)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	for _, server := range servers {
		must.OK(t, server.RefreshSnapshot(t.Context()))
	}
	is := servers[0].Snapshot().AccountResources(1).Campaigns[12]
	other := servers[1].Snapshot().AccountResources(1).Campaigns[12]
	check.That(t, fmt.Sprint(is) == fmt.Sprint(other) || is.UpdateDate.Equal(other.UpdateDate),
		"the servers have\n%+v and\n%+v", is, other)
	check.Equal(t, is.CurrentShares(0)[0], is.ControlShare, "control share %d, current %v: want one of %v",
		is.ControlShare, is.CurrentShares(0), applied)
	check.That(t, applied[is.ControlShare], "control share %d, current %v: want one of %v", is.ControlShare,
		is.CurrentShares(0), applied)
	recorded := map[int]bool{}
	for _, since := range is.ShareHistory[0] {
		recorded[since.Shares[0]] = true
	}
	planned := map[float64]bool{}
	for _, since := range is.PlanHistory[0] {
		planned[since.MDE] = true
	}
	for share := range applied {
		check.That(t, recorded[share], "share %d and its plan were applied and are not in the histories", share)
		check.That(t, planned[1+float64(share)/2], "share %d and its plan were applied and are not in the histories", share)
	}
	for _, secret := range secrets {
		_, known := servers[0].Snapshot().FindToken(catalogue.DigestOf(secret), now())
		check.That(t, known, "a created token is not accepted")
	}
}
