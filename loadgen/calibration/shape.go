package calibration

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"lifthouse/schema/catalogue"
)

// shape is a kind of experiment.
type shape struct {
	name   string
	shares []int     // per cent, control first
	rate   float64   // conversion rate of control
	lifts  []float64 // lift of the conversion rate with an effect, by variation; 0 for control
	scale  float64   // multiplies the number of visitors; small groups need more visitors

	// balanced: control is as large as each variation, so the skewness of the means
	// cancels out in their difference. frequent: enough visitors convert for the
	// distribution of a mean to be nearly normal. If either is false, a report
	// withholds its verdict (stats: insufficientData) or is conservative (stats:
	// welchPooled).
	balanced, frequent bool
}

// shapes are the shapes of the experiments. Experiment i has shape i modulo
// len(shapes).
var shapes = []shape{
	{name: "even", shares: []int{50, 50}, rate: 0.10, lifts: []float64{0, 0.5}, scale: 1, balanced: true, frequent: true},
	{name: "uneven", shares: []int{5, 95}, rate: 0.10, lifts: []float64{0, 0.7}, scale: 3, frequent: true},
	{name: "three", shares: []int{34, 33, 33}, rate: 0.10, lifts: []float64{0, 0.5, 0}, scale: 1.5, balanced: true, frequent: true},
	{name: "low", shares: []int{50, 50}, rate: 0.015, lifts: []float64{0, 1}, scale: 2, balanced: true},
}

const (
	goalID = 1
	days   = 20 // duration of an experiment; two weeks of full days have looks

	// spread is the sigma of the log-normal order values. meanValue is their mean.
	spread    = 0.9
	meanValue = 50
)

// startTime is the start of all experiments. Any time in the past is valid.
var startTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// experiment is a synthetic experiment.
type experiment struct {
	id     int64 // of its campaign
	effect bool
	shape  *shape
}

// experimentsOf returns the experiments without an effect, followed by the
// experiments with an effect. Both include all shapes.
func experimentsOf(o *Options) []experiment {
	all := make([]experiment, 0, o.Null+o.Effect)
	for i := range o.Null {
		all = append(all, experiment{id: int64(1 + i), shape: &shapes[i%len(shapes)]})
	}
	for i := range o.Effect {
		all = append(all, experiment{id: int64(1 + o.Null + i), effect: true, shape: &shapes[i%len(shapes)]})
	}
	return all
}

func (e *experiment) visitorCount(o *Options) int {
	return int(math.Round(float64(o.Visitors) * e.shape.scale))
}

// conversionRate returns the true conversion rate of a variation.
func (e *experiment) conversionRate(variation int) float64 {
	if !e.effect {
		return e.shape.rate
	}
	return e.shape.rate * (1 + e.shape.lifts[variation])
}

// trueEffect returns the true difference and relative improvement of a variation
// against control.
func (e *experiment) trueEffect(metric string, variation int) (difference, improvement float64) {
	control, treatment := e.conversionRate(0), e.conversionRate(variation)
	unit := 1.0
	if metric == valuePerVisitor {
		unit = meanValue
	}
	return unit * (treatment - control), treatment/control - 1
}

// writeEvents writes the events of the experiment as JSON lines and returns the
// number of lines. Events depend only on the seed and the experiment.
func (e *experiment) writeEvents(to *bytes.Buffer, o *Options) int {
	random := rand.New(rand.NewPCG(o.Seed, uint64(e.id)))
	lines := 0
	for n := range e.visitorCount(o) {
		variation := e.drawVariation(random)
		at := startTime.Add(time.Duration(random.Int64N(int64(days * 24 * time.Hour)))).UnixMilli()
		line := func(kind string, at int64, fields string) {
			lines++
			fmt.Fprintf(to, `{"eventId":"%d-%d-%s","time":%d,"websiteId":%d,"visitor":"%d-%d","event":"%s","campaignId":%d,"variationId":%d%s}`+"\n",
				e.id, n, kind, at, WebsiteID, e.id, n, kind, e.id, variation, fields)
		}
		line("view", at, "")
		if random.Float64() < e.conversionRate(variation) {
			value := meanValue * math.Exp(spread*random.NormFloat64()-spread*spread/2)
			line("goal", at+1, fmt.Sprintf(`,"goalId":%d,"value":%s`, goalID, strconv.FormatFloat(value, 'f', 4, 64)))
		}
	}
	return lines
}

// drawVariation draws a variation according to the shares.
func (e *experiment) drawVariation(random *rand.Rand) int {
	n := random.IntN(100)
	for variation, share := range e.shape.shares {
		n -= share
		if n < 0 {
			return variation
		}
	}
	panic("unreachable: n is less than the sum of the shares")
}

// rule is a methodology and a significance level for all campaigns. Daily reports are read
// in one of daysEvery rounds of shapes, and never if daysEvery is 0. A time series costs
// about ten times as much as a report.
type rule struct {
	methodology string
	level       int
	daysEvery   int
}

func (r rule) alpha() float64 { return float64(100-r.level) / 100 }

// readsDays reports whether the results at the end of each day are read.
func (r rule) readsDays(e *experiment) bool {
	return r.daysEvery > 0 && int(e.id-1)/len(shapes)%r.daysEvery == 0
}

// allRules are the rules of a calibration. At level 100, no report may be
// significant. The Bayesian rules come first, because the prior must be declared
// before the first view.
var allRules = []rule{
	{catalogue.Bayesian, 80, 6},
	{catalogue.Bayesian, 90, 6},
	{catalogue.Bayesian, 95, 6},
	{catalogue.Bayesian, 100, 0},
	{catalogue.Frequentist, 80, 2},
	{catalogue.Frequentist, 90, 2},
	{catalogue.Frequentist, 95, 1},
	{catalogue.Frequentist, 100, 0},
}

// catalogueOf returns a catalogue with a campaign for each experiment. Priors are
// wide: intervals cover a fixed lift at their level only if the prior hardly moves
// them.
func catalogueOf(all []experiment, o *Options, r rule) catalogue.File {
	site := catalogue.Website{ID: WebsiteID, Domain: "calibration.example.com", Goals: []catalogue.Goal{{ID: goalID, WebsiteID: WebsiteID, Name: "Purchase"}}}
	for i := range all {
		e := &all[i]
		c := catalogue.Campaign{
			ID: e.id, WebsiteID: WebsiteID, Name: fmt.Sprintf("%s %d", e.shape.name, e.id), Type: "experiment", TargetMode: "live",
			ControlShare: e.shape.shares[0], TrafficAllocation: new(100), PrimaryGoalID: goalID,
			Methodology: r.methodology, SignificanceLevel: r.level, Power: 80, MDE: 20, LookPlan: catalogue.LookPlan{PlannedVisitors: int64(e.visitorCount(o))},
			Initial: catalogue.Initial{Active: true, CreateDate: &catalogue.Date{Time: startTime}, StartDate: &catalogue.Date{Time: startTime}},
		}
		if r.methodology == catalogue.Bayesian {
			c.Prior = &catalogue.Prior{StandardDeviation: 300}
		}
		for id, share := range e.shape.shares[1:] {
			c.Variations = append(c.Variations, catalogue.Variation{ID: int64(id + 1), Name: fmt.Sprintf("Variation %d", id+1), Share: share, Order: id + 1})
		}
		site.Campaigns = append(site.Campaigns, c)
	}
	return catalogue.File{Accounts: []catalogue.Account{{ID: AccountID, Name: "Calibration", Websites: []catalogue.Website{site}}}, ReplacePlans: true}
}
