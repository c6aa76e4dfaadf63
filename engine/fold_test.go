package engine

import (
	"cmp"
	"math/big"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

// fold computes the counts of a report directly from the definitions, with plain loops over the events of each visitor.
// It is the oracle of the engine. For each value of the dimension, and for all visitors (key all), it returns the
// moments of each variation and the counts of the checks.
const all = "\x00all"

type folded struct {
	values                                []int64                            // of counted goals, before outliers
	goals                                 map[int64][]int64                  // the same, by variation
	moments                               map[[2]int64]moments.Moments       // by variation and period of equal shares
	visits                                map[int64][]map[query.Metric]int64 // of visitors, whose means are the metrics
	visitors, multiExposed, exposedBefore int64
	immature                              int64
}

// periods returns the periods of equal shares with visitors.
func (c *folded) periods() map[int64]bool {
	found := map[int64]bool{}
	for at := range c.moments {
		found[at[1]] = true
	}
	return found
}

// reportQuery is a plan in force at the first view, with what the naive fold and the reference need.
type reportQuery struct {
	*plan.Plan
	Store    *source.Store
	Stored   facts.Stored
	Outliers *moments.Outliers
	CapLimit *moments.AppliedCap
	cohort   time.Duration // age that all visitors must have reached; 0: that of the conversion window
}

// about returns the same query about another plan, before bounds and limits are known.
func (x *reportQuery) about(p *plan.Plan) *reportQuery {
	return &reportQuery{Plan: p, Store: x.Store, Stored: x.Stored}
}

// ofAll returns the query without filters of visitors, breakdown and series. It keeps the bounds.
func (x *reportQuery) ofAll() *reportQuery {
	p := *x.Plan
	p.Filters.Lists, p.Filters.Texts, p.Dimension, p.Interval = nil, nil, "", ""
	whole := x.about(&p)
	whole.Outliers = x.Outliers
	return whole
}

// prepareQuery folds what waits, and returns the query of a request.
func prepareQuery(t *testing.T, e *Engine, r query.Request) *reportQuery {
	t.Helper()
	must.Get(e.facts.AwaitNoted(t.Context()))(t)
	p := e.AsOfFirstView(planOf(t, e, r))
	stored := must.Get(e.facts.StoredEvents(t.Context(), p.Subject))(t)
	return &reportQuery{Plan: p, Store: e.facts.Store, Stored: stored}
}

// eventsByVisitor returns the events of a subject.
func eventsByVisitor(of schema.Subject, events []schema.Event) map[uint64][]schema.Event {
	found := map[uint64][]schema.Event{}
	for _, e := range events {
		if e.WebsiteID == of.WebsiteID && e.Subject == of.Kind && e.SubjectID == of.ID &&
			e.ExperimentID == of.ExperimentID {
			found[e.VisitorID] = append(found[e.VisitorID], e)
		}
	}
	return found
}

// viewsOf returns the views among the events of a visitor, the one that counts first.
func viewsOf(own []schema.Event) []schema.Event {
	views := slices.DeleteFunc(slices.Clone(own), func(e schema.Event) bool { return e.Kind != schema.KindView })
	slices.SortFunc(views, func(a, b schema.Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.VariationID, b.VariationID),
			cmp.Compare(a.EventID, b.EventID))
	})
	return views
}

func foldPlainly(p *reportQuery, events []schema.Event) map[string]*folded {
	byVisitor := eventsByVisitor(p.Subject, events)
	through := completeThrough(p, byVisitor)
	cells := map[string]*folded{all: {
		moments: map[[2]int64]moments.Moments{},
		visits:  map[int64][]map[query.Metric]int64{},
	}}
	for _, own := range byVisitor {
		views := viewsOf(own)
		if len(views) == 0 {
			continue
		}
		first := views[0]
		if !matches(p.Plan, &first) || !first.Time.Before(p.WindowEnd()) {
			continue
		}
		value := attribute(string(p.Dimension), &first)
		if cells[value] == nil {
			cells[value] = &folded{
				moments: map[[2]int64]moments.Moments{},
				visits:  map[int64][]map[query.Metric]int64{},
			}
		}
		for _, c := range []*folded{cells[all], cells[value]} {
			c.add(p, first, views, own, through)
		}
	}
	for value, c := range cells {
		for at, m := range c.moments {
			if value != all && p.Dimension != "" { // only the whole report has visitors of the recent days
				m.Recent = 0
				c.moments[at] = m
			}
		}
	}
	return cells
}

// completeThrough returns the time up to which all events are known, if a window ends then: that of the newest event, or
// the day of the last acceptance, if a view was accepted within a day.
func completeThrough(p *reportQuery, byVisitor map[uint64][]schema.Event) time.Time {
	through := p.Stored.Newest
	for _, own := range byVisitor {
		for _, e := range own {
			if e.Kind == schema.KindView && accepted.Sub(e.Time).Abs() <= 24*time.Hour {
				if day := p.Stored.Ingested.Truncate(24 * time.Hour); day.After(through) {
					through = day
				}
				if through.After(p.Stored.Ingested) {
					through = p.Stored.Ingested
				}
			}
		}
	}
	if p.WindowEnd().Before(through) {
		return p.WindowEnd()
	}
	return through
}

// isImmature reports whether the conversion window of a visitor has not ended.
func (x *reportQuery) isImmature(first, through time.Time) bool {
	age := cmp.Or(x.cohort, x.ConversionWindow.Maturity())
	return age > 0 && first.Add(age).After(through)
}

func (c *folded) add(p *reportQuery, first schema.Event, views, own []schema.Event, through time.Time) {
	if first.Time.Before(p.WindowStart()) {
		if slices.ContainsFunc(own,
			func(e schema.Event) bool { return !e.Time.Before(p.WindowStart()) && e.Time.Before(p.WindowEnd()) }) {
			c.exposedBefore++
		}
		return
	}
	c.visitors++
	if slices.ContainsFunc(views, func(e schema.Event) bool { return e.VariationID != first.VariationID }) {
		c.multiExposed++
		if p.MultipleExposures == catalogue.ExcludeMultiExposed {
			if p.isImmature(first.Time, through) {
				c.immature++
			}
			return
		}
	}
	if p.isImmature(first.Time, through) {
		c.immature++
		return
	}
	var goals, value, profit, extra int64
	one := moments.Moments{Visitors: 1}
	for _, e := range own {
		if e.Time.Before(first.Time) || !e.Time.Before(p.WindowEnd()) {
			continue
		}
		age, window := e.Time.Sub(first.Time), p.ConversionWindow
		inside := !window.IsSet() || window.From <= age && age < window.To
		if !inside &&
			(e.Kind == schema.KindGoal || e.Kind == schema.KindCompletion || e.Kind == schema.KindConversion) {
			continue
		}
		switch e.Kind {
		case schema.KindView:
			one.Views++
		case schema.KindGoal:
			if p.GoalID != 0 && e.GoalID != p.GoalID || below(e.Value, p.Filters.GoalValue) {
				continue
			}
			if slices.ContainsFunc(p.Variations, func(v plan.Variation) bool { return v.ID == first.VariationID }) {
				c.values = append(c.values, e.Value)
			}
			if outlying(p.Outliers, e.Value) {
				continue
			}
			if c.goals == nil {
				c.goals = map[int64][]int64{}
			}
			c.goals[first.VariationID] = append(c.goals[first.VariationID], e.Value)
			goals, value, profit, extra = goals+1, value+e.Value, profit+e.Profit, extra+e.ExtraValue
		default:
			if p.Subject.Kind == schema.SubjectWidget {
				countAction(&one, e.Kind)
			}
		}
	}
	one.Completed, one.Conversion = min(one.Completions, 1), min(one.Conversions, 1)
	one.Goals = amounts(goals).Sums
	one.Value, one.Profit, one.ExtraValue = amounts(value), amounts(profit), amounts(extra)
	one.ValueGoals = new(big.Int).Mul(big.NewInt(value), big.NewInt(goals))
	if p.CapLimit != nil && p.CapLimit.Limit > 0 {
		one.CappedRemainder, value, profit = remainderOf(value, profit, p.CapLimit.Limit)
	}
	if goals > 0 {
		one.Converted = 1
	}
	at := [2]int64{first.VariationID, 0}
	for i := 1; i < len(p.SharePeriods); i++ {
		if !first.Time.Before(p.SharePeriods[i].Since) {
			at[1] = int64(i)
		}
	}
	if from, to := plan.RecentPeriod(p.Stored.Ingested); !first.Time.Before(from) && first.Time.Before(to) {
		one.Recent = 1
	}
	c.moments[at] = c.moments[at].Merge(one)
	c.visits[first.VariationID] = append(c.visits[first.VariationID], map[query.Metric]int64{
		query.GoalConversionRate: one.Converted, query.ConversionRate: one.Conversion,
		query.CompletionRate: one.Completed, query.GoalsPerVisitor: goals,
		query.ValuePerVisitor: value, query.ProfitPerVisitor: profit, query.ExtraValuePerVisitor: extra,
	})
}

// remainderOf returns what a cap removes from the sums of a visitor, and the capped value and profit.
func remainderOf(value, profit, limit int64) (e moments.CappedRemainder, cappedValue, cappedProfit int64) {
	capped := min(value, limit)
	removed := value - capped
	e = moments.CappedRemainder{
		Value: without(amounts(value), amounts(capped)), Profit: without(amounts(profit), amounts(profit-removed)),
	}
	if removed > 0 {
		e.Visitors = 1
	}
	return e, capped, profit - removed
}

// limitOf returns the limit of the cap of a report: the smallest total value of a converted visitor that at least the
// percentile of them do not exceed; 0: none is above it.
func limitOf(p *reportQuery, events []schema.Event) int64 {
	if p.Cap.Percentile == 0 {
		return p.Cap.Units
	}
	var totals []int64
	for id, visits := range foldPlainly(p.ofAll(), events)[all].visits {
		if !slices.ContainsFunc(p.Variations, func(v plan.Variation) bool { return v.ID == id }) {
			continue
		}
		for _, visit := range visits {
			if visit[query.GoalConversionRate] == 1 {
				totals = append(totals, visit[query.ValuePerVisitor])
			}
		}
	}
	slices.Sort(totals)
	permille, ok := new(big.Rat).SetString(p.Cap.String()[1:])
	if !ok {
		panic(p.Cap)
	}
	for i, total := range totals {
		share := new(big.Rat).Mul(big.NewRat(int64(i+1), int64(len(totals))), big.NewRat(100, 1))
		if share.Cmp(permille) >= 0 {
			if i+1 == len(totals) {
				return 0
			}
			return max(total, 0)
		}
	}
	return 0
}

func below(units int64, least *big.Rat) bool {
	return least != nil && big.NewRat(units, schema.MoneyScale).Cmp(least) < 0
}

func outlying(o *moments.Outliers, units int64) bool {
	return o != nil && !o.Open && (units < o.Least || units > o.Most)
}

func countAction(m *moments.Moments, kind schema.Kind) {
	counter := map[schema.Kind]*int64{
		schema.KindClick: &m.Clicks, schema.KindSubmit: &m.Submits, schema.KindCompletion: &m.Completions,
		schema.KindConversion: &m.Conversions, schema.KindContact: &m.Contacts,
	}[kind]
	*counter++
}

func amounts(x int64) moments.Amounts {
	var a moments.Amounts
	a.Sum, a.Squares = big.NewInt(x), new(big.Int).Mul(big.NewInt(x), big.NewInt(x))
	if x != 0 {
		a.Nonzero = 1
	}
	if x < 0 {
		a.Negative = 1
	}
	return a
}

func matches(p *plan.Plan, e *schema.Event) bool {
	for _, f := range p.Filters.Lists {
		if !slices.Contains(f.Values, attribute(f.Attribute, e)) {
			return false
		}
	}
	for _, f := range p.Filters.Texts {
		if !wildcard(f.Pattern, attribute(f.Attribute, e)) {
			return false
		}
	}
	return true
}

// wildcard reports whether the text matches the pattern, in which * matches any text.
func wildcard(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return wildcard(pattern[1:], text) || text != "" && wildcard(pattern, text[1:])
	}
	return text != "" && pattern[0] == text[0] && wildcard(pattern[1:], text[1:])
}

func attribute(name string, e *schema.Event) string {
	return map[string]string{
		"device": e.Device, "browser": e.Browser, "os": e.OS, "country": e.Country, "region": e.Region, "city": e.City,
		"channel": e.Channel, "referrer": e.Referrer, "utmSource": e.UTMSource, "utmMedium": e.UTMMedium,
		"utmCampaign": e.UTMCampaign, "utmContent": e.UTMContent, "utmTerm": e.UTMTerm,
		"firstVisitPage": e.FirstVisitPage, "visitorType": e.VisitorType,
	}[name]
}
