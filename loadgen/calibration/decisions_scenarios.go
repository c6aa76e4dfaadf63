package calibration

import (
	"math"
	"math/rand/v2"

	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// The parts of the table of decisions.
const (
	anyLookErrors    = "A/A: winner or loser named at any of 50 looks"
	plannedPower     = "Power: true lift equal to the minimum effect"
	unevenMeans      = "One look at means by split, 100,000 visitors"
	statedChances    = "Bayesian chances at the first look beyond 1 - alpha/2"
	decisionLevel    = 95
	decisionAlpha    = 0.05
	decisionPower    = 0.8
	fromData         = "from the data"
	declaredPlan     = "declared"
	mostWithDataPlan = 0.054 // the planned look depends on the data
	leastPower       = 0.78  // of .80: the planned look has nine tenths of alpha
)

// The schedule of looks up to 20 times the plan: ten equal days until the planned
// sample is reached, then 40 days over which the total number of visitors grows
// by 7.8 % a day.
const (
	daysToPlan    = 10
	daysAfterPlan = 40
	lastMultiple  = 20
)

// campaign is an audience with the settings of a campaign.
type campaign struct {
	audience
	mde      float64
	bayesian bool
	dataPlan bool  // the planned sample is computed from the data
	planned  int64 // 0: the required sample of stats.Power for the true baseline
}

func (c *campaign) methodology() string {
	if c.bayesian {
		return catalogue.Bayesian
	}
	return catalogue.Frequentist
}

// options returns the options of a comparison. Under a data plan, PlannedVisitors is
// 0.
func (c *campaign) options() stats.Options {
	o := stats.Options{SignificanceLevel: decisionLevel, Methodology: stats.MethodologyFrequentist, Shares: c.shares, NonNegative: c.revenue}
	if c.bayesian {
		o.Methodology, o.Prior = stats.MethodologyBayesian, stats.DefaultPrior(c.mde)
	}
	if !c.dataPlan {
		o.PlannedVisitors = c.visitors()
	}
	return o
}

func (c *campaign) plan() stats.DecisionPlan {
	return stats.DecisionPlan{Shares: c.shares, MinimumEffect: c.mde, Power: decisionPower}
}

// visitors returns the planned sample.
func (c *campaign) visitors() int64 {
	if c.planned > 0 {
		return c.planned
	}
	sizing := *c
	sizing.dataPlan = true // the required sample does not depend on PlannedVisitors
	report := stats.Power(stats.Plan{Control: c.expected(), Shares: c.shares, MinimumEffect: c.mde, Power: decisionPower}, sizing.options())
	return *report.RequiredVisitors
}

// scenario returns a scenario without measures.
func (c *campaign) scenario(part string) scenario {
	s := scenario{part: part, name: c.String(), methodology: c.methodology(), plan: declaredPlan, planned: c.visitors()}
	if c.dataPlan {
		s.plan = fromData
	}
	return s
}

// anyLookError counts experiments without an effect for which any look names a winner
// or a loser.
func (c *campaign) anyLookError() scenario {
	s := c.scenario(anyLookErrors)
	most := decisionAlpha
	if c.dataPlan {
		most = mostWithDataPlan
	}
	s.measures = []decisionMeasure{{name: "winner or loser", most: most}}
	days := c.anyLookDays()
	plan, o := c.plan(), c.options()
	s.simulate = func(random *rand.Rand) []observation {
		d := stats.Decide(c.looks(random, days), plan, o)
		return []observation{{counted: true, occurred: d.Decided != nil}}
	}
	return s
}

// power counts experiments whose planned look finds that the first treatment is
// better. The other treatments have no effect.
func (c *campaign) power() scenario {
	s := c.scenario(plannedPower)
	s.measures = []decisionMeasure{{name: "better at the planned look", least: leastPower, most: 1}}
	days := equalDays(s.planned, daysToPlan)
	if c.dataPlan { // which may place the planned look later
		days = equalDays(2*s.planned, 2*daysToPlan)
	}
	plan, o := c.plan(), c.options()
	s.simulate = func(random *rand.Rand) []observation {
		d := stats.Decide(c.looks(random, days, 0, c.mde), plan, o)
		found := d.PlannedLook >= 0 && d.AtPlannedLook[0].Verdict == stats.VerdictBetter && d.AtPlannedLook[0].Sequential.Significant
		return []observation{{counted: true, occurred: found}}
	}
	return s
}

// alwaysValidTolerance is the allowed difference of the power of the confidence
// sequence from the planning figures.
const alwaysValidTolerance = 0.05

// alwaysValidPower counts experiments for which the confidence sequence alone, without
// a planned look, is significant at a look. The looks are at 1, 2 and 3 times the
// planned sample. The planning figures are those of single looks; earlier looks, which
// a campaign also has, find more.
func (c *campaign) alwaysValidPower() scenario {
	s := c.scenario(plannedPower)
	for _, at := range []struct {
		name   string
		figure float64
	}{{"sequence alone, look at the plan", 0.17}, {"sequence alone, look at 2 × plan", 0.57}, {"sequence alone, look at 3 × plan", 0.85}} {
		s.measures = append(s.measures, decisionMeasure{name: at.name, least: at.figure - alwaysValidTolerance, most: at.figure + alwaysValidTolerance})
	}
	days, o := equalDays(3*s.planned, 3), c.options()
	s.simulate = func(random *rand.Rand) []observation {
		var found []observation
		for _, look := range c.looks(random, days, 0, c.mde) {
			significant := stats.AnySignificant(look.Samples[0], look.Samples[1:], o)
			found = append(found, observation{counted: true, occurred: significant})
		}
		return found
	}
	return s
}

// The limits of one test of means at a split. The smaller share of an uneven split is
// below .35. There the test is conservative.
const (
	mostAtUnevenSplit   = 0.021
	leastAtEvenSplit    = 0.03
	mostAtEvenSplit     = 0.06
	leastUnevenCoverage = 0.8
)

// unevenSplit tests means once: with equal revenue, and with half the buyers.
func (c *campaign) unevenSplit(visitors int64) scenario {
	const half = -0.5
	s := scenario{part: unevenMeans, name: c.String(), methodology: c.methodology()}
	total := c.shares[0] + c.shares[1]
	errors := decisionMeasure{name: "significant without a difference", most: mostAtUnevenSplit}
	if min(c.shares[0], c.shares[1])/total >= 0.35 {
		errors.least, errors.most = leastAtEvenSplit, mostAtEvenSplit
	}
	s.measures = []decisionMeasure{errors, {name: "coverage of half the buyers", least: leastUnevenCoverage, most: 1}}
	control := int64(math.Round(float64(visitors) * c.shares[0] / total))
	difference := half * c.expected().(stats.Mean).Mean
	o := c.options()
	o.PlannedVisitors = 0
	s.simulate = func(random *rand.Rand) []observation {
		all := make([]totals, 3)
		c.visit(random, &all[0], control, 0)
		c.visit(random, &all[1], visitors-control, 0)
		c.visit(random, &all[2], visitors-control, half)
		samples := c.samples(all)
		same, halved := stats.Compare(samples[0], samples[1:2], o)[0], stats.Compare(samples[0], samples[2:], o)[0]
		in := halved.Difference.Interval
		return []observation{{counted: true, occurred: same.Significant}, {counted: true, occurred: in != nil && !in.Excludes(difference)}}
	}
	return s
}

// statedTolerance is the allowed difference between the mean of the stated chances and
// the share of them that was right.
const statedTolerance = 0.005

// statedChance draws lifts from the prior, and looks 20 times up to twice the plan. It
// counts the experiments in which a chance to be better or worse exceeds 1 - alpha/2.
// The first such look is where somebody who reads every look stops. There, the mean
// of the chances must be the share of them that was right.
func (c *campaign) statedChance() scenario {
	s := c.scenario(statedChances)
	s.measures = []decisionMeasure{{name: "stated chance was right", least: -statedTolerance, most: statedTolerance, stated: true}}
	o := c.options()
	days := equalDays(2*s.planned, 2*daysToPlan)
	s.simulate = func(random *rand.Rand) []observation {
		lift := max(o.Prior.Mean+o.Prior.StandardDeviation*random.NormFloat64(), -1)
		all := make([]totals, len(c.shares))
		before := int64(0)
		for _, n := range days {
			c.arrive(random, all, n-before, 0, lift)
			before = n
			samples := c.samples(all)
			chance := stats.Compare(samples[0], samples[1:], o)[0].Bayesian.ChanceToBeatControl
			if chance == nil {
				continue
			}
			if stated := max(*chance, 1-*chance); stated > 1-decisionAlpha/2 {
				return []observation{{counted: true, occurred: (*chance > 0.5) == (lift > 0), stated: stated}}
			}
		}
		return []observation{{}}
	}
	return s
}
