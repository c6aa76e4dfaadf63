package worth

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Undecided is the outcome of a running campaign for which nobody recorded one.
const Undecided = "undecided"

// Outcome is what was done after a campaign: what people recorded, or else what its looks and its shares say.
type Outcome struct {
	catalogue.Outcome
	Declared bool `json:"declared"` // a person recorded it
}

// Programme says what the shipped variations of a pool are worth together, and how much one can expect of the next.
type Programme struct {
	WebsiteID     int64            `json:"websiteId"`
	GoalID        int64            `json:"goalId,omitzero"` // absent: all goals count
	GoalName      string           `json:"goalName,omitempty"`
	Metric        query.Metric     `json:"metric"` // representative of those of the pool
	Currency      string           `json:"currency,omitempty"`
	AsOf          *time.Time       `json:"asOf"` // end of the latest state; null: there is none
	Campaigns     Counts           `json:"campaigns"`
	TypicalEffect effects.Estimate `json:"typicalEffect"`
	Mean          effects.Estimate `json:"mean"` // of true effects
	Anchor        float64          `json:"anchor"`
	Total         Total            `json:"total"`
	Curve         []CurvePoint     `json:"curve"`
	Advice        *Advice          `json:"advice"`    // null: there is no campaign
	Sentences     []string         `json:"sentences"` // what the programme says
	Items         []ProgrammeItem  `json:"items"`
}

// Counts count the campaigns of a pool. Those excluded by data are too early, too small, or have a sample ratio
// mismatch.
type Counts struct {
	Pooled         int `json:"pooled"`
	Shipped        int `json:"shipped"` // in the period
	ExcludedByData int `json:"excludedByData"`
	ExcludedByHand int `json:"excludedByHand"`
}

// Total is the sum over the shipped variations of a period.
type Total struct {
	PerMonth        *effects.Sum `json:"perMonth"`        // null: they have several metrics
	ValuePerMonth   *effects.Sum `json:"valuePerMonth"`   // null: no value is known
	Exaggeration    *float64     `json:"exaggeration"`    // observed / expected; null: the expected sum is not above 0
	ProbablyNothing float64      `json:"probablyNothing"` // expected number with a true effect at or below 0
	Reason          stats.Reason `json:"reason,omitempty"`
}

// CurvePoint is the sum of what was shipped up to a day, by today's knowledge: in value, if it is known.
type CurvePoint struct {
	Date string `json:"date"`
	effects.Sum
}

// Advice says what to test next.
type Advice struct {
	MDE              float64      `json:"mde"` // the typical effect, rounded to two digits
	RequiredVisitors *int64       `json:"requiredVisitors"`
	Days             *int64       `json:"days"`  // at the pace of the last campaign
	Plans            []PlanChance `json:"plans"` // of several lengths, at this pace
	Reason           stats.Reason `json:"reason,omitempty"`
}

// PlanChance is the chance that a plan finds the next variation to be better.
type PlanChance struct {
	Weeks   int             `json:"weeks"`
	WinRate effects.WinRate `json:"winRate"`
}

// ProgrammeItem is a treatment of a campaign of the pool.
type ProgrammeItem struct {
	schema.SubjectIDs
	Campaign string  `json:"campaign"` // name
	Shipped  bool    `json:"shipped"`
	Outcome  Outcome `json:"outcome"` // of the campaign
	Item
}

// NewProgramme returns the programme of a pool. from and to are days that bound the dates of shipping of the total and
// the curve; empty: they are open. They do not change what is known.
func (p *Pool) NewProgramme(from, to string) *Programme {
	r := &Programme{
		WebsiteID: p.Key.WebsiteID, GoalID: p.Key.GoalID, Metric: p.Key.Metric,
		TypicalEffect: p.Summary.TypicalEffect, Anchor: p.Summary.Anchor, Curve: []CurvePoint{},
		Items: []ProgrammeItem{},
		Mean:  effects.EstimateOf(p.fit.MeanEffect(), effects.Unscaled),
	}
	r.Campaigns.Pooled = p.Summary.Campaigns
	var shipped []shippedItem
	for i := range p.campaigns {
		c := &p.campaigns[i]
		items := p.items[c.Plan.Subject]
		isPooled := slices.ContainsFunc(items, func(i Item) bool { return i.Observed != nil })
		switch {
		case c.Outcome.Outcome.Outcome == catalogue.Excluded:
			r.Campaigns.ExcludedByHand++
		case !isPooled:
			r.Campaigns.ExcludedByData++
		case r.AsOf == nil || c.State[0].End.After(*r.AsOf):
			r.AsOf = &c.State[0].End
		}
		for k := range items {
			o := c.Outcome
			item := ProgrammeItem{
				SubjectIDs: c.Plan.Subject.IDs(), Campaign: c.Name, Outcome: o, Item: items[k],
				Shipped: o.Outcome.Outcome == catalogue.Shipped && o.VariationID == items[k].VariationID,
			}
			if item.Shipped && (from == "" || item.Outcome.Date >= from) && (to == "" || item.Outcome.Date <= to) {
				r.Campaigns.Shipped++
				if number, is := p.fitted[&items[k]]; is {
					shipped = append(shipped, shippedItem{&items[k], number, item.Outcome.Date})
				}
			}
			r.Items = append(r.Items, item)
		}
	}
	slices.SortStableFunc(shipped, func(a, b shippedItem) int { return cmp.Compare(a.date, b.date) })
	r.Total = p.totalOf(shipped)
	for i := range shipped {
		if i+1 < len(shipped) && shipped[i+1].date == shipped[i].date {
			continue
		}
		so := p.totalOf(shipped[:i+1])
		if sum := cmp.Or(so.ValuePerMonth, so.PerMonth); sum != nil {
			r.Curve = append(r.Curve, CurvePoint{shipped[i].date, *sum})
		}
	}
	r.Advice = p.advice()
	return r
}

// shippedItem is a shipped treatment that the fit knows.
type shippedItem struct {
	*Item
	number int
	date   string
}

// totalOf returns the total of shipped treatments.
func (p *Pool) totalOf(shipped []shippedItem) Total {
	var t Total
	if len(shipped) == 0 {
		t.Reason = ReasonNothingShipped
		return t
	}
	sum := func(scaleOf func(*Item) float64) *effects.Sum {
		factors := make([]float64, len(p.fit.Effects))
		observed, isKnown := 0.0, false
		for _, s := range shipped {
			scale := scaleOf(s.Item)
			factors[s.number] = scale
			observed += scale * p.fit.Effects[s.number].Value
			isKnown = isKnown || scale != 0
		}
		if !isKnown {
			return nil
		}
		e := p.fit.Total(factors)
		return &effects.Sum{Observed: observed, Expected: e.Mean, Interval: [2]float64{e.Lower, e.Upper}}
	}
	isSame := func(s shippedItem) bool { return s.Metric == shipped[0].Metric }
	if !slices.ContainsFunc(shipped, func(s shippedItem) bool { return !isSame(s) }) {
		t.PerMonth = sum(func(i *Item) float64 { return i.scale })
	}
	t.ValuePerMonth = sum(func(i *Item) float64 { return i.valueScale })
	for _, s := range shipped {
		t.ProbablyNothing += 1 - *s.Chance
	}
	if of := cmp.Or(t.ValuePerMonth, t.PerMonth); of != nil && of.Expected > 0 {
		t.Exaggeration = new(of.Observed / of.Expected)
	}
	return t
}

// advise returns the advice at the median baseline of the campaigns with the metric of the last one, and at the pace of
// the last one; nil: there is none.
func (p *Pool) advise() *Advice {
	type baseline struct {
		*Campaign
		mean float64
	}
	var known []baseline
	for i := range p.campaigns {
		items := p.items[p.campaigns[i].Plan.Subject]
		if k := slices.IndexFunc(items, func(i Item) bool { return i.Observed != nil }); k >= 0 {
			known = append(known, baseline{&p.campaigns[i], p.fit.Effects[p.fitted[&items[k]]].Mean})
		}
	}
	if len(known) == 0 {
		return nil
	}
	last := slices.MaxFunc(known, func(a, b baseline) int { return a.State[0].End.Compare(b.State[0].End) })
	metric, rules, prior := last.Plan.Declared.Metric, &last.Plan.Rules, last.Plan.Rules.Prior
	if rules.StatedPrior.Campaigns != nil { // the next campaign learns from this one, too
		prior = &stats.Prior{StandardDeviation: p.Summary.TypicalEffect.Value}
	}
	known = slices.DeleteFunc(known, func(b baseline) bool { return b.Plan.Declared.Metric != metric })
	slices.SortStableFunc(known, func(a, b baseline) int { return cmp.Compare(a.mean, b.mean) })
	a := &Advice{MDE: RoundMoney(p.Summary.TypicalEffect.Value), Plans: []PlanChance{}}
	control := moments.NoMoments()
	for _, s := range known[(len(known)-1)/2].State[0].Strata {
		control = control.Merge(s.Control)
	}
	shares := last.Plan.SharePeriods[len(last.Plan.SharePeriods)-1].Shares
	alpha := stats.Options{SignificanceLevel: rules.SignificanceLevel}.Alpha()
	sizeOf := func(weeks int) (*stats.SampleSize, stats.Reason) {
		return stats.NewSampleSize(stats.SamplePlan{
			Control: looks.SampleOf(&control, metric), Shares: shares, Looks: weeks,
			Power: float64(rules.Power) / 100, Prior: prior,
		}, stats.NewLookDesign(alpha, shares))
	}
	pace := float64(last.State[0].Visitors) / float64(last.State[0].Days)
	const daysOfWeek, usualWeeks = 7, 4
	size, reason := sizeOf(usualWeeks)
	if a.Reason = reason; reason != "" {
		return a
	}
	a.RequiredVisitors, a.Reason = size.RequiredVisitors(a.MDE)
	if a.RequiredVisitors != nil && pace > 0 {
		a.Days = new(int64(math.Ceil(float64(*a.RequiredVisitors) / pace)))
	}
	for _, weeks := range []int{2, 4, 8, 12} {
		if size, reason := sizeOf(weeks); reason == "" {
			visitors := pace * daysOfWeek * float64(weeks)
			a.Plans = append(a.Plans, PlanChance{weeks, p.fit.WinRate(func(lift float64) float64 {
				if power, reason := size.PowerAt(lift, visitors); reason == "" {
					return *power
				}
				return 0
			})})
		}
	}
	return a
}
