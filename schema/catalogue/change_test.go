package catalogue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func TestPrune(t *testing.T) {
	c := open(t)
	mustApply(t, c, whole)
	if _, _, err := c.CreateToken(t.Context(), catalogue.Token{AccountID: 9, Scopes: []catalogue.Scope{catalogue.ScopeRead}}); err != nil {
		t.Fatal(err)
	}
	kept, _, err := c.CreateToken(t.Context(), catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
	must.OK(t, err)
	file := c.Snapshot().CatalogueFile()
	file.Prune = true
	file.Accounts = file.Accounts[:1]
	site := &file.Accounts[0].Websites[0]
	site.Campaigns, site.Targets = site.Campaigns[:1], nil
	file.Accounts[0].Websites = file.Accounts[0].Websites[:1]
	_, err = c.ApplyFile(t.Context(), file, false)
	must.That(t, err != nil && strings.Contains(err.Error(), `campaigns[0].targetId: "5": the website has no such target`), "a reference to a pruned resource gives %v", err)
	site.Campaigns[0].TargetID, site.Campaigns[0].Variations[0].TargetID = 0, 0

	for _, dryRun := range []bool{true, false} {
		changes := must.Get(c.ApplyFile(t.Context(), file, dryRun))(t)
		var archived []string
		for _, change := range changes {
			if change.Archived {
				archived = append(archived, fmt.Sprintf("%s %d %s", change.Kind, change.ID, change.Name))
			}
		}
		want := []string{"campaign 13 Plain", "campaign 14 Wide", "target 5 Everyone", "target 6 Nobody", "website 2 empty.example.com", "account 9 No websites", "token 1 "}
		check.That(t, slices.Equal(archived, want), "archived %q, want %q", archived, want)
	}
	owned := c.Snapshot().AccountResources(1)
	check.That(t, len(owned.Campaigns) == 1 && len(owned.Targets) == 0 && len(owned.Websites) == 1 && len(c.Snapshot().AllAccounts()) == 1 && len(c.Snapshot().AccountTokens(9)) == 0,
		"left: %+v", owned)
	_, known := c.Snapshot().FindToken(catalogue.DigestOf(kept), now())
	check.That(t, known, "the token of a named account was archived")

	if _, err := apply(t, c, "accounts: [{id: 5, name: Thief, websites: [{id: 2, domain: empty.example.com}]}]"); err == nil || !strings.Contains(err.Error(), "belongs to another account") {
		t.Errorf("another account takes an archived website: %v", err)
	}
	changes := mustApply(t, c, whole)
	again := c.Snapshot().AccountResources(1).Campaigns[13]
	check.That(t, slices.ContainsFunc(changes, func(c catalogue.Change) bool { return c.Created && c.ID == 13 }) && !again.CreateDate.IsZero(), "named again: %+v", again)
}

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
	rounds := tier.Of(4, 12)
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
				check.That(t, err == nil && found && live.Active == active && len(live.Variations) == 2, "switch to %v: %+v, %v, %v", active, live, found, err)
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
				secret, _, err := server.CreateToken(t.Context(), catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
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
	check.That(t, fmt.Sprint(is) == fmt.Sprint(other) || is.UpdateDate.Equal(other.UpdateDate), "the servers have\n%+v and\n%+v", is, other)
	check.That(t, is.CurrentShares(0)[0] == is.ControlShare && applied[is.ControlShare],
		"control share %d, current %v: want one of %v", is.ControlShare, is.CurrentShares(0), applied)
	recorded := map[int]bool{}
	for _, since := range is.ShareHistory[0] {
		recorded[since.Shares[0]] = true
	}
	planned := map[float64]bool{}
	for _, since := range is.PlanHistory[0] {
		planned[since.MDE] = true
	}
	for share := range applied {
		check.That(t, recorded[share] && planned[1+float64(share)/2], "share %d and its plan were applied and are not in the histories", share)
	}
	for _, secret := range secrets {
		_, known := servers[0].Snapshot().FindToken(catalogue.DigestOf(secret), now())
		check.That(t, known, "a created token is not accepted")
	}
}
