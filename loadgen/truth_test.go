package loadgen_test

import (
	"fmt"
	"math"
	"testing"

	"lifthouse/engine"
	"lifthouse/loadgen"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// mostZ is how many standard errors a report may lie from the truth. About 200
// figures are compared of 50,000 visitors, and 1,130 of a million. Bonferroni's
// bound of the chance that a right program has one beyond 4.5 is then
// 1,130 · 6.8e-6, less than 1 %; and the seed is fixed.
const mostZ = 4.5

// TestTruthAndReportsAgree plants effects, has a tenth of the events come late
// and a fifth come twice, and asks the engine. 1 million visitors with
// LIFTHOUSE_LONG, else 50,000.
func TestTruthAndReportsAgree(t *testing.T) {
	s := loadgen.DefaultScenario()
	s.SetVisitors(50_000)
	long := schematest.Long()
	if long {
		s.SetVisitors(1_000_000)
	}
	s.Traffic.Late, s.Traffic.Duplicates, s.Traffic.Crossovers = 0.1, 0.2, 0.05
	conn := schematest.Open(t)
	writer := ingest.NewWriter(conn)
	writer.SetExclusive()
	if err := writer.LoadIDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loadgen.Store(t.Context(), &s, writer, quiet); err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), s.Catalogue(), false); err != nil {
		t.Fatal(err)
	}
	j := judge{T: t, long: long, engine: engine.New(conn, c, engine.DefaultLimits)}
	for _, subject := range s.Truth().Subjects {
		j.subject(&subject)
	}
	t.Logf("%d figures, largest |z| %.2f at %s", j.figures, j.largest, j.at)
	if j.figures < 150 {
		t.Errorf("only %d figures were compared", j.figures)
	}
}

type judge struct {
	*testing.T
	long    bool // every goal is broken down
	engine  *engine.Engine
	figures int
	largest float64
	at      string
}

func (j *judge) report(r engine.Request) *engine.Results {
	j.Helper()
	r.AccountID = 1
	results, err := j.engine.Report(j.Context(), r)
	if err != nil {
		j.Fatal(err)
	}
	return results
}

func (j *judge) subject(truth *loadgen.SubjectTruth) {
	r := engine.Request{Operation: engine.CampaignResults, SubjectID: truth.CampaignID}
	if truth.WidgetID != 0 {
		r.Operation, r.SubjectID, r.ExperimentID = engine.ExperimentResults, truth.WidgetID, truth.ExperimentID
	}
	for _, outcome := range truth.Outcomes {
		name := fmt.Sprintf("campaign %d widget %d %s %d", truth.CampaignID, truth.WidgetID, outcome.Event, outcome.GoalID)
		r.GoalID = outcome.GoalID
		whole := j.report(r)
		counted := whole.Totals.Visitors + whole.Checks.MultipleExposures.Visitors
		if counted != int64(truth.Visitors) {
			j.Errorf("%s: %d visitors with crossovers, want %d", name, counted, truth.Visitors)
		}
		if share := float64(whole.Checks.MultipleExposures.Visitors) / float64(counted); math.Abs(share-0.05) > 0.01 {
			j.Errorf("%s: %.3f of the visitors are crossovers, want 0.05", name, share)
		}
		j.cell(name, &outcome, &outcome.Segments[0], whole.Variations)
		if truth.WidgetID != 0 || (!j.long && outcome.GoalID != truth.PrimaryGoalID) {
			continue // a widget's reports are not broken down
		}
		for _, dimension := range []engine.Dimension{engine.ByDevice, engine.ByCountry, engine.ByChannel} {
			r := r
			r.Dimension = dimension
			j.breakdown(name, string(dimension), &outcome, j.report(r))
		}
	}
}

func (j *judge) breakdown(name, dimension string, outcome *loadgen.OutcomeTruth, results *engine.Results) {
	cells := map[string][]engine.VariationResults{}
	for _, cell := range results.Breakdown {
		cells[cell.Value] = cell.Variations
	}
	for _, segment := range outcome.Segments {
		value, has := segment.When[dimension]
		if !has || len(segment.When) != 1 {
			continue
		}
		if value == "" {
			value = "(none)"
		}
		j.cell(name+" "+dimension+"="+value, outcome, &segment, cells[value])
	}
}

// fewBuyers is below how many converted visitors a mean of log-normal values,
// or a rate, is too far from normal to be judged by its standard error.
const fewBuyers = 100

func (j *judge) cell(name string, outcome *loadgen.OutcomeTruth, truth *loadgen.SegmentTruth, variations []engine.VariationResults) {
	if len(variations) != len(truth.Variations) {
		j.Errorf("%s: %d variations, want %d", name, len(variations), len(truth.Variations))
		return
	}
	for i, want := range truth.Variations {
		v := &variations[i]
		at := fmt.Sprintf("%s, variation %d", name, v.ID)
		if v.ID != want.ID {
			j.Errorf("%s: want variation %d", at, want.ID)
		}
		switch outcome.Event {
		case "conversion":
			j.figure(at+" conversion rate", v.Metrics.ConversionRate, want.Rate)
		case "completion":
			j.figure(at+" completion rate", v.Metrics.CompletionRate, want.Rate)
		case "goal":
			if v.ConvertedVisitors < fewBuyers {
				continue
			}
			j.figure(at+" rate", v.Metrics.GoalConversionRate, want.Rate)
			j.figure(at+" goals", v.Metrics.GoalsPerVisitor, want.EventsPerVisitor)
			j.figure(at+" value", v.Metrics.ValuePerVisitor, want.ValuePerVisitor)
			j.figure(at+" profit", v.Metrics.ProfitPerVisitor, want.ProfitPerVisitor)
			j.figure(at+" extra value", v.Metrics.ExtraValuePerVisitor, want.ExtraValuePerVisitor)
		default:
		}
	}
}

func (j *judge) figure(at string, have engine.Estimate, want float64) {
	if want == 0 && *have.Value == 0 {
		return // a goal without value
	}
	j.figures++
	z := math.Abs(*have.Value-want) / *have.StandardError
	if z > j.largest {
		j.largest, j.at = z, at
	}
	if !(z < mostZ) {
		j.Errorf("%s: reported %v ± %v, planted %v: %.1f standard errors apart", at, *have.Value, *have.StandardError, want, z)
	}
}

// TestTruthOnPaper holds the closed form against figures worked out by hand.
func TestTruthOnPaper(t *testing.T) {
	one := int64(1)
	s := loadgen.DefaultScenario()
	s.Websites = []loadgen.Website{{
		ID: 1, Domain: "a.example.com", Goals: []loadgen.Goal{{ID: 1, Name: "P", Rate: 0.1, Again: 0.2, Value: 40, Margin: 0.5, Extra: 0.1}},
		Campaigns: []loadgen.Campaign{{ID: 1, Name: "C", PrimaryGoalID: 1, Split: loadgen.Split{
			Visitors: 10, ControlShare: 60, Variations: []loadgen.SplitPart{{ID: 1, Name: "V", Share: 7}},
			Effects: []loadgen.Effect{
				{Variation: &one, Rate: 1.2},
				{When: map[string]string{"visitorType": "new"}, Rate: 0.5, Value: 2},
			},
		}}},
	}}
	segments := s.Truth().Subjects[0].Outcomes[0].Segments
	all := segments[0].Variations
	// 66 % are new: a rate of 0.66 · 0.05 + 0.34 · 0.1; 1.25 orders of each buyer, of 80 or of 40.
	near(t, "control's share", all[0].Share, 0.6)
	near(t, "control's rate", all[0].Rate, 0.067)
	near(t, "control's events", all[0].EventsPerVisitor, 0.067*1.25)
	near(t, "control's value", all[0].ValuePerVisitor, 1.25*(0.033*80+0.034*40))
	near(t, "control's profit", all[0].ProfitPerVisitor, 0.5*1.25*(0.033*80+0.034*40))
	near(t, "control's extra value", all[0].ExtraValuePerVisitor, 0.1*1.25*(0.033*80+0.034*40))
	near(t, "the variation's rate", all[1].Rate, 1.2*0.067)
	near(t, "the variation's lift", *all[1].RateLift, 0.2)
	near(t, "the variation's lift of value", *all[1].ValueLift, 0.2)
	if all[0].RateLift != nil {
		t.Error("control has a lift")
	}
	for _, segment := range segments {
		if segment.When["visitorType"] == "new" {
			near(t, "share of the new", segment.Share, 0.66)
			near(t, "rate of the new", segment.Variations[0].Rate, 0.05)
		}
	}
}

func near(t *testing.T, what string, have, want float64) {
	t.Helper()
	if math.Abs(have-want) > 1e-9 {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}
