package worth

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// arm returns the sums of a variation: each converted visitor has one goal of 50.
func arm(visitors, converted int64) moments.Moments {
	m := moments.NoMoments()
	m.Visitors, m.Converted = visitors, converted
	m.Goals = stats.Sums{Sum: big.NewInt(converted), Squares: big.NewInt(converted)}
	m.Value.Sums = stats.Sums{
		Sum:     big.NewInt(converted * 50 * schema.MoneyScale),
		Squares: big.NewInt(converted * 2500 * schema.MoneyScale * schema.MoneyScale),
	}
	m.Value.Nonzero = converted
	return m
}

// campaign returns a campaign of control and one variation in 14 days of 2026, decided on the conversion rate.
func campaign(id, visitors, control, treatment int64, outcome string, shipped int) Campaign {
	p := &plan.Plan{
		Question: plan.Question{
			Subject:      schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: id},
			Variations:   []plan.Variation{{ID: 0, Control: true}, {ID: 1, Name: "B"}},
			SharePeriods: []plan.SharePeriod{{Shares: []float64{50, 50}}},
		},
		Rules:    plan.Rules{Compare: true, SignificanceLevel: 95, Power: 80, MDE: 20},
		Declared: plan.Declared{GoalID: 3, Metric: query.GoalConversionRate}, Allocation: new(100),
	}
	end := time.Date(2026, 1, 15+int(id), 0, 0, 0, 0, time.UTC)
	row := looks.LookRow{
		Look: looks.Look{Number: 2, End: end, Days: 14}, Kind: looks.OfLook, VariationID: 1, Visitors: 2 * visitors,
		Strata: []looks.RowStratum{{Control: arm(visitors, control), Variation: arm(visitors, treatment)}},
	}
	date := time.Date(2026, 2, shipped, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	o := Outcome{Outcome: catalogue.Outcome{
		Outcome:     outcome,
		VariationID: map[bool]int64{true: 1}[outcome == catalogue.Shipped], Date: date,
	}}
	return Campaign{Plan: p, Name: fmt.Sprint("Campaign ", id), State: []looks.LookRow{row}, Outcome: o}
}

func pool(campaigns ...Campaign) *Pool { return NewPool(PoolOf(campaigns[0].Plan), campaigns) }

// itemOf returns the worth of the only treatment of a campaign.
func itemOf(p *Pool, c Campaign) Item {
	items, _ := p.ItemsOf(c.Plan.Subject)
	return items[0]
}

func programmeOf(from, to string, campaigns ...Campaign) *Programme {
	return pool(campaigns...).NewProgramme(from, to)
}

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// TestProgrammeEqualsTheFit compares totals with the fit of the same effects, written out.
func TestProgrammeEqualsTheFit(t *testing.T) {
	campaigns := []Campaign{
		campaign(1, 5000, 300, 360, catalogue.Shipped, 3), campaign(2, 4000, 260, 250, catalogue.Dropped, 4),
		campaign(3, 6000, 330, 400, catalogue.Shipped, 9), campaign(4, 3000, 180, 181, Undecided, 1),
	}
	var pooled [][]stats.PooledEffect
	factors := make([]float64, len(campaigns))
	observed := 0.0
	for i, x := range [][3]float64{{5000, 300, 360}, {4000, 260, 250}, {6000, 330, 400}, {3000, 180, 181}} {
		n, mean := x[0], (x[1]+x[2])/(2*x[0])
		e := stats.PooledEffect{Value: (x[2] - x[1]) / n / mean, StandardError: math.Sqrt(mean*(1-mean)*2/n) / mean}
		pooled = append(pooled, []stats.PooledEffect{e})
		if i == 0 || i == 2 {
			factors[i] = 50 * mean * 2 * n * 30 / 14
			observed += factors[i] * e.Value
		}
	}
	want := effects.NewFit(.2, pooled).Total(factors)
	p := programmeOf("", "", campaigns...)
	total := p.Total.ValuePerMonth
	check.That(t, nearly(total.Observed, observed), "%+v, want %+v, observed %v", total, want, observed)
	check.That(t, nearly(total.Expected, want.Mean), "%+v, want %+v, observed %v", total, want, observed)
	check.That(t, nearly(total.Interval[0], want.Lower), "%+v, want %+v, observed %v", total, want, observed)
	check.That(t, nearly(total.Interval[1], want.Upper), "%+v, want %+v, observed %v", total, want, observed)
	check.That(t, nearly(p.Total.PerMonth.Expected*50, total.Expected), "%+v", p.Total)
	check.That(t, nearly(*p.Total.Exaggeration, observed/want.Mean), "%+v", p.Total)
	small := 0.0 // below 2 %, a tenth of the minimum effect
	for _, i := range []int{0, 2} {
		small += effects.NewFit(.2, pooled).TrueEffect(i).Small
	}
	check.That(t, nearly(p.Total.HarmOrNothing, small), "%+v, curve %+v, want %v for small", p.Total, p.Curve, small)
	check.Equal(t, p.Campaigns, (Counts{4, 2, 0, 0}), "%+v, curve %+v, want %v for small", p.Total, p.Curve, small)
	must.Equal(t, len(p.Curve), 2, "%+v, curve %+v, want %v for small", p.Total, p.Curve, small)
	check.Equal(t, p.Curve[1].Sum, *total, "%+v, curve %+v, want %v for small", p.Total, p.Curve, small)
	early := programmeOf("", "2026-02-05", campaigns...)
	check.Equal(t, early.Campaigns.Shipped, 1, "until the fifth: %+v", early)
	must.Equal(t, len(early.Curve), 1, "until the fifth: %+v", early)
	check.Equal(t, early.Curve[0], p.Curve[0], "until the fifth: %+v", early)
	check.Equal(t, early.TypicalEffect, p.TypicalEffect, "until the fifth: %+v", early)
	none := programmeOf("2026-02-10", "", campaigns...).Total
	check.That(t, none.ValuePerMonth == nil, "since the tenth: %+v", none)
	check.Equal(t, none.Reason, ReasonNothingShipped, "since the tenth: %+v", none)
	slices.Reverse(campaigns)
	again := programmeOf("", "", campaigns...).Total.ValuePerMonth
	check.That(t, nearly(again.Expected, total.Expected), "in another order: %+v, want %+v", again, total)
	check.That(t, nearly(again.Interval[0], total.Interval[0]), "in another order: %+v, want %+v", again, total)
}

// TestExclusionsLookAtNoDifference excludes campaigns, and the same campaigns with the variations exchanged.
func TestExclusionsLookAtNoDifference(t *testing.T) {
	mismatch := 1e-4
	for _, test := range []struct {
		name           string
		visitors, a, b int64
		change         func(*Campaign)
		want           stats.Reason // of the worth
	}{
		{"enough", 1000, 30, 60, nil, ""},
		{"no conversion in a variation", 1000, 0, 60, nil, ""},
		{"few conversions", 1000, 4, 19, nil, stats.ReasonMeanUncertain},
		{"few visitors", 99, 40, 50, nil, stats.ReasonTooFewVisitors},
		{"mismatch", 1000, 30, 60, func(c *Campaign) { c.State[0].MismatchP = &mismatch }, stats.ReasonSampleRatioMismatch},
		{"no look", 1000, 30, 60, func(c *Campaign) { c.State = nil }, stats.ReasonTooEarly},
		{"by hand", 1000, 30, 60, func(c *Campaign) { c.Outcome.Outcome.Outcome = catalogue.Excluded }, ReasonExcluded},
	} {
		for _, pair := range [][2]int64{{test.a, test.b}, {test.b, test.a}} {
			c := campaign(1, test.visitors, pair[0], pair[1], Undecided, 1)
			if test.change != nil {
				test.change(&c)
			}
			of := pool(c)
			item := itemOf(of, c)
			check.Equal(t, item.Reason, test.want, "%s, %v", test.name, pair)
			check.Equal(t, item.Observed == nil, test.want != "", "%s: %+v", test.name, item)
			check.Equal(t, of.Summary.Campaigns, map[bool]int{true: 1}[test.want == ""], "pooled, %s", test.name)
		}
	}
}

// TestWorthOfOtherMetrics checks which numbers a month has.
func TestWorthOfOtherMetrics(t *testing.T) {
	worthOf := func(metric query.Metric, days int, value bool) Item {
		c := campaign(1, 4000, 240, 280, Undecided, 1)
		c.Plan.Declared.Metric, c.State[0].Days = metric, days
		if !value {
			for _, m := range []*moments.Moments{&c.State[0].Strata[0].Control, &c.State[0].Strata[0].Variation} {
				m.Value = moments.Amounts{}
			}
		}
		return itemOf(pool(c), c)
	}
	i := worthOf(query.GoalConversionRate, 6, true)
	must.That(t, i.Expected != nil, "six days: %+v", i)
	check.That(t, i.Expected.PerMonth == nil, "six days: %+v", i)
	check.Equal(t, i.Reason, ReasonTooFewDays, "six days: %+v", i)
	i = worthOf(query.GoalsPerVisitor, 14, false)
	check.That(t, i.Expected.PerMonth != nil, "without value: %+v", i)
	check.That(t, i.Expected.ValuePerMonth == nil, "without value: %+v", i)
	check.Equal(t, i.ValueReason, ReasonNoValue, "without value: %+v", i)
	i = worthOf(query.ValuePerVisitor, 14, true)
	check.That(t, nearly(i.Expected.PerMonth.Value, i.Expected.ValuePerMonth.Value), "value: %+v", i)
}

// TestLiftNeedsABaseline checks that there is no lift if nobody in control converts, or if that may be the true rate,
// but a worth a month.
func TestLiftNeedsABaseline(t *testing.T) {
	for _, test := range []struct {
		control, treatment int64
		observed, expected bool
		want               stats.Reason
	}{
		{0, 60, false, false, stats.ReasonBaselineZero},
		{1, 90, true, false, stats.ReasonBaselineNotDistinguishable},
		{60, 0, true, true, ""},
		{40, 60, true, true, ""},
	} {
		c := campaign(1, 2000, test.control, test.treatment, catalogue.Shipped, 1)
		i := itemOf(pool(c), c)
		check.Equal(t, (i.Observed.Lift != nil), test.observed, "%d and %d: %+v, observed %+v, expected %+v",
			test.control, test.treatment, i, i.Observed, i.Expected)
		check.Equal(t, (i.Expected.Lift != nil), test.expected, "%d and %d: %+v, observed %+v, expected %+v",
			test.control, test.treatment, i, i.Observed, i.Expected)
		check.Equal(t, i.LiftReason, test.want, "%d and %d: %+v, observed %+v, expected %+v", test.control,
			test.treatment, i, i.Observed, i.Expected)
		in := i.Expected.PerMonth.Interval
		check.That(t, in[0] < i.Expected.PerMonth.Value, "%d and %d: a month %+v", test.control, test.treatment,
			i.Expected.PerMonth)
		check.That(t, i.Expected.PerMonth.Value < in[1], "%d and %d: a month %+v", test.control, test.treatment,
			i.Expected.PerMonth)
		must.Get(json.Marshal(i))(t)
	}
}

// TestAdviceAtTheMedianBaseline changes the baselines of campaigns. Only the median one counts, and the pace of the
// last campaign.
func TestAdviceAtTheMedianBaseline(t *testing.T) {
	adviceOf := func(campaigns ...Campaign) *Advice { return pool(campaigns...).Advise(nil) }
	low, median, high := campaign(1, 4000, 90, 92, Undecided, 1), campaign(2, 4000, 300, 310, Undecided, 1),
		campaign(3, 4000, 1200, 1190, Undecided, 1)
	all := adviceOf(low, median, high)
	size, _ := stats.NewSampleSize(stats.SamplePlan{
		Control: stats.Rate{Visitors: 4000, Converted: 300},
		Shares:  []float64{50, 50}, Looks: 4, Power: .8,
	}, stats.NewLookDesign(.05, []float64{50, 50}))
	required, _ := size.RequiredVisitors(all.MDE)
	check.Equal(t, *all.RequiredVisitors, *required, "%+v, want %d visitors", all, *required)
	check.Equal(t, *all.Days, (*required*14+7999)/8000, "%+v, want %d visitors", all, *required)
	check.Equal(t, len(all.Plans), 4, "%+v, want %d visitors", all, *required)
	for _, p := range all.Plans {
		r := p.WinRate
		check.That(t, 0 < r.Expected, "%+v", p)
		check.That(t, r.Expected < r.Observed, "%+v", p)
		check.That(t, r.Observed < 1, "%+v", p)
	}
	high.State[0].Strata[0].Control, high.State[0].Strata[0].Variation = arm(4000, 0), arm(4000, 60)
	got := adviceOf(low, median, high)
	check.Equal(t, got.Reason, "", "without conversions in the last control: %+v", got)
	check.That(t, got.RequiredVisitors != nil, "without conversions in the last control: %+v", got)
	got = adviceOf(high)
	check.Equal(t, got.Reason, stats.ReasonBaselineZero, "without any conversions in control: %+v", got)
	check.That(t, got.RequiredVisitors == nil, "without any conversions in control: %+v", got)
}

// TestAnUndeclaredAllocationScalesNothing compares the worth of a campaign that does not declare its share of the traffic
// with those of campaigns that do. A total of both is about the visitors in the tests.
func TestAnUndeclaredAllocationScalesNothing(t *testing.T) {
	of := func(allocation *int) Campaign {
		c := campaign(1, 3000, 300, 360, catalogue.Shipped, 1)
		c.Plan.Allocation = allocation
		return c
	}
	itemOf := func(c Campaign) Item {
		items, has := pool(c).ItemsOf(c.Plan.Subject)
		must.That(t, has, "the campaign has no worth: %+v", items)
		must.That(t, items[0].Observed != nil, "the campaign has no worth: %+v", items)
		return items[0]
	}
	undeclared, tenth, whole := itemOf(of(nil)), itemOf(of(new(10))), itemOf(of(new(100)))
	check.Equal(t, undeclared.Of, Tested, "visitors of an undeclared share")
	check.Equal(t, tenth.Of, AllTraffic, "visitors of a declared share")
	check.Equal(t, *undeclared.Observed.PerMonth, *whole.Observed.PerMonth, "worth of the visitors in the test")
	check.That(t, math.Abs(*tenth.Observed.PerMonth-10*(*undeclared.Observed.PerMonth)) < 1e-6,
		"a tenth of the traffic is scaled to %v", *tenth.Observed.PerMonth)
	none := of(new(0))
	items, _ := pool(none).ItemsOf(none.Plan.Subject)
	check.Equal(t, items[0].Reason, stats.ReasonNoTraffic, "reason without traffic")

	other := campaign(2, 3000, 300, 360, catalogue.Shipped, 2)
	other.Plan.Allocation = new(10)
	both, alone := pool(of(nil), other).NewProgramme("", "").Total, pool(of(new(100)), campaign(2, 3000, 300, 360, catalogue.Shipped, 2)).NewProgramme("", "").Total
	check.Equal(t, both.Of, Tested, "visitors of the total")
	check.That(t, math.Abs(both.PerMonth.Observed/alone.PerMonth.Observed-1) < 1e-9,
		"the total is %v, and of the visitors in the tests %v", both.PerMonth.Observed, alone.PerMonth.Observed)
}
