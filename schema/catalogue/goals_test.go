package catalogue_test

import (
	"errors"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

const withGoals = `
accounts:
  - id: 1
    name: a
    websites:
      - id: 1
        domain: a.example.com
        currency: EUR
        timezone: Europe/Berlin
        goals: [{id: 3, name: Purchase}, {id: 4, name: Signup}, {id: 5, name: Refund}]
        campaigns:
          - id: 12
            name: Banner
            primaryGoalId: 3
            minDays: 0
            hypothesis: "It sells: more"
            owner: Ada
            tags: [checkout, q4]
            goals:
              primary: 3
              secondary: [{goalId: 4}, {goalId: 3, metric: valuePerVisitor}]
              guardrails: [{goalId: 5, direction: down, margin: 10}, {goalId: 5, metric: averageValue, absoluteMargin: 2.5}, {goalId: 4, metric: goalsPerVisitor}]
            variations: [{id: 1, name: New, share: 100}]
        widgets:
          - id: 7
            name: Popup
            type: popup
            primaryGoalId: 3
            experiments:
              - {id: 2, primaryMetric: goalsReached, controlShare: 50, minDays: 14, goals: {guardrails: [{goalId: 5}]}, variations: [{id: 1, name: Short, share: 50}]}
`

// TestGoalsAreReadAndWritten checks the defaults, and that the exported file is the
// same catalogue.
func TestGoalsAreReadAndWritten(t *testing.T) {
	file := must.Get(catalogue.ReadYAML(strings.NewReader(withGoals)))(t)
	c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	owned := c.Snapshot().AccountResources(1)
	g := owned.Campaigns[12].Goals
	if s := g.Secondary[0]; s.Metric != "goalConversionRate" || s.Direction != catalogue.Up {
		t.Errorf("defaults of a secondary goal: %+v", s)
	}
	if r := g.Guardrails[2]; r.Margin != 0 || r.AbsoluteMargin != 0 || r.Direction != catalogue.Up {
		t.Errorf("defaults of a guardrail: %+v", r)
	}
	if site := owned.Websites[1]; site.Currency != "EUR" || site.Timezone != "Europe/Berlin" {
		t.Errorf("website %+v", site)
	}
	if e := owned.Widgets[7].Experiments[0]; *e.MinDays != 14 || e.Goals.Guardrails[0].GoalID != 5 {
		t.Errorf("experiment %+v", e)
	}
	var text strings.Builder
	must.OK(t, c.Snapshot().CatalogueFile().WriteYAML(&text))
	again, err := catalogue.ReadYAML(strings.NewReader(text.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	changes, err := c.ApplyFile(t.Context(), again, false)
	if err != nil || len(changes) != 0 {
		t.Errorf("applied the export: %v, %v\n%s", changes, err, text.String())
	}
	if h := c.Snapshot().AccountResources(1).Campaigns[12].PlanHistory[0]; len(h) != 0 {
		t.Errorf("plan history %+v", h)
	}
	changed := strings.NewReplacer("margin: 10", "margin: 20", "minDays: 14", "minDays: 21").Replace(withGoals)
	if file, err = catalogue.ReadYAML(strings.NewReader(changed)); err != nil {
		t.Fatal(err)
	}
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	h := c.Snapshot().AccountResources(1).Campaigns[12].PlanHistory[0]
	if len(h) != 2 || h[0].Goals.Guardrails[0].Margin != 10 || h[1].Goals.Guardrails[0].Margin != 20 {
		t.Errorf("plan history after another margin: %+v", h)
	}
	h = c.Snapshot().AccountResources(1).Widgets[7].PlanHistory[2]
	if len(h) != 2 || *h[0].MinDays != 14 || *h[1].MinDays != 21 || h[0].PrimaryMetric != "goalsReached" {
		t.Errorf("plan history of the experiment: %+v", h)
	}
}

// TestFaultsOfGoals checks that all faults are reported at once.
func TestFaultsOfGoals(t *testing.T) {
	text := strings.NewReplacer(
		"currency: EUR", "currency: euro",
		"timezone: Europe/Berlin", "timezone: Berlin",
		"minDays: 0", "minDays: 400",
		"tags: [checkout, q4]", "tags: [checkout, checkout, '']",
		"primary: 3", "primary: 4",
		"{goalId: 4}", "{goalId: 99, metric: revenue, direction: left}",
		"{goalId: 3, metric: valuePerVisitor}", "{goalId: 3}",
		"margin: 10", "margin: 100",
		"absoluteMargin: 2.5", "absoluteMargin: 2.5, margin: 3",
		"metric: goalsPerVisitor", "absoluteMargin: 1",
	).Replace(withGoals)
	file := must.Get(catalogue.ReadYAML(strings.NewReader(text)))(t)
	c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
	_, err := c.ApplyFile(t.Context(), file, false)
	var faults faults.List
	if !errors.As(err, &faults) {
		t.Fatalf("error %v", err)
	}
	site, campaign := "accounts[0].websites[0].", "accounts[0].websites[0].campaigns[0]."
	for _, want := range []string{
		site + `currency: "euro": must be a currency code of ISO 4217 such as EUR`,
		site + `timezone: "Berlin": must be a time zone of the IANA database such as Europe/Berlin`,
		campaign + `minDays: "400": must be from 0 to 365`,
		campaign + `tags[1]: "checkout": is not unique`,
		campaign + `tags[2]: "": must have 1 to 64 characters`,
		campaign + `goals.primary: "4": must equal primaryGoalId, 3, or be omitted`,
		campaign + `goals.secondary[0].goalId: "99": the website has no such goal`,
		campaign + `goals.secondary[0].metric: "revenue": must be one of goalConversionRate, goalsPerVisitor, valuePerVisitor, profitPerVisitor, averageValue`,
		campaign + `goals.secondary[0].direction: "left": must be one of up, down`,
		campaign + `goals.secondary[1]: "goalConversionRate of goal 3": is also the primary metric`,
		campaign + `goals.guardrails[0].margin: "100": must be above 0 and below 100`,
		campaign + `goals.guardrails[1].absoluteMargin: "2.5": must be omitted if margin is given`,
		campaign + `goals.guardrails[2].absoluteMargin: "1": must be below 1: it is a fraction of the visitors`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no fault %s in\n%v", want, err)
		}
	}
	if len(faults) != 13 {
		t.Errorf("%d faults:\n%v", len(faults), err)
	}
}
