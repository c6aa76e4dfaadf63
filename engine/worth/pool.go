// Package worth says what decisions are truly worth: the campaigns of a website as pools for package effects, and what
// their effects make in a month.
package worth

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"sync"
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
// metrics of widgets and the average value, which is not worth anything by itself.
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
	State   []looks.Row // by treatment, see LatestState
	Outcome Outcome
}

// LatestState returns the rows of the last look or of the end, whichever is later; none: there is neither.
func LatestState(rows []looks.Row) (state []looks.Row) {
	for _, r := range rows {
		switch {
		case r.Kind == looks.OfHarm:
		case len(state) == 0 || r.End.After(state[0].End) || r.End.Equal(state[0].End) && r.Kind > state[0].Kind:
			state = []looks.Row{r}
		case r.End.Equal(state[0].End) && r.Kind == state[0].Kind && r.Number == state[0].Number:
			state = append(state, r)
		}
	}
	return state
}

// Item is what a treatment is worth: what a variation for everybody instead of control changes.
type Item struct {
	VariationID int64        `json:"variationId"`
	Name        string       `json:"name"`
	Metric      query.Metric `json:"metric"`            // on which the campaign is decided
	State       looks.Kind   `json:"state,omitempty"`   // look or end; empty: neither
	EndedAt     *time.Time   `json:"endedAt,omitempty"` // end of this state
	Observed    *Observed    `json:"observed"`          // null: see Reason
	Expected    *TrueValue   `json:"expected"`
	Chance      *float64     `json:"chance"` // that the true effect is above 0
	Reason      stats.Reason `json:"reason,omitempty"`
	LiftReason  stats.Reason `json:"liftReason,omitempty"` // why a lift is null
	// ValueReason is the reason why there is no value a month, if there are other numbers.
	ValueReason stats.Reason `json:"valueReason,omitempty"`

	scale, valueScale float64 // per unit of the effect a month; 0: not known
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
	daysPerMonth = 30
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
	advice    func() *Advice
}

// NewPool returns the pool of the campaigns that belong to it. Campaigns without a state, with a sample ratio mismatch,
// or with too few visitors say nothing about the others, and have no worth.
func NewPool(key PoolKey, campaigns []Campaign) *Pool {
	campaigns = slices.DeleteFunc(campaigns, func(c Campaign) bool { return PoolOf(c.Plan) != key })
	pool := &Pool{Key: key, campaigns: campaigns, items: map[schema.Subject][]Item{}, fitted: map[*Item]int{}}
	var fitted [][]stats.PooledEffect
	var mdes, all []float64
	for _, c := range campaigns {
		items, effects := c.observe()
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
			fitted, mdes = append(fitted, own), append(mdes, c.Plan.Rules.MDE/100)
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
	pool.fit, pool.advice = effects.NewFit(mde, fitted), sync.OnceValue(pool.advise)
	pool.Summary = pool.fit.Summary()
	for item, i := range pool.fitted { // what is expected
		e := pool.fit.TrueEffect(i)
		item.Chance = &e.Chance
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

// LearnPrior returns the prior of a Bayesian campaign with a minimum effect, a fraction: N(0, tau²), where tau is the
// typical effect of the campaigns of its pool that ended before it. Without any, tau is the mean of its own prior: .247
// of the minimum effect. The mean is 0 whatever they say, so that nobody starts ahead.
func LearnPrior(key PoolKey, ended []Campaign, mde float64) catalogue.Prior {
	known := NewPool(key, ended).Summary
	if known.Campaigns == 0 {
		known = effects.NewPast(mde, nil).Pool
	}
	return PriorOf(known)
}

// PriorOf returns the prior of a campaign that follows those of a pool.
func PriorOf(s effects.PoolSummary) catalogue.Prior {
	return catalogue.Prior{StandardDeviation: 100 * s.TypicalEffect.Value, Campaigns: &s.Campaigns}
}

// ItemsOf returns what the treatments of a campaign are worth, and whether the pool has the campaign.
func (p *Pool) ItemsOf(subject schema.Subject) (items []Item, has bool) {
	items, has = p.items[subject]
	return items, has
}

// defaultMDE is the minimum effect of a pool without campaigns: that of the catalogue.
const defaultMDE = .2

// observe returns the items of the treatments with what is observed, and the effects.
func (c *Campaign) observe() (items []Item, effects []stats.PooledEffect) {
	for _, v := range c.Plan.Variations[1:] {
		item := Item{VariationID: v.ID, Name: v.Name, Metric: c.Plan.Declared.Metric}
		at := slices.IndexFunc(c.State, func(r looks.Row) bool { return r.VariationID == v.ID })
		var effect stats.PooledEffect
		switch {
		case c.Outcome.Outcome.Outcome == catalogue.Excluded:
			item.Reason = ReasonExcluded
		case at < 0:
			item.Reason = stats.ReasonTooEarly
		case v.Added:
			item.Reason = stats.ReasonPlanChanged
		case c.State[at].MismatchP != nil && *c.State[at].MismatchP < stats.MismatchAlpha:
			item.Reason = stats.ReasonSampleRatioMismatch
		default:
			effect = c.observeRow(&c.State[at], &item)
		}
		items, effects = append(items, item), append(effects, effect)
	}
	return items, effects
}

// observeRow sets what is observed at a look or an end, and returns the effect. A month has
//
//	N 30 / D / allocation
//
// visitors, where N visitors of all variations were in D full days, and allocation is the share of the traffic that
// takes part. It is assumed that traffic stays as in these days.
func (c *Campaign) observeRow(row *looks.Row, item *Item) stats.PooledEffect {
	item.State, item.EndedAt = row.Kind, &row.End
	metric := c.Plan.Declared.Metric
	var strata []stats.Stratum
	pair := moments.NoMoments()
	for _, s := range row.Strata {
		strata = append(strata,
			stats.Stratum{Control: looks.SampleOf(&s.Control, metric), Treatment: looks.SampleOf(&s.Variation, metric)})
		pair = pair.Merge(s.Control).Merge(s.Variation)
	}
	effect := stats.NewPooledEffect(strata)
	if item.Reason = effect.Reason; item.Reason != "" {
		return effect
	}
	item.Observed = &Observed{Lift: effects.ObservedLift(&effect)}
	if item.Observed.Lift == nil {
		item.LiftReason = stats.ReasonBaselineZero
	}
	switch {
	case metric == query.AverageValue:
		item.Reason = ReasonNotASum
		return effect
	case row.Days < leastDays:
		item.Reason = ReasonTooFewDays
		return effect
	case c.Plan.Allocation <= 0:
		item.Reason = stats.ReasonNoTraffic
		return effect
	}
	month := float64(row.Visitors) * daysPerMonth / float64(row.Days) / c.Plan.Allocation
	item.scale = effect.Mean * month
	item.Observed.PerMonth = new(item.scale * effect.Value)
	switch value := pair.Value.Sum; {
	case PoolOf(c.Plan).Metric != query.ValuePerVisitor:
		item.ValueReason = ReasonNotASum
	case value == nil || value.Sign() <= 0:
		item.ValueReason = ReasonNoValue
	default:
		perVisitor, _ := new(big.Rat).SetFrac(value, big.NewInt(schema.MoneyScale*pair.Visitors)).Float64()
		item.valueScale = perVisitor * month
		item.Observed.ValuePerMonth = new(item.valueScale * effect.Value)
	}
	return effect
}

// RoundMoney rounds a number of a worth to two digits, so that it does not change with every visitor.
func RoundMoney(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-1)
	return cmp.Or(math.Round(x/unit)*unit, 0)
}
