package catalogue

import (
	"fmt"
	"maps"
	"slices"
)

// Validate returns nil or Faults: what stands although apply would refuse it,
// because another program or an older release wrote it. The paths are those of
// the file that Write writes.
func (s *Snapshot) Validate() error {
	if len(s.accounts) == 0 {
		return nil // nothing is declared yet, which a file may not say
	}
	file := s.File()
	file.Prune = true // nothing stands beside what stands
	faults := s.strays()
	if found, ok := file.validate(s).(Faults); ok { //nolint:errorlint // it returns nothing else
		faults = append(faults, found...)
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// strays are on a website that does not stand, so that no file has them.
func (s *Snapshot) strays() (faults Faults) {
	for _, account := range s.Accounts() {
		stray := func(kind kind, id, website int64) {
			if _, ok := account.Websites[website]; !ok {
				path := fmt.Sprintf("account %d, %s %d, websiteId", account.ID, kind, id)
				faults = append(faults, Fault{path, fmt.Sprint(website), "no such website of this account"})
			}
		}
		for _, id := range slices.Sorted(maps.Keys(account.Goals)) {
			stray(kindGoal, id, account.Goals[id].WebsiteID)
		}
		for _, id := range slices.Sorted(maps.Keys(account.Targets)) {
			stray(kindTarget, id, account.Targets[id].WebsiteID)
		}
		for _, id := range slices.Sorted(maps.Keys(account.Campaigns)) {
			stray(kindCampaign, id, account.Campaigns[id].WebsiteID)
		}
		for _, id := range slices.Sorted(maps.Keys(account.Widgets)) {
			stray(kindWidget, id, account.Widgets[id].WebsiteID)
		}
	}
	return faults
}
