package e2e

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// sharedSite is a website whose visitors all see each of its campaigns.
type sharedSite struct {
	names    []string // of the campaigns
	first    int      // id of the first campaign
	daily    int      // visitors
	visitors int      // so far
	// assign changes the variations that were drawn; nil: it does not
	assign func(random *rand.Rand, variations []int)
	// rate returns the share of visitors with an order; nil: all campaigns have no effect
	rate func(variations []int) float64
}

// eventsOf returns the events of a day, with visitors whose ids follow a number.
func (s *sharedSite) eventsOf(random *rand.Rand, website int, start time.Time, day, after int) (lines []string) {
	for i := range s.daily {
		variations, exposures := make([]int, len(s.names)), make([]string, len(s.names))
		for c := range variations {
			variations[c] = random.IntN(2)
		}
		if s.assign != nil {
			s.assign(random, variations)
		}
		for c, variation := range variations {
			exposures[c] = exposedTo(s.first+c, variation)
		}
		v := visit{website, after + i + 1, timeOfVisit(random, start, day), strings.Join(exposures, ",")}
		rate := .1
		if s.rate != nil {
			rate = s.rate(variations)
		}
		if lines = append(lines, v.view()); random.Float64() < rate {
			lines = append(lines, v.order(""))
		}
	}
	s.visitors += s.daily
	return lines
}

// interactionAlarm is a message about an interaction of a campaign.
type interactionAlarm struct {
	day  int // when it was first seen
	text string
}

// noteAlarms adds the messages about interactions of a website that were not seen yet, by campaign and text.
func (s *movedServer) noteAlarms(alarms map[int][]interactionAlarm, noted map[string]bool, day int) {
	s.t.Helper()
	var sent []struct {
		Message, Event string
		Data           struct {
			CampaignID  int
			Check, Text string
		}
	}
	s.get("/deliveries", s.read, &sent)
	for _, m := range sent {
		if noted[m.Message] || m.Event != "check.failed" || m.Data.Check != "interactions" {
			continue
		}
		noted[m.Message] = true
		alarms[m.Data.CampaignID] = append(alarms[m.Data.CampaignID], interactionAlarm{day, m.Data.Text})
		s.t.Logf("day %d, campaign %d: %s", day, m.Data.CampaignID, m.Data.Text)
	}
}

// awaitVisitors waits until the reports of a website have all of its visitors.
func (s *movedServer) awaitVisitors(of *sharedSite) {
	s.t.Helper()
	for range time.Tick(500 * time.Millisecond) {
		var r result.Report
		s.get(fmt.Sprintf("/v1/campaigns/%d/results", of.first), s.read, &r)
		if r.Totals.Visitors == int64(of.visitors) {
			return
		}
		must.OK(s.t, s.t.Context().Err())
	}
}

// awaitMeasured waits until the log says that the interactions of a website were measured on the day of a time.
func (s *movedServer) awaitMeasured(website int, on time.Time) {
	s.t.Helper()
	s.log.await(s.t, regexp.MustCompile(fmt.Sprintf(`time=%s\S+ level=INFO msg="interactions measured" website=%d `,
		on.Format(time.DateOnly), website)))
}

// newSharedSites returns some websites with 20 campaigns without any effect; one where the banner gains only where
// visitors also see the sticky header; and one where a quarter of the visitors see the variation of the search that
// they see of the menu.
func newSharedSites(quiet int) (sites []*sharedSite) {
	for range quiet {
		sites = append(sites, &sharedSite{names: campaignNames(20), daily: 200})
	}
	disturbed := &sharedSite{
		names: []string{"Wide images", "Free delivery banner", "Reviews", "Sticky header"}, daily: 300,
		rate: func(variations []int) float64 { return .1 + .08*float64(variations[1]*variations[3]) },
	}
	dependent := &sharedSite{
		names: []string{"Colours", "Menu", "Fonts", "Search"}, daily: 300,
		assign: func(random *rand.Rand, variations []int) {
			if random.IntN(4) == 0 {
				variations[3] = variations[1]
			}
		},
	}
	sites = append(sites, disturbed, dependent)
	first := 1
	for _, of := range sites {
		of.first = first
		first += len(of.names)
	}
	return sites
}

// TestCampaignsThatDisturbEachOtherAreFound moves the clock of a server over 60 days, on each of which it measures the
// pairs of campaigns of some websites. Those of websites without an interaction have no alarm but by chance. Lifts that
// depend on another campaign are found, and so are assignments, by messages, reports and lists.
func TestCampaignsThatDisturbEachOtherAreFound(t *testing.T) {
	tier.OnlyLong(t)
	const quiet, days, leastShared = 1, 60, 1000
	sites, start, random := newSharedSites(quiet), tomorrow(), rand.New(rand.NewPCG(76, 3))
	var names [][]string
	for _, of := range sites {
		names = append(names, of.names)
	}
	s := startMoved(t, start.Add(time.Minute), catalogueOf(start, names...), len(sites))
	alarms, noted := map[int][]interactionAlarm{}, map[string]bool{}
	visitors := 0
	for day := range days + 1 { // on the last one, no events arrive
		s.clock.set(start.AddDate(0, 0, day).Add(12 * time.Hour))
		for i, of := range sites {
			if day == days {
				break
			}
			s.arrive(i+1, of.eventsOf(random, i+1, start, day, visitors))
			visitors += of.daily
		}
		for _, of := range sites {
			s.awaitVisitors(of)
		}
		s.noteAlarms(alarms, noted, day)
		night := start.AddDate(0, 0, day+1).Add(40 * time.Minute)
		s.clock.set(night)
		for i, of := range sites {
			if day > 0 && of.visitors >= leastShared {
				s.awaitMeasured(i+1, night)
			}
		}
		if day%10 == 0 {
			t.Logf("day %d: the interactions of %d visitors are measured", day+1, visitors)
		}
	}
	s.noteAlarms(alarms, noted, days+1)
	s.checkQuietSites(sites[:quiet], alarms)
	s.checkFoundPair(quiet+1, sites[quiet], alarms, result.InteractionOfEffect, "Decide both together")
	s.checkFoundPair(quiet+2, sites[quiet+1], alarms, result.InteractionOfAssignment, "Give each campaign its own seed")
}

// checkQuietSites checks how many websites without an interaction ever had an alarm.
func (s *movedServer) checkQuietSites(sites []*sharedSite, alarms map[int][]interactionAlarm) {
	s.t.Helper()
	withEffect, withAssignment := 0, 0
	for _, of := range sites {
		effect, assignment := 0, 0
		for c := range of.names {
			for _, a := range alarms[of.first+c] {
				if strings.HasPrefix(a.text, "The lift of ") {
					effect++
				} else {
					assignment++
				}
			}
		}
		withEffect, withAssignment = withEffect+min(effect, 1), withAssignment+min(assignment, 1)
	}
	s.t.Logf("websites without an interaction with an alarm: lift %d, assignment %d of %d", withEffect, withAssignment,
		len(sites))
	check.Equal(s.t, withAssignment, 0, "websites with an alarm about the assignment")
	check.That(s.t, withEffect <= mostByChance(.05, len(sites)), "%d of %d websites have an alarm about the lift",
		withEffect, len(sites))
}

// checkFoundPair checks that the second and the fourth campaign of a website have an alarm of a kind about each other,
// in the messages, the reports and the list. All sentences name both campaigns and say what to do. The other campaigns
// have no alarm.
func (s *movedServer) checkFoundPair(
	website int, of *sharedSite, alarms map[int][]interactionAlarm, kind, advice string,
) {
	s.t.Helper()
	var listed []struct {
		ID     int
		Status struct{ Health []string }
	}
	s.get(fmt.Sprintf("/v1/campaigns?include=status&websiteId=%d", website), s.read, &listed)
	for c, name := range of.names {
		id := of.first + c
		isDisturbed := c == 1 || c == 3
		found := s.reportOf(id).Checks.Interactions
		hasListed := false
		for _, l := range listed {
			hasListed = hasListed || l.ID == id && strings.Contains(fmt.Sprint(l.Status.Health), "INTERACTION")
		}
		check.Equal(s.t, len(found) > 0, isDisturbed, "%s: the report has an interaction", name)
		check.Equal(s.t, hasListed, isDisturbed, "%s: the list has an interaction", name)
		check.Equal(s.t, len(alarms[id]) > 0, isDisturbed, "%s: a message has an interaction", name)
		if !isDisturbed || len(found) == 0 || len(alarms[id]) == 0 {
			continue
		}
		other := of.names[1+3-c]
		check.Equal(s.t, found[0].Kind, kind, "%s: kind", name)
		check.Equal(s.t, found[0].Name, other, "%s: the other campaign", name)
		s.t.Logf("%s: found on day %d; on the last day %s", name, alarms[id][0].day, found[0].Text)
		for _, text := range []string{found[0].Text, alarms[id][0].text} {
			check.Contains(s.t, text, fmt.Sprintf("of %q", name))
			check.Contains(s.t, text, fmt.Sprintf("depends on %q", other))
			check.Contains(s.t, text, advice)
		}
	}
}
