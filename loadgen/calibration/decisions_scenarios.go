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
	partMoving    = "A/A with data and settings that change: winner or loser at any weekly look"
	partPower     = "Power at the required sample: the first treatment wins by the fourth weekly look"
	partGuards    = "Guardrails"
	partRatio     = "Sample ratio mismatch, looked at each day"
	partBreakdown = "Breakdown: winner or loser without an effect in any cell, at any weekly look"
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
	if part != partPower && part != partRatio {
		s.name += fmt.Sprintf(", %d looks", c.weeks)
	}
	return s
}

// errors counts campaigns that name a winner or a loser. None of the treatments has an effect.
func (c *campaign) errors(part, detail string, of nature) scenario {
	s := c.scenario(part, detail)
	s.measure, s.most = "winner or loser", decisionAlpha
	begin := c.begins()
	s.occurs = func(random *rand.Rand) bool {
		l := begin(random)
		l.live(of, daysOfWeek*c.weeks)
		return l.inTheEnd().Outcome != nil
	}
	return s
}

// recorded counts the same errors of a campaign whose looks are recorded when they are mature,
// because its data change later.
func (c *campaign) recorded(detail string, of nature) scenario {
	c = c.shorter()
	s := c.errors(partMoving, detail, of)
	begin := c.begins()
	s.occurs = func(random *rand.Rand) bool {
		l := begin(random)
		for l.days <= daysOfWeek*c.weeks+1 {
			l.live(of, l.days)
			l.record(midnight(l.days))
		}
		return l.inTheEnd().Outcome != nil
	}
	return s
}

// shorter returns the campaign with looks for three times the plan, where one with a year
// takes too long. They spend .983 of alpha.
func (c *campaign) shorter() *campaign {
	return c.change(func(c *campaign) { c.weeks = 3 * weeksToPlan })
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
		usual.with(50, 50).asBayesian(), usual.with(25, 25, 25, 25).asBayesian().shorter(),
		capped.with(25, 25, 25, 25).asBayesian().shorter(),
	} {
		all = append(all, c.errors(partNoEffect, "", usually))
	}
	return append(all, usual.with(75, 25).daily(200).shorter().errors(partNoEffect, "divided at random", atRandom(0.75, 0.25)))
}

// atRandom divides the visitors of a day at random by the shares.
func atRandom(shares ...float64) nature {
	return func(l *life, day int) {
		visitors, left := l.weekly()/daysOfWeek, 1.0
		for arm, share := range shares {
			n := visitors
			if arm+1 < len(shares) {
				n = drawBinomial(l.random, visitors, share/left)
			}
			l.add(goalID, arm, day, day, l.draw(l.random, n, 0), false)
			visitors, left = visitors-n, left-share
		}
	}
}

func movingScenarios() []scenario {
	even := usual.with(50, 50).daily(2000)
	all := []scenario{
		even.errors(partMoving, "weekend +20 %, weekdays -8 %", weekdays(0.2)),
		even.errors(partMoving, "weekend -20 %, weekdays +8 %", weekdays(-0.2)),
		even.shorter().errors(partMoving, "one day in ten without events", outages),
		even.pausing("paused for one to nine days, each third week", false),
		even.pausing("stopped on the day on which it would be significant", true),
	}
	for _, share := range []float64{0.2, 0.5, 1} {
		all = append(all, even.recorded(fmt.Sprintf("%g %% of conversions 1 to 7 days late", 100*share), late(share)))
	}
	for _, share := range []float64{0.01, 0.03} {
		all = append(all, even.recorded(fmt.Sprintf("%g %% see both variations", 100*share), switching(share)))
	}
	all = append(all, even.asBayesian().recorded("50 % of conversions 1 to 7 days late", late(0.5)))
	for i, ramp := range [][][]float64{
		{{95, 5}, {50, 50}},
		{{95, 5}, {80, 20}, {50, 50}},
		{{95, 5}, {90, 10}, {90, 10}, {75, 25}, {50, 50}},
		{{95, 5}, {90, 10}, {75, 25}, {50, 50}, {50, 50}, {25, 75}, {10, 90}},
	} {
		of := []*campaign{even}
		if i%3 == 0 { // the fewest and the most changes
			of = append(of, revenue.with(50, 50).daily(2000))
		}
		for _, c := range of {
			c = c.change(func(c *campaign) { c.ramp = ramp })
			changes := len(slices.CompactFunc(slices.Clone(ramp), slices.Equal)) - 1
			all = append(all, c.errors(partMoving, fmt.Sprintf("changes of shares while the rate doubles: %d", changes), rising))
		}
	}
	return all
}

func isWeekend(day int) bool { return (day+daysOfWeek-1)%daysOfWeek > 4 } // day 1 is a Monday

// weekdays is the nature of a treatment with an effect on weekends, and the opposite one on
// weekdays. Over a week it has none.
func weekdays(weekend float64) nature {
	return func(l *life, day int) {
		const weekendDays = 2.
		lift := -weekend * weekendDays / (daysOfWeek - weekendDays)
		if isWeekend(day) {
			lift = weekend
		}
		for arm, n := range l.arriving(day) {
			l.add(goalID, arm, day, day, l.draw(l.random, n, lift*float64(min(arm, 1))), false)
		}
	}
}

// outages lose all events of one day in ten.
func outages(l *life, day int) {
	if l.random.IntN(10) > 0 {
		usually(l, day)
	}
}

// rising is the nature of a rate that doubles over the first six weeks, in all variations.
func rising(l *life, day int) {
	const days = 6 * daysOfWeek
	for arm, n := range l.arriving(day) {
		l.add(goalID, arm, day, day, l.draw(l.random, n, min(float64(day)/days, 1)), false)
	}
}

// late is the nature of conversions of which a share arrives 1 to 7 days late.
func late(share float64) nature {
	return func(l *life, day int) {
		for arm, n := range l.arriving(day) {
			t := l.draw(l.random, n, 0)
			delayed := drawBinomial(l.random, t.converted, share)
			t.converted -= delayed
			l.add(goalID, arm, day, day, t, false)
			for delay := daysOfWeek; delay > 0; delay-- {
				arriving := drawBinomial(l.random, delayed, 1/float64(delay))
				delayed -= arriving
				l.add(goalID, arm, day, day+delay, totals{converted: arriving}, false)
			}
		}
	}
}

// switching is the nature of visitors with a share that sees the other variation 0 to 3 weeks
// later: from then on they are multi-exposed.
func switching(share float64) nature {
	return func(l *life, day int) {
		const weeks = 4
		for arm, n := range l.arriving(day) {
			groups := int64(0)
			if day%daysOfWeek == 0 { // those of the whole week
				groups = int64(share * daysOfWeek * float64(n) / weeks)
			}
			l.add(goalID, arm, day, day, l.draw(l.random, n-weeks*groups, 0), false)
			for later := range weeks {
				if groups == 0 {
					break
				}
				t := l.draw(l.random, groups, 0)
				l.add(goalID, arm, day, day, t, false)
				l.add(goalID, arm, day, day+daysOfWeek*later, totals{}.plus(t, -1), false)
				l.add(goalID, arm, day, day+daysOfWeek*later, t, true)
			}
		}
	}
}

// pausing counts errors of a campaign that its owner stops and starts again. If significant is
// set, he stops it at the end of each day on which today's figures are significant; otherwise
// the pauses do not depend on results.
func (c *campaign) pausing(detail string, significant bool) scenario {
	s := c.scenario(partMoving, detail)
	s.measure, s.most = "winner or loser", decisionAlpha
	begin := c.begins()
	s.occurs = func(random *rand.Rand) bool {
		l := begin(random)
		l.plan.Runs = slices.Clone(l.plan.Runs)
		now, running := make([]totals, len(c.shares)), 0
		for l.days <= daysOfWeek*c.weeks {
			first := len(l.series[goalID])
			l.live(usually, l.days)
			for arm, a := range l.series[goalID][first:] {
				now[arm] = now[arm].plus(totals{visitors: a.Visitors, converted: a.Converted}, 1)
			}
			running++
			stops, days := running%(3*daysOfWeek) == 2*daysOfWeek+3, 1+(l.days%9)
			if significant {
				samples := c.samples(now)
				o := stats.Options{SignificanceLevel: decisionLevel, Methodology: stats.MethodologyFrequentist, Shares: c.shares}
				stops, days = stats.Compare(samples[0], samples[1:], o)[0].Significant, 1
			}
			if stops {
				end := midnight(l.days).Add(-time.Minute)
				l.plan.Runs[len(l.plan.Runs)-1].To = &end
				l.days += days
				again := l.plan.Runs[0]
				again.From, again.To = midnight(l.days).Add(day/2), nil
				l.plan.Runs, running = append(l.plan.Runs, again), 0
			}
		}
		return l.inTheEnd().Outcome != nil
	}
	return s
}

// power counts campaigns in which the first treatment wins by tau = 1. It has the minimum
// effect, and the other treatments have none.
func (c *campaign) power(detail string, least float64) scenario {
	c = c.change(func(c *campaign) { c.perWeek, c.weeks, c.lifts = c.weekly(), weeksToPlan, []float64{0, c.mde} })
	s := c.scenario(partPower, detail)
	s.measure, s.least, s.most = "winner", least, 1
	begin := c.begins()
	s.occurs = func(random *rand.Rand) bool {
		l := begin(random)
		l.live(usually, daysOfWeek*c.weeks)
		found := l.inTheEnd().Outcome
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
