package calibration

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"lifthouse/stats"
)

// harmRule returns the rule of harm of a campaign with guardrails.
func (c *campaign) harmRule(guardrails int) stats.HarmRule {
	return stats.HarmRule{
		Alpha: decisionAlpha, Treatments: len(c.shares) - 1, Guardrails: guardrails,
		PlannedVisitors: float64(weeksToPlan*c.weekly()) * (c.shares[0] + c.shares[1]) / floats.Sum(c.shares),
	}
}

// guarded describes a guardrail of the same audience as the primary metric.
func guarded(m stats.Margin) string {
	text := fmt.Sprintf("margin %g %%", 100*m.Relative)
	if m.Down {
		text += ", less is better"
	}
	return text
}

// safeAtMargin counts experiments in which a guardrail is safe at any look although the first
// treatment loses exactly the margin.
func (c *campaign) safeAtMargin(m stats.Margin) scenario {
	loss := -m.Relative
	if m.Down {
		loss = m.Relative
	}
	return c.change(func(c *campaign) { c.lifts = []float64{0, loss} }).safe(m, "at the margin", 0, decisionAlpha)
}

// safeWithoutEffect counts experiments in which a guardrail is safe by the fourth look, at its
// required sample. The treatment has no effect.
func (c *campaign) safeWithoutEffect(m stats.Margin) scenario {
	required, _ := c.size().RequiredForMargin(m)
	return c.change(func(c *campaign) {
		c.perWeek, c.weeks = (*required+weeksToPlan-1)/weeksToPlan, weeksToPlan
	}).safe(m, "without an effect", decisionPower, 1)
}

func (c *campaign) safe(m stats.Margin, detail string, least, most float64) scenario {
	s := c.scenario(partGuards, guarded(m))
	s.measure, s.least, s.most = "safe, "+detail, least, most
	of := c.usually()
	table := c.timetable(c.design(), of)
	s.occurs = func(random *rand.Rand) bool {
		at := of(random)
		for week := range c.weeks {
			if m.Safe(table(week, 0, at(week))) {
				return true
			}
		}
		return false
	}
	return s
}

// falseAlarm counts experiments without an effect in which the primary metric wins or loses,
// or it or any of two guardrails is harmed, at any look.
func (c *campaign) falseAlarm(m stats.Margin) scenario {
	const guardrails, most = 2, 1.1 * decisionAlpha // harm has its own alpha/10
	s := c.scenario(partGuards, fmt.Sprintf("%d guardrails, %s", guardrails, guarded(m)))
	s.measure, s.most = "winner, loser or harm, without an effect", most
	of := c.usually()
	table, rule := c.timetable(c.design(), of), c.harmRule(guardrails)
	s.occurs = func(random *rand.Rand) bool {
		primary := of(random)
		rails := []func(int) [][]totals{of(random), of(random)}
		for week := range c.weeks {
			strata := primary(week)
			bad := slices.ContainsFunc(c.findings(table, week, strata), func(f stats.Finding) bool { return f.Direction != 0 })
			harmed := func(m stats.Margin, strata [][]totals) bool {
				for t := range len(c.shares) - 1 {
					if m.Harm(c.strata(t, strata), c.revenue, rule).Below {
						return true
					}
				}
				return false
			}
			bad = bad || harmed(stats.Margin{Relative: c.mde}, strata)
			for _, rail := range rails {
				bad = harmed(m, rail(week)) || bad
			}
			if bad {
				return true
			}
		}
		return false
	}
	return s
}

// harm counts experiments in which a guardrail is harmed at a look, or breaks at the end of a
// day, within a number of days.
func (c *campaign) harm(m stats.Margin, detail string, days int, weekday, weekend float64, measure string, least, most float64) scenario {
	s := c.scenario(partGuards, guarded(m)+", "+detail)
	s.measure, s.least, s.most = measure, least, most
	rule, perDay := c.harmRule(1), float64(c.weekly())/daysOfWeek
	s.occurs = func(random *rand.Rand) bool {
		all := make([]totals, len(c.shares))
		for day := range days {
			lift := weekday
			if day%daysOfWeek > 4 {
				lift = weekend
			}
			for arm, n := range arrivals(perDay, c.shares, day) {
				all[arm] = all[arm].plus(c.draw(random, n, lift*float64(min(arm, 1))), 1)
			}
			if h := m.Harm(c.strata(0, [][]totals{all}), c.revenue, rule); h.Breaks || h.Below && (day+1)%daysOfWeek == 0 {
				return true
			}
		}
		return false
	}
	return s
}

func guardrailScenarios() []scenario {
	var all []scenario
	for _, g := range []struct {
		*campaign
		margin stats.Margin
	}{
		{usual.with(50, 50), stats.Margin{Relative: 0.1}},
		{usual.with(50, 50), stats.Margin{Relative: 0.1, Down: true}},
		{frequent.with(50, 50), stats.Margin{Relative: 0.02}},
		{usual.with(75, 25), stats.Margin{Relative: 0.1}},
		{usual.with(25, 25, 25, 25), stats.Margin{Relative: 0.1}},
		{capped.with(50, 50), stats.Margin{Relative: 0.2}},
	} {
		all = append(all, g.safeAtMargin(g.margin), g.falseAlarm(g.margin), g.safeWithoutEffect(g.margin))
	}
	const weeks, byDay, found = 12, 10, 0.95
	even := usual.with(50, 50).daily(2000)
	return append(all,
		even.harm(stats.Margin{Relative: 0.05}, "weekend -20 %, weekdays +8 %", weeks*daysOfWeek, 0.08, -0.2, "harm, without an effect over a week", 0, decisionAlpha),
		even.harm(stats.Margin{Relative: 0.05}, "loss of 50 %", byDay, -0.5, -0.5, "harm found by day 10", found, 1),
	)
}

// ratio counts campaigns with a sample ratio mismatch on any of some days, with 1,000 visitors
// each.
func ratio(days int, split stats.Split, actual []float64, least, most float64) scenario {
	const perDay = 1000
	s := scenario{part: partRatio, name: fmt.Sprintf("%.3g declared, %.3g actual, %d days", split.Expected(), actual, days), methodology: "–"}
	s.measure, s.least, s.most = "mismatch", least, most
	s.occurs = func(random *rand.Rand) bool {
		observed := make([]int64, len(actual))
		for range days {
			visitors, left := int64(perDay), 1.0
			for i, share := range actual {
				arriving := visitors
				if i+1 < len(actual) {
					arriving = drawBinomial(random, visitors, share/left)
				}
				observed[i] += arriving
				visitors, left = visitors-arriving, left-share
			}
			if stats.SampleRatioMismatch([]stats.SharePeriod{{Split: split, Observed: observed}}).Mismatch {
				return true
			}
		}
		return false
	}
	return s
}

func ratioScenarios() []scenario {
	const alarm, found, year, month = 0.001, 0.99, 365, 30
	even := stats.Split{Control: 50, Variations: []float64{1}}
	return []scenario{
		ratio(year, even, []float64{0.5, 0.5}, 0, alarm),
		ratio(year, stats.Split{Control: 34, Variations: []float64{33, 33}}, []float64{1. / 3, 1. / 3, 1. / 3}, 0, alarm),
		ratio(year, stats.Split{Control: 95, Variations: []float64{1}}, []float64{0.95, 0.05}, 0, alarm),
		ratio(month, even, []float64{0.48, 0.52}, found, 1),
	}
}

// cells divides a campaign by the shares of the cells of a breakdown. The largest cell has
// stats.MinimumVisitors first, and so the first rank.
func (c *campaign) cells(shares []float64) []*campaign {
	var cells []*campaign
	for _, share := range slices.SortedFunc(slices.Values(shares), func(a, b float64) int { return cmp.Compare(b, a) }) {
		cells = append(cells, c.change(func(cell *campaign) {
			cell.perWeek = int64(math.Round(float64(c.weekly()) * share / floats.Sum(shares)))
		}))
	}
	return cells
}

// breakdown counts experiments in which a treatment without an effect is significant in any
// cell at any look. The first lifts are those of the first treatments.
func (c *campaign) breakdown(cellShares []float64, lifts ...float64) scenario {
	c = c.change(func(c *campaign) { c.lifts = slices.Concat([]float64{0}, lifts) })
	s := c.scenario(partBreakdown, fmt.Sprintf("%d cells", len(cellShares)))
	name := "winner or loser"
	if len(lifts) > 0 {
		name += ", beside one with an effect"
	}
	s.measure, s.most = name, decisionAlpha
	cells := c.cells(cellShares)
	tables, streams := make([]judge, len(cells)), make([]stream, len(cells))
	for i, cell := range cells {
		streams[i] = cell.usually()
		tables[i] = cell.timetable(cell.design().ForCell(i+1), streams[i])
	}
	s.occurs = func(random *rand.Rand) bool {
		for i, cell := range cells {
			at := streams[i](random)
			for week := range cell.weeks {
				findings := cell.findings(tables[i], week, at(week))[len(lifts):]
				if slices.ContainsFunc(findings, func(f stats.Finding) bool { return f.Direction != 0 }) {
					return true
				}
			}
		}
		return false
	}
	return s
}

func breakdownScenarios() []scenario {
	eight := []float64{40, 20, 12, 10, 8, 5, 3, 2}
	twenty := make([]float64, 20)
	for i := range twenty {
		twenty[i] = math.Pow(0.85, float64(i))
	}
	return []scenario{
		usual.with(50, 50).breakdown(eight),
		usual.with(50, 50).daily(1000).breakdown(twenty),
		usual.with(75, 25).breakdown(eight),
		usual.with(25, 25, 25, 25).breakdown(eight),
		usual.with(25, 25, 25, 25).breakdown(eight, 1),
		rare.with(95, 5).breakdown(eight),
		capped.with(50, 50).daily(2000).breakdown(eight),
		usual.with(25, 25, 25, 25).asBayesian().breakdown(eight),
	}
}
