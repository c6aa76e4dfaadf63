package catalogue

import (
	"fmt"
	"maps"
	"slices"
)

// Validate returns nil or Faults. A stored catalogue may be invalid if another
// program or an older release wrote it. The paths of the faults refer to the file
// that WriteYAML writes.
func (s *Snapshot) Validate() error {
	if len(s.accounts) == 0 {
		return nil // a new store; validateAgainst would require an account
	}
	file := s.CatalogueFile()
	file.Prune = true // the file is the whole catalogue
	faults := s.orphanFaults()
	if found, ok := file.validateAgainst(s).(Faults); ok { //nolint:errorlint // validate returns Faults or nil
		faults = append(faults, found...)
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// orphanFaults returns a fault for each resource whose website does not exist.
// CatalogueFile omits these resources.
func (s *Snapshot) orphanFaults() (faults Faults) {
	for _, account := range s.AllAccounts() {
		check := func(kind kind, id, website int64) {
			if _, ok := account.Websites[website]; !ok {
				path := fmt.Sprintf("account %d, %s %d, websiteId", account.ID, kind, id)
				faults = append(faults, Fault{Path: path, Value: fmt.Sprint(website), Detail: "the account has no such website"})
			}
		}
		for _, id := range slices.Sorted(maps.Keys(account.Goals)) {
			check(kindGoal, id, account.Goals[id].WebsiteID)
		}
		for _, id := range slices.Sorted(maps.Keys(account.Targets)) {
			check(kindTarget, id, account.Targets[id].WebsiteID)
		}
		for _, id := range slices.Sorted(maps.Keys(account.Campaigns)) {
			check(kindCampaign, id, account.Campaigns[id].WebsiteID)
		}
		for _, id := range slices.Sorted(maps.Keys(account.Widgets)) {
			check(kindWidget, id, account.Widgets[id].WebsiteID)
		}
	}
	return faults
}
