package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// start is when the first campaign starts.
var start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// newCampaign returns a campaign with control and a variation of equal shares, which starts a number of days later.
func newCampaign(id int64, days int) *Campaign {
	p := &plan.Plan{
		Rules: plan.Rules{
			Compare: true, Methodology: catalogue.Frequentist, SignificanceLevel: 95, Power: 80,
			MDE: 20,
		},
		ExpectedShares: []float64{.5, .5},
	}
	p.Subject = schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: id}
	p.Declared.Metric = query.GoalConversionRate
	p.Variations = []plan.Variation{
		{ID: 0, Name: "Control", Control: true, Share: 50},
		{ID: 1, Name: "Green", Share: 100},
	}
	p.SharePeriods = []plan.SharePeriod{{Since: plan.OpenFrom, Shares: []float64{.5, .5}}}
	return &Campaign{Plan: p, Name: fmt.Sprint("C", id), Start: start.AddDate(0, 0, days)}
}

// world has campaigns at the same visitors, who convert at a rate for each pair of variations of the first two.
type world struct {
	random    *rand.Rand
	campaigns []*Campaign
	rates     [2][2]float64
	depends   float64 // probability that the second campaign takes the variation of the first one
	visitors  uint64
}

func newWorld(seed uint64, campaigns int) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 76))}
	for id := range campaigns {
		w.campaigns = append(w.campaigns, newCampaign(int64(id+1), 0))
	}
	for i := range w.rates {
		w.rates[i] = [2]float64{.1, .1}
	}
	return w
}

// arrive adds visitors who each see all campaigns.
func (w *world) arrive(visitors int) {
	for range visitors {
		w.visitors++
		variations := make([]uint8, len(w.campaigns))
		for i := range variations {
			variations[i] = uint8(w.random.IntN(2)) //nolint:gosec // 0 or 1
		}
		if w.random.Float64() < w.depends {
			variations[1] = variations[0]
		}
		value := 0.0
		if w.random.Float64() < w.rates[variations[0]][variations[1]] {
			value = 1
		}
		for i, c := range w.campaigns {
			c.Visitors = append(c.Visitors, Visitor{w.visitors, variations[i], value})
		}
	}
}

// alarms returns how many pairs have an alarm about the effect, and about the assignment.
func (w *world) alarms() (effect, assignment int) {
	for _, p := range MeasurePairs(w.campaigns, start.AddDate(0, 0, 60)) {
		if p.Effect >= EffectAlarm {
			effect++
		}
		if p.Assignment >= AssignmentAlarm {
			assignment++
		}
	}
	return effect, assignment
}

// TestCampaignsWithoutInteraction reads 20 campaigns without any effect at many times. The share of worlds with an alarm
// at any time is within the error budget of a website.
func TestCampaignsWithoutInteraction(t *testing.T) {
	worlds, looks := tier.Of(3, 400), tier.Of(6, 12)
	withEffect, withAssignment := 0, 0
	for seed := range uint64(worlds) { //nolint:gosec // few
		w := newWorld(seed, 20)
		anyEffect, anyAssignment := 0, 0
		for range looks {
			w.arrive(500)
			effect, assignment := w.alarms()
			anyEffect, anyAssignment = anyEffect+effect, anyAssignment+assignment
		}
		if anyEffect > 0 {
			withEffect++
		}
		if anyAssignment > 0 {
			withAssignment++
		}
	}
	most := func(rate float64) float64 {
		return rate + 2*math.Sqrt(rate*(1-rate)/float64(worlds))
	}
	t.Logf("worlds with an alarm: effect %d, assignment %d of %d", withEffect, withAssignment, worlds)
	check.That(t, float64(withEffect)/float64(worlds) <= most(.05), "effect: %d of %d worlds", withEffect, worlds)
	check.That(t, float64(withAssignment)/float64(worlds) <= most(.001), "assignment: %d of %d", withAssignment, worlds)
}

// TestInteractionsAreFound has a variation that gains only where visitors also see a variation of another campaign, and
// campaigns whose assignments depend on each other. The power is that of the documentation.
func TestInteractionsAreFound(t *testing.T) {
	worlds := tier.Of(10, 200)
	for _, test := range []struct {
		name                   string
		rates                  [2][2]float64 // by variation of the first and of the second campaign
		depends                float64
		visitors               int
		leastEffect, mostOther float64 // shares of worlds with an alarm about the effect, and about the assignment
		leastAssignment        float64
	}{
		{"+40 % in one of two parts", [2][2]float64{{.1, .1}, {.1, .14}}, 0, 40_000, .9, .05, 0},
		{"the same lift in both", [2][2]float64{{.1, .1}, {.14, .14}}, 0, 20_000, 0, .05, 0},
		{"one in ten takes the other's variation", [2][2]float64{{.1, .1}, {.1, .1}}, .1, 10_000, 0, 1, .9},
	} {
		t.Run(test.name, func(t *testing.T) {
			effects, assignments := 0, 0
			for seed := range uint64(worlds) { //nolint:gosec // few
				w := newWorld(seed, 2)
				w.rates, w.depends = test.rates, test.depends
				w.arrive(test.visitors)
				effect, assignment := w.alarms()
				effects += min(effect, 1)
				assignments += min(assignment, 1)
			}
			t.Logf("alarms: effect %d, assignment %d of %d", effects, assignments, worlds)
			all := float64(worlds)
			check.That(t, float64(effects)/all >= test.leastEffect, "effect: %d of %d", effects, worlds)
			check.That(t, float64(assignments)/all >= test.leastAssignment, "assignment: %d of %d", assignments, worlds)
			if test.leastEffect == 0 {
				check.That(t, float64(effects)/all <= test.mostOther, "effect without an interaction: %d", effects)
			}
		})
	}
}

// TestPairsThatAreNotMeasured checks that campaigns which did not run at the same time, or share few visitors, have no
// pair, and that a later pair does not change the weight of an earlier one.
func TestPairsThatAreNotMeasured(t *testing.T) {
	w := newWorld(1, 3)
	w.arrive(LeastShared)
	now := start.AddDate(0, 0, 60)
	first := MeasurePairs(w.campaigns[:2], now)
	must.Equal(t, len(first), 2, "a pair in both directions")
	w.campaigns[2].Start = start.AddDate(0, 0, 10)
	all := MeasurePairs(w.campaigns, now)
	must.Equal(t, len(all), 6, "three pairs in both directions")
	check.Equal(t, all[0].Effect, first[0].Effect, "evidence of the first pair")
	w.campaigns[0].End = start.AddDate(0, 0, 5)
	check.Equal(t, len(MeasurePairs(w.campaigns, now)), 4, "the first and the third did not run at the same time")
	for _, c := range w.campaigns {
		c.Visitors = c.Visitors[:LeastShared-1]
	}
	check.Equal(t, len(MeasurePairs(w.campaigns, now)), 0, "few shared visitors")
}

// BenchmarkPairs measures 190 pairs of 20 campaigns with 100,000 visitors each.
func BenchmarkPairs(b *testing.B) {
	w := newWorld(1, 20)
	w.arrive(100_000)
	for b.Loop() {
		MeasurePairs(w.campaigns, start.AddDate(0, 0, 60))
	}
}
