package result

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/engine/worth"
	"lifthouse/stats"
)

// Worth is what the treatments of a report are worth, and how that is known.
type Worth struct {
	Pool     effects.PoolSummary `json:"pool"`
	Currency string              `json:"currency,omitempty"`
	Items    []WorthItem         `json:"items"` // by treatment
	PoolText string              `json:"poolText"`
}

// WorthItem is what a treatment is worth, in numbers and in words.
type WorthItem struct {
	worth.Item
	Text         string `json:"text"`         // what is expected; empty: not known
	ObservedText string `json:"observedText"` // to be shown beside it, less prominently
}

// InWords returns both texts.
func (i *WorthItem) InWords() string { return strings.TrimSpace(i.Text + " " + i.ObservedText) }

// whyNoWorth returns why a report with a scorecard does not say what its treatments are worth: it is not about the
// declared question and all visitors, or there was a sample ratio mismatch since the last look. a has the results of
// the looks. It returns an empty reason if the report says so.
func whyNoWorth(p *plan.Plan, a *looks.Analysis) stats.Reason {
	switch {
	case !p.IsDeclared() || !p.OfAllVisitors():
		return worth.ReasonFiltered
	case a != nil && a.MismatchP != nil && *a.MismatchP < stats.MismatchAlpha:
		return stats.ReasonSampleRatioMismatch
	}
	return ""
}

// NewWorth returns what the treatments of the subject of a plan are worth, or nil if its pool does not have it. With a
// reason, each item has only the reason, see Report.WorthReason.
func NewWorth(p *plan.Plan, reason stats.Reason, pool *worth.Pool, currency string) *Worth {
	items, has := pool.ItemsOf(p.Subject)
	if !has {
		return nil
	}
	w := &Worth{
		Pool: pool.Summary, Currency: currency, Items: []WorthItem{},
		PoolText: pool.Summary.InWords(nameOfDeclared(p), "campaign"),
	}
	for _, item := range items {
		if reason != "" {
			item = worth.Item{
				VariationID: item.VariationID, Name: item.Name, Metric: item.Metric, Of: item.Of,
				Allocation: item.Allocation, Reason: reason,
			}
		}
		w.Items = append(w.Items, NewWorthItem(&item, currency))
	}
	return w
}

// WorthOf returns what a variation is worth; nil: the report does not say so.
func (r *Report) WorthOf(variation int64) *WorthItem {
	if r.Worth == nil {
		return nil
	}
	at := slices.IndexFunc(r.Worth.Items, func(i WorthItem) bool { return i.VariationID == variation })
	if at < 0 {
		return nil
	}
	return &r.Worth.Items[at]
}

// NewWorthItem returns an item with its texts. The expected number always has its interval.
func NewWorthItem(of *worth.Item, currency string) WorthItem {
	i := WorthItem{Item: *of}
	switch {
	case i.Expected == nil:
		return i
	case i.Expected.PerMonth == nil:
		if i.Expected.Lift != nil {
			i.Text = i.Expected.Lift.LiftInWords()
		}
		if i.Observed.Lift != nil {
			i.ObservedText = fmt.Sprintf("Observed: %s.", wording.FormatPercent(*i.Observed.Lift, 1, true))
		}
		return i
	}
	unit := monthOf(i.Metric)
	if strings.HasPrefix(unit, "of ") && currency != "" {
		unit = currency + " " + unit
	}
	i.Text = fmt.Sprintf("Expected %s %s a month", i.Expected.PerMonth.InWords(FormatRounded), unit)
	if value := i.Expected.ValuePerMonth; value != nil && i.Metric != query.ValuePerVisitor {
		i.Text += fmt.Sprintf(", about %s (%s to %s)", FormatRounded(value.Value), FormatRounded(value.Interval[0]),
			FormatRounded(value.Interval[1]))
		if currency != "" {
			i.Text += " " + currency
		}
		i.Text += " of value"
	}
	i.Text += " " + VisitorsInWords(of) + "."
	i.ObservedText = fmt.Sprintf("Observed: %s.", FormatRounded(*i.Observed.PerMonth))
	return i
}

// VisitorsInWords says which visitors a worth is about.
func VisitorsInWords(of *worth.Item) string {
	if of.Of == worth.AllTraffic {
		return fmt.Sprintf("for all visitors (the test had %d %% of them)", *of.Allocation)
	}
	return "for the visitors like those in the test"
}

// FormatRounded writes a number of a worth with its sign and two digits, so that it does not change with every visitor.
func FormatRounded(x float64) string {
	x = worth.RoundMoney(x)
	decimals := 0
	if x != 0 && math.Abs(x) < 10 {
		decimals = min(int(math.Ceil(1-math.Log10(math.Abs(x)))), 9)
	}
	return wording.FormatSigned(x, decimals)
}

// totalVisitors says which visitors a total is about.
func totalVisitors(of worth.Visitors) string {
	if of == worth.Tested {
		return ", for the visitors like those in the tests"
	}
	return ", for all visitors"
}

// ProgrammeInWords returns what a programme says, in sentences. The expected numbers come first, with their interval.
func ProgrammeInWords(p *worth.Programme) []string {
	var said []string
	sum := p.Total.ValuePerMonth
	unit := strings.TrimSpace(p.Currency + " of value")
	if sum == nil {
		sum = p.Total.PerMonth
		unit = "a month in the primary metric"
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
			fmt.Sprintf("Shipped: %s, expected to be worth %s %s%s.", wording.CountNoun(n, "variation"),
				e.InWords(FormatRounded), unit, totalVisitors(p.Total.Of)),
			fmt.Sprintf("Reported as observed, they would add up to %s.", FormatRounded(sum.Observed)))
		switch small := p.Total.HarmOrNothing; {
		case small >= 1.5:
			said = append(said, fmt.Sprintf("About %.0f of them do harm or nothing: their true effect is below a "+
				"tenth of the minimum effect.", small))
		case small >= .5:
			said = append(said, "About 1 of them does harm or nothing: its true effect is below a tenth of the "+
				"minimum effect.")
		}
	}
	pool := effects.PoolSummary{Campaigns: p.Campaigns.Pooled, TypicalEffect: p.TypicalEffect, Anchor: p.Anchor}
	metric := nameOfMetric(p.Metric)
	if p.Metric == query.ValuePerVisitor { // the representative of several
		metric = "the primary metric"
	}
	said = append(said, pool.InWords(metric, "campaign"))
	if a := p.Advice; a != nil && a.RequiredVisitors != nil && a.Days != nil {
		said = append(said,
			fmt.Sprintf("To find an effect of %s, an experiment needs %s visitors: %s at the present pace.",
				wording.FormatPercent(a.MDE, 1, false), wording.FormatCount(*a.RequiredVisitors),
				wording.CountNoun(*a.Days, "day")))
		for _, plan := range a.Plans {
			if plan.Weeks == usualWeeks {
				said = append(said, chanceInWords(&plan))
			}
		}
	}
	return said
}
