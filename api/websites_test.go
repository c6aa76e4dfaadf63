package api_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"lifthouse/engine/worth"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const websitesPath = "/v1/websites?include=status"

// listedWebsite is a website of the list with what is due there.
type listedWebsite struct {
	ID     int64
	Status struct {
		ToDecide, Attention, Running, NotStarted, Done, Undeclared int
		AtStake, Shipped                                           *struct {
			Expected float64
			Interval [2]float64
		}
		SilentSources *[]struct{ Name string }
		NextLooks     []struct {
			Day   string
			Count int
		}
		LastDecision *struct{ At, Name string }
		Reason       string
	}
}

// listedWebsites returns the websites with their statuses.
func (s *server) listedWebsites() map[int64]listedWebsite {
	s.t.Helper()
	found := map[int64]listedWebsite{}
	text := s.Get(websitesPath).Send().RequireStatus(http.StatusOK).Text
	for _, w := range must.JSON[[]listedWebsite](s.t, text) {
		found[w.ID] = w
	}
	return found
}

// TestWebsitesSayWhatIsDue compares the statuses of websites with all results and with their programmes.
func TestWebsitesSayWhatIsDue(t *testing.T) {
	s := newShops(t)
	check.Equal(t, s.listedWebsites()[1].Status.Reason, "NOT_COMPUTED", "before anything is computed")
	var following sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	following.Go(func() { s.listed.FollowQueue(ctx) })
	for s.listedWebsites()[1].Status.Reason != "" { // it asks for what is missing
		runtime.Gosched()
	}
	stop()
	following.Wait()
	type item struct {
		WebsiteID, CampaignID int64
		Active                bool
		StartDate             *string
		Status                struct {
			Decision *struct {
				Status      string
				VariationID *int64
			}
			Health []string
		}
		NextLook *struct{ End time.Time }
		Worth    *struct{ Items []worth.Item }
	}
	asked := s.Get(bulkPath + "?field=nextLook&field=worth").Send().RequireStatus(http.StatusOK)
	items := must.JSON[[]item](t, asked.Text)
	programmes := map[int64]worth.Programme{}
	for id := range int64(3) {
		programmes[id+1] = must.JSON[worth.Programme](t,
			s.Get(fmt.Sprintf("/v1/websites/%d/worth", id+1)).Send().RequireStatus(http.StatusOK).Text)
	}
	all := s.listedWebsites()
	must.Equal(t, len(all), 3, "websites")
	for id, of := range all {
		counted := of.Status.ToDecide + of.Status.Attention + of.Status.Running + of.Status.NotStarted + of.Status.Done
		done := 0
		looks := 0
		expected := 0.
		for _, i := range items {
			if i.WebsiteID != id {
				continue
			}
			counted--
			if !i.Active && i.StartDate != nil {
				done++
			}
			if i.NextLook != nil && i.NextLook.End.After(time.Now()) {
				looks++
			}
			decision := i.Status.Decision
			if decision == nil || decision.Status != "ship" || i.Worth == nil {
				continue
			}
			for k := range i.Worth.Items {
				w := &i.Worth.Items[k]
				if w.VariationID == *decision.VariationID && w.Expected != nil && w.Expected.ValuePerMonth != nil {
					expected += w.Expected.ValuePerMonth.Value
				}
			}
		}
		check.Equal(t, counted, 0, fmt.Sprint("items of website ", id, " in no group or in several"))
		check.Equal(t, of.Status.Done, done, fmt.Sprint("stopped ones of website ", id))
		for _, day := range of.Status.NextLooks {
			looks -= day.Count
		}
		check.Equal(t, looks, 0, fmt.Sprint("looks of website ", id))
		if stake := of.Status.AtStake; stake != nil {
			check.That(t, math.Abs(stake.Expected-expected) <= 1e-9*math.Abs(expected), "%v, want %v", stake, expected)
			check.That(t, stake.Interval[0] < stake.Expected, "%v", stake)
			check.That(t, stake.Interval[1] > stake.Expected, "%v", stake)
		} else {
			check.Equal(t, expected, 0, fmt.Sprint("at stake on website ", id))
		}
		total := programmes[id].Total.ValuePerMonth
		check.Equal(t, of.Status.Shipped == nil, total == nil, fmt.Sprint("shipped on website ", id))
		if total != nil && of.Status.Shipped != nil {
			check.Equal(t, of.Status.Shipped.Expected, total.Expected)
			check.Equal(t, of.Status.Shipped.Interval, total.Interval)
		}
		check.That(t, of.Status.SilentSources == nil, "a source was heard: %v", of.Status.SilentSources)
	}

	own := s.Get(websitesPath).Token(s.newToken(1, 2, catalogue.ScopeRead)).Send().RequireStatus(http.StatusOK)
	check.Equal(t, len(must.JSON[[]listedWebsite](t, own.Text)), 1, "websites of a token of one")
	s.Get("/v1/websites?include=stats&colour=red").Undocumented().Send().CheckStatus(http.StatusBadRequest)
}
