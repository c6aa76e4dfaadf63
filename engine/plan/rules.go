package plan

import (
	"cmp"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Rules are the statistical settings of a subject. A widget's own variations are not compared.
type Rules struct {
	Compare           bool
	Methodology       string
	SignificanceLevel int
	Power             int             // per cent
	MDE               float64         // per cent
	Prior             *stats.Prior    // of lifts, as fractions; nil: frequentist, or it must be learned
	StatedPrior       catalogue.Prior // the same in per cent; zero: there is none
	LookRules
}

// LookRules define the times of the looks and the end of the plan.
type LookRules struct {
	PlannedDays       int           // a whole number of weeks
	PlannedVisitors   int64         // measures the time instead of days; 0: none
	Maturity          time.Duration // from the end of a look until it is recorded
	EquivalenceMargin float64       // a lift, as a fraction; 0: none
}

// setRules sets the rules that a plan declares. Planned days are rounded up to whole weeks.
func (p *Plan) setRules(d *catalogue.Plan) {
	const week = 7
	p.Rules = Rules{
		Compare: true, Methodology: d.Methodology, SignificanceLevel: d.SignificanceLevel, Power: d.Power, MDE: d.MDE,
		LookRules: LookRules{
			PlannedDays:     (cmp.Or(d.PlannedDays, catalogue.DefaultPlannedDays) + week - 1) / week * week,
			PlannedVisitors: d.PlannedVisitors, EquivalenceMargin: d.EquivalenceMargin / 100,
			Maturity: time.Duration(*cmp.Or(d.Maturity, new(catalogue.DefaultMaturity))) * time.Hour,
		},
	}
	if d.Methodology != catalogue.Bayesian {
		return
	}
	prior := d.Prior
	switch {
	case prior == nil:
		prior = new(WeakPrior(d.MDE))
	case prior.IsLearned:
		prior = p.learned
	}
	if prior != nil {
		p.Rules = p.WithPrior(*prior).Rules
	}
}

// widgetRules are the rules for the intervals of a widget's own results.
var widgetRules = Rules{Methodology: catalogue.Frequentist, SignificanceLevel: 95}

// MustLearn reports whether the prior must be learned from past campaigns.
func (r *Rules) MustLearn() bool { return r.Methodology == catalogue.Bayesian && r.Prior == nil }

// WeakPrior returns the prior of a Bayesian campaign that declares none: N(0, (mde / 1.96)²), in per cent. So lifts
// within the minimum effect are expected in 95 % of campaigns, and no idea starts ahead. A prior that is learned from
// campaigns of small effects needs 2 to 6 times the visitors.
func WeakPrior(mde float64) catalogue.Prior {
	const quantile = 1.96 // of the standard normal distribution, at .975
	return catalogue.Prior{StandardDeviation: mde / quantile}
}

// WithPrior returns the plan with a prior.
func (p *Plan) WithPrior(prior catalogue.Prior) *Plan {
	with := *p
	with.Rules.Prior = &stats.Prior{
		Mean: prior.Mean / 100, StandardDeviation: prior.StandardDeviation / 100, Campaigns: prior.Campaigns,
	}
	with.Rules.StatedPrior = prior
	return &with
}
