package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

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
)

// campaign is an audience with the settings of a campaign, which has a look each week.
type campaign struct {
	audience
	mde      float64
	bayesian bool
	perWeek  int64       // visitors over all variations; 0: a quarter of the required sample
	ramp     [][]float64 // shares of the first weeks, of which the last remain; nil: no change
	lifts    []float64   // of the first variations, control first; the others have none
	weeks    int         // of looks
}

// with returns the campaign with the given shares of the traffic, control first.
func (c campaign) with(shares ...float64) *campaign {
	c.shares, c.weeks = shares, weeksOfLooks
	return &c
}

// change returns a changed copy of the campaign.
func (c *campaign) change(by func(*campaign)) *campaign {
	changed := *c
	by(&changed)
	return &changed
}

// asBayesian returns the campaign with the Bayesian methodology and its default prior.
func (c *campaign) asBayesian() *campaign { return c.change(func(c *campaign) { c.bayesian = true }) }

// daily returns the campaign with a number of visitors a day.
func (c *campaign) daily(visitors int64) *campaign {
	return c.change(func(c *campaign) { c.perWeek = daysOfWeek * visitors })
}

func (c *campaign) methodology() string {
	if c.bayesian {
		return catalogue.Bayesian
	}
	return catalogue.Frequentist
}

// options returns the options of a comparison.
func (c *campaign) options() stats.Options {
	o := stats.Options{SignificanceLevel: decisionLevel, Methodology: stats.MethodologyFrequentist, Shares: c.shares, NonNegative: c.revenue}
	if c.bayesian {
		o.Methodology, o.Prior = stats.MethodologyBayesian, stats.DefaultPrior(c.mde)
	}
	return o
}

// sharesIn returns the shares of a week.
func (c *campaign) sharesIn(week int) []float64 {
	if c.ramp == nil {
		return c.shares
	}
	return c.ramp[min(week, len(c.ramp)-1)]
}

func (c *campaign) design() stats.LookDesign {
	return stats.NewLookDesign(decisionAlpha, c.sharesIn(0))
}

// size returns the required sample of the campaign.
func (c *campaign) size() *stats.SampleSize {
	size, reason := stats.NewSampleSize(stats.SamplePlan{
		Control: c.expected(), NonNegative: c.revenue, Shares: c.shares, Looks: weeksToPlan, Power: decisionPower, Prior: c.options().Prior,
	}, c.design())
	if reason != "" {
		panic(fmt.Sprintf("%s: %s", c, reason))
	}
	return size
}

// weekly returns the number of visitors of a week.
func (c *campaign) weekly() int64 {
	if c.perWeek > 0 {
		return c.perWeek
	}
	required, reason := c.size().Required(c.mde)
	if reason != "" {
		panic(fmt.Sprintf("%s: %s", c, reason))
	}
	return (*required + weeksToPlan - 1) / weeksToPlan
}

func (c *campaign) lift(arm int) float64 {
	if arm < len(c.lifts) {
		return c.lifts[arm]
	}
	return 0
}

// arrivals returns the visitors by variation in a period, which has a number from 0. They do
// not depend on random numbers.
func arrivals(visitors float64, shares []float64, period int) []int64 {
	total := floats.Sum(shares)
	arriving := make([]int64, len(shares))
	for i, share := range shares {
		each := visitors * share / total
		arriving[i] = int64(math.Round(each*float64(period+1)) - math.Round(each*float64(period)))
	}
	return arriving
}

// stream returns a function with the totals by stratum and variation at the look at the end
// of each week, which is called for each week in order.
type stream func(random *rand.Rand) func(week int) [][]totals

// arriving is the stream of a campaign whose data never change. The function draw draws the
// visitors of a variation in a week.
func (c *campaign) arriving(draw func(random *rand.Rand, week, arm int, visitors int64) totals) stream {
	perWeek := float64(c.weekly())
	return func(random *rand.Rand) func(int) [][]totals {
		var strata [][]totals
		return func(week int) [][]totals {
			shares := c.sharesIn(week)
			if week == 0 || !slices.Equal(shares, c.sharesIn(week-1)) {
				strata = append(strata, make([]totals, len(shares)))
			}
			for arm, n := range arrivals(perWeek, shares, week) {
				into := &strata[len(strata)-1][arm]
				*into = into.plus(draw(random, week, arm, n), 1)
			}
			return strata
		}
	}
}

// usually is the stream of visitors who differ by their variation only.
func (c *campaign) usually() stream {
	return c.arriving(func(random *rand.Rand, _, arm int, visitors int64) totals {
		return c.draw(random, visitors, c.lift(arm))
	})
}

// judge returns the result of a treatment at a look.
type judge func(week, treatment int, strata [][]totals) stats.LookResult

func (c *campaign) strata(treatment int, all [][]totals) []stats.Stratum {
	strata := make([]stats.Stratum, len(all))
	periods := [][]float64{c.shares}
	if c.ramp != nil {
		periods = slices.CompactFunc(slices.Clone(c.ramp), slices.Equal)
	}
	for i := range all {
		control, other := periods[i][0], periods[i][treatment+1]
		strata[i] = stats.Stratum{
			Control: c.sample(all[i][0]), Treatment: c.sample(all[i][treatment+1]), SmallerShare: min(control, other) / (control + other),
		}
	}
	return strata
}

func tauOf(week int) float64 { return float64(week+1) / weeksToPlan }

// sequences returns a judge that computes all looks of one experiment.
func (c *campaign) sequences(design stats.LookDesign) judge {
	all := make([]*stats.LookSequence, len(c.shares)-1)
	for i := range all {
		all[i] = design.NewSequence()
	}
	return func(week, treatment int, strata [][]totals) stats.LookResult {
		return all[treatment].Analyze(tauOf(week), c.strata(treatment, strata), c.revenue)
	}
}

// timetable returns a judge for all experiments of a stream. Critical values depend on the
// numbers of visitors only, which are those of the stream in each experiment. So they are
// computed once: look k of an experiment has the result of a single look that spends 2 Q(c_k).
// This saves nine tenths of the time.
func (c *campaign) timetable(design stats.LookDesign, s stream) judge {
	taus := sync.OnceValue(func() [][]float64 {
		first, at := c.sequences(design), s(rand.New(rand.NewPCG(1, 1)))
		taus := make([][]float64, c.weeks)
		for week := range taus {
			strata := at(week)
			for treatment := range len(c.shares) - 1 {
				tau := math.NaN()
				if critical := first(week, treatment, strata).Critical; critical != nil {
					tau = tauSpending(2 * distuv.UnitNormal.Survival(*critical) / design.Level)
				}
				taus[week] = append(taus[week], tau)
			}
		}
		return taus
	})
	return func(week, treatment int, strata [][]totals) stats.LookResult {
		tau := taus()[week][treatment]
		if math.IsNaN(tau) {
			return stats.LookResult{}
		}
		return design.NewSequence().Analyze(tau, c.strata(treatment, strata), c.revenue)
	}
}

// findings returns what a look says of the treatments.
func (c *campaign) findings(of judge, week int, strata [][]totals) []stats.Finding {
	findings := make([]stats.Finding, len(c.shares)-1)
	var compared []stats.Comparison
	for t := range findings {
		r := of(week, t, strata)
		direction := r.Direction()
		if direction != 0 && c.bayesian {
			if compared == nil {
				samples := c.samples(strata[len(strata)-1])
				compared = stats.Compare(samples[0], samples[1:], c.options())
			}
			direction = r.BayesianDirection(*compared[t].Bayesian.ChanceToBeatControl, decisionAlpha)
		}
		if direction != 0 {
			findings[t] = stats.Finding{Direction: direction, Difference: *r.Difference.Value}
		}
	}
	return findings
}

// outcome returns the outcome of an experiment. Nothing replaces a winner.
func (c *campaign) outcome(of judge, at func(week int) [][]totals) *stats.Outcome {
	var looks [][]stats.Finding
	for week := range c.weeks {
		looks = append(looks, c.findings(of, week, at(week)))
		if found := stats.ConcludeLooks(looks[week:]); found != nil && found.Winner {
			break
		}
	}
	return stats.ConcludeLooks(looks)
}

// tauSpending returns the time at which a share of the error budget is spent: the inverse of
// stats.Spend.
func tauSpending(share float64) float64 {
	if toPlan := stats.Spend(1, 1); share > toPlan {
		return (1 - toPlan) / (1 - share)
	}
	return math.Log1p(share/stats.Spend(1, 1)*math.Expm1(4)) / 4
}
