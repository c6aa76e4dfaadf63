package loadgen

import (
	"fmt"
	"math"
	"time"

	"lifthouse/schema/catalogue"
)

// The size of the standard data set.
const (
	StandardCampaign = 12 // the large one

	standardVisitors  = 5_000_000
	standardCampaigns = 200 // small ones, of standardLeast to standardMost visitors
	standardLeast     = 3_700
	standardMost      = 17_000
	standardWebsites  = 10
	standardDays      = 60
	standardFirst     = 101 // id of the first small campaign
)

// Standard is the standard data set, times the scale: one campaign of 5
// million visitors and about 28 million events, and 200 small ones, over 10
// websites and 60 days. A visitor has 1 to 80 events; what they are like says
// liveStandard.
func Standard(scale float64, seed uint64) Scenario {
	s := Scenario{
		Seed: seed, Start: catalogue.Date{Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}, Days: standardDays, Account: 1, standard: true,
		Traffic: Traffic{Views: 1, Crossovers: 0.01, SourceChanges: 0.03},
	}
	for w := range standardWebsites {
		site := Website{ID: int64(w + 1), Domain: fmt.Sprintf("site%d.example.com", w+1)}
		for g, name := range []string{"Purchase", "Newsletter", "Add to cart", "Contact", "Account"} {
			goal := Goal{ID: int64(10*w + g + 1), Name: name}
			if g == 0 {
				goal.Value, goal.Spread, goal.Margin, goal.Noise = 30, 0.9, 0.3, 0.25
			}
			site.Goals = append(site.Goals, goal)
		}
		s.Websites = append(s.Websites, site)
	}
	add := func(w int, id int64, name string, visitors float64) {
		site := &s.Websites[w]
		site.Campaigns = append(site.Campaigns, Campaign{ID: id, Name: name, PrimaryGoalID: site.Goals[0].ID, Split: Split{
			Visitors: int(math.Round(visitors * scale)), ControlShare: 50, Variations: []SplitPart{{1, "Variation", 100}},
		}})
	}
	add(0, StandardCampaign, "Large", standardVisitors)
	for i := range standardCampaigns {
		visitors := standardLeast + (standardMost-standardLeast)*i/(standardCampaigns-1)
		add(i%standardWebsites, int64(standardFirst+i), fmt.Sprintf("Small %d", i+1), float64(visitors))
	}
	return s
}

// How the visitors of the standard data set behave.
const (
	meanLaterEvents = 5.1 // of an exponential, cut off to whole events
	mostLaterEvents = 79
	goalShare       = 0.22 // of the later events
	minutesShare    = 0.7  // of the gaps; the others are days
)

// liveStandard makes the events of a visitor of the standard data set: a view,
// then views and goals, minutes or days apart. A crossover's last event is a
// view of the other variation.
func (m *maker) liveStandard() {
	later := min(int(m.ExpFloat64()*meanLaterEvents), mostLaterEvents)
	crosses := m.crosses()
	if crosses {
		later = max(later, 1)
	}
	at := m.moment(m.IntN(m.scenario.Days))
	end := m.firstTime.AddDate(0, 0, m.scenario.Days)
	m.view(at, m.arm.id)
	for n := range later {
		pause := time.Minute + time.Duration(m.ExpFloat64()*float64(5*time.Minute))
		if days := 12*time.Hour + time.Duration(m.ExpFloat64()*float64(24*time.Hour)); m.Float64() >= minutesShare && at.Add(days).Before(end) {
			pause = days
		}
		at = at.Add(pause).Truncate(time.Millisecond)
		if m.Float64() < m.scenario.Traffic.SourceChanges {
			drawSource(m.Rand, &m.visit)
		}
		switch {
		case crosses && n == later-1:
			m.view(at, m.other())
		case m.Float64() < goalShare:
			goal := m.outcomes[m.IntN(len(m.outcomes))].Goal
			m.add(Event{Event: m.goalEvent(goal, goal.Value, at)})
		default:
			m.view(at, m.arm.id)
		}
	}
}
