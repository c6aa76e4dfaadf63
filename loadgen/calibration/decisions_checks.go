package calibration

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// describeGuardrail describes a guardrail with the same audience as the primary metric.
func describeGuardrail(m stats.Margin) string {
	text := fmt.Sprintf("margin %g %%", 100*m.Relative)
	if m.Down {
		text += ", less is better"
	}
	return text
}

// liftAtMargin returns the lift at which the loss equals the margin.
func liftAtMargin(m stats.Margin) float64 {
	if m.Down {
		return m.Relative
	}
	return -m.Relative
}

// withGuardrails returns the campaign with n identical guardrails.
func (c *campaign) withGuardrails(m stats.Margin, n int) *campaign {
	return c.changedCopy(func(changed *campaign) { changed.guardrails = slices.Repeat([]stats.Margin{m}, n) })
}

// withMoreExperiments returns the scenario with 2.5 times as many campaigns, for
// rates that need more precision.
func withMoreExperiments(s scenario) scenario {
	s.factor = 2.5
	return s
}

func isHarmed(s looks.GuardrailStatus) bool { return s.Status == looks.Harmed }

// hasSafeGuardrail reports whether the first guardrail is safe at any look.
func hasSafeGuardrail(l *life) bool {
	return slices.ContainsFunc(l.inTheEnd().Guardrails[0].Rows, func(rows []looks.LookRow) bool { return l.guardrails[0].IsSafe(rows[0].LookResult) })
}

func hasFalseAlarm(l *life) bool {
	a := l.inTheEnd()
	return a.Outcome != nil || slices.ContainsFunc(a.Harm, isHarmed) ||
		slices.ContainsFunc(a.Guardrails, func(g looks.Guardrail) bool { return slices.ContainsFunc(g.Status, isHarmed) })
}

func hasHarmedGuardrail(l *life) bool { return isHarmed(l.inTheEnd().Guardrails[0].Status[0]) }

// everDecides reports whether the report ever makes the given decision. The decision
// of a campaign changes only when a look or a day finds something.
func (l *life) everDecides(status result.DecisionStatus) bool {
	a := l.inTheEnd()
	var days []int
	add := func(s looks.GuardrailStatus) {
		if !s.DecidedAt.IsZero() {
			days = append(days, dayOf(s.DecidedAt))
		}
	}
	for _, s := range a.Harm {
		add(s)
	}
	for _, g := range a.Guardrails {
		for _, s := range g.Status {
			add(s)
		}
	}
	if a.Outcome != nil {
		days = append(days, dayOf(a.Looks[a.Outcome.Look].End))
	}
	if l.equivalent > 0 {
		for i, rows := range a.Primary.Rows {
			if rows[0].IsWithin(l.equivalent) {
				days = append(days, dayOf(a.Looks[i].End))
			}
		}
	}
	slices.Sort(days)
	return slices.ContainsFunc(slices.Compact(days), func(day int) bool {
		return l.decisionAt(matureAt(day)).Status == status // when a look is mature
	})
}

// byDay adds visitors whose primary metric and guardrails have a lift that depends on the
// day.
func byDay(lift func(day int) float64) nature {
	return func(l *life, day int) {
		for arm, n := range l.arrivingVisitors(day) {
			own := lift(day) * float64(min(arm, 1))
			l.addTotals(goalID, arm, day, day, l.drawTotals(l.random, n, own), false)
			for i := range l.guardrails {
				l.addTotals(int64(firstGuardrail+i), arm, day, day, l.drawTotals(l.random, n, own), false)
			}
		}
	}
}

func guardrailScenarios() []scenario {
	var all []scenario
	for _, g := range []struct {
		*campaign
		margin stats.Margin
	}{
		{usual.withShares(50, 50), stats.Margin{Relative: 0.1}},
		{usual.withShares(50, 50), stats.Margin{Relative: 0.1, Down: true}},
		{frequent.withShares(50, 50), stats.Margin{Relative: 0.02}},
		{usual.withShares(75, 25), stats.Margin{Relative: 0.1}},
		{usual.withShares(25, 25, 25, 25), stats.Margin{Relative: 0.1}},
		{capped.withShares(50, 50), stats.Margin{Relative: 0.2}},
	} {
		m := g.margin
		const most = 1.1 * decisionAlpha // harm has its own alpha/10
		required, _ := g.sampleSize().RequiredForMargin(m)
		one := g.withGuardrails(m, 1)
		atMargin := one.changedCopy(func(changed *campaign) { changed.harms = []float64{liftAtMargin(m)} })
		shipped := atMargin.changedCopy(func(changed *campaign) {
			changed.lifts = []float64{0, 2 * changed.mde}
			changed.weeks = 2 * weeksToPlan
		})
		enough := one.changedCopy(func(changed *campaign) {
			changed.perWeek = (*required + weeksToPlan - 1) / weeksToPlan
			changed.weeks = weeksToPlan
		})
		all = append(all,
			atMargin.finishedScenario(partGuards, describeGuardrail(m), "safe, at the margin", 0, decisionAlpha, ordinaryVisitors, hasSafeGuardrail),
			withMoreExperiments(shipped.finishedScenario(partGuards, describeGuardrail(m), "ship, with a winner whose guardrail is at the margin", 0, decisionAlpha, ordinaryVisitors,
				func(l *life) bool { return l.everDecides(result.DecisionShip) })),
			enough.finishedScenario(partGuards, describeGuardrail(m), "safe, without an effect", decisionPower, 1, ordinaryVisitors, hasSafeGuardrail),
			g.withGuardrails(m, 2).finishedScenario(partGuards, fmt.Sprintf("2 guardrails, %s", describeGuardrail(m)), "winner, loser or harm, without an effect", 0, most, ordinaryVisitors, hasFalseAlarm),
		)
	}
	const found = 0.95
	guarded5 := usual.withShares(50, 50).withDailyVisitors(2000).withGuardrails(stats.Margin{Relative: 0.05}, 1)
	weekend := func(day int) float64 {
		if isWeekend(day) {
			return -0.2
		}
		return 0.08
	}
	halved := func(int) float64 { return -0.5 }
	tenDays := guarded5.changedCopy(func(changed *campaign) { changed.weeks = 1 })
	byDayTen := tenDays.newScenario(partGuards, "margin 5 %, loss of 50 %", "harm found by day 10", found, 1, func(l *life) bool {
		l.addDays(byDay(halved), 10)
		return isHarmed(l.analyzeLooks(startOfDay(11)).Guardrails[0].Status[0])
	})
	equivalent := frequent.withShares(50, 50).changedCopy(func(changed *campaign) {
		changed.equivalent = changed.mde
		changed.lifts = []float64{0, changed.mde}
		changed.weeks = 3 * weeksToPlan
	})
	return append(all,
		guarded5.finishedScenario(partGuards, "margin 5 %, weekend -20 %, weekdays +8 %", "harm, without an effect over a week", 0, decisionAlpha, byDay(weekend), hasHarmedGuardrail),
		withMoreExperiments(guarded5.finishedScenario(partGuards, "margin 5 %, weekend -20 %, weekdays +8 %", "roll back, without an effect over a week", 0, decisionAlpha, byDay(weekend),
			func(l *life) bool { return l.everDecides(result.DecisionRollBack) })),
		guarded5.changedCopy(func(changed *campaign) {
			changed.lifts = []float64{0, -0.05}
			changed.harms = []float64{-0.05}
		}).finishedScenario(partGuards,
			"margin 5 %, guardrail and metric at -5 %, MDE 10 %", "harm, at the margin", 0, decisionAlpha, ordinaryVisitors, hasHarmedGuardrail),
		byDayTen,
		equivalent.finishedScenario(partGuards, "equivalence margin 5 %", "no difference, at the margin", 0, decisionAlpha, ordinaryVisitors,
			func(l *life) bool { return l.everDecides(result.DecisionNoDifference) }),
	)
}

// mismatchScenario counts campaigns that have a sample ratio mismatch at the end of any day, with
// 1,000 visitors a day. Nothing can be significant, so only the ratio is computed.
func mismatchScenario(weeks int, c *campaign, actual []float64, least, most float64) scenario {
	c = c.withDailyVisitors(1000).changedCopy(func(changed *campaign) { changed.weeks = weeks })
	s := c.newScenario(partRatio, fmt.Sprintf("%.3g actual, %d weeks", actual, weeks), "mismatch", least, most, func(l *life) bool {
		l.campaign = l.changedCopy(func(changed *campaign) { changed.buyers = 0 })
		l.plan.Rules.SignificanceLevel = 100
		l.addDays(atRandom(actual...), daysOfWeek*weeks)
		p := l.inTheEnd().MismatchP
		return p != nil && *p < stats.MismatchAlpha
	})
	s.planned = 0
	return s
}

func ratioScenarios() []scenario {
	const alarm, found, year, month = 0.001, 0.99, 52, 5
	return []scenario{
		withMoreExperiments(mismatchScenario(year, usual.withShares(50, 50), []float64{0.5, 0.5}, 0, alarm)),
		withMoreExperiments(mismatchScenario(year, usual.withShares(1, 1, 1), []float64{1. / 3, 1. / 3, 1. / 3}, 0, alarm)),
		withMoreExperiments(mismatchScenario(year, usual.withShares(95, 5), []float64{0.95, 0.05}, 0, alarm)),
		mismatchScenario(month, usual.withShares(50, 50), []float64{0.48, 0.52}, found, 1),
	}
}

// breakdownScenario counts campaigns in which the lift of any treatment seems to differ between the slices of a
// breakdown, at the end of any week. The first treatments have the given lifts in all slices; the others have no effect.
func (c *campaign) breakdownScenario(sliceShares []float64, lifts ...float64) scenario {
	c = c.withFewerLooks().changedCopy(func(changed *campaign) { changed.lifts = slices.Concat([]float64{0}, lifts) })
	measure := "differ"
	if len(lifts) > 0 {
		measure += ", one treatment with an effect"
	}
	return c.newScenario(partBreakdown, fmt.Sprintf("%d slices", len(sliceShares)), measure, 0, decisionAlpha, func(l *life) bool {
		p := *l.plan
		p.Dimension = query.ByDevice
		p.Top = len(sliceShares)
		rows := make([]moments.GroupMoments, 0, len(sliceShares)*len(p.Variations)) // of the slices so far
		for week := range c.weeks {
			arriving := l.arrivingVisitors(1 + daysOfWeek*week)
			for slice, share := range sliceShares {
				for arm, n := range arriving {
					visitors := int64(math.Round(daysOfWeek * float64(n) * share / floats.Sum(sliceShares)))
					t := l.drawTotals(l.random, visitors, l.liftOf(arm))
					row := moments.GroupMoments{GroupKey: moments.GroupKey{VariationID: int64(arm), Dimension: fmt.Sprintf("slice %02d", slice)}, Moments: t.toMoments()}
					if at := slice*len(arriving) + arm; week > 0 {
						rows[at].Moments = rows[at].Merge(row.Moments)
					} else {
						rows = append(rows, row)
					}
				}
			}
			found := result.New(&p, &moments.Rows{Whole: rows, Slices: rows}, nil).Heterogeneity
			if found.BayesFactor != nil && *found.BayesFactor >= 1/decisionAlpha {
				return true
			}
		}
		return false
	})
}

func breakdownScenarios() []scenario {
	eight := []float64{40, 20, 12, 10, 8, 5, 3, 2}
	twenty := make([]float64, 20)
	for i := range twenty {
		twenty[i] = math.Pow(0.85, float64(i))
	}
	return []scenario{
		usual.withShares(50, 50).breakdownScenario(eight),
		usual.withShares(50, 50).withDailyVisitors(1000).breakdownScenario(twenty),
		usual.withShares(75, 25).breakdownScenario(eight),
		usual.withShares(25, 25, 25, 25).breakdownScenario(eight),
		usual.withShares(25, 25, 25, 25).breakdownScenario(eight, 1),
		rare.withShares(95, 5).breakdownScenario(eight),
		capped.withShares(50, 50).withDailyVisitors(2000).breakdownScenario(eight),
		usual.withShares(50, 50).asBayesian().breakdownScenario(eight),
	}
}
