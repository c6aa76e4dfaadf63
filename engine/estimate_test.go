package engine

import (
	"maps"
	"math"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestEstimatePlans estimates the plans of new campaigns from the visitors of another one of their website, and of a
// campaign from its own.
func TestEstimatePlans(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10))
	known := x.catalogue.Snapshot().AccountResources(1)
	estimate := func(change func(*catalogue.Campaign)) (lift, daily float64, days int) {
		t.Helper()
		c := x.campaign
		c.ID, c.TrafficAllocation = 2, new(50)
		change(&c)
		owned := *known
		owned.Campaigns = maps.Clone(known.Campaigns)
		traffic := known.Campaigns[1]
		traffic.TrafficAllocation = new(100)
		owned.Campaigns[1] = traffic
		owned.Campaigns[c.ID] = catalogue.LiveCampaign{Campaign: c}
		all := must.Get(x.engine.EstimatePlans(t.Context(), &owned, []int64{c.ID}))(t)
		found := all[c.ID]
		if found == nil {
			return 0, 0, 0
		}
		return found.Detectable, found.VisitorsPerDay, found.Days
	}
	same := func(*catalogue.Campaign) {}
	if lift, _, _ := estimate(same); lift != 0 {
		t.Errorf("a lift of %v without visitors", lift)
	}
	for day := range 10 {
		x.store(day, 50, 50)
	}
	x.refresh()
	// The traffic of the whole website is 1,000 visitors a day, of which the campaign has half.
	want := func(shares []float64, looks int, n float64) float64 {
		size, reason := stats.NewSampleSize(stats.SamplePlan{
			Control: stats.Rate{Visitors: 5000, Converted: 500}, Shares: shares, Looks: looks, Power: 0.8,
		}, stats.NewLookDesign(0.05, shares))
		if reason != "" {
			t.Fatal(reason)
		}
		lift, _ := size.DetectableLift(n)
		return *lift
	}
	for _, test := range []struct {
		name   string
		change func(*catalogue.Campaign)
		shares []float64
		looks  int
		daily  float64
		days   int
	}{
		{"four weeks", same, []float64{0.5, 0.5}, 4, 500, 28},
		{"one week at 80/20", func(c *catalogue.Campaign) { c.PlannedDays, c.ControlShare = 7, 80 }, []float64{0.8, 0.2}, 1, 500, 7},
		{"a number of visitors", func(c *catalogue.Campaign) { c.PlannedVisitors = 7000 }, []float64{0.5, 0.5}, 2, 500, 14},
		{"all of the traffic", func(c *catalogue.Campaign) { c.TrafficAllocation = new(100) }, []float64{0.5, 0.5}, 4, 1000, 28},
		{"its own visitors", func(c *catalogue.Campaign) { c.ID, c.TrafficAllocation = 1, new(100) }, []float64{0.5, 0.5}, 4, 1000, 28},
		{"an undeclared share", func(c *catalogue.Campaign) { c.TrafficAllocation = nil }, []float64{0.5, 0.5}, 4, 1000, 28},
	} {
		lift, daily, days := estimate(test.change)
		expected := want(test.shares, test.looks, test.daily*float64(test.days))
		check.That(t, math.Abs(lift/expected-1) <= 1e-9, "%s: %v in %d days at %v visitors a day; want %v in %d days at %v", test.name, lift, days, daily, expected, test.days, test.daily)
		check.Equal(t, daily, test.daily, "%s: %v in %d days at %v visitors a day; want %v in %d days at %v", test.name, lift, days, daily, expected, test.days, test.daily)
		check.Equal(t, days, test.days, "%s: %v in %d days at %v visitors a day; want %v in %d days at %v", test.name, lift, days, daily, expected, test.days, test.daily)
	}
	if lift, _, _ := estimate(func(c *catalogue.Campaign) { c.PrimaryGoalID = 2 }); lift != 0 {
		t.Errorf("a lift of %v of a goal without events", lift)
	}
	lift, _, _ := estimate(func(c *catalogue.Campaign) { c.PrimaryGoalID = 9 })
	check.That(t, lift == 0, "a lift of %v of an unknown goal", lift)
}
