package calibration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lifthouse/stats"
)

// The parts of the table of decisions.
const (
	partNoEffect  = "A/A: winner or loser at any weekly look"
	partWindow    = "A/A with delayed conversions and a conversion window: winner or loser at any weekly look"
	partRefunds   = "Orders that come back: looks at value per visitor"
	partReturns   = "Orders that are cancelled at other times in one variation: looks at the conversion rate"
	partMoving    = "A/A with data and settings that change: winner or loser at any weekly look"
	partPower     = "Power at the required sample: the first treatment wins by the fourth weekly look"
	partGuards    = "Guardrails"
	partRatio     = "Sample ratio mismatch, looked at each day"
	partBreakdown = "Breakdown: the lift seems to differ between the slices, at the end of any week"

	partInteractions = "Campaigns that disturb each other, compared at the end of each day for 60 days"
	partQuestions    = "Questions without looks, read each day"
	partFollowUp     = "Later orders, each window read once"
)

// The audiences in the table, with the minimum effects of their campaigns.
var (
	rare     = campaign{audience: audience{buyers: 0.01}, mde: 0.2}
	usual    = campaign{audience: audience{buyers: 0.05}, mde: 0.1}
	frequent = campaign{audience: audience{buyers: 0.2}, mde: 0.05}
	revenue  = campaign{audience: audience{buyers: 0.02, revenue: true}, mde: 0.5}
	capped   = campaign{audience: audience{buyers: 0.02, revenue: true, limit: 2000}, mde: 0.25}
	larger   = campaign{audience: audience{buyers: 0.02, revenue: true, limit: 2000, larger: true}, mde: 0.25}
	profit   = campaign{audience: audience{buyers: 0.02, revenue: true, limit: 2000, cost: 30}, mde: 0.25}
	richer   = campaign{audience: audience{buyers: 0.02, revenue: true, limit: 2000, cost: 30, larger: true}, mde: 0.25}
)

// decisionScenarios returns all scenarios in the order of the table.
func decisionScenarios() []scenario {
	return slices.Concat(
		noEffectScenarios(), movingScenarios(), windowScenarios(), refundScenarios(), returnsScenarios(), powerScenarios(),
		guardrailScenarios(), ratioScenarios(), segmentScenarios(), breakdownScenarios(), interactionScenarios(), questionScenarios(),
		followUpScenarios())
}

// newScenario returns a scenario that counts the campaigns for which occurs is true. Its rate must be from least to
// most. Its name includes the detail.
func (c *campaign) newScenario(part, detail, measure string, least, most float64, occurs func(*life) bool) scenario {
	s := scenario{
		part: part, name: c.String(), methodology: c.declaredMethodology(), planned: weeksToPlan * c.weeklyVisitors(),
		measure: measure, least: least, most: most,
	}
	if c.learned != nil {
		s.name += ", " + describeLearned(c.learned)
	}
	if c.delayed {
		s.name += ", delayed conversions, window " + c.window().String()
	}
	if detail != "" {
		s.name += ", " + detail
	}
	if part != partPower && part != partRatio {
		s.name += fmt.Sprintf(", %d looks", c.weeks)
	}
	begin := c.newLifeFunc()
	s.occurs = func(random *rand.Rand) bool { return occurs(begin(random)) }
	return s
}

// finishedScenario returns a scenario that counts the campaigns for which occurs is true after all looks.
func (c *campaign) finishedScenario(part, detail, measure string, least, most float64, of nature, occurs func(*life) bool) scenario {
	return c.newScenario(part, detail, measure, least, most, func(l *life) bool {
		l.addDays(of, daysOfWeek*c.weeks)
		return occurs(l)
	})
}

const winnerOrLoser = "winner or loser"

func hasOutcome(l *life) bool { return l.inTheEnd().Outcome != nil }

// errorScenario counts campaigns that name a winner or a loser, although no treatment has an effect.
func (c *campaign) errorScenario(part, detail string, of nature) scenario {
	return c.finishedScenario(part, detail, winnerOrLoser, 0, decisionAlpha, of, hasOutcome)
}

// recordedScenario counts the same errors as errorScenario. The looks of its campaign are recorded
// when they are mature, because the data change later.
func (c *campaign) recordedScenario(detail string, of nature) scenario {
	c = c.withFewerLooks()
	return c.newScenario(partMoving, detail, winnerOrLoser, 0, decisionAlpha, func(l *life) bool {
		l.recordEachDay(of)
		return hasOutcome(l)
	})
}

// recordEachDay adds visitors day by day, and records the looks that are mature.
func (l *life) recordEachDay(of nature) {
	for l.days <= daysOfWeek*l.weeks+1+l.windowDays+l.settleDays {
		l.addDays(of, l.days)
		l.recordLooks(startOfDay(l.days))
	}
}

// refundScenarios are of orders that come back. The looks are recorded with the orders as they are known then.
func refundScenarios() []scenario {
	similar := campaign{audience: audience{buyers: 0.03, revenue: true, similar: true}, mde: 0.12}
	var all []scenario
	for _, share := range []float64{0.2, 0.4} {
		for _, days := range []float64{3, 14, 60} {
			c := similar.withShares(50, 50).withDailyVisitors(2000).withRefunds(refunds{shares: []float64{share, share}, meanDays: days}, 0).withFewerLooks()
			all = append(all, c.newScenario(partRefunds, fmt.Sprintf("%g %% come back after %g days", 100*share, days), winnerOrLoser, 0, decisionAlpha, func(l *life) bool {
				l.recordEachDay(refundedOrders)
				return hasOutcome(l)
			}))
		}
	}
	for _, of := range []struct {
		back        float64 // share of the orders of the treatment that come back
		detail      string
		isGross     bool
		settleDays  int
		least, most float64
	}{
		{0.28, "gross", true, 0, 0.35, 1},
		{0.28, "net as known", false, 0, 0, 0.2},
		{0.28, "settled after 30 days", false, 30, 0, 0.03},
		{0.2, "settled after 30 days", false, 30, 0.3, 1},
	} {
		r := refunds{shares: []float64{0.2, of.back}, meanDays: 14, isGross: of.isGross}
		c := similar.withShares(50, 50).withRefunds(r, of.settleDays).changedCopy(func(changed *campaign) {
			changed.perWeek = changed.weeklyVisitors()
			changed.weeks = weeksToPlan
			changed.lifts = []float64{0, 0.08}
		})
		all = append(all, c.newScenario(partRefunds, fmt.Sprintf("8 %% more orders, %g %% instead of 20 %% come back, %s", 100*of.back, of.detail), "winner", of.least, of.most, func(l *life) bool {
			l.recordEachDay(refundedOrders)
			found := l.inTheEnd().Outcome
			return found != nil && found.Winner
		}))
	}
	return all
}

// withFewerLooks returns the campaign with looks for three times the planned duration, for
// scenarios in which a year of looks takes too long. The looks spend 0.983 of alpha.
func (c *campaign) withFewerLooks() *campaign {
	return c.changedCopy(func(changed *campaign) { changed.weeks = 3 * weeksToPlan })
}

func noEffectScenarios() []scenario {
	var all []scenario
	for _, c := range []*campaign{
		usual.withShares(50, 50).withDailyVisitors(10), usual.withShares(50, 50).withDailyVisitors(100), usual.withShares(50, 50).withDailyVisitors(1000), usual.withShares(50, 50).withDailyVisitors(10_000),
		usual.withShares(75, 25).withDailyVisitors(100), usual.withShares(95, 5).withDailyVisitors(1000), usual.withShares(5, 95).withDailyVisitors(1000),
		rare.withShares(50, 50), rare.withShares(95, 5), usual.withShares(50, 50), frequent.withShares(50, 50), frequent.withShares(25, 75),
		usual.withShares(1, 1, 1), usual.withShares(25, 25, 25, 25), usual.withShares(70, 10, 10, 10), usual.withShares(1, 1, 1, 1, 1, 1),
		revenue.withShares(50, 50), revenue.withShares(50, 50).withDailyVisitors(1000), revenue.withShares(75, 25).withDailyVisitors(1000), revenue.withShares(95, 5).withDailyVisitors(1000),
		revenue.withShares(25, 25, 25, 25).withDailyVisitors(1000), capped.withShares(50, 50), capped.withShares(95, 5).withDailyVisitors(1000), capped.withShares(25, 25, 25, 25),
		usual.withShares(50, 50).asBayesian(), usual.withShares(25, 25, 25, 25).asBayesian().withFewerLooks(),
		capped.withShares(25, 25, 25, 25).asBayesian().withFewerLooks(),
	} {
		all = append(all, c.errorScenario(partNoEffect, "", ordinaryVisitors))
	}
	all = append(all, usual.withShares(75, 25).withDailyVisitors(200).withFewerLooks().errorScenario(partNoEffect, "divided at random", atRandom(0.75, 0.25)))
	return append(all, priorScenarios(true)...)
}

// atRandom assigns each day's visitors to the variations at random, according to the
// shares.
func atRandom(shares ...float64) nature {
	return func(l *life, day int) {
		visitors := l.weeklyVisitors() / daysOfWeek
		left := 1.0
		for arm, share := range shares {
			n := visitors
			if arm+1 < len(shares) {
				n = drawBinomial(l.random, visitors, share/left)
			}
			l.addTotals(goalID, arm, day, day, l.drawTotals(l.random, n, 0), false)
			visitors -= n
			left -= share
		}
	}
}

func movingScenarios() []scenario {
	even := usual.withShares(50, 50).withDailyVisitors(2000)
	all := []scenario{
		even.errorScenario(partMoving, "weekend +20 %, weekdays -8 %", weekendEffect(0.2)),
		even.errorScenario(partMoving, "weekend -20 %, weekdays +8 %", weekendEffect(-0.2)),
		even.withFewerLooks().errorScenario(partMoving, "one day in ten without events", dailyOutages),
		even.pausingScenario("paused for one to nine days, each third week", false),
		even.pausingScenario("stopped on the day on which it would be significant", true),
	}
	for _, share := range []float64{0.2, 0.5, 1} {
		all = append(all, even.recordedScenario(fmt.Sprintf("%g %% of conversions 1 to 7 days late", 100*share), lateConversions(share)))
	}
	for _, share := range []float64{0.01, 0.03} {
		all = append(all, even.recordedScenario(fmt.Sprintf("%g %% see both variations", 100*share), switchingVisitors(share)))
	}
	all = append(all, even.asBayesian().recordedScenario("50 % of conversions 1 to 7 days late", lateConversions(0.5)))
	for i, ramp := range [][][]float64{
		{{95, 5}, {50, 50}},
		{{95, 5}, {80, 20}, {50, 50}},
		{{95, 5}, {90, 10}, {90, 10}, {75, 25}, {50, 50}},
		{{95, 5}, {90, 10}, {75, 25}, {50, 50}, {50, 50}, {25, 75}, {10, 90}},
	} {
		of := []*campaign{even}
		if i%3 == 0 { // the ramps with the fewest and the most changes
			of = append(of, revenue.withShares(50, 50).withDailyVisitors(2000))
		}
		for _, c := range of {
			c = c.changedCopy(func(changed *campaign) { changed.ramp = ramp })
			changes := len(slices.CompactFunc(slices.Clone(ramp), slices.Equal)) - 1
			all = append(all, c.errorScenario(partMoving, fmt.Sprintf("changes of shares while the rate doubles: %d", changes), risingRate))
		}
	}
	return all
}

// windowScenarios are of delayed conversions, of which those within a conversion window count.
func windowScenarios() []scenario {
	const days = 7
	even := usual.withShares(50, 50).withDailyVisitors(2000).withDelays(days).withFewerLooks()
	ramp := even.changedCopy(func(changed *campaign) { changed.ramp = [][]float64{{95, 5}, {90, 10}, {75, 25}, {50, 50}} })
	open := usual.withShares(50, 50).withDelays(0)
	windowed := usual.withShares(50, 50).withDelays(days)
	shorter := func(c *campaign, weeks int) *campaign {
		return c.changedCopy(func(changed *campaign) { changed.weeks = weeks })
	}
	return []scenario{
		shorter(open, weeksToPlan).errorScenario(partWindow, "", ordinaryVisitors), shorter(windowed, weeksToPlan).errorScenario(partWindow, "", ordinaryVisitors),
		open.withFewerLooks().errorScenario(partWindow, "", ordinaryVisitors), windowed.withFewerLooks().errorScenario(partWindow, "", ordinaryVisitors),
		even.errorScenario(partWindow, "", ordinaryVisitors),
		even.errorScenario(partWindow, "weekend +20 %, weekdays -8 %", weekendEffect(0.2)),
		even.errorScenario(partWindow, "weekend -20 %, weekdays +8 %", weekendEffect(-0.2)),
		even.errorScenario(partWindow, "one day in ten without events", dailyOutages),
		even.pausingScenario("paused for one to nine days, each third week", false),
		ramp.errorScenario(partWindow, "changes of shares while the rate doubles: 3", risingRate),
		even.recordedScenario("recorded each week", ordinaryVisitors),
		even.recordedScenario("3 % see both variations, recorded each week", switchingVisitors(0.03)),
		open.powerScenario("", 0.72), windowed.powerScenario("", 0.72),
	}
}

func isWeekend(day int) bool { return (day+daysOfWeek-1)%daysOfWeek > 4 } // day 1 is a Monday

// weekendEffect returns the nature of a treatment with an effect on weekends and the opposite
// effect on weekdays. Over a whole week, it has no effect.
func weekendEffect(weekend float64) nature {
	return func(l *life, day int) {
		const weekendDays = 2.
		lift := -weekend * weekendDays / (daysOfWeek - weekendDays)
		if isWeekend(day) {
			lift = weekend
		}
		for arm, n := range l.arrivingVisitors(day) {
			l.addTotals(goalID, arm, day, day, l.drawTotals(l.random, n, lift*float64(min(arm, 1))), false)
		}
	}
}

// dailyOutages adds ordinary visitors, but loses all events of one day in ten.
func dailyOutages(l *life, day int) {
	if l.random.IntN(10) > 0 {
		ordinaryVisitors(l, day)
	}
}

// risingRate adds visitors whose conversion rate doubles over the first six weeks, in all
// variations.
func risingRate(l *life, day int) {
	const days = 6 * daysOfWeek
	for arm, n := range l.arrivingVisitors(day) {
		l.addTotals(goalID, arm, day, day, l.drawTotals(l.random, n, min(float64(day)/days, 1)), false)
	}
}

// lateConversions returns a nature in which the given share of conversions arrives 1 to 7
// days late.
func lateConversions(share float64) nature {
	return func(l *life, day int) {
		for arm, n := range l.arrivingVisitors(day) {
			t := l.drawTotals(l.random, n, 0)
			delayed := drawBinomial(l.random, t.converted, share)
			t.converted -= delayed
			l.addTotals(goalID, arm, day, day, t, false)
			for delay := daysOfWeek; delay > 0; delay-- {
				arriving := drawBinomial(l.random, delayed, 1/float64(delay))
				delayed -= arriving
				l.addTotals(goalID, arm, day, day+delay, totals{converted: arriving}, false)
			}
		}
	}
}

// switchingVisitors returns a nature in which the given share of visitors sees the other variation 0
// to 3 weeks later. From then on, these visitors are multi-exposed.
func switchingVisitors(share float64) nature {
	return func(l *life, day int) {
		const weeks = 4
		for arm, n := range l.arrivingVisitors(day) {
			groups := int64(0)
			if day%daysOfWeek == 0 { // once a week, for the visitors of the whole week
				groups = int64(share * daysOfWeek * float64(n) / weeks)
			}
			l.addTotals(goalID, arm, day, day, l.drawTotals(l.random, n-weeks*groups, 0), false)
			for later := range weeks {
				if groups == 0 {
					break
				}
				t := l.drawTotals(l.random, groups, 0)
				l.addTotals(goalID, arm, day, day, t, false)
				l.addTotals(goalID, arm, day, day+daysOfWeek*later, totals{}.addScaled(t, -1), false)
				l.addTotals(goalID, arm, day, day+daysOfWeek*later, t, true)
			}
		}
	}
}

// pausingScenario counts the errors of a campaign that is stopped and started again. If significant is
// set, the campaign is stopped at the end of each day on which the current figures are significant.
// Otherwise the pauses do not depend on the results.
func (c *campaign) pausingScenario(detail string, significant bool) scenario {
	return c.newScenario(partMoving, detail, winnerOrLoser, 0, decisionAlpha, func(l *life) bool {
		l.plan.Runs = slices.Clone(l.plan.Runs)
		now := make([]totals, len(c.shares))
		running := 0
		for l.days <= daysOfWeek*c.weeks {
			first := len(l.series[goalID])
			l.addDays(ordinaryVisitors, l.days)
			for _, a := range l.series[goalID][first:] {
				arm := a.VariationID
				now[arm] = now[arm].addScaled(totals{visitors: a.Visitors, converted: a.Converted}, 1)
			}
			running++
			stops := running%(3*daysOfWeek) == 2*daysOfWeek+3
			days := 1 + (l.days % 9)
			if significant {
				samples := c.samplesOf(now)
				o := stats.Options{SignificanceLevel: decisionLevel, Methodology: stats.MethodologyFrequentist, Shares: c.shares}
				stops = stats.Compare(samples[0], samples[1:], o)[0].Significant
				days = 1
			}
			if stops {
				end := startOfDay(l.days).Add(-time.Minute)
				l.plan.Runs[len(l.plan.Runs)-1].To = &end
				l.days += days
				again := l.plan.Runs[0]
				again.From = startOfDay(l.days).Add(day / 2)
				again.To = nil
				l.plan.Runs = append(l.plan.Runs, again)
				running = 0
			}
		}
		return hasOutcome(l)
	})
}

// powerScenario counts campaigns in which the first treatment wins by tau = 1. The first
// treatment has the minimum effect, and the others have none.
func (c *campaign) powerScenario(detail string, least float64) scenario {
	c = c.changedCopy(func(changed *campaign) {
		changed.perWeek = changed.weeklyVisitors()
		changed.weeks = weeksToPlan
		changed.lifts = []float64{0, changed.mde}
	})
	return c.finishedScenario(partPower, detail, "winner", least, 1, ordinaryVisitors, func(l *life) bool {
		found := l.inTheEnd().Outcome
		return found != nil && found.Winner && found.Treatment == 0
	})
}

func powerScenarios() []scenario {
	const ramped = 0.62 // .64 in the design's simulation: one week of four has few treated visitors
	var all []scenario
	for _, c := range []*campaign{
		rare.withShares(50, 50), usual.withShares(50, 50), usual.withShares(75, 25), usual.withShares(25, 75), usual.withShares(95, 5), frequent.withShares(50, 50),
		usual.withShares(1, 1, 1), usual.withShares(25, 25, 25, 25), usual.withShares(1, 1, 1, 1, 1, 1),
		revenue.withShares(50, 50), revenue.withShares(75, 25), revenue.withShares(25, 75),
		capped.withShares(50, 50), capped.withShares(75, 25), capped.withShares(25, 75), capped.withShares(25, 25, 25, 25),
		usual.withShares(50, 50).asBayesian(), usual.withShares(25, 25, 25, 25).asBayesian(), capped.withShares(50, 50).asBayesian(),
	} {
		all = append(all, c.powerScenario("", decisionPower))
	}
	for _, c := range []*campaign{&larger, &profit, &richer} {
		for _, shares := range [][]float64{{50, 50}, {75, 25}} {
			even := c.withShares(shares...)
			all = append(all, even.powerScenario("", decisionPower), even.asBayesian().powerScenario("", decisionPower))
		}
	}
	ramp := usual.withShares(50, 50).changedCopy(func(changed *campaign) { changed.ramp = [][]float64{{95, 5}, {50, 50}} })
	all = append(all, ramp.powerScenario("first week 95/5", ramped))
	return append(all, priorScenarios(false)...)
}
