package population_test

import (
	"fmt"
	"math"
	"testing"

	"lifthouse/engine"
	"lifthouse/engine/enginetest"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/loadgen/population"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// maxZ is the largest allowed distance between a reported figure and the truth, in standard errors. With 50,000
// visitors about 200 figures are compared, and with 1 million visitors 1,130 figures. By Bonferroni's inequality a
// correct program exceeds 4.5 with a probability of at most 1,130 · 6.8e-6, which is less than 1 %. The seed is fixed.
const maxZ = 4.5

// TestTruthAndReportsAgree compares the engine's reports with the truth. 10 % of the events are late and 20 % are
// duplicated. There are 1 million visitors with LIFTHOUSE_LONG and 50,000 otherwise.
func TestTruthAndReportsAgree(t *testing.T) {
	tier.OnlyLong(t)
	s := population.DefaultScenario()
	s.SetVisitors(50_000)
	long := tier.IsLong()
	if long {
		s.SetVisitors(1_000_000)
	}
	s.Traffic.Late, s.Traffic.Duplicates, s.Traffic.MultipleExposures = 0.1, 0.2, 0.05
	conn := schematest.OpenMigrated(t)
	live := must.Get(catalogue.Open(t.Context(), conn))(t)
	must.Get(live.ApplyFile(t.Context(), s.CatalogueFile(), false))(t)
	c := checker{T: t, long: long}
	var writer *ingest.Writer
	c.engine, writer = enginetest.Open(t, conn, live)
	must.Get(population.InsertScenario(t.Context(), &s, writer, noReport))(t)
	for _, subject := range s.ComputeTruth().Subjects {
		c.subject(&subject)
	}
	t.Logf("%d figures, largest |z| %.2f at %s", c.figures, c.largest, c.at)
	check.That(t, c.figures >= 150, "%d figures compared, want at least 150", c.figures)
}

// checker compares reports with the truth.
type checker struct {
	*testing.T
	long    bool // check the breakdowns of all goals, not only of the primary goal
	engine  *engine.Engine
	figures int
	largest float64
	at      string
}

func (c *checker) report(r query.Request) *result.Report {
	c.Helper()
	r.AccountID = 1
	plan := must.Get(c.engine.PlanReport(r))(c)
	return must.Get(c.engine.ComputeReport(c.Context(), plan))(c)
}

func (c *checker) subject(truth *population.SubjectTruth) {
	r := query.Request{Operation: query.CampaignResults, SubjectID: truth.CampaignID}
	if truth.WidgetID != 0 {
		r.Operation, r.SubjectID, r.ExperimentID = query.ExperimentResults, truth.WidgetID, truth.ExperimentID
	}
	for _, outcome := range truth.Outcomes {
		name := fmt.Sprintf("campaign %d widget %d %s %d", truth.CampaignID, truth.WidgetID, outcome.Event,
			outcome.GoalID)
		r.GoalID = outcome.GoalID
		whole := c.report(r)
		counted := whole.Totals.Visitors + whole.Checks.MultipleExposures.Visitors
		check.That(c, counted == int64(truth.Visitors), "%s: %d visitors including multiple exposures, want %d", name,
			counted, truth.Visitors)
		share := float64(whole.Checks.MultipleExposures.Visitors) / float64(counted)
		check.That(c, math.Abs(share-0.05) <= 0.01, "%s: %.3f of the visitors have multiple exposures, want 0.05", name,
			share)
		c.cell(name, &outcome, &outcome.Segments[0], whole.Variations)
		if truth.WidgetID != 0 || (!c.long && outcome.GoalID != truth.PrimaryGoalID) {
			continue // reports of widgets have no breakdown
		}
		for _, dimension := range []query.Dimension{query.ByDevice, query.ByCountry, query.ByChannel} {
			r := r
			r.Dimension = dimension
			c.breakdown(name, string(dimension), &outcome, c.report(r))
		}
	}
}

func (c *checker) breakdown(name, dimension string, outcome *population.OutcomeTruth, results *result.Report) {
	cells := map[string][]result.VariationResults{}
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
		c.cell(name+" "+dimension+"="+value, outcome, &segment, cells[value])
	}
}

// minConverted is the minimum number of converted visitors for a comparison. With fewer visitors, the distribution of a
// rate or of a mean of log-normal values is not close enough to normal.
const minConverted = 100

func (c *checker) cell(name string, outcome *population.OutcomeTruth, truth *population.SegmentTruth,
	variations []result.VariationResults,
) {
	if len(variations) != len(truth.Variations) {
		c.Errorf("%s: %d variations, want %d", name, len(variations), len(truth.Variations))
		return
	}
	for i, want := range truth.Variations {
		v := &variations[i]
		at := fmt.Sprintf("%s, variation %d", name, v.ID)
		check.That(c, v.ID == want.ID, "%s: want variation %d", at, want.ID)
		switch outcome.Event {
		case "conversion":
			c.figure(at+" conversion rate", v.Metrics.ConversionRate, want.Rate)
		case "completion":
			c.figure(at+" completion rate", v.Metrics.CompletionRate, want.Rate)
		case "goal":
			if v.ConvertedVisitors < minConverted {
				continue
			}
			c.figure(at+" rate", v.Metrics.GoalConversionRate, want.Rate)
			c.figure(at+" goals", v.Metrics.GoalsPerVisitor, want.EventsPerVisitor)
			c.figure(at+" value", v.Metrics.ValuePerVisitor, want.ValuePerVisitor)
			c.figure(at+" profit", v.Metrics.ProfitPerVisitor, want.ProfitPerVisitor)
			c.figure(at+" extra value", v.Metrics.ExtraValuePerVisitor, want.ExtraValuePerVisitor)
		default:
		}
	}
}

func (c *checker) figure(at string, have result.Estimate, want float64) {
	if want == 0 && *have.Value == 0 {
		return // the goal has no value
	}
	c.figures++
	z := math.Abs(*have.Value-want) / *have.StandardError
	if z > c.largest {
		c.largest, c.at = z, at
	}
	if !(z < maxZ) {
		c.Errorf("%s: reported %v ± %v, want %v: %.1f standard errors apart", at, *have.Value, *have.StandardError,
			want, z)
	}
}

// TestTruthOnPaper compares the closed form with figures computed by hand.
func TestTruthOnPaper(t *testing.T) {
	one := int64(1)
	s := population.DefaultScenario()
	s.Websites = []population.Website{{
		ID: 1, Domain: "a.example.com",
		Goals: []population.Goal{{ID: 1, Name: "P", Rate: 0.1, Again: 0.2, Value: 40, Margin: 0.5, Extra: 0.1}},
		Campaigns: []population.Campaign{{ID: 1, Name: "C", PrimaryGoalID: 1, Split: population.Split{
			Visitors: 10, ControlShare: 60, Variations: []population.Variation{{ID: 1, Name: "V", Share: 7}},
			Effects: []population.Effect{
				{Variation: &one, Rate: 1.2},
				{When: map[string]string{"visitorType": "new"}, Rate: 0.5, Value: 2},
			},
		}}},
	}}
	segments := s.ComputeTruth().Subjects[0].Outcomes[0].Segments
	all := segments[0].Variations
	// 66 % of the visitors are new, so the rate is 0.66 · 0.05 + 0.34 · 0.1. Each buyer has 1.25 orders, with a mean value of
	// 80 for new visitors and of 40 for returning visitors.
	near(t, "control's share", all[0].Share, 0.6)
	near(t, "control's rate", all[0].Rate, 0.067)
	near(t, "control's events", all[0].EventsPerVisitor, 0.067*1.25)
	near(t, "control's value", all[0].ValuePerVisitor, 1.25*(0.033*80+0.034*40))
	near(t, "control's profit", all[0].ProfitPerVisitor, 0.5*1.25*(0.033*80+0.034*40))
	near(t, "control's extra value", all[0].ExtraValuePerVisitor, 0.1*1.25*(0.033*80+0.034*40))
	near(t, "the variation's rate", all[1].Rate, 1.2*0.067)
	near(t, "the variation's lift", *all[1].RateLift, 0.2)
	near(t, "the variation's lift of value", *all[1].ValueLift, 0.2)
	check.That(t, all[0].RateLift == nil, "control has a lift")
	for _, segment := range segments {
		if segment.When["visitorType"] == "new" {
			near(t, "share of the new", segment.Share, 0.66)
			near(t, "rate of the new", segment.Variations[0].Rate, 0.05)
		}
	}
}

func near(t *testing.T, what string, have, want float64) {
	t.Helper()
	check.That(t, math.Abs(have-want) <= 1e-9, "%s: %v, want %v", what, have, want)
}
