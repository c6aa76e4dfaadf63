package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"lifthouse/schema/catalogue"

	"github.com/goccy/go-yaml"
)

// Scenario is a population with all that it sees and does. The same scenario
// gives the same events, byte for byte.
type Scenario struct {
	Seed     uint64         `yaml:"seed"`
	Start    catalogue.Date `yaml:"start"` // of the first day on which visitors come first
	Days     int            `yaml:"days"`  // on which visitors come first
	Account  int64          `yaml:"account"`
	Websites []Website      `yaml:"websites"`
	Traffic  Traffic        `yaml:"traffic"`

	standard bool // visitors behave as those of the standard data set
}

// Website is what visitors may reach and see on one website.
type Website struct {
	ID        int64      `yaml:"id"`
	Domain    string     `yaml:"domain"`
	Goals     []Goal     `yaml:"goals"`
	Campaigns []Campaign `yaml:"campaigns"`
	Widgets   []Widget   `yaml:"widgets"`
}

// Goal is something a share of the visitors reach, unless effects say that it
// is more or fewer of them.
type Goal struct {
	ID     int64   `yaml:"id"`
	Name   string  `yaml:"name"`
	Rate   float64 `yaml:"rate"`   // share of the visitors
	Again  float64 `yaml:"again"`  // chance of one more, after each
	Value  float64 `yaml:"value"`  // mean, in the sender's unit; 0: it has none
	Spread float64 `yaml:"spread"` // sigma of the log-normal values
	Margin float64 `yaml:"margin"` // mean profit for each unit of value
	Noise  float64 `yaml:"noise"`  // standard deviation of the margin: profit may fall below zero
	Extra  float64 `yaml:"extra"`  // mean extra value for each unit of value
}

// Campaign is an experiment whose visitors are its own.
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

// Experiment compares variations of a widget. Its visitors also do what can be
// done with widgets.
type Experiment struct {
	ID            int64   `yaml:"id"`
	Name          string  `yaml:"name"`
	PrimaryMetric string  `yaml:"primaryMetric"`
	Actions       Actions `yaml:"actions"`
	Split         `yaml:",inline"`
}

// Actions are the shares of an experiment's visitors who do something with the
// widget.
type Actions struct {
	Click      float64 `yaml:"click"`
	Submit     float64 `yaml:"submit"`
	Completion float64 `yaml:"completion"`
	Conversion float64 `yaml:"conversion"`
	Contact    float64 `yaml:"contact"`
}

// Split is how visitors are divided, and what that does to them.
type Split struct {
	Visitors     int         `yaml:"visitors"`
	ControlShare int         `yaml:"controlShare"` // per cent
	Variations   []SplitPart `yaml:"variations"`
	Effects      []Effect    `yaml:"effects"`
}

// SplitPart is a variation; control is not declared.
type SplitPart struct {
	ID    int64  `yaml:"id"`
	Name  string `yaml:"name"`
	Share int    `yaml:"share"` // weight by which the variations divide what control leaves
}

// Effect multiplies rates and values of those for whom all its conditions
// hold. Several effects multiply.
type Effect struct {
	Variation *int64            `yaml:"variation"` // nil: every one, control too
	Goal      int64             `yaml:"goal"`      // 0: every goal, unless Event says which action
	Event     string            `yaml:"event"`     // an action with a widget
	When      map[string]string `yaml:"when"`      // attributes of the first view
	Rate      float64           `yaml:"rate"`      // 0: as it is
	Value     float64           `yaml:"value"`     // 0: as it is
}

// Traffic is how visitors come, and how their events arrive.
type Traffic struct {
	Views         float64 `yaml:"views"`         // mean of a visit, at least 1
	Returning     float64 `yaml:"returning"`     // chance of one more visit on a later day, after each
	Crossovers    float64 `yaml:"crossovers"`    // share of visitors who see another variation too
	SourceChanges float64 `yaml:"sourceChanges"` // share of later visits that come from elsewhere
	Late          float64 `yaml:"late"`          // share of events that arrive after those of thousands of other visitors
	Duplicates    float64 `yaml:"duplicates"`    // share of events that arrive twice
}

// DefaultScenario is a shop with an experiment that has a winner, one without
// any effect, and a widget.
func DefaultScenario() Scenario {
	one, two := int64(1), int64(2)
	half := func(visitors int, name string, effects ...Effect) Split {
		return Split{Visitors: visitors, ControlShare: 50, Variations: []SplitPart{{1, name, 100}}, Effects: effects}
	}
	return Scenario{
		Seed: 1, Start: catalogue.Date{Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}, Days: 28, Account: 1, Traffic: defaultTraffic,
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
					Visitors: 25_000, ControlShare: 34, Variations: []SplitPart{{1, "Green", 33}, {2, "Orange", 33}},
				}},
			},
			Widgets: []Widget{{ID: 21, Name: "Newsletter popup", Type: "popup", PrimaryGoalID: 4, Experiments: []Experiment{{
				ID: 1, Name: "Discount in the headline", PrimaryMetric: "conversionRate",
				Actions: Actions{Click: 0.2, Submit: 0.09, Completion: 0.08, Conversion: 0.07, Contact: 0.06},
				Split: Split{Visitors: 15_000, ControlShare: 50, Variations: []SplitPart{{2, "Discount", 100}}, Effects: []Effect{
					{Variation: &two, Event: "conversion", Rate: 1.25},
				}},
			}}}},
		}},
	}
}

var defaultTraffic = Traffic{Views: 3, Returning: 0.3, Crossovers: 0.01, SourceChanges: 0.3, Late: 0.01, Duplicates: 0.005}

// UnmarshalYAML fills in what is usual in shops.
func (g *Goal) UnmarshalYAML(decode func(any) error) error {
	type fields Goal
	f := fields{Spread: 0.9, Margin: 0.25, Noise: 0.2}
	if err := decode(&f); err != nil {
		return err
	}
	*g = Goal(f)
	return nil
}

// UnmarshalYAML gives control one half.
func (c *Campaign) UnmarshalYAML(decode func(any) error) error {
	type fields Campaign
	f := fields{Split: Split{ControlShare: 50}}
	if err := decode(&f); err != nil {
		return err
	}
	*c = Campaign(f)
	return nil
}

// UnmarshalYAML gives control one half.
func (e *Experiment) UnmarshalYAML(decode func(any) error) error {
	type fields Experiment
	f := fields{Split: Split{ControlShare: 50}}
	if err := decode(&f); err != nil {
		return err
	}
	*e = Experiment(f)
	return nil
}

// maxScenario bounds a scenario's file.
const maxScenario = 4 << 20

// ReadScenario reads a scenario's YAML. What the file leaves out is as in
// DefaultScenario, but for what stands in lists. An unknown key, a value of the
// wrong type and every fault in what the values say are refused.
func ReadScenario(r io.Reader) (Scenario, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxScenario+1))
	if err != nil {
		return Scenario{}, fmt.Errorf("read population: %w", err)
	}
	if len(text) > maxScenario {
		return Scenario{}, fmt.Errorf("read population: larger than %d MiB", maxScenario>>20)
	}
	s, err := decodeScenario(text, yaml.Strict())
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) { // which is told together with what else is wrong
		loose, looseErr := decodeScenario(text)
		if looseErr == nil {
			looseErr = loose.Validate()
		}
		return s, errors.Join(err, looseErr)
	}
	if err != nil {
		return s, err
	}
	return s, s.Validate()
}

func decodeScenario(text []byte, how ...yaml.DecodeOption) (Scenario, error) {
	s := DefaultScenario()
	s.Websites = nil
	err := yaml.NewDecoder(bytes.NewReader(text), how...).Decode(&s)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("read population: %w", err)
	}
	if s.Websites == nil {
		s.Websites = DefaultScenario().Websites
	}
	return s, nil
}

// splits calls do for every split of the scenario.
func (s *Scenario) splits(do func(*Split)) {
	for w := range s.Websites {
		site := &s.Websites[w]
		for c := range site.Campaigns {
			do(&site.Campaigns[c].Split)
		}
		for i := range site.Widgets {
			for e := range site.Widgets[i].Experiments {
				do(&site.Widgets[i].Experiments[e].Split)
			}
		}
	}
}

// Visitors is how many there are in all.
func (s *Scenario) Visitors() int {
	total := 0
	s.splits(func(p *Split) { total += p.Visitors })
	return total
}

// SetVisitors makes them so many in all, divided as they were.
func (s *Scenario) SetVisitors(visitors int) {
	was, before, given := s.Visitors(), 0, 0
	s.splits(func(p *Split) {
		before += p.Visitors
		upTo := int(math.Round(float64(visitors) * float64(before) / float64(max(was, 1))))
		p.Visitors = upTo - given
		given = upTo
	})
}
