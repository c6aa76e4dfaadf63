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
	rate   float64   // share of control's visitors who buy
	lifts  []float64 // of the buyers' share where there is an effect, by variation, control's 0
	scale  float64   // of the visitors: small groups need more of them

	// balanced: control is as large as each variation, so that the skewness of
	// its mean cancels against theirs. frequent: enough visitors buy for a mean
	// to be near normal. A report gives no verdict, or guards it, where they do
	// not hold (stats: insufficientData, UNBALANCED_SKEW).
	balanced, frequent bool
}

// shapes are those that the experiments take in turn.
var shapes = []shape{
	{name: "even", shares: []int{50, 50}, rate: 0.10, lifts: []float64{0, 0.5}, scale: 1, balanced: true, frequent: true},
	{name: "uneven", shares: []int{5, 95}, rate: 0.10, lifts: []float64{0, 0.7}, scale: 3, frequent: true},
	{name: "three", shares: []int{34, 33, 33}, rate: 0.10, lifts: []float64{0, 0.5, 0}, scale: 1.5, balanced: true, frequent: true},
	{name: "low", shares: []int{50, 50}, rate: 0.015, lifts: []float64{0, 1}, scale: 2, balanced: true},
}

const (
	goalID = 1
	days   = 20 // of an experiment, each with a look at its end

	// spread is the sigma of the log-normal values of orders, and meanValue
	// their mean.
	spread    = 0.9
	meanValue = 50
)

// begin is when every experiment does: any time that is past will do.
var begin = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// experiment is one of many.
type experiment struct {
	id     int64 // of its campaign
	effect bool
	shape  *shape
}

// experimentsOf lists the experiments without an effect, then those with one,
// each in all shapes.
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

func (e *experiment) visitors(o *Options) int {
	return int(math.Round(float64(o.Visitors) * e.shape.scale))
}

// rateOf is the planted share of buyers.
func (e *experiment) rateOf(variation int) float64 {
	if !e.effect {
		return e.shape.rate
	}
	return e.shape.rate * (1 + e.shape.lifts[variation])
}

// truth is the planted difference and improvement of a variation.
func (e *experiment) truth(metric string, variation int) (difference, improvement float64) {
	control, treatment := e.rateOf(0), e.rateOf(variation)
	unit := 1.0
	if metric == valuePerVisitor {
		unit = meanValue
	}
	return unit * (treatment - control), treatment/control - 1
}

// events appends the experiment's events, a line each. They depend on nothing
// but the seed and the experiment.
func (e *experiment) events(to *bytes.Buffer, o *Options) int {
	random := rand.New(rand.NewPCG(o.Seed, uint64(e.id)))
	lines := 0
	for n := range e.visitors(o) {
		variation := e.draw(random)
		at := begin.Add(time.Duration(random.Int64N(int64(days * 24 * time.Hour)))).UnixMilli()
		line := func(kind string, at int64, more string) {
			lines++
			fmt.Fprintf(to, `{"eventId":"%d-%d-%s","time":%d,"websiteId":%d,"visitor":"%d-%d","event":"%s","campaignId":%d,"variationId":%d%s}`+"\n",
				e.id, n, kind, at, WebsiteID, e.id, n, kind, e.id, variation, more)
		}
		line("view", at, "")
		if random.Float64() < e.rateOf(variation) {
			value := meanValue * math.Exp(spread*random.NormFloat64()-spread*spread/2)
			line("goal", at+1, fmt.Sprintf(`,"goalId":%d,"value":%s`, goalID, strconv.FormatFloat(value, 'f', 4, 64)))
		}
	}
	return lines
}

// draw gives a visitor a variation, by the shares.
func (e *experiment) draw(random *rand.Rand) int {
	at := random.IntN(100)
	for variation, share := range e.shape.shares {
		if at -= share; at < 0 {
			return variation
		}
	}
	panic("unreachable: the shares add up to 100")
}

// rule is how the reports of all campaigns decide, and how often they are
// looked at each day: of all experiments, in shapes once over, each so-manieth
// time; 0 is never. A series takes the store ten times as long as a report, so
// that what is judged most is looked at most.
type rule struct {
	methodology string
	level       int
	looks       int
}

func (r rule) alpha() float64 { return float64(100-r.level) / 100 }

func (r rule) looksAt(e *experiment) bool {
	return r.looks > 0 && int(e.id-1)/len(shapes)%r.looks == 0
}

// allRules are all that are judged. At level 100 nothing is ever significant,
// whatever the data.
var allRules = []rule{
	{catalogue.Frequentist, 80, 2},
	{catalogue.Frequentist, 90, 2},
	{catalogue.Frequentist, 95, 1},
	{catalogue.Frequentist, 100, 0},
	{catalogue.Bayesian, 80, 6},
	{catalogue.Bayesian, 90, 6},
	{catalogue.Bayesian, 95, 6},
	{catalogue.Bayesian, 100, 0},
}

// catalogueOf declares a campaign for each experiment.
func catalogueOf(all []experiment, o *Options, r rule) catalogue.File {
	site := catalogue.Website{ID: WebsiteID, Domain: "calibration.example.com", Goals: []catalogue.Goal{{ID: goalID, WebsiteID: WebsiteID, Name: "Purchase"}}}
	for i := range all {
		e := &all[i]
		c := catalogue.Campaign{
			ID: e.id, WebsiteID: WebsiteID, Name: fmt.Sprintf("%s %d", e.shape.name, e.id), Type: "experiment", TargetMode: "live",
			ControlShare: e.shape.shares[0], TrafficAllocation: 100, PrimaryGoalID: goalID,
			Methodology: r.methodology, SignificanceLevel: r.level, Power: 80, MDE: 20, PlannedVisitors: int64(e.visitors(o)),
			Initial: catalogue.Initial{Active: true, CreateDate: &catalogue.Date{Time: begin}, StartDate: &catalogue.Date{Time: begin}},
		}
		for id, share := range e.shape.shares[1:] {
			c.Variations = append(c.Variations, catalogue.Variation{ID: int64(id + 1), Name: fmt.Sprintf("Variation %d", id+1), Share: share, Order: id + 1})
		}
		site.Campaigns = append(site.Campaigns, c)
	}
	return catalogue.File{Accounts: []catalogue.Account{{ID: AccountID, Name: "Calibration", Websites: []catalogue.Website{site}}}}
}
