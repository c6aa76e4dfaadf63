package calibration

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/floats"

	"lifthouse/engine/cache"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

const (
	decisionLevel = 95
	decisionAlpha = 0.05
	decisionPower = 0.8
	weeksToPlan   = 4 // to tau = 1
	weeksOfLooks  = 52
	daysOfWeek    = 7

	firstGuardrail = 2 // id of its goal; the primary goal has id 1
)

// campaign is an audience with the declarations of its catalogue. It has one look a week.
type campaign struct {
	audience
	mde        float64
	bayesian   bool
	learned    *catalogue.Prior // of a Bayesian campaign; nil: the default prior
	guardrails []stats.Margin
	equivalent float64     // the equivalence margin; 0: none
	perWeek    int64       // visitors over all variations; 0: a quarter of the required sample
	ramp       [][]float64 // shares by week; the last ones remain in effect; nil: the shares do not change
	lifts      []float64   // lift of each variation, control first; further variations have none
	harms      []float64   // effect of the treatments on each guardrail
	weeks      int         // of looks
	delayed    bool        // conversions happen at the first view or days later, see delays
	windowDays int         // of the conversion window; 0: none
	settleDays int         // after it in which orders still change
	refunds    refunds
	returns    []returns // of orders, by variation; nil: none
}

// refunds say how many orders come back, and when.
type refunds struct {
	shares   []float64 // of the orders, by variation
	meanDays float64
	isGross  bool // the shop does not report them
}

// refundDays are parts of an exponential distribution with mean 14: the end of each, and a day in it.
var refundDays = []struct{ end, on float64 }{{2.5, 1}, {6, 4}, {11, 8}, {18, 14}, {30, 23}, {math.Inf(1), 44}}

// refundedOrders adds visitors, some of whose orders come back in full. They stay converted.
func refundedOrders(l *life, day int) {
	const mean = 14
	for arm, n := range l.arrivingVisitors(day) {
		buyers := drawBinomial(l.random, n, l.buyers*(1+l.liftOf(arm)))
		left := drawBinomial(l.random, buyers, l.refunds.shares[arm])
		all := l.drawOrders(l.random, buyers-left, 1)
		all.visitors = n
		all.converted = buyers
		from := 0.0
		for _, part := range refundDays {
			back := left
			if !math.IsInf(part.end, 1) {
				back = drawBinomial(l.random, left, 1-math.Exp((from-part.end)/mean))
			}
			left -= back
			from = part.end
			orders := l.drawOrders(l.random, back, 1)
			all = all.addScaled(orders, 1)
			if !l.refunds.isGross {
				on := day + int(math.Round(part.on*l.refunds.meanDays/mean))
				l.addTotals(goalID, arm, day, on, totals{}.addScaled(orders, -1), false)
			}
		}
		l.addTotals(goalID, arm, day, day, all, false)
	}
}

// withRefunds returns the campaign with orders that come back, and a time to settle after a conversion window of a
// week; 0: neither.
func (c *campaign) withRefunds(r refunds, settleDays int) *campaign {
	return c.changedCopy(func(changed *campaign) {
		changed.refunds = r
		changed.settleDays = settleDays
		if settleDays > 0 {
			changed.windowDays = daysOfWeek
		}
	})
}

// delays are the shares of the conversions by the number of days after the first view: 60 % at once, and the others
// after about 5 days on average.
var delays = []struct {
	days  int
	share float64
}{{0, 0.6}, {1, 0.13}, {3, 0.09}, {6, 0.09}, {10, 0.05}, {15, 0.04}}

// withDelays returns the campaign with delayed conversions, and a conversion window of some days; 0: none.
func (c *campaign) withDelays(windowDays int) *campaign {
	return c.changedCopy(func(changed *campaign) {
		changed.delayed = true
		changed.windowDays = windowDays
	})
}

// window returns the conversion window.
func (c *campaign) window() schema.ConversionWindow {
	return schema.ConversionWindow{To: time.Duration(c.windowDays) * day, Settle: time.Duration(c.settleDays) * day}
}

// withShares returns the campaign with the given shares of the traffic, control first.
func (c campaign) withShares(shares ...float64) *campaign {
	c.shares = shares
	c.weeks = weeksOfLooks
	return &c
}

// changedCopy returns a changed copy of the campaign.
func (c *campaign) changedCopy(by func(*campaign)) *campaign {
	changed := *c
	by(&changed)
	return &changed
}

// prior returns the prior of a Bayesian campaign, in fractions.
func (c *campaign) prior() *stats.Prior {
	prior := cmp.Or(c.learned, new(plan.WeakPrior(100*c.mde)))
	return &stats.Prior{Mean: prior.Mean / 100, StandardDeviation: prior.StandardDeviation / 100}
}

// asBayesian returns the campaign with the Bayesian methodology and the default prior.
func (c *campaign) asBayesian() *campaign {
	return c.changedCopy(func(changed *campaign) { changed.bayesian = true })
}

// withDailyVisitors returns the campaign with a number of visitors a day.
func (c *campaign) withDailyVisitors(visitors int64) *campaign {
	return c.changedCopy(func(changed *campaign) { changed.perWeek = daysOfWeek * visitors })
}

func (c *campaign) declaredMethodology() string {
	if c.bayesian {
		return catalogue.Bayesian
	}
	return catalogue.Frequentist
}

// sampleSize returns the required sample of the campaign.
func (c *campaign) sampleSize() *stats.SampleSize {
	p := stats.SamplePlan{Control: c.expectedSample(), Shares: c.shares, Looks: weeksToPlan, Power: decisionPower}
	if c.bayesian {
		p.Prior = c.prior()
	}
	size, reason := stats.NewSampleSize(p, stats.NewLookDesign(decisionAlpha, c.shares))
	if reason != "" {
		panic(fmt.Sprintf("%s: %s", c, reason))
	}
	return size
}

// weeklyVisitors returns the number of visitors of a week.
func (c *campaign) weeklyVisitors() int64 {
	if c.perWeek > 0 {
		return c.perWeek
	}
	required, reason := c.sampleSize().RequiredVisitors(c.mde)
	if reason != "" {
		panic(fmt.Sprintf("%s: %s", c, reason))
	}
	return (*required + weeksToPlan - 1) / weeksToPlan
}

// noon is the start of all campaigns. It is on a Sunday, so the first day is partial.
var noon = time.Date(2026, 1, 4, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// startOfDay returns the start of a day. Day 0 is the partial day.
func startOfDay(d int) time.Time { return noon.Truncate(day).Add(time.Duration(d) * day) }

// matureAt returns when a look that ends at the start of a day is mature.
func matureAt(d int) time.Time { return startOfDay(d).Add(catalogue.DefaultMaturity * time.Hour) }

func dayOf(t time.Time) int { return int(t.Sub(startOfDay(0)) / day) }

// reportPlan returns the plan of the report about the campaign.
func (c *campaign) reportPlan() *plan.Plan {
	const id = 1
	of := func(shares []float64) catalogue.Shares {
		total := floats.Sum(shares)
		all := catalogue.Shares{}
		for i, share := range shares {
			all[int64(i)] = int(share)
			if i == 0 {
				all[0] = int(math.Round(100 * share / total))
			}
		}
		return all
	}
	live := catalogue.LiveCampaign{
		Campaign: catalogue.Campaign{
			ID: id, WebsiteID: WebsiteID, PrimaryGoalID: goalID, SignificanceLevel: decisionLevel, Methodology: c.declaredMethodology(),
			Power: 100 * decisionPower, MDE: 100 * c.mde, TrafficAllocation: new(100), Goals: &catalogue.Goals{},
			LookPlan: catalogue.LookPlan{EquivalenceMargin: 100 * c.equivalent}, Prior: c.learned,
		},
		State: catalogue.State{Active: true, Runs: []catalogue.Run{{From: noon}}},
	}
	if c.revenue {
		live.PrimaryMetric = string(query.ValuePerVisitor)
	}
	purchase := catalogue.Goal{ID: goalID, WebsiteID: WebsiteID, Name: "purchase", Settle: new(schema.Settle(c.window().Settle))}
	if c.windowDays > 0 {
		purchase.ConversionWindow = &schema.ConversionWindow{To: c.window().To}
	}
	goals := map[int64]catalogue.Goal{goalID: purchase}
	for i, m := range c.guardrails {
		goal := int64(firstGuardrail + i)
		direction := catalogue.Up
		if m.Down {
			direction = catalogue.Down
		}
		goals[goal] = catalogue.Goal{ID: goal, WebsiteID: WebsiteID, Name: fmt.Sprint("guardrail ", i+1)}
		metric := query.GoalConversionRate
		if c.revenue {
			metric = query.ValuePerVisitor
		}
		live.Goals.Guardrails = append(live.Goals.Guardrails, catalogue.Guardrail{GoalID: goal, Metric: string(metric), Margin: 100 * m.Relative, Direction: direction})
	}
	var history []catalogue.SharesSince
	for week, shares := range c.ramp {
		since := catalogue.SharesSince{Since: startOfDay(1 + daysOfWeek*week), Shares: of(shares)}
		if week == 0 {
			since.Since = noon
		}
		if week == 0 || !slices.Equal(shares, c.ramp[week-1]) {
			history = append(history, since)
		}
	}
	now := of(c.shares)
	if len(history) > 0 {
		live.ShareHistory = map[int64][]catalogue.SharesSince{0: history}
		now = history[len(history)-1].Shares
	}
	live.ControlShare = now[0]
	for i := range c.shares[1:] {
		live.Variations = append(live.Variations, catalogue.Variation{ID: int64(i + 1), Name: fmt.Sprint("Variation ", i+1), Share: now[int64(i+1)], Order: i})
	}
	p, err := plan.New(query.Request{SubjectID: id, Scorecard: true}, &catalogue.AccountResources{
		Websites: map[int64]catalogue.Website{WebsiteID: {ID: WebsiteID}}, Goals: goals, Campaigns: map[int64]catalogue.LiveCampaign{id: live},
	})
	if err != nil {
		panic(fmt.Sprintf("%s: %v", c, err))
	}
	return p
}

// life is one simulated campaign: the daily sums of its visitors, as the store has them at any
// time. The plan, the schedule, the looks, the ledger and the report come from the engine.
type life struct {
	*campaign
	plan     *plan.Plan
	analyzer *looks.Analyzer
	random   *rand.Rand
	days     int // that were simulated
	series   map[int64][]arrival
	orders   []orderLife // of which some are cancelled; none unless the campaign has returns
	recorded []looks.Record
}

// arrival is what some visitors add to the series of a goal when their events arrive.
type arrival struct {
	first, arrives int // days
	moments.Step
}

// nature adds the visitors of a day to a life.
type nature func(l *life, day int)

// analyzerMemory bounds the memory of cached looks in bytes.
const analyzerMemory = 64 << 20

// analyzer returns the analyzer that all campaigns share. Its caches are bounded.
var analyzer = sync.OnceValue(func() *looks.Analyzer { return looks.NewAnalyzer(cache.New(analyzerMemory)) })

// newLifeFunc returns a function that creates a life of the campaign, still without
// visitors.
func (c *campaign) newLifeFunc() func(*rand.Rand) *life {
	c = c.changedCopy(func(changed *campaign) { changed.perWeek = changed.weeklyVisitors() })
	p := c.reportPlan()
	return func(random *rand.Rand) *life {
		own := *p
		return &life{campaign: c, plan: &own, analyzer: analyzer(), random: random, series: map[int64][]arrival{}}
	}
}

// addDays adds the visitors of further days until full days are complete.
func (l *life) addDays(of nature, full int) {
	for ; l.days <= full; l.days++ {
		of(l, l.days)
	}
}

// sharesOn returns the shares in effect on a day.
func (l *life) sharesOn(day int) []float64 {
	shares := l.plan.SharePeriods[0].Shares
	for _, period := range l.plan.SharePeriods {
		if !period.Since.After(startOfDay(day)) {
			shares = period.Shares
		}
	}
	return shares
}

// arrivingVisitors returns the number of visitors of each variation on a day. The numbers are not random.
func (l *life) arrivingVisitors(day int) []int64 {
	perDay := float64(l.weeklyVisitors()) / daysOfWeek
	shares := l.sharesOn(day)
	total := floats.Sum(shares)
	arriving := make([]int64, len(shares))
	for i, share := range shares {
		each := perDay * share / total
		arriving[i] = int64(math.Round(each*float64(day+1)) - math.Round(each*float64(day)))
	}
	return arriving
}

func (l *life) liftOf(arm int) float64 {
	if arm < len(l.lifts) {
		return l.lifts[arm]
	}
	return 0
}

// guardrailEffect returns the effect of a variation on a guardrail.
func (l *life) guardrailEffect(guardrail, arm int) float64 {
	if arm > 0 && guardrail < len(l.harms) {
		return l.harms[guardrail]
	}
	return 0
}

// addTotals adds the totals of a variation's visitors. first is the day of their first view, and
// arrives is the day when their events arrive.
func (l *life) addTotals(goal int64, variation, first, arrives int, t totals, multiExposed bool) {
	if l.delayed {
		rest := 1.0 // share of the conversions on this day and at once
		for _, d := range delays[1:] {
			later := drawBinomial(l.random, t.converted, d.share/rest)
			rest -= d.share
			t.converted -= later
			l.addArrival(goal, variation, first, first+d.days, arrives+d.days, totals{converted: later}, multiExposed)
		}
	}
	l.addArrival(goal, variation, first, first, arrives, t, multiExposed)
}

// addArrival adds the totals of events that happen on a day.
func (l *life) addArrival(goal int64, variation, first, on, arrives int, t totals, multiExposed bool) {
	a := arrival{first: first, arrives: arrives}
	a.Bucket = startOfDay(on).UnixMilli() / day.Milliseconds()
	a.VariationID = int64(variation)
	a.MultiExposed = multiExposed
	a.Moments = t.toMoments()
	a.Period = plan.PeriodAt(l.plan.SharePeriods, startOfDay(first))
	if multiExposed {
		a.Crossed = startOfDay(arrives).UnixMilli() / day.Milliseconds()
	}
	l.series[goal] = append(l.series[goal], a)
}

// ordinaryVisitors adds visitors that differ only by their variation.
func ordinaryVisitors(l *life, day int) {
	for arm, n := range l.arrivingVisitors(day) {
		l.addTotals(goalID, arm, day, day, l.drawTotals(l.random, n, l.liftOf(arm)), false)
		for i := range l.guardrails {
			l.addTotals(int64(firstGuardrail+i), arm, day, day, l.drawTotals(l.random, n, l.guardrailEffect(i, arm)), false)
		}
	}
}

// toMoments returns the totals as the engine's moments.
func (t totals) toMoments() moments.Moments {
	amount := func(x, scale float64) *big.Int {
		rounded, _ := big.NewFloat(math.Round(x * scale)).Int(nil)
		return rounded
	}
	const scale = schema.MoneyScale
	m := moments.NoMoments()
	m.Visitors = t.visitors
	m.Views = t.visitors
	m.Converted = t.converted
	m.Goals = stats.Sums{Sum: big.NewInt(t.converted), Squares: big.NewInt(t.converted)}
	m.Value = moments.Amounts{Sums: stats.Sums{Sum: amount(t.sum, scale), Squares: amount(t.squares, scale*scale)}, Nonzero: t.converted, Negative: t.negative}
	return m
}

// storedSteps returns the steps of a goal that the store has at a time, for visitors since a time.
func (l *life) storedSteps(goal plan.Measure, timing plan.Timing, since, now time.Time) []moments.Step {
	var steps []moments.Step
	from := dayOf(since)
	today := dayOf(now)
	for _, a := range l.series[goal.GoalID] {
		firstBucket := startOfDay(a.first).UnixMilli() / day.Milliseconds()
		outside := goal.Window.IsSet() && time.Duration(a.Bucket-firstBucket)*day >= goal.Window.To
		if a.first < from || a.arrives >= today || outside {
			continue
		}
		if goal.Window.IsSet() && timing == plan.OnFirstView {
			a.Bucket = firstBucket
		}
		steps = append(steps, a.Step)
	}
	slices.SortStableFunc(steps, func(a, b moments.Step) int { return int(a.Bucket - b.Bucket) })
	return steps
}

// newestEvent returns the time of the newest event that exists at a time.
func (l *life) newestEvent(now time.Time) time.Time {
	if end := startOfDay(l.days); end.Before(now) {
		now = end
	}
	return now.Add(-time.Hour)
}

func (l *life) newSchedule(now time.Time) *looks.Schedule {
	first := noon.Add(time.Minute)
	return looks.NewSchedule(l.plan.DeclaredPlan(), looks.FirstView{Time: first, OnTime: first, Accepted: first}, now, l.newestEvent(now), l.recorded)
}

// analyzeLooks returns the findings of the looks, based on what the store has at a time.
func (l *life) analyzeLooks(now time.Time) *looks.Analysis {
	found, err := l.analyzer.AnalyzeLooks(l.plan.DeclaredPlan(), l.newSchedule(now), l.recorded, func(since time.Time, goals []plan.Measure, timing plan.Timing) (map[plan.Measure][]moments.Step, error) {
		all := map[plan.Measure][]moments.Step{}
		for _, goal := range goals {
			all[goal] = l.storedSteps(goal, timing, since, now)
		}
		return all, nil
	})
	if err != nil {
		panic(err) // only the store returns errors
	}
	return found
}

// recordLooks records the looks that are mature at a time, as the server does.
func (l *life) recordLooks(now time.Time) {
	known := 0
	for _, r := range l.recorded {
		known = max(known, r.Number)
	}
	l.recordReturns(now)
	if len(l.newSchedule(now).Looks) > known {
		l.recorded = append(l.recorded, l.analyzeLooks(now).UnrecordedLooks(now)...)
	}
}

// inTheEnd returns the findings of all looks of the campaign.
func (l *life) inTheEnd() *looks.Analysis {
	return l.analyzeLooks(matureAt(1 + daysOfWeek*l.weeks + l.windowDays + l.settleDays + l.returnsDays()))
}

// decisionAt returns the decision of the report at a time.
func (l *life) decisionAt(now time.Time) *result.Decision {
	a := l.analyzeLooks(now)
	rowsOf := func(goal plan.Measure) *moments.Rows {
		sums := map[moments.GroupKey]moments.Moments{}
		for _, s := range l.storedSteps(goal, plan.OnEvent, startOfDay(0), now) {
			sums[s.GroupKey] = sums[s.GroupKey].Merge(s.Moments)
		}
		found := &moments.Rows{Through: now, Newest: l.newestEvent(now)}
		for segment, m := range sums {
			found.Whole = append(found.Whole, moments.GroupMoments{GroupKey: segment, Moments: m})
		}
		return found
	}
	r := result.New(l.plan, rowsOf(l.plan.Measure()), a)
	var goals []result.MeasureRows
	for _, goal := range l.plan.Declared.AllMeasures() {
		goals = append(goals, result.MeasureRows{Plan: l.plan.AboutMeasure(goal), Rows: rowsOf(goal)})
	}
	r.AddScorecard(l.plan, goals, a)
	r.Decision = result.Decide(l.plan, a, &r.Slice)
	return r.Decision
}
