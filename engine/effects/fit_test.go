package effects

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// programme has the effects of the treatments of campaigns, each with its standard error and the shared part of it, and
// what testdata/programmes.py computes from them.
type programme struct {
	MDE                       float64
	Campaigns                 [][][3]float64
	Means                     []float64
	TypicalEffect, MeanEffect float64
	Total                     [4]float64  // of the first treatments, with factors 1, 2, 3, …: mean, interval, chance
	Single                    *[4]float64 // a treatment: its number, interval, chance
}

func (p *programme) effects() (campaigns [][]stats.PooledEffect) {
	for _, c := range p.Campaigns {
		var effects []stats.PooledEffect
		for _, e := range c {
			effects = append(effects, stats.PooledEffect{Value: e[0], StandardError: e[1], Shared: e[2]})
		}
		campaigns = append(campaigns, effects)
	}
	return campaigns
}

// TestFitsEqualAQuadrature compares fits with integrals over the true effects.
func TestFitsEqualAQuadrature(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/programmes.json"))(t)
	programmes := must.JSON[[]programme](t, text)
	check.Equal(t, len(programmes), 40, "programmes")
	for i, p := range programmes {
		f := NewFit(p.MDE, p.effects())
		near := func(what string, got, want float64) {
			t.Helper()
			check.That(t, math.Abs(got-want) <= 1e-8*p.MDE*float64(len(p.Campaigns)),
				"programme %d: %s is %.12g, want %.12g", i, what, got, want)
		}
		near("typical effect", f.TypicalEffect().Mean, p.TypicalEffect)
		near("mean effect", f.MeanEffect().Mean, p.MeanEffect)
		factors, next := make([]float64, len(p.Means)), 0
		for k, c := range p.Campaigns {
			factors[next] = float64(k + 1)
			next += len(c)
		}
		total := f.Total(factors)
		for k, got := range []float64{total.Mean, total.Lower, total.Upper, p.MDE * total.Chance} {
			near("total", got, []float64{p.Total[0], p.Total[1], p.Total[2], p.MDE * p.Total[3]}[k])
		}
		for k, mean := range p.Means {
			near("mean", f.TrueEffect(k).Mean, mean)
		}
		if s := p.Single; s != nil {
			e := f.TrueEffect(int(s[0]))
			near("lower", e.Lower, s[1])
			near("upper", e.Upper, s[2])
			near("chance", p.MDE*e.Chance, p.MDE*s[3])
		}
	}
}

// TestLimits checks the effect of exact data, of no data, and of a campaign that says nothing.
func TestLimits(t *testing.T) {
	some := [][]stats.PooledEffect{{{Value: .05, StandardError: .03}}, {{Value: -.01, StandardError: .02}}}
	f := NewFit(.2, some)
	exact := NewFit(.2,
		append(slices.Clone(some), []stats.PooledEffect{{Value: .07, StandardError: 1e-9}})).TrueEffect(2)
	check.That(t, math.Abs(exact.Mean-.07) <= 1e-7, "exact data: %+v", exact)
	check.That(t, math.Abs(exact.Upper-exact.Lower) <= 1e-7, "exact data: %+v", exact)
	check.Equal(t, exact.Chance, 1, "exact data: %+v", exact)
	nothing := NewFit(.2, append(slices.Clone(some), []stats.PooledEffect{{Value: .07, StandardError: 1e9}}))
	got := nothing.TrueEffect(2).Mean
	check.That(t, math.Abs(got-f.MeanEffect().Mean) <= 1e-9, "no data: %g, want the mean of true effects %g", got,
		f.MeanEffect().Mean)
	for i := range 2 {
		a, b := f.TrueEffect(i), nothing.TrueEffect(i)
		check.That(t, math.Abs(a.Mean-b.Mean) <= 1e-12, "a campaign that says nothing changes %+v to %+v", a, b)
		check.That(t, math.Abs(a.Lower-b.Lower) <= 1e-12, "a campaign that says nothing changes %+v to %+v", a, b)
	}
	two := [][]stats.PooledEffect{{{Value: .05, StandardError: .03}, {Value: .02, StandardError: .03}}}
	apart := NewFit(.2, [][]stats.PooledEffect{two[0][:1], two[0][1:]})
	joint := NewFit(.2, two)
	for i := range 2 {
		a, b := joint.TrueEffect(i), apart.TrueEffect(i)
		check.That(t, math.Abs(a.Mean-b.Mean) <= 1e-12, "treatments that share no error: %+v, apart %+v", a, b)
		check.That(t, math.Abs(a.Upper-b.Upper) <= 1e-10, "treatments that share no error: %+v, apart %+v", a, b)
	}
	e := NewFit(.2, nil).TypicalEffect()
	check.That(t, math.Abs(e.Mean-.05) <= .004, "the typical effect without campaigns is %g, want about a quarter of the minimum effect", e.Mean)
}

// TestWinRate compares win rates with closed forms: of a power that is a normal distribution function, under the normal
// mixtures of the posterior.
func TestWinRate(t *testing.T) {
	fit := NewFit(.2, [][]stats.PooledEffect{{{Value: .18, StandardError: .075}}, {{Value: -.04, StandardError: .085}}})
	below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	const at, width = .03, .02 // of the power
	wins, better := 0.0, 0.0
	for g, w := range fit.posterior {
		p := fit.grid[g]
		for j, probability := range p.shape.probability {
			if spread := p.shape.spreads[j] * p.tau; probability > 0 {
				wins += w * probability * below((p.mu-at)/math.Hypot(width, spread))
				better += w * probability * below(p.mu/spread)
			}
		}
	}
	got, _ := fit.WinRate(func(lift float64) float64 { return below((lift - at) / width) })
	check.That(t, math.Abs(got.Observed-wins) <= 1e-3, "%+v, want %v", got, wins)
	check.That(t, got.Expected < got.Observed, "%+v, want %v", got, wins)
	got, gain := fit.WinRate(func(float64) float64 { return 1 })
	check.That(t, math.Abs(gain-fit.MeanEffect().Mean) <= 1e-4, "if all win, they gain %v, want their mean effect", gain)
	check.That(t, nearly(got.Observed, 1), "if all win: %+v, want %v", got, better)
	check.That(t, nearly(got.Expected, better), "if all win: %+v, want %v", got, better)
}

// TestGain compares the mean lift of the variations that win with a naive integration over the density of true effects,
// for sharp and for blunt tests.
func TestGain(t *testing.T) {
	one := func(value, se float64) []stats.PooledEffect {
		return []stats.PooledEffect{{Value: value, StandardError: se}}
	}
	below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for _, campaigns := range [][][]stats.PooledEffect{
		nil, {one(.18, .075), one(-.04, .085)}, {one(.02, .01), one(-.01, .01), one(.3, .02), one(0, .01)},
	} {
		fit := NewFit(.2, campaigns)
		typical := fit.TypicalEffect().Mean
		for _, blunt := range []float64{.1, .3, 1, 3} { // standard error in typical effects
			se := blunt * typical
			powerAt := func(lift float64) float64 { return below(lift/se - 2) }
			want := 0.0
			for g, w := range fit.posterior {
				p := &fit.grid[g]
				for j, probability := range p.shape.probability {
					spread := p.shape.spreads[j] * p.tau
					const steps = 4000 // of 10 standard deviations on each side
					for i := range steps {
						z := (float64(i) + .5 - steps/2) / (steps / 20)
						lift := p.mu + z*spread
						density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 20 / steps
						want += w * probability * density * powerAt(lift) * lift
					}
				}
			}
			_, got := fit.WinRate(powerAt)
			check.That(t, math.Abs(got/want-1) <= .01, "%d campaigns, a test of %v typical effects: gain %v, want %v",
				len(campaigns), blunt, got, want)
		}
	}
}

// TestGainEqualsASimulation compares the mean lift that is shipped with a simulation of 100,000 ideas. Each has a true
// effect of the posterior, and goes through the looks of a plan of 4 weeks, whose critical values are published ones.
func TestGainEqualsASimulation(t *testing.T) {
	fit := NewFit(.2, [][]stats.PooledEffect{{{Value: .18, StandardError: .075}}, {{Value: -.04, StandardError: .085}}})
	const rate, visitors = .1, 8000.
	size, reason := stats.NewSampleSize(stats.SamplePlan{
		Control: stats.Rate{Visitors: 10_000, Converted: 1000}, Shares: []float64{50, 50}, Looks: 4, Power: .8,
	}, stats.NewLookDesign(.05, []float64{50, 50}))
	must.Equal(t, reason, "", "a plan")
	wins, gain := fit.WinRate(size.PowerCurve(visitors, nil))

	random := rand.New(rand.NewPCG(1, 2))
	const ideas = 100_000
	won, better, shipped := 0.0, 0.0, 0.0
	for range ideas {
		at, u := 0, random.Float64()
		for at < len(fit.posterior)-1 && u > fit.posterior[at] {
			u -= fit.posterior[at]
			at++
		}
		p := &fit.grid[at]
		part := 0
		if random.Float64() > p.shape.probability[0] {
			part = 1
		}
		lift := p.mu + p.shape.spreads[part]*p.tau*random.NormFloat64()
		lifted := rate * (1 + lift)
		if lifted <= 0 || lifted >= 1 {
			continue
		}
		se := math.Sqrt((rate*(1-rate)+lifted*(1-lifted))*2/visitors) / rate
		score := 0.0 // of Brownian motion at tau
		for k, critical := range []float64{3.170, 2.835, 2.458, 2.036} {
			score += lift/se/4 + random.NormFloat64()/2
			z := score / math.Sqrt(float64(k+1)/4)
			if math.Abs(z) < critical {
				continue
			}
			if z > 0 {
				won++
				shipped += lift
			}
			if z > 0 && lift > 0 {
				better++
			}
			break
		}
	}
	check.That(t, math.Abs(won/ideas/wins.Observed-1) <= .03, "%v win, want %v", wins.Observed, won/ideas)
	check.That(t, math.Abs(better/ideas/wins.Expected-1) <= .03, "%v win truly, want %v", wins.Expected, better/ideas)
	check.That(t, math.Abs(shipped/ideas/gain-1) <= .03, "the gain is %v, want %v", gain, shipped/ideas)
}

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
	first, second := fit.TrueEffect(0), fit.TrueEffect(1)
	// from an effect, which is relative to the mean of the pair
	toLift := func(e Expected) float64 { return 1 / (1 - .5*e.Mean) }
	total := fit.Total([]float64{toLift(first), toLift(second), 0})
	observed := .08/(1-.04) + .02/(1-.01)
	check.That(t, nearly(p.Total.Observed, observed), "%+v, want %+v", p.Total, total)
	check.That(t, nearly(p.Total.Expected, total.Mean), "%+v, want %+v", p.Total, total)
	check.That(t, nearly(p.Total.Interval[0], total.Lower), "%+v, want %+v", p.Total, total)
	check.That(t, nearly(p.Total.Interval[1], total.Upper), "%+v, want %+v", p.Total, total)
	check.Equal(t, p.Total.Shipped, 2, "%+v", p.Total)
	check.That(t, nearly(*p.Total.Exaggeration, observed/total.Mean), "%+v", p.Total)
	check.That(t, nearly(p.Total.HarmOrNothing, first.Small+second.Small), "harm or nothing: %v", p.Total.HarmOrNothing)
	check.That(t, first.Small > 1-first.Chance, "below 2 %%: %v, below 0: %v", first.Small, 1-first.Chance)
	check.That(t, first.Small < .5, "below 2 %%: %v, below 0: %v", first.Small, 1-first.Chance)
	check.Equal(t, len(p.Items), 5, "treatments")
	e := p.Items[0]
	check.That(t, nearly(e.Expected.Value, first.Mean/(1-.5*first.Mean)), "%+v, want %+v", e, first)
	check.Equal(t, *e.Chance, first.Chance, "%+v, want %+v", e, first)
	check.That(t, nearly(*e.Observed, .08/(1-.04)), "%+v, want %+v", e, first)
	check.Equal(t, p.Items[1].Reason, stats.ReasonTooFewVisitors, "a small test")
	check.Equal(t, p.Pool.Campaigns, 3, "tests that say something")
	none := NewPast(.2, nil)
	check.That(t, none.Total == nil, "nothing: %+v", none)
	check.Equal(t, none.Pool.Campaigns, 0, "nothing: %+v", none)
}

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }
