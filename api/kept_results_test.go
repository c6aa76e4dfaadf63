package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/render"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// programmeOfShop returns a catalogue with two campaigns that ended, and one that runs whose purchases count within a
// window, so that what it is worth changes with late events.
func programmeOfShop() string {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	ended := fmt.Sprintf("startDate: %s, endDate: %s", today.AddDate(0, 0, -40).Format(time.RFC3339),
		today.AddDate(0, 0, -20).Format(time.RFC3339))
	const campaign = "          - {id: %d, name: %s, type: experiment, primaryGoalId: 3, significanceLevel: 95, " +
		"controlShare: 50, variations: [{id: 1, name: New, share: 50}], %s}\n"
	return `accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase, conversionWindow: 3d}]
        campaigns:
` + fmt.Sprintf(campaign, 31, "Ended", ended) + fmt.Sprintf(campaign, 32, "Another", ended) +
		fmt.Sprintf(campaign, 33, "Running", "active: true, startDate: "+today.AddDate(0, 0, -10).Format(time.RFC3339))
}

// visitShop writes visitors of the campaigns of programmeOfShop, and returns today.
func (s *server) visitShop() time.Time {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for id, days := range map[int64]int{31: 40, 32: 40, 33: 10} {
		simulated := population.SimpleCampaign{
			WebsiteID: 1, CampaignID: id, GoalID: 3, Visitors: 2_000, Start: today.AddDate(0, 0, -days), Days: 9,
			Seed: uint64(id),
			Variations: []population.SimpleVariation{
				{ID: 0, Share: 1, ConversionRate: 0.10, MeanValue: 50}, {ID: 1, Share: 1, ConversionRate: 0.15, MeanValue: 50},
			},
		}
		s.write(slices.Collect(simulated.GenerateEvents())...)
	}
	return today
}

// TestReportsOfEndedCampaignsAreComputedOnce polls the scorecards of campaigns that ended while events of another one
// arrive. Each is computed once, and its entity tag stays, because nothing of it changes. What the campaigns are worth
// is no part of what is kept, and the last member of a report.
func TestReportsOfEndedCampaignsAreComputedOnce(t *testing.T) {
	s := newServer(t)
	s.apply(programmeOfShop())
	today := s.visitShop()
	s.fold()
	paths := []string{"/v1/campaigns/31/results?scorecard=true", "/v1/campaigns/32/results?scorecard=true"}
	tags := map[string]string{}
	for round := range 5 {
		s.fold(schema.Event{
			EventID: uint64(1 + round), VisitorID: uint64(1 + round), WebsiteID: 1, Time: today, Kind: schema.KindView,
			Subject: schema.SubjectCampaign, SubjectID: 33,
		})
		for _, path := range paths {
			got := s.Get(path).PollReport()
			must.Equal(t, got.Status, http.StatusOK, "%s", path)
			if round == 0 {
				tags[path] = got.Header.Get("ETag")
			}
			check.Equal(t, got.Header.Get("ETag"), tags[path], "round %d: tag of %s", round, path)
			members := must.Get(render.NewDocument(json.RawMessage(got.Text)))(t)
			check.Equal(t, members[len(members)-1].Name, "worth", "round %d: the last member of %s", round, path)
			check.That(t, got.GeneratedAt.After(time.Now().Add(-time.Minute)), "round %d: of %s", round,
				got.GeneratedAt)
		}
	}
	check.Equal(t, s.outcomes("miss"), len(paths), "computed reports")
	response := s.Get(paths[0]).Header("If-None-Match", tags[paths[0]]).Send()
	check.Equal(t, response.Status, http.StatusNotModified, "what the client has: %s", response.Text)
}

// TestAStopRecomputesOneSubject stops one of three campaigns: the reports of the others are those that were kept. A
// report with a scorecard and no other parameter is the one from which lists have their status.
func TestAStopRecomputesOneSubject(t *testing.T) {
	s := newServer(t)
	s.apply(programmeOfShop())
	s.visitShop()
	s.fold()
	ask := func() {
		for _, id := range []int{31, 32, 33} {
			s.Get(fmt.Sprintf("/v1/campaigns/%d/results?scorecard=true", id)).Send().RequireStatus(http.StatusOK)
		}
	}
	ask()
	check.Equal(t, s.outcomes("miss"), 3, "computed reports")
	writer := s.newToken(1, 0, catalogue.ScopeWrite)
	s.Post("/v1/campaigns/33/stop", "").Token(writer).Send().RequireStatus(http.StatusOK)
	ask()
	check.Equal(t, s.outcomes("miss"), 4, "computed reports after a stop")
	var list []struct {
		ID     int
		Status struct{ ComputedAt *time.Time }
	}
	s.Get("/v1/campaigns?websiteId=1&include=status").Send().JSON(&list)
	for _, item := range list { // nothing computes the statuses that are asked for
		isKept := item.ID > 30
		check.Equal(t, item.Status.ComputedAt != nil, isKept, "campaign %d has a status", item.ID)
	}
	check.Equal(t, s.outcomes("hit"), 2, "kept reports")
}
