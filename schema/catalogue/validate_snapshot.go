package catalogue

import (
	"fmt"
	"maps"
	"slices"

	"lifthouse/schema/faults"
)

// Validate returns nil or a list of faults. A stored catalogue may be invalid if another
// program or an older release wrote it. The paths of the faults refer to the file
// that WriteYAML writes.
func (s *Snapshot) Validate() error {
	if len(s.accounts) == 0 {
		return nil // a new store; validateAgainst would require an account
	}
	file := s.CatalogueFile()
	file.Prune = true // the file is the whole catalogue
	return append(s.orphanFaults(), file.validateAgainst(s)...).Err()
}

// orphanFaults returns a fault for each resource whose website does not exist.
// CatalogueFile omits these resources.
func (s *Snapshot) orphanFaults() faults.List {
	var c faults.Collector
	for _, account := range s.AllAccounts() {
		addOrphans(&c, account, kindGoal, account.Goals, func(r Goal) int64 { return r.WebsiteID })
		addOrphans(&c, account, kindTarget, account.Targets, func(r LiveTarget) int64 { return r.WebsiteID })
		addOrphans(&c, account, kindCampaign, account.Campaigns, func(r LiveCampaign) int64 { return r.WebsiteID })
		addOrphans(&c, account, kindWidget, account.Widgets, func(r LiveWidget) int64 { return r.WebsiteID })
	}
	return c.List
}

func addOrphans[R any](c *faults.Collector, account *AccountResources, kind kind, resources map[int64]R, website func(R) int64) {
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		owner := website(resources[id])
		if _, known := account.Websites[owner]; !known {
			c.Add(fmt.Sprintf("account %d, %s %d, websiteId", account.ID, kind, id), owner, "the account has no such website")
		}
	}
}
