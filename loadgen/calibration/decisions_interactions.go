package calibration

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"lifthouse/engine/interaction"
)

// daysOfInteractions is how long campaigns run at the same time. They are compared at the end of each day.
const daysOfInteractions = 60

// crossing has concurrent campaigns of a website with the same audience and two equal shares. Each visitor sees all of
// them, and the value of the visitor counts for each, so the pairs depend on each other as much as they can.
type crossing struct {
	*campaign
	campaigns int
	visitors  int     // a day; a multiple of 64
	gains     float64 // lift of each variation, upwards and downwards in turn; pairs do not change each other's lift
	// The first and the second campaign, or the last two. The variation of one has two lifts: where visitors see control of
	// the other, and where they see its variation.
	areLast bool
	lifts   [2]float64
	follows float64 // share of the visitors who get the variation of one in the other, too
}

// pair returns the indices of the campaigns that disturb each other.
func (c *crossing) pair() (of, by int) {
	if c.areLast {
		return c.campaigns - 2, c.campaigns - 1
	}
	return 0, 1
}

// crowd has the visitors of concurrent campaigns, as sums.
type crowd struct {
	*crossing
	random    *rand.Rand
	campaigns []*interaction.Campaign
	cells     [][][2][2]interaction.Cell // by campaign and later campaign, and variation of each
	seen      []uint64                   // the variations of 64 visitors, by campaign
}

// newCrowdFunc returns a function that returns the campaigns without visitors. Where only the lifts are asked about, their
// shares have changed: then the splits are not measured, which takes most of the time.
func (c *crossing) newCrowdFunc(measure string) func(*rand.Rand) *crowd {
	var campaigns []*interaction.Campaign
	for i := range c.campaigns {
		p := *c.reportPlan().DeclaredPlan()
		p.Subject.ID = int64(i)
		if measure == alarmOfEffect {
			p.SharePeriods = slices.Repeat(p.SharePeriods, 2)
		}
		campaigns = append(campaigns, &interaction.Campaign{Plan: &p, Start: noon})
	}
	return func(random *rand.Rand) *crowd {
		w := &crowd{crossing: c, random: random, campaigns: campaigns, seen: make([]uint64, c.campaigns)}
		for range campaigns {
			w.cells = append(w.cells, make([][2][2]interaction.Cell, c.campaigns))
		}
		return w
	}
}

// addDay adds the visitors of a day, 64 at a time.
func (w *crowd) addDay() {
	for range w.visitors / 64 {
		for i := range w.seen {
			w.seen[i] = w.random.Uint64()
		}
		of, by := w.pair()
		if w.follows > 0 {
			same := w.drawBits(func(int) float64 { return w.follows })
			w.seen[by] = w.seen[by]&^same | w.seen[of]&same
		}
		converted := w.drawBits(w.rateOf)
		for i, a := range w.seen {
			for j := i + 1; j < len(w.seen); j++ {
				b := w.seen[j]
				cells := &w.cells[i][j]
				for k, both := range [4]uint64{^a & ^b, ^a & b, a & ^b, a & b} {
					cell := &cells[k/2][k%2]
					cell.Visitors += int64(bits.OnesCount64(both))
					cell.Nonzero += int64(bits.OnesCount64(both & converted))
				}
			}
		}
		if w.revenue {
			w.addOrders(converted)
		}
	}
}

// drawBits returns 64 bits that are set with the probabilities of visitors.
func (w *crowd) drawBits(probability func(visitor int) float64) (drawn uint64) {
	for v := range 64 {
		if w.random.Float64() < probability(v) {
			drawn |= 1 << v
		}
	}
	return drawn
}

// rateOf returns the probability that a visitor converts.
func (w *crowd) rateOf(visitor int) float64 {
	rate := w.buyers
	if w.gains != 0 {
		for i, variations := range w.seen {
			if variations>>visitor&1 == 1 {
				rate *= 1 + w.gains*float64(1-2*(i%2))
			}
		}
	}
	if of, by := w.pair(); w.seen[of]>>visitor&1 == 1 {
		rate *= 1 + w.lifts[w.seen[by]>>visitor&1]
	}
	return rate
}

// addOrders adds the order of each visitor who converted.
func (w *crowd) addOrders(converted uint64) {
	for ; converted != 0; converted &= converted - 1 {
		visitor := bits.TrailingZeros64(converted)
		order := w.drawOrders(w.random, 1, 1)
		for i, a := range w.seen {
			for j := i + 1; j < len(w.seen); j++ {
				cell := &w.cells[i][j][a>>visitor&1][w.seen[j]>>visitor&1]
				cell.Sum += order.sum
				cell.Squares += order.squares
			}
		}
	}
}

// sumsOf returns the sums of two campaigns by variation of each.
func (w *crowd) sumsOf(of, by *interaction.Campaign) [][]interaction.Cell {
	i, j := of.Plan.Subject.ID, by.Plan.Subject.ID
	cells := [][]interaction.Cell{make([]interaction.Cell, 2), make([]interaction.Cell, 2)}
	for a := range cells {
		for b := range cells[a] {
			if i < j {
				cells[a][b] = w.cells[i][j][a][b]
			} else {
				cells[a][b] = w.cells[j][i][b][a]
			}
		}
	}
	return cells
}

// The measures of interactions.
const (
	alarmOfEffect     = "alarm about a lift"
	alarmOfAssignment = "alarm about a split"
)

// everAlarms reports whether any pair has an alarm at the end of any day.
func (w *crowd) everAlarms(measure string) bool {
	for d := range daysOfInteractions {
		w.addDay()
		now := noon.Add(time.Duration(d+1) * day)
		for _, pair := range interaction.MeasureSums(w.campaigns, now, w.sumsOf) {
			evidence := pair.Effect
			alarm := float64(interaction.EffectAlarm)
			if measure == alarmOfAssignment {
				evidence = pair.Assignment
				alarm = interaction.AssignmentAlarm
			}
			if evidence >= alarm {
				return true
			}
		}
	}
	return false
}

// newScenario returns a scenario that counts the websites with an alarm.
func (c *crossing) newScenario(detail, measure string, least, most float64) scenario {
	begin := c.newCrowdFunc(measure)
	return scenario{
		part: partInteractions, methodology: c.declaredMethodology(), measure: measure, least: least, most: most,
		name: fmt.Sprintf("%s, %d campaigns, %d visitors, %s", c.campaign, c.campaigns,
			daysOfInteractions*c.visitors, detail),
		occurs: func(random *rand.Rand) bool { return begin(random).everAlarms(measure) },
	}
}

// interactionScenarios are of campaigns that do not disturb each other, and of a pair that does.
func interactionScenarios() []scenario {
	const many, effectAlpha, assignmentAlpha = 20, 1. / interaction.EffectAlarm, 1. / interaction.AssignmentAlarm
	often := campaign{audience: audience{buyers: 0.1}, mde: 0.2}
	even := often.withShares(50, 50)
	none := &crossing{campaign: even, campaigns: many, visitors: 512}
	lifts := &crossing{campaign: even, campaigns: many, visitors: 512, gains: 0.1}
	value := &crossing{campaign: capped.withShares(50, 50), campaigns: many, visitors: 512}
	all := []scenario{
		none.newScenario("no effect", alarmOfEffect, 0, effectAlpha),
		lifts.newScenario("lifts of +10 % and -10 %", alarmOfEffect, 0, effectAlpha),
		value.newScenario("no effect", alarmOfEffect, 0, effectAlpha),
		withMoreExperiments(none.newScenario("no effect", alarmOfAssignment, 0, assignmentAlpha)),
	}

	// The power for a lift of 20 % that is smaller where visitors see the variation of the other campaign.
	add := func(detail, measure string, least float64, c crossing) {
		c.campaign = even
		s := c.newScenario(detail, measure, least, 1)
		s.factor = 0.4 // so many visitors take long
		all = append(all, s)
	}
	for _, of := range []struct {
		visitors int // a day
		least    float64
	}{{1088, 0.01}, {6720, 0.25}, {16_704, 0.8}} {
		add("one pair: lift 20 % with control of the other, 14 % with its variation", alarmOfEffect, of.least,
			crossing{campaigns: 2, visitors: of.visitors, lifts: [2]float64{0.2, 0.14}})
	}
	const vanishing = "lift 20 % with control of the other, 0 with its variation"
	add("one pair: "+vanishing, alarmOfEffect, 0.7, crossing{campaigns: 2, visitors: 1088, lifts: [2]float64{0.2, 0}})
	add("the first of 190 pairs: "+vanishing, alarmOfEffect, 0.7,
		crossing{campaigns: many, visitors: 1088, lifts: [2]float64{0.2, 0}})
	add("the last of 190 pairs: "+vanishing, alarmOfEffect, 0.7,
		crossing{campaigns: many, visitors: 3392, lifts: [2]float64{0.2, 0}, areLast: true})
	const following = "one visitor in ten gets the variation of the other"
	add("one pair: "+following, alarmOfAssignment, 0.9, crossing{campaigns: 2, visitors: 192, follows: 0.1})
	add("the last of 190 pairs: "+following, alarmOfAssignment, 0.9,
		crossing{campaigns: many, visitors: 192, follows: 0.1, areLast: true})
	return all
}
