package catalogue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

func TestEnded(t *testing.T) {
	c := open(t)
	const file = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        campaigns:
          - {id: 1, name: Ended, startDate: 2026-04-01, endDate: 2026-05-01}
          - {id: 2, name: Ended a moment later, startDate: 2026-04-01, endDate: 2026-05-01T00:00:00.001Z}
          - {id: 3, name: Runs beyond its end, startDate: 2026-04-01, endDate: 2026-05-01, active: true}
          - {id: 4, name: Never ran}
          - {id: 5, name: Archived, startDate: 2026-04-01, endDate: 2026-05-01}
          - {id: 6, name: Runs again, startDate: 2026-04-01, endDate: 2026-05-01}
        widgets:
          - {id: 7, name: Ended widget, type: popup, startDate: 2026-04-01, endDate: 2026-04-02}
`
	mustApply(t, c, file)
	if _, found, err := c.SwitchCampaign(t.Context(), 1, 0, 6, true); !found || err != nil {
		t.Fatal(found, err)
	}
	pruned := must.Get(catalogue.ReadYAML(strings.NewReader(file)))(t)
	pruned.Accounts[0].Websites[0].Campaigns = slices.Delete(pruned.Accounts[0].Websites[0].Campaigns, 4, 5)
	pruned.Prune = true
	must.Get(c.ApplyFile(t.Context(), pruned, false))(t)
	got := ""
	for _, e := range c.Snapshot().EndedSubjects(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)) {
		got += fmt.Sprintf("%s %d/%d %q %s; ", e.Kind, e.WebsiteID, e.ID, e.Name, e.EndDate.Format(time.DateOnly))
	}
	if want := `campaign 1/1 "Ended" 2026-05-01; widget 1/7 "Ended widget" 2026-04-02; `; got != want {
		t.Errorf("ended: %s want %s", got, want)
	}
}
