package calibration

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// The parts of the table of decisions.
const (
	partNoEffect  = "A/A: winner or loser at any of 52 weekly looks"
	partMoving    = "A/A with data and settings that change: winner or loser at any of 52 weekly looks"
	partPower     = "Power at the required sample: the first treatment wins by the fourth weekly look"
	partGuards    = "Guardrails"
	partRatio     = "Sample ratio mismatch, looked at each day"
	partBreakdown = "Breakdown: winner or loser without an effect in any cell, at any of 52 weekly looks"
)

// The audiences of the table, with the minimum effects of their campaigns.
var (
	rare     = campaign{audience: audience{buyers: 0.01}, mde: 0.2}
	usual    = campaign{audience: audience{buyers: 0.05}, mde: 0.1}
	frequent = campaign{audience: audience{buyers: 0.2}, mde: 0.05}
	revenue  = campaign{audience: audience{buyers: 0.02, revenue: true}, mde: 0.5}
	capped   = campaign{audience: audience{buyers: 0.02, revenue: true, limit: 2000}, mde: 0.25}
)

// decisionScenarios returns all scenarios in the order of the table.
func decisionScenarios() []scenario {
	return slices.Concat(noEffectScenarios(), movingScenarios(), powerScenarios(), guardrailScenarios(), ratioScenarios(), breakdownScenarios())
}

// scenario returns a scenario without a measure. The detail is part of its name.
func (c *campaign) scenario(part, detail string) scenario {
	s := scenario{part: part, name: c.String(), methodology: c.methodology(), planned: weeksToPlan * c.weekly()}
	if detail != "" {
		s.name += ", " + detail
	}
	return s
}

// errors counts experiments that name a winner or a loser. None of the treatments has an
// effect.
func (c *campaign) errors(part, detail string, of stream) scenario {
	s := c.scenario(part, detail)
	s.measure, s.most = "winner or loser", decisionAlpha
	table := c.timetable(c.design(), of)
	s.occurs = func(random *rand.Rand) bool { return c.outcome(table, of(random)) != nil }
	return s
}

func noEffectScenarios() []scenario {
	var all []scenario
	for _, c := range []*campaign{
		usual.with(50, 50).daily(10), usual.with(50, 50).daily(100), usual.with(50, 50).daily(1000), usual.with(50, 50).daily(10_000),
		usual.with(75, 25).daily(100), usual.with(95, 5).daily(1000), usual.with(5, 95).daily(1000),
		rare.with(50, 50), rare.with(95, 5), usual.with(50, 50), frequent.with(50, 50), frequent.with(25, 75),
		usual.with(1, 1, 1), usual.with(25, 25, 25, 25), usual.with(70, 10, 10, 10), usual.with(1, 1, 1, 1, 1, 1),
		revenue.with(50, 50), revenue.with(50, 50).daily(1000), revenue.with(75, 25).daily(1000), revenue.with(95, 5).daily(1000),
		revenue.with(25, 25, 25, 25).daily(1000), capped.with(50, 50), capped.with(95, 5).daily(1000), capped.with(25, 25, 25, 25),
		usual.with(50, 50).asBayesian(), usual.with(25, 25, 25, 25).asBayesian(), usual.with(25, 25, 25, 25).asBayesian().daily(1000),
		capped.with(25, 25, 25, 25).asBayesian(),
	} {
		all = append(all, c.errors(partNoEffect, "", c.usually()))
	}
	return append(all, usual.with(75, 25).daily(200).randomArrivals())
}

// randomArrivals counts errors of a campaign whose visitors are divided at random, so that
// the critical values of each experiment differ.
func (c *campaign) randomArrivals() scenario {
	s := c.scenario(partNoEffect, "divided at random")
	s.measure, s.most = "winner or loser", decisionAlpha
	perWeek := c.weekly()
	s.occurs = func(random *rand.Rand) bool {
		all := make([]totals, len(c.shares))
		found := c.outcome(c.sequences(c.design()), func(int) [][]totals {
			control := drawBinomial(random, perWeek, c.shares[0]/100)
			all[0], all[1] = all[0].plus(c.draw(random, control, 0), 1), all[1].plus(c.draw(random, perWeek-control, 0), 1)
			return [][]totals{all}
		})
		return found != nil
	}
	return s
}

func movingScenarios() []scenario {
	even := usual.with(50, 50).daily(2000)
	all := []scenario{
		even.errors(partMoving, "weekend +20 %, weekdays -8 %", even.weekdays(0.2)),
		even.errors(partMoving, "weekend -20 %, weekdays +8 %", even.weekdays(-0.2)),
	}
	for _, share := range []float64{0.2, 0.5, 1} {
		all = append(all, even.errors(partMoving, fmt.Sprintf("%g %% of conversions 1 to 7 days late", 100*share), even.late(share)))
	}
	for _, share := range []float64{0.01, 0.03} {
		all = append(all, even.errors(partMoving, fmt.Sprintf("%g %% see both variations", 100*share), even.switching(share)))
	}
	for _, ramp := range [][][]float64{
		{{95, 5}, {50, 50}},
		{{95, 5}, {80, 20}, {50, 50}},
		{{95, 5}, {90, 10}, {90, 10}, {75, 25}, {50, 50}},
		{{95, 5}, {90, 10}, {75, 25}, {50, 50}, {50, 50}, {25, 75}, {10, 90}},
	} {
		for _, c := range []*campaign{even, revenue.with(50, 50).daily(2000)} {
			c = c.change(func(c *campaign) { c.ramp = ramp })
			changes := len(slices.CompactFunc(slices.Clone(ramp), slices.Equal)) - 1
			all = append(all, c.errors(partMoving, fmt.Sprintf("changes of shares while the rate doubles: %d", changes), c.rising()))
		}
	}
	return append(all, even.stopping())
}

// weekdays is the stream of a treatment with an effect on weekends, and the opposite one on
// weekdays. Over a week it has none.
func (c *campaign) weekdays(weekend float64) stream {
	return c.arriving(func(random *rand.Rand, _, arm int, visitors int64) totals {
		const weekendDays = 2
		onWeekend := visitors * weekendDays / daysOfWeek
		if arm == 0 {
			return c.draw(random, visitors, 0)
		}
		weekday := -weekend * float64(onWeekend) / float64(visitors-onWeekend)
		return c.draw(random, onWeekend, weekend).plus(c.draw(random, visitors-onWeekend, weekday), 1)
	})
}

// rising is the stream of a rate that doubles over the first six weeks, in all variations.
func (c *campaign) rising() stream {
	return c.arriving(func(random *rand.Rand, week, arm int, visitors int64) totals {
		const weeks = 6
		return c.draw(random, visitors, min(float64(week)/weeks, 1))
	})
}

// late is the stream of conversions of which a share arrives 1 to 7 days late. The row of a
// look has what arrived by 24 hours after its end, and never changes.
func (c *campaign) late(share float64) stream {
	// The share of the late conversions of a week that its row lacks: 21 of the 49 pairs of a
	// day of the week and a delay end after the day after the week.
	const missing = 21. / daysOfWeek / daysOfWeek
	perWeek := float64(c.weekly())
	return func(random *rand.Rand) func(int) [][]totals {
		all := make([]totals, len(c.shares))
		return func(week int) [][]totals {
			row := make([]totals, len(all))
			for arm, n := range arrivals(perWeek, c.shares, week) {
				arriving := c.draw(random, n, 0)
				all[arm] = all[arm].plus(arriving, 1)
				row[arm] = all[arm]
				row[arm].converted -= drawBinomial(random, arriving.converted, share*missing)
			}
			return [][]totals{row}
		}
	}
}

// switching is the stream of visitors. A share of them sees the other variation in the same
// week or in the 3 weeks after. They are in the looks before that.
func (c *campaign) switching(share float64) stream {
	const weeks = 4
	perWeek := float64(c.weekly())
	return func(random *rand.Rand) func(int) [][]totals {
		all := make([]totals, len(c.shares))
		var leaving [weeks][]totals // by week
		for i := range leaving {
			leaving[i] = make([]totals, len(c.shares))
		}
		return func(week int) [][]totals {
			for arm, n := range arrivals(perWeek, c.shares, week) {
				gone := &leaving[week%weeks][arm]
				all[arm], *gone = all[arm].plus(*gone, -1), totals{}
				each := int64(share * float64(n) / weeks)
				all[arm] = all[arm].plus(c.draw(random, n-weeks*each, 0), 1)
				for later := 1; later < weeks; later++ {
					group := c.draw(random, each, 0)
					all[arm] = all[arm].plus(group, 1)
					into := &leaving[(week+later)%weeks][arm]
					*into = into.plus(group, 1)
				}
			}
			return [][]totals{all}
		}
	}
}

// stopping counts errors of a campaign that its owner stops on any day on which the data so
// far would be significant, and starts again the week after. The broken week is in no look.
func (c *campaign) stopping() scenario {
	s := c.scenario(partMoving, "stopped on the day on which it would be significant")
	s.measure, s.most = "winner or loser", decisionAlpha
	table := c.timetable(c.design(), c.usually())
	perDay := float64(c.weekly()) / daysOfWeek
	s.occurs = func(random *rand.Rand) bool {
		all, look := make([]totals, len(c.shares)), 0
		for week := range c.weeks {
			now := slices.Clone(all)
			stopped := false
			for day := 0; day < daysOfWeek && !stopped; day++ {
				for arm, n := range arrivals(perDay, c.shares, daysOfWeek*week+day) {
					now[arm] = now[arm].plus(c.draw(random, n, 0), 1)
				}
				direction := table(look, 0, [][]totals{now}).Direction()
				if day == daysOfWeek-1 && direction != 0 {
					return true
				}
				stopped = direction != 0
			}
			if !stopped {
				all, look = now, look+1
			}
		}
		return false
	}
	return s
}

// power counts experiments in which the first treatment wins by tau = 1. It has the minimum
// effect, and the other treatments have none.
func (c *campaign) power(detail string, least float64) scenario {
	c = c.change(func(c *campaign) { c.perWeek, c.weeks, c.lifts = c.weekly(), weeksToPlan, []float64{0, c.mde} })
	s := c.scenario(partPower, detail)
	s.measure, s.least, s.most = "winner", least, 1
	table := c.timetable(c.design(), c.usually())
	of := c.usually()
	s.occurs = func(random *rand.Rand) bool {
		found := c.outcome(table, of(random))
		return found != nil && found.Winner && found.Treatment == 0
	}
	return s
}

func powerScenarios() []scenario {
	const ramped = 0.62 // .64 in the design's simulation: one week of four has few treated visitors
	var all []scenario
	for _, c := range []*campaign{
		rare.with(50, 50), usual.with(50, 50), usual.with(75, 25), usual.with(25, 75), usual.with(95, 5), frequent.with(50, 50),
		usual.with(1, 1, 1), usual.with(25, 25, 25, 25), usual.with(1, 1, 1, 1, 1, 1),
		revenue.with(50, 50), revenue.with(75, 25), revenue.with(25, 75),
		capped.with(50, 50), capped.with(75, 25), capped.with(25, 75), capped.with(25, 25, 25, 25),
		usual.with(50, 50).asBayesian(), usual.with(25, 25, 25, 25).asBayesian(), capped.with(50, 50).asBayesian(),
	} {
		all = append(all, c.power("", decisionPower))
	}
	ramp := usual.with(50, 50).change(func(c *campaign) { c.ramp = [][]float64{{95, 5}, {50, 50}} })
	return append(all, ramp.power("first week 95/5", ramped))
}
