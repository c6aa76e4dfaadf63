package engine

import (
	"math"
	"math/big"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/worlds"
	"lifthouse/stats"
)

// tolerance is the maximum relative difference of a statistic from the oracle.
const tolerance = 1e-9

// spread has the mean and the variance (n - 1) of a metric, computed visitor by visitor in rational numbers.
type spread struct {
	n              float64
	mean, variance *big.Rat
}

func spreadOf(visits []map[query.Metric]int64, metric query.Metric) spread {
	n := big.NewRat(int64(len(visits)), 1)
	s := spread{n: float64(len(visits)), mean: new(big.Rat), variance: new(big.Rat)}
	if len(visits) == 0 {
		return s
	}
	scale := int64(1)
	switch metric {
	case query.ValuePerVisitor, query.ProfitPerVisitor, query.ExtraValuePerVisitor:
		scale = schema.MoneyScale
	case query.GoalConversionRate, query.ConversionRate, query.CompletionRate,
		query.GoalsPerVisitor, query.AverageValue:
	}
	for _, visit := range visits {
		s.mean.Add(s.mean, big.NewRat(visit[metric], scale))
	}
	s.mean.Quo(s.mean, n)
	for _, visit := range visits {
		d := new(big.Rat).Sub(big.NewRat(visit[metric], scale), s.mean)
		s.variance.Add(s.variance, d.Mul(d, d))
	}
	if len(visits) > 1 {
		s.variance.Quo(s.variance, new(big.Rat).Sub(n, big.NewRat(1, 1)))
	}
	return s
}

// ratiosOf returns average value of two variations, with the variance of the delta method: that of (value - ratio ·
// goals) / mean goals over the visitors. It returns false if one of them has no goals.
func ratiosOf(control, own []map[query.Metric]int64) (c, o spread, both bool) {
	c, first := ratioOf(control)
	o, second := ratioOf(own)
	return c, o, first && second
}

func ratioOf(visits []map[query.Metric]int64) (spread, bool) {
	value, goals := new(big.Rat), new(big.Rat)
	for _, visit := range visits {
		value.Add(value, big.NewRat(visit[query.ValuePerVisitor], schema.MoneyScale))
		goals.Add(goals, big.NewRat(visit[query.GoalsPerVisitor], 1))
	}
	if goals.Sign() == 0 {
		return spread{}, false
	}
	n := big.NewRat(int64(len(visits)), 1)
	s := spread{n: float64(len(visits)), mean: new(big.Rat).Quo(value, goals), variance: new(big.Rat)}
	perVisitor := new(big.Rat).Quo(goals, n)
	for _, visit := range visits {
		d := new(big.Rat).Mul(s.mean, big.NewRat(visit[query.GoalsPerVisitor], 1))
		d.Sub(big.NewRat(visit[query.ValuePerVisitor], schema.MoneyScale), d).Quo(d, perVisitor)
		s.variance.Add(s.variance, d.Mul(d, d))
	}
	if len(visits) > 1 {
		s.variance.Quo(s.variance, new(big.Rat).Sub(n, big.NewRat(1, 1)))
	}
	return s, true
}

func float(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// compareStatistics compares the metrics and the comparisons of a report and its breakdown with formulas over single
// visitors.
func compareStatistics(t worlds.TB, plan *plan.Plan, results *result.Report, want map[string]*folded) {
	t.Helper()
	compareSlice(t, plan, &results.Slice, want[all])
	for i := range results.Breakdown {
		for value, folded := range want {
			if result.ShownValue(value) == results.Breakdown[i].Value {
				compareSlice(t, plan, &results.Breakdown[i].Slice, folded)
				compareComplement(t, plan, &results.Breakdown[i].Slice, want, value)
			}
		}
	}
}

// compareComplement compares the visitors and the lifts of the complement of a value with those of the visitors of all
// other values.
func compareComplement(t worlds.TB, plan *plan.Plan, of *result.Slice, want map[string]*folded, value string) {
	t.Helper()
	others := func(variation int64) (visits []map[query.Metric]int64) {
		for other, folded := range want {
			if other != value && other != all {
				visits = append(visits, folded.visits[variation]...)
			}
		}
		return visits
	}
	control := others(of.Variations[0].ID)
	for i := range of.Variations {
		v := &of.Variations[i]
		if v.Comparison == nil {
			continue
		}
		own, c := others(v.ID), v.Comparison.Complement
		if c == nil || c.Visitors != int64(len(own)) || c.ControlVisitors != int64(len(control)) {
			t.Errorf("the complement of %s is %+v, want %d and %d visitors\n%+v", value, c, len(own), len(control),
				plan)
			continue
		}
		if c.Improvement.Value == nil || plan.Metric == query.AverageValue || plan.Rules.Prior != nil ||
			len(want[all].periods()) > 1 {
			continue
		}
		mc, mt := float(spreadOf(control, plan.Metric).mean), float(spreadOf(own, plan.Metric).mean)
		near(t, plan, "improvement of the complement", *c.Improvement.Value, (mt-mc)/math.Abs(mc),
			1+(math.Abs(mt)+math.Abs(mc))/math.Abs(mc))
		if d := c.ImprovementDifference.Value; d != nil {
			near(t, plan, "difference of improvements", *d, *v.Comparison.Improvement.Value-*c.Improvement.Value, 1)
		}
	}
}

func compareSlice(t worlds.TB, plan *plan.Plan, of *result.Slice, want *folded) {
	t.Helper()
	for i := range of.Variations {
		v := &of.Variations[i]
		for metric, got := range map[query.Metric]result.Estimate{
			query.GoalConversionRate: v.Metrics.GoalConversionRate, query.ConversionRate: v.Metrics.ConversionRate,
			query.CompletionRate:  v.Metrics.CompletionRate,
			query.GoalsPerVisitor: v.Metrics.GoalsPerVisitor, query.ValuePerVisitor: v.Metrics.ValuePerVisitor,
			query.ProfitPerVisitor:     v.Metrics.ProfitPerVisitor,
			query.ExtraValuePerVisitor: v.Metrics.ExtraValuePerVisitor,
		} {
			compareEstimate(t, plan, metric, got, spreadOf(want.visits[v.ID], metric))
		}
		if v.Comparison != nil && len(want.periods()) < 2 { // for several, see TestComparePeriods
			control, own := spreadOf(want.visits[of.Variations[0].ID], plan.Metric), spreadOf(want.visits[v.ID],
				plan.Metric)
			if plan.Metric == query.AverageValue {
				if plan.Cap != nil { // the values of the visits are capped, those of the ratio are not
					continue
				}
				var both bool
				if control, own, both = ratiosOf(want.visits[of.Variations[0].ID], want.visits[v.ID]); !both {
					if v.Comparison.Difference.Value != nil {
						t.Errorf("a difference of average values without goals: %v\n%+v",
							*v.Comparison.Difference.Value, plan)
					}
					continue
				}
			}
			compareComparison(t, plan, v.Comparison, unevenAs(plan, of.Variations[0].ID, v.ID, control, own), control,
				own)
		}
	}
}

func compareEstimate(t worlds.TB, plan *plan.Plan, metric query.Metric, got result.Estimate, s spread) {
	t.Helper()
	if s.n == 0 {
		check.That(t, got.Value == nil, "%s of nobody is %v, %q", metric, got.Value, got.Reason)
		check.Equal(t, got.Reason, stats.ReasonNoVisitors, "%s of nobody is %v, %q", metric, got.Value, got.Reason)
		return
	}
	near(t, plan, string(metric), *got.Value, float(s.mean), 0)
	if metric.IsRate() {
		p := float(s.mean)
		near(t, plan, string(metric)+" standard error", *got.StandardError, math.Sqrt(p*(1-p)/s.n), 0)
	} else if s.n > 1 {
		near(t, plan, string(metric)+" standard error", *got.StandardError, math.Sqrt(float(s.variance)/s.n), 0)
	}
	alpha := stats.Options{SignificanceLevel: plan.Rules.SignificanceLevel}.Alpha()
	if got.Interval == nil {
		check.That(t, alpha <= 0 || s.n <= 1 || !metric.IsRate() && s.variance.Sign() <= 0,
			"%s has no interval: %q\n%+v", metric, got.Reason, plan)
		return
	}
	mean, half := float(s.mean), 0.0
	switch {
	case metric.IsRate():
		z := distuv.UnitNormal.Quantile(1 - alpha/2)
		half = z * math.Sqrt(mean*(1-mean)/s.n+z*z/(4*s.n*s.n)) / (1 + z*z/s.n)
		mean = (mean + z*z/(2*s.n)) / (1 + z*z/s.n)
	default:
		half = distuv.StudentsT{Sigma: 1, Nu: s.n - 1}.Quantile(1-alpha/2) * math.Sqrt(float(s.variance)/s.n)
	}
	scale := math.Abs(mean) + half
	near(t, plan, string(metric)+" lower", *got.Interval[0], mean-half, scale)
	near(t, plan, string(metric)+" upper", *got.Interval[1], mean+half, scale)
}

// unevenAs reports whether the smaller variation is expected to have less than 35 % of the pair, or, without valid
// shares, has less.
func unevenAs(p *plan.Plan, control, treatment int64, c, own spread) bool {
	a, b := c.n, own.n
	expected := p.ExpectedShares
	shares := [2]float64{}
	for i, v := range p.Variations {
		switch v.ID {
		case control:
			shares[0] = expected[i]
		case treatment:
			shares[1] = expected[i]
		}
	}
	if shares[0] > 0 && shares[1] > 0 {
		a, b = shares[0], shares[1]
	}
	return math.Min(a, b)/(a+b) < 0.35
}

// student returns t, its degrees of freedom and its two-sided p-value.
func student(difference, standardError, freedom float64) (statistic, p float64) {
	statistic = difference / standardError
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	if math.Abs(statistic) < 1e-4 { // where t² is lost in 1 + t²/nu
		return statistic, 1 - 2*math.Abs(statistic)*t.Prob(0)
	}
	return statistic, 2 * t.Survival(math.Abs(statistic))
}

// compareComparison checks the effect and the fixed-horizon test: Welch's test for means, and the pooled one if the
// pair is uneven; the score test for rates. A missing statistic must have a reason.
func compareComparison(t worlds.TB, plan *plan.Plan, c *result.Comparison, uneven bool, control, own spread) {
	t.Helper()
	if control.n == 0 || own.n == 0 {
		return
	}
	difference := float(new(big.Rat).Sub(own.mean, control.mean))
	size := math.Max(math.Abs(float(control.mean)), math.Abs(float(own.mean)))
	if c.Difference.Value != nil {
		near(t, plan, "difference", *c.Difference.Value, difference, size)
	}
	if c.Improvement.Value != nil {
		near(t, plan, "improvement", *c.Improvement.Value, difference/math.Abs(float(control.mean)),
			1+size/math.Abs(float(control.mean)))
	}
	if c.Frequentist == nil || c.Frequentist.Statistic == nil {
		check.That(t, c.Frequentist == nil || c.Frequentist.Reason != "" || len(c.Reasons) != 0,
			"no statistic and no reason\n%+v", plan)
		return
	}
	var statistic, p, rounding float64 // of a difference of two numbers of nearly the same size, in standard errors
	const ulps = 1e-15 / tolerance
	if c.Frequentist.Test != stats.TestScore {
		vc, vt := float(control.variance), float(own.variance)
		pooled := ((control.n-1)*vc + (own.n-1)*vt) / (control.n + own.n - 2)
		if vc == 0 {
			vc = pooled
		}
		if vt == 0 {
			vt = pooled
		}
		a, b := vc/control.n, vt/own.n
		freedom, se := (a+b)*(a+b)/(a*a/(control.n-1)+b*b/(own.n-1)), math.Sqrt(a+b)
		statistic, p = student(difference, se, freedom)
		if uneven {
			pooled = ((control.n-1)*vc + (own.n-1)*vt) / (control.n + own.n - 2)
			wide := math.Sqrt(pooled * (1/control.n + 1/own.n))
			if other, larger := student(difference, wide, control.n+own.n-2); larger > p {
				statistic, p, se, freedom = other, larger, wide, control.n+own.n-2
			}
		}
		check.That(t, uneven == (c.Frequentist.Test == stats.TestWelchPooled), "the test is %s\n%+v",
			c.Frequentist.Test, plan)
		rounding = ulps * size / se
		near(t, plan, "degrees of freedom", *c.Frequentist.DegreesOfFreedom, freedom, 0)
	} else {
		n := control.n + own.n
		pooled := (float(control.mean)*control.n + float(own.mean)*own.n) / n
		statistic = difference / math.Sqrt(pooled*(1-pooled)*(1/control.n+1/own.n)) * math.Sqrt((n-1)/n)
		if pooled == 0 || pooled == 1 { // all alike: no difference to see
			statistic = 0
		}
		p = 2 * distuv.UnitNormal.Survival(math.Abs(statistic))
	}
	near(t, plan, "statistic", *c.Frequentist.Statistic, statistic, rounding)
	if c.Frequentist.PValue != nil {
		near(t, plan, "p value", *c.Frequentist.PValue, p, p)
	}
}

func near(t worlds.TB, plan *plan.Plan, what string, got, want, scale float64) {
	t.Helper()
	check.That(t, math.Abs(got-want) <= tolerance*math.Max(math.Abs(want), scale), "%s is %v, want %v\n%+v", what, got,
		want, plan)
}
