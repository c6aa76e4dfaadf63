package effects

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/stats"
)

// TestPastEqualsTheFit compares past tests with the fit of their effects.
func TestPastEqualsTheFit(t *testing.T) {
	effect := func(value, se float64) stats.PooledEffect {
		return stats.PooledEffect{Value: value, StandardError: se, Mean: .1, TreatmentShare: .5}
	}
	small := stats.PooledEffect{Reason: stats.ReasonTooFewVisitors}
	one, two, three := effect(.08, .03), effect(.02, .04), effect(-.05, .02)
	p := NewPast(.2, []PastTest{
		{"A", []stats.PooledEffect{one}, 1}, {"B", []stats.PooledEffect{small}, 1}, {"C", []stats.PooledEffect{small, two}, 2}, {"D", []stats.PooledEffect{three}, 0},
	})
	fit := NewFit(.2, [][]stats.PooledEffect{{one}, {two}, {three}})
	total, first := fit.Total([]float64{1, 1, 0}), fit.TrueEffect(0)
	check.That(t, p.Total.Sum == (Sum{.08 + .02, total.Mean, [2]float64{total.Lower, total.Upper}}) && p.Total.Shipped == 2 && *p.Total.Exaggeration == (.08+.02)/total.Mean,
		"%+v, want %+v", p.Total, total)
	check.Equal(t, len(p.Items), 5, "treatments")
	e := p.Items[0]
	check.That(t, nearly(e.Expected.Value, first.Mean/(1-.5*first.Mean)) && *e.Chance == first.Chance && nearly(*e.Observed, .08/(1-.04)), "%+v, want %+v", e, first)
	check.Equal(t, p.Items[1].Reason, stats.ReasonTooFewVisitors, "a small test")
	check.Equal(t, p.Pool.Campaigns, 3, "tests that say something")
	none := NewPast(.2, nil)
	check.That(t, none.Total == nil && none.Pool.Campaigns == 0, "nothing: %+v", none)
}

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }
