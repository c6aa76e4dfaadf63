// Package population generates synthetic visitors and their events, with planted
// effects whose size is known exactly.
//
// A Scenario describes websites, goals, campaigns, widgets and their effects.
// GenerateEvents produces its events. Scenario.ComputeTruth computes the rates,
// means and lifts that a correct report estimates. Scenario.CatalogueFile returns
// the matching catalogue. SimpleCampaign is a smaller generator for tests and demos.
package population

import (
	"math"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Account is the id of the account of all scenarios.
const Account = 1

// Scenario describes the websites, campaigns and widgets to generate events
// for. Equal scenarios generate the same events, byte for byte.
type Scenario struct {
	Seed     uint64
	Start    catalogue.Date // first day with first visits
	Days     int            // number of days with first visits
	Websites []Website
	Traffic  Traffic
	Lines    bool // events have own attributes, and orders properties and lines

	standard bool // generate visitors with standardVisits
}

// Website has goals, campaigns and widgets.
type Website struct {
	ID        int64
	Domain    string
	Goals     []Goal
	Campaigns []Campaign
	Widgets   []Widget
}

// Goal is a goal that a share of the visitors reaches. Effects change the rate
// and the value.
type Goal struct {
	ID     int64
	Name   string
	Rate   float64 // share of visitors who reach the goal
	Again  float64 // probability of another goal event after each goal event
	Value  float64 // mean value, in the sender's currency unit; 0: no value
	Spread float64 // sigma of the log-normal values
	Margin float64 // mean profit per unit of value
	Noise  float64 // standard deviation of the margin; profits may be negative
	Extra  float64 // mean extra value per unit of value
}

// Campaign is an experiment with its own visitors.
type Campaign struct {
	ID            int64
	Name          string
	PrimaryGoalID int64
	Ended         bool // after the last day with first visits
	Split
}

// Widget is an on-site element with an experiment. Its visitors reach goals and act on the widget.
type Widget struct {
	ID            int64
	Name          string
	PrimaryGoalID int64
	Experiment    int64 // id
	Title         string
	PrimaryMetric string
	actions       []action
	Split
}

// Split describes how visitors are allocated to variations and the effects of
// the variations.
type Split struct {
	Visitors     int
	ControlShare int // per cent
	Variations   []Variation
	Effects      []Effect
}

// Variation is a treatment. Control has no Variation.
type Variation struct {
	ID    int64
	Name  string
	Share int // weight among the visitors who are not in control
}

// Effect multiplies rates and values of the visitors who meet all its
// conditions. If several effects apply, their factors are multiplied.
type Effect struct {
	Variation *int64            // nil: all variations and control
	Goal      int64             // 0: all goals, unless Event is set
	Event     schema.Kind       // action on the widget
	When      map[string]string // attributes of the first view
	Rate      float64           // factor; 0: unchanged
	Value     float64           // factor; 0: unchanged
}

// action is an action on a widget with the share of visitors who perform it.
type action struct {
	kind schema.Kind
	rate float64
}

// Traffic describes visits and how their events arrive.
type Traffic struct {
	Views             float64 // mean number of views per visit, at least 1
	Returning         float64 // probability of another visit on a later day after each visit
	MultipleExposures float64 // share of visitors who also see another variation
	SourceChanges     float64 // share of later visits from another channel
	Late              float64 // share of events sent after the events of thousands of other visitors
	Duplicates        float64 // share of events sent twice
}

// DefaultScenario returns a shop with two campaigns and a widget. The first
// campaign and the widget have effects, the second campaign has none.
func DefaultScenario() Scenario {
	one := int64(1)
	two := int64(2)
	half := func(visitors int, name string, effects ...Effect) Split {
		return Split{Visitors: visitors, ControlShare: 50, Variations: []Variation{{1, name, 100}}, Effects: effects}
	}
	return Scenario{
		Seed: 1, Start: catalogue.Date{Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}, Days: 28,
		Traffic: Traffic{Views: 3, Returning: 0.3, MultipleExposures: 0.01, SourceChanges: 0.3, Late: 0.01, Duplicates: 0.005},
		Websites: []Website{{
			ID: 1, Domain: "shop.example.com",
			Goals: []Goal{
				{ID: 3, Name: "Purchase", Rate: 0.06, Again: 0.15, Value: 54, Spread: 0.9, Margin: 0.25, Noise: 0.2, Extra: 0.08},
				{ID: 4, Name: "Newsletter", Rate: 0.11},
				{ID: 5, Name: "Add to cart", Rate: 0.19, Again: 0.4},
			},
			Campaigns: []Campaign{
				{ID: 12, Name: "Free delivery banner", PrimaryGoalID: 3, Split: half(60_000, "Banner",
					Effect{Goal: 3, When: map[string]string{"device": "mobile"}, Rate: 0.8},
					Effect{Variation: &one, Goal: 3, Rate: 1.1},
					Effect{Variation: &one, Goal: 3, When: map[string]string{"device": "mobile"}, Rate: 1.3},
					Effect{Variation: &one, Goal: 3, When: map[string]string{"country": "DE"}, Value: 1.2})},
				{ID: 13, Name: "Colour of the buy button", PrimaryGoalID: 3, Split: Split{
					Visitors: 25_000, ControlShare: 34, Variations: []Variation{{1, "Green", 33}, {2, "Orange", 33}},
				}},
			},
			Widgets: []Widget{{
				ID: 21, Name: "Newsletter popup", PrimaryGoalID: 4, Experiment: 1, Title: "Discount in the headline", PrimaryMetric: "conversionRate",
				actions: []action{
					{schema.KindClick, 0.2}, {schema.KindSubmit, 0.09}, {schema.KindCompletion, 0.08}, {schema.KindConversion, 0.07}, {schema.KindContact, 0.06},
				},
				Split: Split{Visitors: 15_000, ControlShare: 50, Variations: []Variation{{2, "Discount", 100}}, Effects: []Effect{
					{Variation: &two, Event: schema.KindConversion, Rate: 1.25},
				}},
			}},
		}},
	}
}

// eachSplit calls f for each split of the scenario.
func (s *Scenario) eachSplit(f func(*Split)) {
	for w := range s.Websites {
		site := &s.Websites[w]
		for c := range site.Campaigns {
			f(&site.Campaigns[c].Split)
		}
		for i := range site.Widgets {
			f(&site.Widgets[i].Split)
		}
	}
}

// TotalVisitors returns the total number of visitors.
func (s *Scenario) TotalVisitors() int {
	total := 0
	s.eachSplit(func(p *Split) { total += p.Visitors })
	return total
}

// SetVisitors scales the numbers of visitors of all campaigns and experiments
// so that their sum is visitors.
func (s *Scenario) SetVisitors(visitors int) {
	oldTotal := s.TotalVisitors()
	oldSum := 0
	newSum := 0
	s.eachSplit(func(p *Split) {
		oldSum += p.Visitors
		sum := int(math.Round(float64(visitors) * float64(oldSum) / float64(max(oldTotal, 1))))
		p.Visitors = sum - newSum
		newSum = sum
	})
}

// sharedVariation is control or a variation with its share of all visitors.
type sharedVariation struct {
	id    int64
	share float64
}

// sharedVariations returns control, with id 0, and the variations.
func (s *Split) sharedVariations() weightedTable[sharedVariation] {
	weights := 0
	for _, v := range s.Variations {
		weights += v.Share
	}
	rest := float64(100-s.ControlShare) / 100
	all := []sharedVariation{{0, float64(s.ControlShare) / 100}}
	for _, v := range s.Variations {
		all = append(all, sharedVariation{v.ID, rest * float64(v.Share) / float64(max(weights, 1))})
	}
	return newWeightedTable(all, func(v sharedVariation) float64 { return v.share })
}

// CatalogueFile returns the catalogue of the scenario's websites, goals, campaigns
// and widgets, in the format that lifthouse apply reads.
func (s *Scenario) CatalogueFile() catalogue.File {
	account := catalogue.Account{ID: Account, Name: "Made by loadgen"}
	for i := range s.Websites {
		account.Websites = append(account.Websites, s.catalogueWebsite(&s.Websites[i]))
	}
	return catalogue.File{Accounts: []catalogue.Account{account}}
}

func (s *Scenario) catalogueWebsite(from *Website) catalogue.Website {
	site := catalogue.Website{ID: from.ID, Domain: from.Domain}
	initial := catalogue.Initial{Active: true, CreateDate: &s.Start, StartDate: &s.Start}
	for i, g := range from.Goals {
		site.Goals = append(site.Goals, catalogue.Goal{ID: g.ID, WebsiteID: site.ID, Name: g.Name, Default: i == 0})
	}
	for _, c := range from.Campaigns {
		campaign := catalogue.Campaign{
			ID: c.ID, WebsiteID: site.ID, Name: c.Name, Type: "experiment", ControlShare: c.ControlShare, TrafficAllocation: new(100), TargetMode: "live",
			PrimaryGoalID: c.PrimaryGoalID, SignificanceLevel: 95, Methodology: catalogue.Frequentist, Power: 80, MDE: 20,
			Initial: initial,
		}
		if c.Ended {
			campaign.Active = false
			campaign.EndDate = &catalogue.Date{Time: s.Start.AddDate(0, 0, s.Days)}
		}
		for i, v := range c.Variations {
			campaign.Variations = append(campaign.Variations, catalogue.Variation{ID: v.ID, Name: v.Name, Share: v.Share, Order: i + 1})
		}
		site.Campaigns = append(site.Campaigns, campaign)
	}
	for _, w := range from.Widgets {
		experiment := catalogue.Experiment{
			ID: w.Experiment, Name: w.Title, PrimaryMetric: w.PrimaryMetric, ControlShare: w.ControlShare, Active: true, CreateDate: &s.Start, StartDate: &s.Start,
		}
		for _, v := range w.Variations {
			experiment.Variations = append(experiment.Variations, catalogue.WidgetVariation{ID: v.ID, Name: v.Name, Share: v.Share})
		}
		site.Widgets = append(site.Widgets, catalogue.Widget{
			ID: w.ID, WebsiteID: site.ID, Name: w.Name, Type: "popup", PrimaryGoalID: w.PrimaryGoalID, Initial: initial, Experiments: []catalogue.Experiment{experiment},
		})
	}
	return site
}
