package population

import (
	"math"

	"lifthouse/schema/catalogue"
)

// Scenario describes the websites, campaigns and widgets to generate events
// for. Equal scenarios generate the same events, byte for byte.
type Scenario struct {
	Seed     uint64         `yaml:"seed"`
	Start    catalogue.Date `yaml:"start"` // first day with first visits
	Days     int            `yaml:"days"`  // number of days with first visits
	Account  int64          `yaml:"account"`
	Websites []Website      `yaml:"websites"`
	Traffic  Traffic        `yaml:"traffic"`

	standard bool // generate visitors with standardVisits
}

// Website has goals, campaigns and widgets.
type Website struct {
	ID        int64      `yaml:"id"`
	Domain    string     `yaml:"domain"`
	Goals     []Goal     `yaml:"goals"`
	Campaigns []Campaign `yaml:"campaigns"`
	Widgets   []Widget   `yaml:"widgets"`
}

// Goal is a goal that a share of the visitors reaches. Effects change the rate
// and the value.
type Goal struct {
	ID     int64   `yaml:"id"`
	Name   string  `yaml:"name"`
	Rate   float64 `yaml:"rate"`   // share of visitors who reach the goal
	Again  float64 `yaml:"again"`  // probability of another goal event after each goal event
	Value  float64 `yaml:"value"`  // mean value, in the sender's currency unit; 0: no value
	Spread float64 `yaml:"spread"` // sigma of the log-normal values
	Margin float64 `yaml:"margin"` // mean profit per unit of value
	Noise  float64 `yaml:"noise"`  // standard deviation of the margin; profits may be negative
	Extra  float64 `yaml:"extra"`  // mean extra value per unit of value
}

// Campaign is an experiment with its own visitors.
type Campaign struct {
	ID            int64  `yaml:"id"`
	Name          string `yaml:"name"`
	PrimaryGoalID int64  `yaml:"primaryGoalId"`
	Methodology   string `yaml:"methodology"`
	Level         int    `yaml:"significanceLevel"`
	Split         `yaml:",inline"`
}

// Widget is an on-site element with experiments.
type Widget struct {
	ID            int64        `yaml:"id"`
	Name          string       `yaml:"name"`
	Type          string       `yaml:"type"`
	PrimaryGoalID int64        `yaml:"primaryGoalId"`
	Experiments   []Experiment `yaml:"experiments"`
}

// Experiment compares variations of a widget. Its visitors reach goals and act
// on the widget.
type Experiment struct {
	ID            int64   `yaml:"id"`
	Name          string  `yaml:"name"`
	PrimaryMetric string  `yaml:"primaryMetric"`
	Actions       Actions `yaml:"actions"`
	Split         `yaml:",inline"`
}

// Actions has, for each action on the widget, the share of visitors who perform
// the action.
type Actions struct {
	Click      float64 `yaml:"click"`
	Submit     float64 `yaml:"submit"`
	Completion float64 `yaml:"completion"`
	Conversion float64 `yaml:"conversion"`
	Contact    float64 `yaml:"contact"`
}

// Split describes how visitors are allocated to variations and the effects of
// the variations.
type Split struct {
	Visitors     int         `yaml:"visitors"`
	ControlShare int         `yaml:"controlShare"` // per cent
	Variations   []Variation `yaml:"variations"`
	Effects      []Effect    `yaml:"effects"`
}

// Variation is a treatment. Control has no Variation.
type Variation struct {
	ID    int64  `yaml:"id"`
	Name  string `yaml:"name"`
	Share int    `yaml:"share"` // weight among the visitors who are not in control
}

// Effect multiplies rates and values of the visitors who meet all its
// conditions. If several effects apply, their factors are multiplied.
type Effect struct {
	Variation *int64            `yaml:"variation"` // nil: all variations and control
	Goal      int64             `yaml:"goal"`      // 0: all goals, unless Event is set
	Event     string            `yaml:"event"`     // action on the widget
	When      map[string]string `yaml:"when"`      // attributes of the first view
	Rate      float64           `yaml:"rate"`      // factor; 0: unchanged
	Value     float64           `yaml:"value"`     // factor; 0: unchanged
}

// Traffic describes visits and how their events arrive.
type Traffic struct {
	Views             float64 `yaml:"views"`             // mean number of views per visit, at least 1
	Returning         float64 `yaml:"returning"`         // probability of another visit on a later day after each visit
	MultipleExposures float64 `yaml:"multipleExposures"` // share of visitors who also see another variation
	SourceChanges     float64 `yaml:"sourceChanges"`     // share of later visits from another channel
	Late              float64 `yaml:"late"`              // share of events sent after the events of thousands of other visitors
	Duplicates        float64 `yaml:"duplicates"`        // share of events sent twice
}

// eachSplit calls f for each split of the scenario.
func (s *Scenario) eachSplit(f func(*Split)) {
	for w := range s.Websites {
		site := &s.Websites[w]
		for c := range site.Campaigns {
			f(&site.Campaigns[c].Split)
		}
		for i := range site.Widgets {
			for e := range site.Widgets[i].Experiments {
				f(&site.Widgets[i].Experiments[e].Split)
			}
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
	oldTotal, oldSum, newSum := s.TotalVisitors(), 0, 0
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
