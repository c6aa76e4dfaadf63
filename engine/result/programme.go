package result

import (
	"fmt"
	"strings"

	"lifthouse/engine/query"
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
	plural := func(n int, one, several string) string {
		if n == 1 {
			return "1 " + one
		}
		return FormatCount(int64(n)) + " " + several
	}
	switch n := p.Campaigns.Shipped; {
	case n == 0:
		said = append(said, "No variation was shipped.")
	case sum == nil:
		said = append(said, fmt.Sprintf("Shipped: %s. What they are worth together is not known.",
			plural(n, "variation", "variations")))
	default:
		e := worth.Estimate{Value: sum.Expected, Interval: sum.Interval}
		said = append(said,
			fmt.Sprintf("Shipped: %s, expected to be worth %s %s.", plural(n, "variation", "variations"),
				estimateInWords(&e, FormatRounded), unit),
			fmt.Sprintf("Reported as observed, they would add up to %s.", FormatRounded(sum.Observed)))
		said = appendNothing(said, p.Total.ProbablyNothing)
	}
	pool := worth.PoolSummary{Campaigns: p.Campaigns.Pooled, TypicalEffect: p.TypicalEffect, Anchor: p.Anchor}
	said = append(said, poolInWords(&pool, poolMetricInWords(p.Metric), "campaign"))
	if a := p.Advice; a != nil && a.RequiredVisitors != nil && a.Days != nil {
		said = append(said,
			fmt.Sprintf("To find an effect of %s, an experiment needs %s visitors: %s at the pace of the last one.",
				FormatPercent(a.MDE, 1, false), FormatCount(*a.RequiredVisitors), plural(int(*a.Days), "day", "days")))
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

// appendNothing appends how many shipped variations are probably worth nothing, if any.
func appendNothing(said []string, variations float64) []string {
	switch {
	case variations < .5:
		return said
	case variations < 1.5:
		return append(said, "About 1 of them is worth nothing.")
	}
	return append(said, fmt.Sprintf("About %.0f of them are worth nothing.", variations))
}

// usualWeeks is the length of the plan whose chance a programme reports: the default of the catalogue.
const usualWeeks = 4

// poolMetricInWords names the metrics of a pool.
func poolMetricInWords(metric query.Metric) string {
	if metric == query.ValuePerVisitor {
		return "the primary metric"
	}
	return metrics[metric].name
}

// PastInWords returns what past tests say, in sentences.
func PastInWords(p *worth.Past) []string {
	inPercent := func(x float64) string { return FormatPercent(x, 1, true) }
	said := []string{"No test has a shipped variation that can be judged."}
	if t := p.Total; t != nil {
		e := worth.Estimate{Value: t.Expected, Interval: t.Interval}
		said = []string{
			fmt.Sprintf("Shipped: %d. As observed, they add up to %s; expect %s.", t.Shipped, inPercent(t.Observed),
				estimateInWords(&e, inPercent)),
		}
		said = appendNothing(said, t.ProbablyNothing)
	}
	return append(said, PoolInWords(&p.Pool))
}

// PoolInWords says how large the effects of tests typically are.
func PoolInWords(pool *worth.PoolSummary) string { return poolInWords(pool, "the metric", "test") }

// ExpectedLiftInWords says what lift is expected.
func ExpectedLiftInWords(lift *worth.Estimate) string {
	inPercent := func(x float64) string { return FormatPercent(x, 1, true) }
	return fmt.Sprintf("Expected a lift of %s.", estimateInWords(lift, inPercent))
}
