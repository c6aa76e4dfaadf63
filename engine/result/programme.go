package result

import (
	"fmt"
	"strings"

	"lifthouse/engine/effects"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/engine/worth"
)

// ProgrammeInWords returns what a programme says, in sentences. The expected numbers come first, with their interval.
func ProgrammeInWords(p *worth.Programme) []string {
	var said []string
	sum, unit := p.Total.ValuePerMonth, strings.TrimSpace(p.Currency+" of value")
	if sum == nil {
		sum, unit = p.Total.PerMonth, "a month in the primary metric"
	} else {
		unit += " a month"
	}
	switch n := p.Campaigns.Shipped; {
	case n == 0:
		said = append(said, "No variation was shipped.")
	case sum == nil:
		said = append(said, fmt.Sprintf("Shipped: %s. What they are worth together is not known.",
			wording.CountNoun(n, "variation")))
	default:
		e := effects.Estimate{Value: sum.Expected, Interval: sum.Interval}
		said = append(said,
			fmt.Sprintf("Shipped: %s, expected to be worth %s %s.", wording.CountNoun(n, "variation"),
				e.InWords(FormatRounded), unit),
			fmt.Sprintf("Reported as observed, they would add up to %s.", FormatRounded(sum.Observed)))
		said = effects.AppendNothing(said, p.Total.ProbablyNothing)
	}
	pool := effects.PoolSummary{Campaigns: p.Campaigns.Pooled, TypicalEffect: p.TypicalEffect, Anchor: p.Anchor}
	metric := metrics[p.Metric].name
	if p.Metric == query.ValuePerVisitor { // the representative of several
		metric = "the primary metric"
	}
	said = append(said, pool.InWords(metric, "campaign"))
	if a := p.Advice; a != nil && a.RequiredVisitors != nil && a.Days != nil {
		said = append(said,
			fmt.Sprintf("To find an effect of %s, an experiment needs %s visitors: %s at the pace of the last one.",
				wording.FormatPercent(a.MDE, 1, false), wording.FormatCount(*a.RequiredVisitors),
				wording.CountNoun(*a.Days, "day")))
		for _, plan := range a.Plans {
			if plan.Weeks == usualWeeks {
				said = append(said,
					fmt.Sprintf("In %d weeks, about %.0f of 100 ideas win, %.0f of them truly.", plan.Weeks,
						100*plan.WinRate.Observed, 100*plan.WinRate.Expected))
			}
		}
	}
	return said
}

// usualWeeks is the length of the plan whose chance a programme reports: the default of the catalogue.
const usualWeeks = 4
