package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// followedShop is a shop whose visitors order again after a campaign. A buyer has one order on the first day and, as a
// subscriber, one more every 30 days for as long as the subscription lasts.
type followedShop struct {
	visitors   int64 // of each variation
	treatments int
	windows    []int         // days
	variation  followedBuyer // of all treatments
	// share of the error rate that each reading has, in the number of readings; 0: as the program divides it
	readings int
}

// followedBuyer says how the visitors of a variation buy.
type followedBuyer struct {
	buyers, subscribers float64 // shares of the visitors, and of the buyers
	forward             float64 // share of the later orders that come on the first day instead
}

// ofControl are the buyers of control: 3 % of new visitors buy, and a quarter of them subscribes.
var ofControl = followedBuyer{buyers: 0.03, subscribers: 0.25}

const (
	monthsOfYear = 12
	churn        = 0.08 // share of the subscriptions that end before each renewal
)

// totalsOfWindows are the sums of a variation by window.
type totalsOfWindows struct {
	sum, squares []float64
	nonzero      int64
}

// drawTotals draws the visitors of a variation.
func (s *followedShop) drawTotals(random *rand.Rand, of followedBuyer) totalsOfWindows {
	found := totalsOfWindows{
		sum: make([]float64, len(s.windows)), squares: make([]float64, len(s.windows)),
	}
	found.nonzero = drawBinomial(random, s.visitors, of.buyers)
	for range found.nonzero {
		spent := s.drawBuyer(random, of)
		for i, value := range spent {
			found.sum[i] += value
			found.squares[i] += value * value
		}
	}
	return found
}

// drawBuyer draws what a buyer spends within each window.
func (s *followedShop) drawBuyer(random *rand.Rand, of followedBuyer) []float64 {
	spent := make([]float64, len(s.windows))
	add := func(age int, value float64) {
		for i, days := range s.windows {
			if age < days {
				spent[i] += value
			}
		}
	}
	price := func() float64 { return 40 * math.Exp(0.8*random.NormFloat64()) }
	add(0, price())
	if random.Float64() >= of.subscribers {
		return spent
	}
	renewal := price()
	for month := 1; month <= monthsOfYear && random.Float64() >= churn; month++ {
		age := 30 * month
		if random.Float64() < of.forward {
			age = 0
		}
		add(age, renewal)
	}
	return spent
}

// readAll returns the directions of the readings of the first treatment that differs, by window: 1, -1 or 0.
func (s *followedShop) readAll(random *rand.Rand) []int {
	p := s.plan()
	all := []totalsOfWindows{s.drawTotals(random, ofControl)}
	shares := []float64{1}
	for range s.treatments {
		all = append(all, s.drawTotals(random, s.variation))
		shares = append(shares, 1)
	}
	directions := make([]int, len(s.windows))
	for i, days := range s.windows {
		data := looks.LookData{
			Look: looks.Look{Number: days, End: time.Unix(0, 0)}, Tau: 1, Visitors: s.visitors * int64(len(all)),
			Strata: []looks.StratumData{{Shares: shares, NonNegative: true}},
		}
		for _, of := range all {
			n := float64(s.visitors)
			mean := of.sum[i] / n
			data.Strata[0].Samples = append(data.Strata[0].Samples, stats.Mean{
				Visitors: s.visitors, Mean: mean, Variance: (of.squares[i] - n*mean*mean) / (n - 1), Nonzero: of.nonzero,
			})
		}
		for _, row := range looks.CompareCohort(p, shares, data) {
			if directions[i] == 0 {
				directions[i] = row.SignificantDirection()
			}
		}
	}
	return directions
}

// plan returns the plan of the campaign.
func (s *followedShop) plan() *plan.Plan {
	p := &plan.Plan{}
	p.Metric = query.ValuePerVisitor
	p.Rules = plan.Rules{Compare: true, Methodology: catalogue.Frequentist, SignificanceLevel: 95}
	for id := range s.treatments + 1 {
		p.Variations = append(p.Variations, plan.Variation{ID: int64(id), Control: id == 0, Share: 1})
	}
	readings := s.readings
	if readings == 0 {
		readings = len(s.windows)
	}
	p.Declared.FollowUp = make([]plan.FollowUp, readings)
	return p
}

// followUpScenarios are of later orders that are read in windows.
func followUpScenarios() []scenario {
	var all []scenario
	add := func(s followedShop, name, measure string, least, most float64, occurs func(directions []int) bool) {
		all = append(all, scenario{
			part:        partFollowUp,
			name:        fmt.Sprintf("%s, %d visitors, %d treatments, windows %v", name, s.visitors, s.treatments, s.windows),
			methodology: catalogue.Frequentist, measure: measure, least: least, most: most,
			occurs: func(random *rand.Rand) bool { return occurs(s.readAll(random)) },
		})
	}
	isAny := func(directions []int) bool {
		for _, d := range directions {
			if d != 0 {
				return true
			}
		}
		return false
	}
	isLess := func(directions []int) bool { return directions[len(directions)-1] < 0 }
	isMore := func(directions []int) bool { return directions[len(directions)-1] > 0 }
	year := []int{30, 90, 180, 365}
	same := followedShop{visitors: 20_000, treatments: 1, windows: year, variation: ofControl}
	const anyReading = "any reading"
	add(same, "no effect", anyReading, 0, decisionAlpha, isAny)
	one := same
	one.windows = []int{365}
	add(one, "no effect", anyReading, 0, decisionAlpha, isAny)
	three := same
	three.treatments = 3
	add(three, "no effect", anyReading, 0, decisionAlpha, isAny)
	few := same
	few.visitors = 2000
	add(few, "no effect", anyReading, 0, decisionAlpha, isAny)
	uncorrected := same
	uncorrected.readings = 1
	add(uncorrected, "no effect, each window at the whole error rate", anyReading, decisionAlpha, 1, isAny)

	forward := same
	forward.variation.forward = 0.5
	add(forward, "half of the later orders on the first day", "more within the last window", 0, decisionAlpha, isMore)
	offer := same
	offer.visitors = 100_000
	offer.variation.subscribers = 0.3
	add(offer, "30 instead of 25 % of buyers subscribe", "less within the last window", 0, 0.03, isLess)
	return all
}
