package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestEstimateOfLaterOrders compares what readings of later orders can detect with the values of all visitors so far.
func TestEstimateOfLaterOrders(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10))
	spent := map[uint64]float64{}
	for day := range 10 {
		events := x.dayOf(day, func(visitor int, goal *schema.Event) {
			goal.Value = int64(1+(visitor*37+day*11)%90) * schema.MoneyScale
		}, 50, 60)
		for i := range events {
			if day == 0 { // the first day of a campaign is not full
				break
			}
			spent[events[i].VisitorID] += float64(events[i].Value) / schema.MoneyScale
		}
		x.storeAtEnd(day, events)
	}
	x.refresh()
	n, mean, squares, buyers := float64(len(spent)), 0.0, 0.0, int64(0)
	for _, value := range spent {
		mean += value / n
		squares += value * value
		if value > 0 {
			buyers++
		}
	}
	c := x.campaign
	c.FollowUp = &catalogue.FollowUp{Metric: "valuePerVisitor", Windows: []schema.ConversionWindow{
		{To: 30 * day}, {To: 90 * day}, {To: 365 * day},
	}}
	owned := *x.catalogue.Snapshot().AccountResources(1)
	owned.Campaigns = map[int64]catalogue.LiveCampaign{c.ID: {Campaign: c}}
	found := must.Get(x.engine.EstimatePlans(t.Context(), &owned, []int64{c.ID}))(t)[c.ID]
	must.That(t, found != nil, "no estimate")
	must.That(t, found.Later != nil, "no estimate of later orders")
	shares := []float64{0.5, 0.5}
	size, _ := stats.NewSampleSize(stats.SamplePlan{
		Control: stats.Mean{
			Visitors: int64(n), Mean: mean, Variance: (squares - n*mean*mean) / (n - 1), Nonzero: buyers,
		},
		Shares: shares, Looks: 1, Power: 0.8,
	}, stats.NewLookDesign(0.05/3, shares))
	want, _ := size.DetectableLift(found.VisitorsPerDay * 28)
	check.That(t, math.Abs(*found.Later / *want - 1) < 1e-9, "a lift of %v, want %v", *found.Later, *want)
	check.Contains(t, found.LaterInWords(), "in value per visitor", "the line")
}

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

// outlook returns the outlook that parameters ask for.
func (x *trial) outlook(parameters string) *result.Outlook {
	x.t.Helper()
	asked := must.Get(query.ParseOutlook(parameters))(x.t)
	asked.WebsiteID = 1
	return must.Get(x.engine.ReadOutlook(x.t.Context(), asked))(x.t)
}

// TestOutlookEqualsApply plans experiments with the rules of new campaigns. Each has the estimate that apply prints for
// the campaign.
func TestOutlookEqualsApply(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10))
	for day := range 10 {
		x.storeValues(day, 50, 60)
	}
	x.refresh()
	for _, test := range []struct {
		name   string
		change func(*catalogue.Campaign)
		asked  string
	}{
		{"four weeks", func(*catalogue.Campaign) {}, ""},
		{"one week at 80/20", func(c *catalogue.Campaign) {
			c.PlannedDays, c.ControlShare = 7, 80
		}, "share=80&share=20"},
		{"three variations", func(c *catalogue.Campaign) {
			c.PlannedDays, c.ControlShare = 84, 34
			c.Variations = append(c.Variations, catalogue.Variation{ID: 2, Name: "Blue", Share: 50, Order: 2})
		}, "share=34&share=33&share=33"},
		{"values at a level of 90 %", func(c *catalogue.Campaign) {
			c.PrimaryMetric, c.SignificanceLevel, c.Power = string(query.ValuePerVisitor), 90, 90
		}, "metric=valuePerVisitor&significanceLevel=90&power=90"},
		{"bayesian", func(c *catalogue.Campaign) {
			c.Methodology, c.MDE = catalogue.Bayesian, 10
		}, "methodology=bayesian&mde=10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := x.campaign
			c.ID, c.PlannedDays = 2, 28
			c.Variations = slices.Clone(c.Variations)
			test.change(&c)
			owned := *x.catalogue.Snapshot().AccountResources(1)
			owned.Campaigns = maps.Clone(owned.Campaigns)
			owned.Campaigns[2] = catalogue.LiveCampaign{Campaign: c}
			applied := must.Get(x.engine.EstimatePlans(t.Context(), &owned, []int64{2}))(t)[2]

			planned := x.outlook(test.asked)
			at := slices.IndexFunc(planned.Weeks,
				func(w result.WeeksOutlook) bool { return w.Weeks*7 == c.PlannedDays })
			found := *planned.Weeks[at].MDE
			check.That(t, math.Abs(found/applied.Detectable-1) <= 1e-9, "the plan finds %v, apply says %v", found,
				applied.Detectable)
			check.Equal(t, planned.Traffic.VisitorsPerDay, applied.VisitorsPerDay, "visitors a day")
			x.also = []catalogue.Campaign{c}
			x.apply()
			ofCampaign := x.outlook("campaign=2")
			check.Equal(t, *ofCampaign.Weeks[at].MDE, *planned.Weeks[at].MDE, "lift found by the plan of the campaign")
			check.Equal(t, ofCampaign.Rules.MDE, c.MDE, "minimum effect of the campaign")
			must.Equal(t, len(planned.Priors), len(applied.Priors), "priors")
			for i := range planned.Priors {
				check.Equal(t, planned.Priors[i].Text, applied.Priors[i].Text, "prior %d", i)
			}
		})
	}
}

// TestOutlookEqualsTheAdvice compares the advice of a programme with the plans of its goal, under the same rules.
func TestOutlookEqualsTheAdvice(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -20))
	for day := range 20 {
		x.storeValues(day, 50, 60)
	}
	x.refresh()
	asked := query.Programme{WebsiteID: 1, GoalID: 1}
	advised := must.Get(x.engine.ReadProgramme(t.Context(), asked))(t).Advice.Plans
	planned := x.outlook("goal=1").Weeks
	must.Equal(t, len(advised), 4, "advised plans")
	for _, plan := range advised {
		at := slices.IndexFunc(planned, func(w result.WeeksOutlook) bool { return w.Weeks == plan.Weeks })
		check.Equal(t, planned[at].WinRate, plan.WinRate, "how often ideas win in %d weeks", plan.Weeks)
		check.Equal(t, *planned[at].WorthPerWeek, *plan.WorthPerWeek, "worth of a week of %d", plan.Weeks)
	}
}

// TestOutlookOfABasis checks from which visitors an outlook is estimated: those of the campaign with the goal and most
// visitors in the last 56 full days.
func TestOutlookOfABasis(t *testing.T) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	x := newTrial(t, today.AddDate(0, 0, -70))
	empty := x.outlook("goal=1&visitorsPerDay=500")
	check.Equal(t, empty.Reason, stats.ReasonNoVisitors, "without any visitors")
	check.That(t, empty.Traffic.Basis == nil, "a basis without any visitors: %+v", empty.Traffic.Basis)
	check.Equal(t, len(empty.Weeks), 0, "lengths without any visitors")

	for day := range 13 { // until 57 days ago
		x.store(day, 50, 50)
	}
	x.refresh()
	_, err := x.engine.ReadOutlook(t.Context(), query.Outlook{
		WebsiteID: 1, GoalID: 1, Metric: query.GoalConversionRate, Methodology: catalogue.Frequentist,
		SignificanceLevel: 95, Power: 80, MDE: 20, Shares: []int{50, 50},
	})
	check.Contains(t, fmt.Sprint(err), "visitorsPerDay: is required: no campaign of the website had visitors in the last",
		"visitors before the last 56 days")
	former := x.outlook("goal=1&visitorsPerDay=500&traffic=40")
	check.Equal(t, former.Traffic.VisitorsPerDay, 200, "40 % of the given visitors")
	check.That(t, former.Traffic.From == nil, "given visitors are of no days: %v", former.Traffic.From)
	check.That(t, math.Abs(*former.Baseline-.1) <= 1e-9, "the baseline of former visitors is %v", *former.Baseline)

	for day := 20; day < 69; day++ { // until yesterday, with another rate
		x.store(day, 100, 100)
	}
	x.refresh()
	recent := x.outlook("goal=1")
	check.Equal(t, recent.Traffic.Basis.CampaignID, 1, "basis")
	check.Equal(t, *recent.Traffic.From, today.AddDate(0, 0, -56), "first day")
	check.Equal(t, *recent.Traffic.To, today, "end of the last day")
	check.Equal(t, recent.Traffic.VisitorsPerDay, 1000*49/56., "visitors a day")
	check.That(t, math.Abs(*recent.Baseline-.2) <= 1e-9, "the baseline of recent visitors is %v", *recent.Baseline)
	check.Equal(t, recent.Traffic.Of, worth.Tested, "visitors without a declared share of the traffic")
	check.Equal(t, recent.WorthReason, worth.ReasonNoValue, "why there is no worth")
	check.That(t, *recent.Best > 0, "best length")

	// A second campaign with fewer visitors is the basis of its own goal only.
	second := x.campaign
	second.ID, second.PrimaryGoalID, second.TrafficAllocation = 2, 2, new(20)
	x.also = []catalogue.Campaign{second}
	x.apply()
	var events []schema.Event
	for visitor := range 700 {
		view := x.view(today.AddDate(0, 0, -7).Add(time.Duration(visitor)*time.Minute), visitor%2)
		view.SubjectID = 2
		events = append(events, view)
		if visitor%7 == 0 {
			goal := goalAfter(view, time.Minute)
			goal.GoalID = 2
			events = append(events, goal)
		}
	}
	x.write(events...)
	check.Equal(t, x.outlook("goal=1").Traffic.Basis.CampaignID, 1, "basis of the first goal")
	of := x.outlook("goal=2&traffic=50")
	check.Equal(t, of.Traffic.Basis.CampaignID, 2, "basis of the second goal")
	check.Equal(t, of.Traffic.Of, worth.AllTraffic, "visitors of a declared share of the traffic")
	check.Equal(t, *of.Traffic.Allocation, 50, "share of the traffic")
	check.Equal(t, of.Traffic.VisitorsPerDay, 700/7*2.5, "visitors of half of the traffic")
}
