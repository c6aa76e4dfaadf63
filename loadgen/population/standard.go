package population

import (
	"fmt"
	"math"
	"slices"
	"time"

	"lifthouse/schema/catalogue"
)

// StandardCampaign is the id of the large campaign of the standard data set.
const StandardCampaign = 12

// Size of the standard data set.
const (
	standardVisitors     = 5_000_000 // of the large campaign
	standardSmall        = 200       // small campaigns
	standardSmallest     = 3_700     // visitors of the smallest campaign
	standardLargestSmall = 17_000    // visitors of the largest small campaign
	standardWebsites     = 10
	standardDays         = 60
	standardFirstSmall   = 101 // id of the first small campaign
	growingWebsite       = standardWebsites + 1
	growingFirstCampaign = 1001
	goalIDsPerWebsite    = 10 // goal ids reserved per website
)

// growingVisitors are the numbers of visitors of the campaigns of GrowingScenario.
// Each is larger than the previous one by half a power of ten.
var growingVisitors = []int{50_000, 158_000, 500_000, 1_580_000}

// StandardScenario returns the standard data set, which makes benchmark results
// comparable. All numbers of visitors are multiplied by scale. At scale 1, one
// campaign has 5 million visitors and about 28 million events, and 200 small
// campaigns have 3,700 to 17,000 visitors. There are 10 websites and 60 days.
// Visitors have 1 to 80 events.
func StandardScenario(scale float64, seed uint64) Scenario {
	s := standardWebsitesOf(seed)
	s.addLarge(scale)
	for i := range standardSmall {
		s.addSmall(i, standardSmall, i%standardWebsites, scale)
	}
	return s
}

// endedShare is the share of ended campaigns of ManyScenario, in per cent.
const endedShare = 80

// ManyScenario returns the standard data set with another number of campaigns, the large one among them. 80 % of them have
// ended. The others run, all on the first website.
func ManyScenario(campaigns int, scale float64, seed uint64) Scenario {
	s := standardWebsitesOf(seed)
	s.addLarge(scale)
	ended := campaigns * endedShare / 100
	for i := range campaigns - 1 {
		if i < ended {
			s.addSmall(i, campaigns-1, i%standardWebsites, scale).Ended = true
		} else {
			s.addSmall(i, campaigns-1, 0, scale)
		}
	}
	return s
}

// addLarge adds the large campaign.
func (s *Scenario) addLarge(scale float64) {
	s.addStandard(0, StandardCampaign, "Large", standardVisitors*scale)
}

// addSmall adds a small campaign, the i-th of some.
func (s *Scenario) addSmall(i, of, website int, scale float64) *Campaign {
	visitors := float64(standardSmallest + (standardLargestSmall-standardSmallest)*i/max(of-1, 1))
	return s.addStandard(website, int64(standardFirstSmall+i), fmt.Sprintf("Small %d", i+1), visitors*scale)
}

// addStandard adds a campaign to a website.
func (s *Scenario) addStandard(website int, id int64, name string, visitors float64) *Campaign {
	site := &s.Websites[website]
	site.Campaigns = append(site.Campaigns, Campaign{ID: id, Name: name, PrimaryGoalID: site.Goals[0].ID, Split: Split{
		Visitors: int(math.Round(visitors)), ControlShare: 50, Variations: []Variation{{1, "Variation", 100}},
	}})
	return &site.Campaigns[len(site.Campaigns)-1]
}

// standardWebsitesOf returns the websites of the standard data set without campaigns.
func standardWebsitesOf(seed uint64) Scenario {
	s := Scenario{
		Seed: seed, Start: catalogue.Date{Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}, Days: standardDays, standard: true,
		Traffic: Traffic{Views: 1, MultipleExposures: 0.01, SourceChanges: 0.03},
	}
	for w := range standardWebsites {
		site := Website{ID: int64(w + 1), Domain: fmt.Sprintf("site%d.example.com", w+1)}
		for g, name := range []string{"Purchase", "Newsletter", "Add to cart", "Contact", "Account"} {
			goal := Goal{ID: int64(goalIDsPerWebsite*w + g + 1), Name: name}
			if g == 0 {
				goal.Value = 30
				goal.Spread = 0.9
				goal.Margin = 0.3
				goal.Noise = 0.25
			}
			site.Goals = append(site.Goals, goal)
		}
		s.Websites = append(s.Websites, site)
	}
	return s
}

// GrowingScenario returns campaigns like the large campaign of the standard data set,
// with 50,000 to 1,580,000 visitors multiplied by scale. They belong to a website of
// their own, so they can be added to the standard data set.
func GrowingScenario(scale float64, seed uint64) Scenario {
	s := StandardScenario(scale, seed)
	site := s.Websites[0]
	site.ID = growingWebsite
	site.Domain = "growing.example.com"
	campaign := site.Campaigns[0]
	site.Campaigns = nil
	goals := slices.Clone(site.Goals)
	for i := range goals {
		goals[i].ID += goalIDsPerWebsite * (growingWebsite - 1)
	}
	site.Goals = goals
	for i, visitors := range growingVisitors {
		campaign.ID = growingFirstCampaign + int64(i)
		campaign.Name = fmt.Sprintf("Growing %d", i+1)
		campaign.PrimaryGoalID = goals[0].ID
		campaign.Visitors = int(float64(visitors) * scale)
		site.Campaigns = append(site.Campaigns, campaign)
	}
	s.Websites = []Website{site}
	return s
}

// GrowingCampaigns returns the ids of the campaigns of GrowingScenario, smallest first,
// followed by StandardCampaign.
func GrowingCampaigns() []int64 {
	var ids []int64
	for i := range growingVisitors {
		ids = append(ids, growingFirstCampaign+int64(i))
	}
	return append(ids, StandardCampaign)
}

// Behaviour of the visitors of the standard data set.
const (
	standardLaterEvents    = 5.1 // mean of the exponential number of later events, before rounding down
	standardMaxLaterEvents = 79
	standardGoalShare      = 0.22 // share of goals among later events
	standardMinutesShare   = 0.7  // share of gaps of minutes; other gaps are days
)

// standardVisits generates the events of a visitor of the standard data set: a
// view, then views and goals, minutes or days apart. The last event of a
// visitor with multiple exposures is a view of another variation.
func (g *generator) standardVisits() {
	later := min(int(g.ExpFloat64()*standardLaterEvents), standardMaxLaterEvents)
	multiple := g.drawMultipleExposures()
	if multiple {
		later = max(later, 1)
	}
	at := g.drawTime(g.IntN(g.scenario.Days))
	end := g.start.AddDate(0, 0, g.scenario.Days)
	g.addView(at, g.variation.id)
	for n := range later {
		gap := time.Minute + time.Duration(g.ExpFloat64()*float64(5*time.Minute))
		if days := 12*time.Hour + time.Duration(g.ExpFloat64()*float64(24*time.Hour)); g.Float64() >= standardMinutesShare && at.Add(days).Before(end) {
			gap = days
		}
		at = at.Add(gap).Truncate(time.Millisecond)
		if g.Float64() < g.scenario.Traffic.SourceChanges {
			drawSource(g.Rand, &g.visitAttributes)
		}
		switch {
		case multiple && n == later-1:
			g.addView(at, g.drawOtherVariation())
		case g.Float64() < standardGoalShare:
			goal := g.outcomes[g.IntN(len(g.outcomes))].Goal
			g.addEvent(Event{Event: g.goalEvent(goal, goal.Value, at)})
		default:
			g.addView(at, g.variation.id)
		}
	}
}
