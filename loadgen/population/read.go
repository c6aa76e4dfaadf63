package population

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"lifthouse/schema/catalogue"

	"github.com/goccy/go-yaml"
)

// DefaultScenario returns a shop with two campaigns and a widget. The first
// campaign and the widget have effects, the second campaign has none.
func DefaultScenario() Scenario {
	one, two := int64(1), int64(2)
	half := func(visitors int, name string, effects ...Effect) Split {
		return Split{Visitors: visitors, ControlShare: 50, Variations: []Variation{{1, name, 100}}, Effects: effects}
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
					Visitors: 25_000, ControlShare: 34, Variations: []Variation{{1, "Green", 33}, {2, "Orange", 33}},
				}},
			},
			Widgets: []Widget{{ID: 21, Name: "Newsletter popup", Type: "popup", PrimaryGoalID: 4, Experiments: []Experiment{{
				ID: 1, Name: "Discount in the headline", PrimaryMetric: "conversionRate",
				Actions: Actions{Click: 0.2, Submit: 0.09, Completion: 0.08, Conversion: 0.07, Contact: 0.06},
				Split: Split{Visitors: 15_000, ControlShare: 50, Variations: []Variation{{2, "Discount", 100}}, Effects: []Effect{
					{Variation: &two, Event: "conversion", Rate: 1.25},
				}},
			}}}},
		}},
	}
}

var defaultTraffic = Traffic{Views: 3, Returning: 0.3, MultipleExposures: 0.01, SourceChanges: 0.3, Late: 0.01, Duplicates: 0.005}

// UnmarshalYAML decodes a goal. Omitted values have defaults that are typical
// of shops.
func (g *Goal) UnmarshalYAML(decode func(any) error) error {
	type fields Goal
	f := fields{Spread: 0.9, Margin: 0.25, Noise: 0.2}
	if err := decode(&f); err != nil {
		return err
	}
	*g = Goal(f)
	return nil
}

// UnmarshalYAML decodes a campaign. The default share of control is 50 %.
func (c *Campaign) UnmarshalYAML(decode func(any) error) error {
	type fields Campaign
	f := fields{Split: Split{ControlShare: 50}}
	if err := decode(&f); err != nil {
		return err
	}
	*c = Campaign(f)
	return nil
}

// UnmarshalYAML decodes an experiment. The default share of control is 50 %.
func (e *Experiment) UnmarshalYAML(decode func(any) error) error {
	type fields Experiment
	f := fields{Split: Split{ControlShare: 50}}
	if err := decode(&f); err != nil {
		return err
	}
	*e = Experiment(f)
	return nil
}

// maxScenarioBytes is the maximum size of a scenario file.
const maxScenarioBytes = 4 << 20

// ReadScenario reads and validates a scenario in YAML. Omitted values are those
// of DefaultScenario, except in lists. Unknown keys are errors. If the file has
// unknown keys and invalid values, the error lists both.
func ReadScenario(r io.Reader) (Scenario, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxScenarioBytes+1))
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	if len(text) > maxScenarioBytes {
		return Scenario{}, fmt.Errorf("read scenario: file is larger than %d MiB", maxScenarioBytes>>20)
	}
	s, err := decodeScenario(text, yaml.Strict())
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		lenient, lenientErr := decodeScenario(text)
		if lenientErr == nil {
			lenientErr = lenient.Validate()
		}
		return s, errors.Join(err, lenientErr)
	}
	if err != nil {
		return s, err
	}
	return s, s.Validate()
}

func decodeScenario(text []byte, options ...yaml.DecodeOption) (Scenario, error) {
	s := DefaultScenario()
	s.Websites = nil
	err := yaml.NewDecoder(bytes.NewReader(text), options...).Decode(&s)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("read scenario: %w", err)
	}
	if s.Websites == nil {
		s.Websites = DefaultScenario().Websites
	}
	return s, nil
}
