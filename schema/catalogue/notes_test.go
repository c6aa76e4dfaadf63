package catalogue_test

import (
	"slices"
	"testing"
)

// TestNewResourcesSayWhatTheyLack checks the notes of new campaigns and widgets: defaults
// that the file does not set, and what is missing to start. Later changes have none.
func TestNewResourcesSayWhatTheyLack(t *testing.T) {
	c := open(t)
	const file = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}]
        campaigns:
          - {id: 12, name: Bare}
          - {id: 13, name: Whole, type: experiment, primaryGoalId: 3, trafficAllocation: 100, controlShare: 50, significanceLevel: 95, mde: 10, active: true, variations: [{id: 1, name: New, share: 50}]}
          - {id: 14, name: Unseen, type: experiment, primaryGoalId: 3, trafficAllocation: 100, significanceLevel: 95, mde: 10, variations: [{id: 1, name: New}]}
        widgets:
          - {id: 7, name: Newsletter, type: popup, experiments: [{id: 2, name: Wording}]}
          - {id: 8, name: Bar, type: bar, active: true, experiments: [{id: 2, name: Wording, active: true}]}
`
	notes := map[int64][]string{}
	for _, change := range mustApply(t, c, file) {
		if len(change.Notes) > 0 {
			notes[change.ID] = change.Notes
		}
	}
	for id, want := range map[int64][]string{
		12: {
			"defaults: type personalization, trafficAllocation 10 %, controlShare 5 %, significanceLevel 90 %, mde 20 %",
			"no variations: nothing is compared with control", "no primaryGoalId: reports count all goals",
			"active: false: start with POST /v1/campaigns/12/start, or on the page",
		},
		13: nil,
		14: {"defaults: controlShare 5 %", "all variations have share 0", "active: false: start with POST /v1/campaigns/14/start, or on the page"},
		7:  {"active: false: start with POST /v1/widgets/7/start, or on the page", "experiment 2: active: false: set active: true in the file when it starts"},
		8:  nil,
	} {
		if !slices.Equal(notes[id], want) {
			t.Errorf("%d has the notes %q, want %q", id, notes[id], want)
		}
	}
	for _, change := range mustApply(t, c, file+"          - {id: 9, name: Other, type: bar, active: true}\n") {
		if change.ID != 9 {
			t.Errorf("applied again, the file changes %+v", change)
		}
	}
}
