package result

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

// curvePlan is the plan of a report that compares two variations of equal shares.
func curvePlan(metric query.Metric) *plan.Plan {
	p := &plan.Plan{Rules: plan.Rules{
		Compare: true, Methodology: catalogue.Frequentist, SignificanceLevel: 95,
		Power: 80, MDE: 20,
	}, ExpectedShares: []float64{.5, .5}}
	p.Metric, p.MultipleExposures = metric, catalogue.ExcludeMultiExposed
	p.Variations = []plan.Variation{
		{ID: 0, Name: "Control", Control: true, Share: 50},
		{ID: 1, Name: "Green", Share: 100},
	}
	p.SharePeriods = []plan.SharePeriod{{Since: plan.OpenFrom, Shares: []float64{.5, .5}}}
	return p
}

// drawSteps draws the steps of visitors who convert on a day with a probability. A share of them buys again on a later
// day.
func drawSteps(random *rand.Rand, visitors int, days int, again float64,
	rate func(variation, day int) float64,
) []moments.Step {
	added := make([][2]moments.Moments, days)
	for day := range added {
		for v := range added[day] {
			added[day][v] = moments.NoMoments()
			added[day][v].FirstAge = stats.Sums{Sum: new(big.Int), Squares: new(big.Int)}
		}
	}
	for v := range 2 {
		added[0][v].Visitors = int64(visitors)
		for day := range days {
			for range binomial(random, visitors, rate(v, day)) {
				age := int64((float64(day) + random.Float64()) * float64(millisecondsPerDay))
				m := &added[day][v]
				m.Converted++
				m.FirstAge = m.FirstAge.Merge(stats.Sums{
					Sum:     big.NewInt(age),
					Squares: new(big.Int).Mul(big.NewInt(age), big.NewInt(age)),
				})
				total := int64(0)
				for at := day; at < days; {
					amount := int64(schema.MoneyScale * math.Exp(4+.8*random.NormFloat64()))
					add := &added[at][v].Value
					square := new(big.Int).Sub(new(big.Int).Mul(big.NewInt(total+amount), big.NewInt(total+amount)),
						new(big.Int).Mul(big.NewInt(total), big.NewInt(total)))
					add.Sums = add.Merge(stats.Sums{Sum: big.NewInt(amount), Squares: square})
					if total == 0 {
						add.Nonzero++
					}
					if total += amount; random.Float64() >= again {
						break
					}
					at += 1 + random.IntN(3)
				}
			}
		}
	}
	var steps []moments.Step
	for day := range added {
		for v := range added[day] {
			steps = append(steps,
				moments.Step{
					Bucket: int64(day),
					GroupMoments: moments.GroupMoments{
						GroupKey: moments.GroupKey{VariationID: int64(v)}, Moments: added[day][v],
					},
				})
		}
	}
	return steps
}

// binomial is approximate for large numbers.
func binomial(random *rand.Rand, n int, p float64) int {
	mean := float64(n) * p
	return max(0, int(math.Round(mean+math.Sqrt(mean*(1-p))*random.NormFloat64())))
}

// profile is the probability of a conversion on a day: 60 % at once, the others after 5 days on average.
func profile(rate float64, days int) []float64 {
	shares := make([]float64, days)
	for d := range shares {
		shares[d] = rate * .4 * (math.Exp(-float64(d)/5) - math.Exp(-float64(d+1)/5))
	}
	shares[0] += .6 * rate
	return shares
}

// TestTheBandContainsTheCurve measures how often a curve without an effect leaves its simultaneous band anywhere, for
// rates and for revenue of which a part is bought again, at 2 to 60 points.
func TestTheBandContainsTheCurve(t *testing.T) {
	tier.OnlyLong(t)
	const experiments = 1500
	random := rand.New(rand.NewPCG(59, 3))
	for _, test := range []struct {
		metric query.Metric
		days   int
		again  float64
		most   float64
	}{
		{query.GoalConversionRate, 2, 0, .055},
		{query.GoalConversionRate, 14, 0, .055},
		{query.GoalConversionRate, 60, 0, .055},
		{query.ValuePerVisitor, 2, .15, .065},
		{query.ValuePerVisitor, 14, .15, .065},
		{query.ValuePerVisitor, 60, .15, .065},
	} {
		p, shares := curvePlan(test.metric), profile(.05, test.days)
		outside, pointwise := 0, 0
		for range experiments {
			c := NewCurve(p, test.days,
				drawSteps(random, 20_000, test.days, test.again, func(_, day int) float64 { return shares[day] }), nil)
			leaves, apart := false, false
			for _, point := range c.Points {
				v := point.Variations[1]
				leaves = leaves || !containsZero(v.Simultaneous.Difference.Interval)
				apart = apart || !containsZero(v.Comparison.Difference.Interval)
			}
			if leaves {
				outside++
			}
			if apart {
				pointwise++
			}
		}
		rate := float64(outside) / experiments
		t.Logf("%s, %d points: %.3f outside of the band, %.3f of a pointwise interval", test.metric, test.days, rate, float64(pointwise)/experiments)
		check.That(t, rate <= test.most+2*math.Sqrt(test.most*(1-test.most)/experiments),
			"%s, %d points: %.3f outside of the band", test.metric, test.days, rate)
	}
}

func containsZero(in *stats.Interval) bool { return *in[0] <= 0 && *in[1] >= 0 }

// TestNoveltyIsOfTheLift measures the test of novelty: a constant lift is none, and one that fades is found.
func TestNoveltyIsOfTheLift(t *testing.T) {
	tier.OnlyLong(t)
	const experiments, days = 1500, 14
	random := rand.New(rand.NewPCG(59, 4))
	p, shares := curvePlan(query.GoalConversionRate), profile(.05, days)
	for _, test := range []struct {
		name        string
		lift        func(day int) float64
		visitors    int
		least, most float64
	}{
		{"no effect", func(int) float64 { return 0 }, 20_000, 0, .05},
		{"no effect", func(int) float64 { return 0 }, 100_000, 0, .05},
		{"constant +20 %", func(int) float64 { return .2 }, 100_000, 0, .05},
		{"constant +50 %", func(int) float64 { return .5 }, 100_000, 0, .05},
		{"fading to -10 %", func(day int) float64 { return .2 - .3*float64(day)/13 }, 100_000, .8, 1},
		{"from day 3 on", func(day int) float64 { return map[bool]float64{true: .2}[day >= 3] }, 100_000, .8, 1},
	} {
		found := 0
		for range experiments {
			c := NewCurve(p, days,
				drawSteps(random, test.visitors, days, 0,
					func(v, day int) float64 { return shares[day] * (1 + float64(v)*test.lift(day)) }), nil)
			if n := c.Novelty[0]; n.PValue != nil && *n.PValue < .05 {
				found++
			}
		}
		rate := float64(found) / experiments
		t.Logf("%s, %d visitors: %.3f", test.name, test.visitors, rate)
		slack := 2 * math.Sqrt(.05*.95/experiments)
		check.That(t, rate >= test.least, "%s, %d visitors: %.3f, want %v to %v", test.name, test.visitors, rate,
			test.least, test.most)
		check.That(t, rate <= test.most+slack, "%s, %d visitors: %.3f, want %v to %v", test.name, test.visitors, rate,
			test.least, test.most)
	}
}
