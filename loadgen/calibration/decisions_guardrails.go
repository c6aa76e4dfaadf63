package calibration

import (
	"math/rand/v2"
	"slices"

	"lifthouse/stats"
)

// guardedDecisions is the part of the table about guardrails.
const guardedDecisions = "Decisions with guardrails, at any of 50 looks"

// guarded is a campaign with guardrails of the same audience as the primary metric.
type guarded struct {
	*campaign
	rail stats.Guardrail
	name string
}

func (c *campaign) guardedBy(name string, rail stats.Guardrail) guarded {
	return guarded{c, rail, name}
}

// guard returns the results of a guardrail whose true lift is given.
func (g guarded) guard(random *rand.Rand, days []int64, plannedLook int, lift float64) stats.GuardrailResult {
	looks := g.looks(random, days, 0, lift)
	return stats.Guard(looks, plannedLook, g.rail, g.plan(), g.options())[0]
}

// falseShip counts experiments in which the first treatment ships at any look although
// it harms the guardrail by exactly the margin. The primary metric has twice the minimum
// effect, so that it wins.
func (g guarded) falseShip() scenario {
	s := g.scenario(guardedDecisions)
	s.name += ", " + g.name
	s.measures = []decisionMeasure{{name: "ship at the margin", most: decisionAlpha}}
	days := g.anyLookDays()
	plan, o := g.plan(), g.options()
	lift := -g.rail.Margin
	if g.rail.Down {
		lift = g.rail.Margin
	}
	s.simulate = func(random *rand.Rand) []observation {
		d := stats.Decide(g.looks(random, days, 0, 2*g.mde), plan, o)
		won := d.Decided != nil && d.Decided.Conclusion.Status == stats.StatusWinner && d.Decided.Conclusion.Index == 0
		r := g.guard(random, days, d.PlannedLook, lift)
		return []observation{{counted: true, occurred: won && r.Status == stats.GuardrailSafe}}
	}
	return s
}

// falseRollBack counts experiments without any effect in which a loser is named, or any
// of two guardrails is harmed, at any look.
func (g guarded) falseRollBack() scenario {
	s := g.scenario(guardedDecisions)
	s.name += ", " + g.name
	s.measures = []decisionMeasure{{name: "rollBack without harm", most: decisionAlpha}}
	g.rail.Competing = 2
	days := g.anyLookDays()
	plan, o := g.plan(), g.options()
	s.simulate = func(random *rand.Rand) []observation {
		d := stats.Decide(g.looks(random, days), plan, o)
		back := d.Decided != nil && d.Decided.Conclusion.Status == stats.StatusLoser
		for range g.rail.Competing {
			back = g.guard(random, days, d.PlannedLook, 0).Status == stats.GuardrailHarmed || back
		}
		return []observation{{counted: true, occurred: back}}
	}
	return s
}

// safety counts experiments without harm whose planned look, at the required sample of
// the guardrail, finds the guardrail safe.
func (g guarded) safety() scenario {
	control := g.expected()
	required := *stats.Guard([]stats.Look{{Samples: []stats.Sample{control, control}}}, -1, g.rail, g.plan(), g.options())[0].Required
	g.campaign = g.plannedAt(required)
	s := g.scenario(guardedDecisions)
	s.name += ", " + g.name
	s.measures = []decisionMeasure{{name: "safe at its required sample", least: leastPower, most: 1}}
	days := equalDays(required, daysToPlan)
	s.simulate = func(random *rand.Rand) []observation {
		r := g.guard(random, days, len(days)-1, 0)
		return []observation{{counted: true, occurred: r.Status == stats.GuardrailSafe}}
	}
	return s
}

// anyLookDays returns the visitors at 50 looks, to 20 times the plan.
func (c *campaign) anyLookDays() []int64 {
	planned := c.visitors()
	return slices.Concat(equalDays(planned, daysToPlan), growingDays(planned, daysAfterPlan, lastMultiple))
}

// guardrailScenarios returns the scenarios of guardrails.
func guardrailScenarios() []scenario {
	var all []scenario
	for _, g := range []guarded{
		usual.with(50, 50).guardedBy("margin 10 %", stats.Guardrail{Margin: 0.1, Competing: 1}),
		usual.with(50, 50).guardedBy("margin 10 %, less is better", stats.Guardrail{Margin: 0.1, Down: true, Competing: 1}),
		frequent.with(50, 50).guardedBy("margin 2 %", stats.Guardrail{Margin: 0.02, Competing: 1}),
		usual.with(75, 25).guardedBy("margin 10 %", stats.Guardrail{Margin: 0.1, Competing: 1}),
		usual.with(25, 25, 25, 25).guardedBy("margin 10 %", stats.Guardrail{Margin: 0.1, Competing: 1}),
	} {
		all = append(all, g.falseShip(), g.falseRollBack())
	}
	even := usual.with(50, 50)
	return append(all,
		even.guardedBy("margin 10 %", stats.Guardrail{Margin: 0.1, Competing: 1}).safety(),
		even.guardedBy("margin 10 %, less is better", stats.Guardrail{Margin: 0.1, Down: true, Competing: 1}).safety())
}
