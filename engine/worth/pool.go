// Package worth says what decisions are truly worth: the campaigns of a website as pools for package effects, and what
// their effects make in a month.
package worth

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// PoolKey identifies a pool: the campaigns and experiments of a website whose true effects are alike, because they were
// decided on the same goal and the same kind of metric.
type PoolKey struct {
	WebsiteID int64
	GoalID    int64        // 0: all goals count
	Metric    query.Metric // the representative of its kind
}

// PoolOf returns the pool of the declared question of a plan. Lifts of conversion rate, goals and value have one
// distribution. A margin moves more than revenue, so profit and extra value have pools of their own, as have the
// metrics of widgets, each declared metric, and the average value, which is not worth anything by itself.
func PoolOf(p *plan.Plan) PoolKey {
	return PoolKey{p.Subject.WebsiteID, p.Declared.GoalID, KindOf(p.Declared.Metric)}
}

// KindOf returns the representative of the kind of a metric.
func KindOf(metric query.Metric) query.Metric {
	if metric == query.GoalConversionRate || metric == query.GoalsPerVisitor {
		return query.ValuePerVisitor
	}
	return metric
}

// Campaign is what is known of a campaign or of an experiment of a widget: its plan in force at the first view, its
// state, and what was done afterwards.
type Campaign struct {
	Plan    *plan.Plan
	Name    string
	State   []looks.LookRow // by treatment, see LatestState
	Outcome Outcome
}

// LatestState returns the rows of the last look or of the end, whichever is later; none: there is neither.
func LatestState(rows []looks.LookRow) (state []looks.LookRow) {
	for _, r := range rows {
		if !r.Kind.IsState() {
			continue
		}
		order := 1
		if len(state) > 0 {
			order = cmp.Or(r.End.Compare(state[0].End), cmp.Compare(r.Kind, state[0].Kind))
		}
		switch {
		case order > 0:
			state = []looks.LookRow{r}
		case order == 0 && r.Number == state[0].Number:
			state = append(state, r)
		}
	}
	return state
}

// Item is what a treatment is worth: what a variation for everybody instead of control changes.
type Item struct {
	VariationID int64        `json:"variationId"`
	Name        string       `json:"name"`
	Metric      query.Metric `json:"metric"` // on which the campaign is decided
	Of          Visitors     `json:"of"`
	Allocation  *int         `json:"allocation,omitempty"` // declared share of the traffic in the test, in per cent
	State       looks.Kind   `json:"state,omitempty"`      // look or end; empty: neither
	EndedAt     *time.Time   `json:"endedAt,omitempty"`    // end of this state
	Observed    *Observed    `json:"observed"`             // null: see Reason
	Expected    *TrueValue   `json:"expected"`
	Chance      *float64     `json:"chance"` // that the true effect is above 0
	small       float64      // probability that it is below a tenth of the minimum effect
	Reason      stats.Reason `json:"reason,omitempty"`
	LiftReason  stats.Reason `json:"liftReason,omitempty"` // why a lift is null
	// ValueReason is the reason why there is no value a month, if there are other numbers.
	ValueReason stats.Reason `json:"valueReason,omitempty"`

	scale, valueScale float64 // per unit of the effect a month; 0: not known
}

// Visitors says which visitors a worth is about.
type Visitors string

// The visitors: those like the ones in the test, or all, if the share of the traffic in the test is declared.
const (
	Tested     Visitors = "tested"
	AllTraffic Visitors = "allTraffic"
)

// visitorsOf returns the visitors of the worth of a plan.
func visitorsOf(p *plan.Plan) Visitors {
	if p.Allocation == nil {
		return Tested
	}
	return AllTraffic
}

// testedShare returns what a number a month is multiplied with to be that of the visitors in the test.
func (i *Item) testedShare() float64 {
	if i.Of != AllTraffic {
		return 1
	}
	const percent = 100
	return float64(*i.Allocation) / percent
}

// Observed is the effect in the data. The lift is a fraction. PerMonth is in the unit of the metric, ValuePerMonth in
// the currency of the website.
type Observed struct {
	Lift          *float64 `json:"lift"` // null: the mean of control is not above 0
	PerMonth      *float64 `json:"perMonth"`
	ValuePerMonth *float64 `json:"valuePerMonth"`
}

// TrueValue is what the true effect is expected to be.
type TrueValue struct {
	Lift          *effects.Estimate `json:"lift"` // null: the mean of control may not be above 0
	PerMonth      *effects.Estimate `json:"perMonth"`
	ValuePerMonth *effects.Estimate `json:"valuePerMonth"`
}

// The reasons why there is no worth, or no worth a month.
const (
	ReasonTooFewDays     stats.Reason = "TOO_FEW_DAYS"    // less than a week, which has each weekday
	ReasonNotASum        stats.Reason = "NOT_A_SUM"       // the metric is not a sum over visitors
	ReasonFiltered       stats.Reason = "FILTERED"        // not about the declared question and all visitors
	ReasonNoValue        stats.Reason = "NO_VALUE"        // the goal has no value
	ReasonExcluded       stats.Reason = "EXCLUDED"        // a person excluded the campaign
	ReasonNothingShipped stats.Reason = "NOTHING_SHIPPED" // in the period
)

// A month, and the number of full days from which traffic is known.
const (
	DaysPerMonth = 30
	leastDays    = 7
)

// Pool has what the campaigns of a pool say about each other. The campaigns must be in an order that does not change.
type Pool struct {
	Key       PoolKey
	Summary   effects.PoolSummary
	campaigns []Campaign
	items     map[schema.Subject][]Item
	fit       *effects.Fit
	fitted    map[*Item]int // number of each fitted treatment
}

// NewPool returns the pool of the campaigns that belong to it. Campaigns without a state, with a sample ratio mismatch,
// or with too few visitors say nothing about the others, and have no worth.
func NewPool(key PoolKey, campaigns []Campaign) *Pool {
	campaigns = slices.DeleteFunc(campaigns, func(c Campaign) bool { return PoolOf(c.Plan) != key })
	pool := &Pool{Key: key, campaigns: campaigns, items: map[schema.Subject][]Item{}, fitted: map[*Item]int{}}
	var fitted [][]stats.PooledEffect
	var mdes, all []float64
	for _, c := range campaigns {
		items, effects := c.observeTreatments()
		pool.items[c.Plan.Subject] = items
		all = append(all, c.Plan.Rules.MDE/100)
		var own []stats.PooledEffect
		for i := range items {
			if items[i].Observed != nil {
				pool.fitted[&items[i]] = len(pool.fitted)
				own = append(own, effects[i])
			}
		}
		if len(own) > 0 {
			fitted = append(fitted, own)
			mdes = append(mdes, c.Plan.Rules.MDE/100)
		}
	}
	if len(mdes) == 0 {
		mdes = all
	}
	slices.Sort(mdes)
	mde := defaultMDE
	if n := len(mdes); n > 0 { // the median
		mde = (mdes[(n-1)/2] + mdes[n/2]) / 2
	}
	pool.fit = effects.NewFit(mde, fitted)
	pool.Summary = pool.fit.Summary()
	for item, i := range pool.fitted { // what is expected
		e := pool.fit.TrueEffect(i)
		item.Chance = &e.Chance
		item.small = e.Small
		item.Expected = &TrueValue{Lift: effects.ExpectedLift(e, &pool.fit.Effects[i])}
		if item.LiftReason == "" && item.Expected.Lift == nil {
			item.LiftReason = stats.ReasonBaselineNotDistinguishable
		}
		times := func(scale float64) *effects.Estimate {
			if scale == 0 {
				return nil
			}
			return new(effects.EstimateOf(e, func(x float64) float64 { return x * scale }))
		}
		item.Expected.PerMonth, item.Expected.ValuePerMonth = times(item.scale), times(item.valueScale)
	}
	return pool
}

// LearnPrior returns the prior that a Bayesian campaign with a minimum effect, a fraction, learns: N(mu, tau²), where
// tau is the typical effect of the campaigns of its pool that ended before it, and mu their mean effect, at most 0: a
// team whose ideas were good does not start ahead. Without any campaign, tau is the mean of its own prior, .247 of the
// minimum effect, and mu is 0.
func LearnPrior(key PoolKey, ended []Campaign, mde float64) catalogue.Prior {
	known := NewPool(key, ended).Summary
	if known.Campaigns == 0 {
		known = effects.NewPast(mde, nil).Pool
		known.MeanEffect.Value = 0 // but for rounding
	}
	return PriorOf(known)
}

// PriorOf returns the prior of a campaign that follows those of a pool.
func PriorOf(s effects.PoolSummary) catalogue.Prior {
	return catalogue.Prior{
		Mean:              100 * min(0, s.MeanEffect.Value),
		StandardDeviation: 100 * s.TypicalEffect.Value, Campaigns: &s.Campaigns,
	}
}

// ItemsOf returns what the treatments of a campaign are worth, and whether the pool has the campaign.
func (p *Pool) ItemsOf(subject schema.Subject) (items []Item, has bool) {
	items, has = p.items[subject]
	return items, has
}

// defaultMDE is the minimum effect of a pool without campaigns: that of the catalogue.
const defaultMDE = .2

// observeTreatments returns the items of the treatments with what is observed at a look or an end, and the effects.
func (c *Campaign) observeTreatments() (items []Item, found []stats.PooledEffect) {
	for i := range c.Plan.Variations[1:] {
		item, effect := c.observeTreatment(&c.Plan.Variations[1+i])
		items = append(items, item)
		found = append(found, effect)
	}
	return items, found
}

// observeTreatment returns what is observed of a treatment, and its effect.
func (c *Campaign) observeTreatment(v *plan.Variation) (Item, stats.PooledEffect) {
	item := Item{
		VariationID: v.ID, Name: v.Name, Metric: c.Plan.Declared.Metric, Of: visitorsOf(c.Plan),
		Allocation: c.Plan.Allocation,
	}
	var row *looks.LookRow
	if at := slices.IndexFunc(c.State, func(r looks.LookRow) bool { return r.VariationID == v.ID }); at >= 0 {
		row = &c.State[at]
	}
	item.Reason = c.findInvalid(v, row)
	if item.Reason != "" {
		return item, stats.PooledEffect{}
	}
	item.State = row.Kind
	item.EndedAt = &row.End
	effect, pair := effectOf(row, item.Metric)
	item.Reason = effect.Reason
	if item.Reason != "" {
		return item, effect
	}
	item.Observed = &Observed{Lift: effects.ObservedLift(&effect)}
	if item.Observed.Lift == nil {
		item.LiftReason = stats.ReasonBaselineZero
	}
	item.Reason = c.findNoMonth(row)
	if item.Reason == "" {
		item.setMonth(row, &effect, &pair, PoolOf(c.Plan).Metric == query.ValuePerVisitor)
	}
	return item, effect
}

// findInvalid returns the reason why a treatment says nothing; empty: there is none. row is its state; nil: none.
func (c *Campaign) findInvalid(v *plan.Variation, row *looks.LookRow) stats.Reason {
	switch {
	case c.Outcome.Outcome.Outcome == catalogue.Excluded:
		return ReasonExcluded
	case row == nil:
		return stats.ReasonTooEarly
	case v.Added:
		return stats.ReasonPlanChanged
	case row.MismatchP != nil && *row.MismatchP < stats.MismatchAlpha:
		return stats.ReasonSampleRatioMismatch
	}
	return ""
}

// effectOf returns the effect of a state, and what the visitors of control and the treatment did together.
func effectOf(row *looks.LookRow, metric query.Metric) (stats.PooledEffect, moments.Moments) {
	var strata []stats.Stratum
	pair := moments.NoMoments()
	for _, s := range row.Strata {
		strata = append(strata, stats.Stratum{
			Control: looks.SampleOf(&s.Control, metric), Treatment: looks.SampleOf(&s.Variation, metric),
		})
		pair = pair.Merge(s.Control).Merge(s.Variation)
	}
	return stats.NewPooledEffect(strata), pair
}

// findNoMonth returns the reason why an effect has no worth a month; empty: there is none.
func (c *Campaign) findNoMonth(row *looks.LookRow) stats.Reason {
	switch {
	case c.Plan.Declared.Metric.IsRatio():
		return ReasonNotASum
	case row.Days < leastDays:
		return ReasonTooFewDays
	case c.Plan.HasNoTraffic():
		return stats.ReasonNoTraffic
	}
	return ""
}

// setMonth sets what an effect makes in a month. A month has
//
//	N 30 / D / allocation
//
// visitors, where N visitors of all variations were in D full days, and allocation is the share of the traffic that
// takes part. If it is not declared, a month has N 30 / D visitors: those like the ones in the test. It is assumed that
// traffic stays as in these days. hasValues reports whether the metric is about values.
func (i *Item) setMonth(row *looks.LookRow, effect *stats.PooledEffect, pair *moments.Moments, hasValues bool) {
	month := float64(row.Visitors) * DaysPerMonth / float64(row.Days) / i.testedShare()
	i.scale = effect.Mean * month
	i.Observed.PerMonth = new(i.scale * effect.Value)
	var perVisitor float64
	perVisitor, i.ValueReason = MeanValue(pair, hasValues)
	if i.ValueReason == "" {
		i.valueScale = perVisitor * month
		i.Observed.ValuePerMonth = new(i.valueScale * effect.Value)
	}
}

// MeanValue returns the value of a visitor, or the reason why it is not known. hasValues reports whether the metric is
// about values.
func MeanValue(of *moments.Moments, hasValues bool) (float64, stats.Reason) {
	switch value := of.Value.Sum; {
	case of.Unknown > 0:
		return 0, stats.ReasonRateUnknown
	case !hasValues:
		return 0, ReasonNotASum
	case value == nil || value.Sign() <= 0:
		return 0, ReasonNoValue
	}
	mean, _ := new(big.Rat).SetFrac(of.Value.Sum, big.NewInt(schema.MoneyScale*of.Visitors)).Float64()
	return mean, ""
}

// RoundMoney rounds a number of a worth to two digits, so that it does not change with every visitor.
func RoundMoney(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-1)
	return cmp.Or(math.Round(x/unit)*unit, 0)
}

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

// Total is the sum over the shipped variations of a period. If one is worth something of the visitors in the test, all
// are added as such.
type Total struct {
	Of            Visitors     `json:"of,omitempty"`  // empty: nothing is added
	PerMonth      *effects.Sum `json:"perMonth"`      // null: they have several metrics
	ValuePerMonth *effects.Sum `json:"valuePerMonth"` // null: no value is known
	Exaggeration  *float64     `json:"exaggeration"`  // observed / expected; null: the expected sum is not above 0
	// expected number whose true effect is below a tenth of the minimum effect
	HarmOrNothing float64      `json:"harmOrNothing"`
	Reason        stats.Reason `json:"reason,omitempty"`
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
	Days             *int64       `json:"days"`  // at the pace of the basis
	Plans            []PlanChance `json:"plans"` // of several lengths, at this pace
	Reason           stats.Reason `json:"reason,omitempty"`
}

// PlanChance is the chance that a plan finds the next variation to be better, and what a week of it is worth.
type PlanChance struct {
	Weeks   int             `json:"weeks"`
	WinRate effects.WinRate `json:"winRate"`
	// WorthPerWeek is the value a month that a week of testing adds, if the variations that win are shipped and the
	// others are dropped: the value a month of all visitors, times the mean lift that is shipped, per week. The loss of
	// the visitors who see worse variations during the test is not in it. Null: the value of a visitor is not known.
	WorthPerWeek *float64 `json:"worthPerWeek"`
}

// ChanceOf returns the chance of a plan of some weeks with a power at each lift. value is the value a month of all
// visitors; 0: it is not known. It also returns the mean lift that is shipped per week.
func (p *Pool) ChanceOf(weeks int, powerAt func(lift float64) float64, value float64) (PlanChance, float64) {
	rate, gain := p.fit.WinRate(powerAt)
	gain /= float64(weeks)
	of := PlanChance{Weeks: weeks, WinRate: rate}
	if value > 0 {
		of.WorthPerWeek = new(value * gain)
	}
	return of, gain
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
// the curve; empty: they are open. They do not change what is known. The programme has no advice, see Advise.
func (p *Pool) NewProgramme(from, to string) *Programme {
	r := &Programme{
		WebsiteID: p.Key.WebsiteID, GoalID: p.Key.GoalID, Metric: p.Key.Metric,
		TypicalEffect: p.Summary.TypicalEffect, Anchor: p.Summary.Anchor,
		Items: []ProgrammeItem{}, Mean: effects.EstimateOf(p.fit.MeanEffect(), effects.Unscaled),
	}
	r.Campaigns.Pooled = p.Summary.Campaigns
	var shipped []shippedItem
	for i := range p.campaigns {
		c := &p.campaigns[i]
		items := p.items[c.Plan.Subject]
		r.countCampaign(c, items)
		for k := range items {
			item := newProgrammeItem(c, &items[k])
			r.Items = append(r.Items, item)
			if !item.Shipped || !isWithin(c.Outcome.Date, from, to) {
				continue
			}
			r.Campaigns.Shipped++
			if number, isFitted := p.fitted[&items[k]]; isFitted {
				shipped = append(shipped, shippedItem{&items[k], number, c.Outcome.Date})
			}
		}
	}
	slices.SortStableFunc(shipped, func(a, b shippedItem) int { return cmp.Compare(a.date, b.date) })
	r.Total = p.totalOf(shipped)
	r.Curve = p.curveOf(shipped)
	return r
}

// isWithin reports whether a day is within others; empty: open.
func isWithin(day, from, to string) bool {
	if day < from {
		return false
	}
	return to == "" || day <= to
}

// countCampaign counts a campaign that is not in the pool. One that is may have the latest state.
func (r *Programme) countCampaign(c *Campaign, items []Item) {
	isPooled := slices.ContainsFunc(items, func(i Item) bool { return i.Observed != nil })
	switch {
	case c.Outcome.Outcome.Outcome == catalogue.Excluded:
		r.Campaigns.ExcludedByHand++
	case !isPooled:
		r.Campaigns.ExcludedByData++
	case r.AsOf == nil || c.State[0].End.After(*r.AsOf):
		r.AsOf = &c.State[0].End
	}
}

// newProgrammeItem returns the item of a treatment of a campaign.
func newProgrammeItem(c *Campaign, item *Item) ProgrammeItem {
	isShipped := c.Outcome.Outcome.Outcome == catalogue.Shipped && c.Outcome.VariationID == item.VariationID
	return ProgrammeItem{
		SubjectIDs: c.Plan.Subject.IDs(), Campaign: c.Name, Outcome: c.Outcome, Item: *item, Shipped: isShipped,
	}
}

// curveOf returns the total of the treatments shipped up to each day on which some were. They are in order of dates.
func (p *Pool) curveOf(shipped []shippedItem) []CurvePoint {
	curve := []CurvePoint{}
	for i := range shipped {
		isLastOfDay := i+1 == len(shipped) || shipped[i+1].date != shipped[i].date
		if !isLastOfDay {
			continue
		}
		so := p.totalOf(shipped[:i+1])
		if sum := cmp.Or(so.ValuePerMonth, so.PerMonth); sum != nil {
			curve = append(curve, CurvePoint{shipped[i].date, *sum})
		}
	}
	return curve
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
	t.Of = AllTraffic
	if slices.ContainsFunc(shipped, func(s shippedItem) bool { return s.Of == Tested }) {
		t.Of = Tested
	}
	sum := func(scaleOf func(*Item) float64) *effects.Sum {
		factors := make([]float64, len(p.fit.Effects))
		observed := 0.0
		isKnown := false
		for _, s := range shipped {
			scale := scaleOf(s.Item)
			if t.Of == Tested {
				scale *= s.testedShare()
			}
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
		t.HarmOrNothing += s.small
	}
	if of := cmp.Or(t.ValuePerMonth, t.PerMonth); of != nil && of.Expected > 0 {
		t.Exaggeration = new(of.Observed / of.Expected)
	}
	return t
}

// Basis is what is known of the visitors of the next experiment.
type Basis struct {
	Control       stats.Sample
	PerDay        float64 // visitors in the experiment
	ValuePerMonth float64 // of all visitors; 0: it is not known
}

// LastPlan returns the plan of the last campaign that says something; nil: there is none. The next experiment is
// advised to have its rules.
func (p *Pool) LastPlan() *plan.Plan {
	known := p.fittedCampaigns()
	if len(known) == 0 {
		return nil
	}
	return lastOf(known).Plan
}

// fittedCampaign is a campaign that says something, with the mean of its first treatment and its control.
type fittedCampaign struct {
	*Campaign
	mean float64
}

// fittedCampaigns returns the campaigns that say something.
func (p *Pool) fittedCampaigns() (known []fittedCampaign) {
	for i := range p.campaigns {
		items := p.items[p.campaigns[i].Plan.Subject]
		if k := slices.IndexFunc(items, func(i Item) bool { return i.Observed != nil }); k >= 0 {
			known = append(known, fittedCampaign{&p.campaigns[i], p.fit.Effects[p.fitted[&items[k]]].Mean})
		}
	}
	return known
}

// lastOf returns the campaign with the latest state.
func lastOf(known []fittedCampaign) fittedCampaign {
	return slices.MaxFunc(known, func(a, b fittedCampaign) int { return a.State[0].End.Compare(b.State[0].End) })
}

// ledgerBasis returns the basis of an experiment like the last campaign, from the states of campaigns: the median
// baseline of those with its metric, and its pace.
func (p *Pool) ledgerBasis() *Basis {
	known := p.fittedCampaigns()
	last := lastOf(known)
	metric := last.Plan.Declared.Metric
	known = slices.DeleteFunc(known, func(b fittedCampaign) bool { return b.Plan.Declared.Metric != metric })
	slices.SortStableFunc(known, func(a, b fittedCampaign) int { return cmp.Compare(a.mean, b.mean) })
	control := moments.NoMoments()
	for _, s := range known[(len(known)-1)/2].State[0].Strata {
		control = control.Merge(s.Control)
	}
	pace := float64(last.State[0].Visitors) / float64(last.State[0].Days)
	return &Basis{looks.SampleOf(&control, metric), pace, p.valueOf(last.Campaign)}
}

// Advise returns the advice for an experiment with the rules of the last campaign; nil: there is none. Without a basis,
// it is that of the states of campaigns.
func (p *Pool) Advise(basis *Basis) *Advice {
	planned := p.LastPlan()
	if planned == nil {
		return nil
	}
	if basis == nil {
		basis = p.ledgerBasis()
	}
	rules := &planned.Rules
	prior := rules.Prior
	if rules.StatedPrior.Campaigns != nil { // the next campaign learns from this one, too
		prior = &stats.Prior{StandardDeviation: p.Summary.TypicalEffect.Value}
	}
	a := &Advice{MDE: RoundMoney(p.Summary.TypicalEffect.Value), Plans: []PlanChance{}}
	shares := planned.SharePeriods[len(planned.SharePeriods)-1].Shares
	alpha := stats.Options{SignificanceLevel: rules.SignificanceLevel}.Alpha()
	sizeOf := func(weeks int) (*stats.SampleSize, stats.Reason) {
		return stats.NewSampleSize(stats.SamplePlan{
			Control: basis.Control, Shares: shares, Looks: weeks, Power: float64(rules.Power) / 100, Prior: prior,
		}, stats.NewLookDesign(alpha, shares))
	}
	const daysOfWeek, usualWeeks = 7, 4
	size, reason := sizeOf(usualWeeks)
	if reason != "" {
		a.Reason = reason
		return a
	}
	a.RequiredVisitors, a.Reason = size.RequiredVisitors(a.MDE)
	if a.RequiredVisitors != nil && basis.PerDay > 0 {
		a.Days = new(int64(math.Ceil(float64(*a.RequiredVisitors) / basis.PerDay)))
	}
	for _, weeks := range []int{2, 4, 8, 12} {
		if size, reason := sizeOf(weeks); reason == "" {
			visitors := basis.PerDay * daysOfWeek * float64(weeks)
			detectable, _ := size.DetectableLift(visitors)
			chance, _ := p.ChanceOf(weeks, size.PowerCurve(visitors, detectable), basis.ValuePerMonth)
			a.Plans = append(a.Plans, chance)
		}
	}
	return a
}

// valueOf returns the value a month of the visitors of a campaign; 0: it is not known.
func (p *Pool) valueOf(c *Campaign) float64 {
	for _, item := range p.items[c.Plan.Subject] {
		if item.valueScale > 0 {
			return item.valueScale
		}
	}
	return 0
}
