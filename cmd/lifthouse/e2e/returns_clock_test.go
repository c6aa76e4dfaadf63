package e2e

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

// returningCampaigns are campaigns whose orders are cancelled some days later. Visitors of both variations order alike.
type returningCampaigns struct {
	campaigns int
	daily     int        // visitors of a campaign
	rate      float64    // of visitors with an order
	returned  [2]float64 // share of the orders that are cancelled, by variation
	after     [2]int     // days until they are
}

// returningShop has campaigns of some kinds, whose ids follow each other.
type returningShop struct {
	kinds    []returningCampaigns
	start    time.Time // midnight before the first day
	random   *rand.Rand
	visitors int
	later    map[onDay][]string // cancellations that arrive
}

// onDay is a day of a website.
type onDay struct{ website, day int }

// campaignsOfSite is the number of campaigns of each website.
const campaignsOfSite = 10

// size returns the number of campaigns.
func (s *returningShop) size() (n int) {
	for _, of := range s.kinds {
		n += of.campaigns
	}
	return n
}

// names returns the names of the campaigns by website.
func (s *returningShop) names() (names [][]string) {
	for range s.size() / campaignsOfSite {
		names = append(names, campaignNames(campaignsOfSite))
	}
	return names
}

// kindOf returns the index of the kind of a campaign.
func (s *returningShop) kindOf(campaign int) int {
	for i, of := range s.kinds {
		if campaign -= of.campaigns; campaign <= 0 {
			return i
		}
	}
	panic("no such campaign")
}

// eventsOf returns the views and the orders of a day of a website.
func (s *returningShop) eventsOf(website, day int) (lines []string) {
	for campaign := (website-1)*campaignsOfSite + 1; campaign <= website*campaignsOfSite; campaign++ {
		of := &s.kinds[s.kindOf(campaign)]
		for range of.daily {
			s.visitors++
			variation := s.random.IntN(2)
			v := visit{website, s.visitors, timeOfVisit(s.random, s.start, day), exposedTo(campaign, variation)}
			if lines = append(lines, v.view()); s.random.Float64() >= of.rate {
				continue
			}
			if lines = append(lines, v.order("")); s.random.Float64() < of.returned[variation] {
				on := onDay{website, day + of.after[variation]}
				s.later[on] = append(s.later[on], v.order(`,"revision":1,"cancelled":true`))
			}
		}
	}
	return lines
}

// The full days of the campaigns, which the days after the first one are, and those of a look.
const lastVisits, week = 28, 7

// dueLooks returns the number of weekly looks that have ended after a number of full days.
func dueLooks(fullDays int) int { return min(max(fullDays, 0), lastVisits) / week }

// isDue reports whether a look has ended after a number of full days, and not earlier.
func isDue(fullDays int) bool { return dueLooks(fullDays) > dueLooks(fullDays-1) }

// returnsSeen is what the reports of a campaign said so far.
type returnsSeen struct {
	hasConcluded bool   // a winner or a loser, at any time
	alarm        int    // look at whose time the orders were found to be cancelled at other ages; 0: never
	waitsUntil   string // the first date that a sentence of the report named
	onDay        int    // when the alarm was first seen
}

// waitingUntil matches the date in the sentence about a result that waits.
var waitingUntil = regexp.MustCompile(`The result waits until (\d{1,2} \w+ \d{4}), when they have settled\.`)

// note adds what a report says on a day.
func (seen *returnsSeen) note(t *testing.T, r *result.Report, day int) {
	t.Helper()
	said := []string{string(r.Conclusion.Status), string(r.Decision.Status)}
	seen.hasConcluded = seen.hasConcluded || slices.ContainsFunc(said, func(status string) bool {
		return slices.Contains([]string{"winner", "loser", "ship", "rollBack"}, status)
	})
	if len(r.Checks.Returns) == 0 || seen.alarm > 0 {
		return
	}
	seen.alarm, seen.onDay = r.Checks.Returns[0].Look, day
	if found := waitingUntil.FindStringSubmatch(r.Checks.Returns[0].Text); found != nil {
		seen.waitsUntil = found[1]
	}
	if seen.hasConcluded {
		return // which stays
	}
	check.Equal(t, fmt.Sprint(r.Conclusion.Reasons), "[RETURNS_DIFFER]", "reasons of %+v", r.SubjectIDs)
	check.Contains(t, r.Conclusion.Text, "The result waits until "+seen.waitsUntil)
	check.Contains(t, r.Decision.Text, "The result waits until "+seen.waitsUntil)
}

// awaitLooks waits until the recorder has recorded what is due for each campaign: a number of looks, of which those of
// campaigns with an alarm are due when their orders have settled. It notes what the reports say.
func (s *movedServer) awaitLooks(seen []returnsSeen, day, looks, settled int) {
	s.t.Helper()
	for i := range seen {
		r := s.awaitReport(i+1, func(r *result.Report) bool {
			if len(r.Checks.Returns) > 0 {
				return recordedLooks(r) >= settled
			}
			return recordedLooks(r) >= looks
		})
		seen[i].note(s.t, &r, day)
	}
}

// countSeen returns how many campaigns of each kind have concluded, and how many have an alarm.
func (s *returningShop) countSeen(seen []returnsSeen) (concluded, alarms []int) {
	concluded, alarms = make([]int, len(s.kinds)), make([]int, len(s.kinds))
	for i := range seen {
		kind := s.kindOf(i + 1)
		if seen[i].hasConcluded {
			concluded[kind]++
		}
		if seen[i].alarm > 0 {
			alarms[kind]++
		}
	}
	return concluded, alarms
}

// compareDates compares the date that a report named with the day on which the look was recorded for which it waited,
// and returns the number of results that waited.
func (s *movedServer) compareDates(seen []returnsSeen) (waited int) {
	s.t.Helper()
	for i := range seen {
		if seen[i].alarm == 0 {
			continue
		}
		waited++
		r := s.reportOf(i + 1)
		look := r.Looks[seen[i].alarm-1]
		must.That(s.t, look.RecordedAt != nil, "look %d of campaign %d is not recorded", look.Number, i+1)
		check.Equal(s.t, look.RecordedAt.UTC().Format("2 January 2006"), seen[i].waitsUntil, "campaign %d, look %d",
			i+1, look.Number)
	}
	return waited
}

// TestReturnsThatDifferDoNotWin moves the clock of a server over four weekly looks and the days in which orders settle.
// Of 60 campaigns without an effect, 30 % of the orders are cancelled, after 7 days in control and after 14 in the
// treatment. As many conclude as by chance; reports say until which day the others wait, and that is when their look is
// recorded. 20 campaigns whose orders are cancelled at equal ages have no alarm, and a treatment that truly halves
// cancellations wins.
func TestReturnsThatDifferDoNotWin(t *testing.T) {
	tier.OnlyLong(t)
	const settling, lastDay = 30, 59
	const later, equal, halved = 0, 1, 2
	shop := &returningShop{
		kinds: []returningCampaigns{
			later:  {60, 600, .05, [2]float64{.3, .3}, [2]int{7, 14}},
			equal:  {20, 600, .05, [2]float64{.3, .3}, [2]int{7, 7}},
			halved: {10, 1000, .1, [2]float64{.3, .15}, [2]int{7, 7}},
		},
		start: tomorrow(), random: rand.New(rand.NewPCG(76, 1)), later: map[onDay][]string{},
	}
	sites := shop.size() / campaignsOfSite
	s := startMoved(t, shop.start.Add(time.Minute), catalogueOf(shop.start, shop.names()...), sites)
	seen := make([]returnsSeen, shop.size())
	for day := range lastDay + 1 {
		s.clock.set(shop.start.AddDate(0, 0, day).Add(12 * time.Hour))
		for website := 1; website <= sites; website++ {
			if day <= lastVisits {
				s.arrive(website, shop.eventsOf(website, day))
			}
			s.arrive(website, shop.later[onDay{website, day}])
		}
		looks, settled := dueLooks(day-1), dueLooks(day-1-settling)
		if !isDue(day-1) && !isDue(day-1-settling) {
			continue
		}
		s.clock.set(shop.start.AddDate(0, 0, day+1).Add(40 * time.Minute))
		s.awaitLooks(seen, day+1, looks, settled)
		concluded, alarms := shop.countSeen(seen)
		t.Logf("day %d: concluded %v, alarms %v of the campaigns of each kind", day+1, concluded, alarms)
	}
	concluded, alarms := shop.countSeen(seen)
	check.That(t, concluded[later] <= mostByChance(.05, 60), "cancelled later: %d of 60 concluded", concluded[later])
	check.That(t, alarms[later] > 30, "cancelled later: %d of 60 have an alarm", alarms[later])
	check.Equal(t, alarms[equal], 0, "alarms without a difference")
	check.That(t, concluded[equal] <= mostByChance(.05, 20), "no difference: %d of 20 concluded", concluded[equal])
	check.That(t, s.compareDates(seen) > 0, "no result waited")
	winners := 0
	for i := range seen {
		if shop.kindOf(i+1) != halved {
			continue
		}
		if r := s.reportOf(i + 1); r.Conclusion.Status == stats.StatusWinner {
			t.Logf("campaign %d: alarm on day %d; %s", i+1, seen[i].onDay, r.Conclusion.Text)
			winners++
		}
	}
	check.That(t, winners >= 8, "halved cancellations: %d of 10 won", winners)
}
