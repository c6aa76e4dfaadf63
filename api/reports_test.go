package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

const popupShop = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}, {id: 4, name: Signup}]
        campaigns: [{id: 40, name: Series, primaryGoalId: 3, controlShare: 50, variations: [{id: 1, name: New, share: 100}]}]
        widgets:
          - id: 7
            name: Newsletter
            type: popup
            primaryGoalId: 4
            variations: [{id: 1, name: Plain}]
            experiments: [{id: 2, name: Wording, primaryMetric: completions, controlShare: 50, variations: [{id: 1, name: Short, share: 50}]}]
`

// shown returns an event of widget 7, or of its experiment if that is not 0.
func shown(minute int, visitor string, experiment, variation int64, kind schema.Kind) schema.Event {
	e := at(minute, visitor, variation, kind, 70_000)
	e.Subject, e.SubjectID, e.ExperimentID = schema.SubjectWidget, 7, experiment
	if kind == schema.KindGoal {
		e.GoalID = 4
	}
	return e
}

func TestWidgetAndExperimentResults(t *testing.T) {
	s := newServer(t)
	s.apply(popupShop)
	events := []schema.Event{
		shown(0, "a", 0, 1, schema.KindView), shown(1, "a", 0, 1, schema.KindClick), shown(2, "a", 0, 1, schema.KindSubmit),
		shown(3, "a", 0, 1, schema.KindConversion), shown(4, "a", 0, 1, schema.KindGoal), shown(5, "b", 0, 1, schema.KindView),
		shown(6, "b", 0, 1, schema.KindContact), shown(7, "c", 0, 1, schema.KindClick),
		shown(0, "d", 2, 0, schema.KindView), shown(1, "d", 2, 0, schema.KindCompletion), shown(2, "d", 2, 0, schema.KindCompletion),
		shown(0, "e", 2, 1, schema.KindView), shown(1, "e", 2, 1, schema.KindGoal),
	}
	must.OK(t, s.writer.WriteEvents(t.Context(), events))

	r, raw := s.results("/v1/widgets/7/results")
	v := r.Variations[0]
	if v.Visitors != 2 || v.Views != 2 || v.Clicks != 1 || v.Submits != 1 || v.Conversions != 1 || v.Contacts != 1 || v.GoalsReached != 1 || v.Value.String() != "7" {
		t.Errorf("widget: %+v, actions %+v", v.Counts, v.Actions)
	}
	if *v.Metrics.ConversionRate.Value != 0.5 {
		t.Errorf("conversion rate = %v, want 1 of 2", *v.Metrics.ConversionRate.Value)
	}
	for _, field := range []string{"conclusion", "compareMetric", "goal"} {
		if value, there := raw[field]; !there || value != nil {
			t.Errorf("%s = %v, want null: a widget's own results are not compared", field, value)
		}
	}
	if raw["widgetId"] != 7.0 || raw["campaignId"] != nil || r.Checks.SampleRatio != nil {
		t.Errorf("widgetId %v, campaignId %v, sampleRatio %v", raw["widgetId"], raw["campaignId"], r.Checks.SampleRatio)
	}

	r, raw = s.results("/v1/widgets/7/experiments/2/results")
	if raw["experimentId"] != 2.0 || *r.CompareMetric != "completionRate" || r.Goal.ID != 4 {
		t.Errorf("experimentId %v, metric %s, goal %+v", raw["experimentId"], *r.CompareMetric, r.Goal)
	}
	control, short := r.Variations[0], r.Variations[1]
	if !control.Control || control.Completions != 2 || *control.Metrics.CompletionRate.Value != 1 || short.GoalsReached != 1 {
		t.Errorf("control %+v %+v, short %+v", control.Counts, control.Actions, short.Counts)
	}
	if short.Comparison.Verdict != stats.VerdictInsufficientData || r.SignificanceLevel != 95 {
		t.Errorf("verdict %s at %d", short.Comparison.Verdict, r.SignificanceLevel)
	}

	for path, want := range map[string]int{
		"/v1/widgets/8/results":                                                http.StatusNotFound,
		"/v1/widgets/7/experiments/3/results":                                  http.StatusNotFound,
		"/v1/widgets/x/experiments/y/results":                                  http.StatusBadRequest,
		"/v1/widgets/7/results?dimension=device":                               http.StatusBadRequest,
		"/v1/widgets/7/results?compareMetric=conversionRate":                   http.StatusBadRequest,
		"/v1/widgets/7/experiments/2/results?compareMetric=conversionRate":     http.StatusOK,
		"/v1/widgets/7/experiments/2/results?compareMetric=averageValue":       http.StatusOK,
		"/v1/widgets/7/experiments/2/results?compareMetric=revenue":            http.StatusBadRequest,
		"/v1/widgets/7/experiments/2/results?goal=3&filters%5BzScore%5D=2":     http.StatusOK,
		"/v1/widgets/7/experiments/2/results?goal=5":                           http.StatusBadRequest,
		"/v1/widgets/7/experiments/2/results?interval=day&filters%5BzScore%5D": http.StatusBadRequest,
	} {
		if response, _, text := s.do("GET", path, s.token); response.status != want {
			t.Errorf("%s = %d %s, want %d", path, response.status, text, want)
		}
	}
	if _, body, _ := s.do("GET", "/v1/widgets/x/experiments/y/results?goal=z", s.token); len(body["errors"].([]any)) != 3 {
		t.Errorf("faults = %v, want those of both ids and the goal", body["errors"])
	}
}

// TestManyFaultsAreBounded checks the size of the problem for a query string full of unknown parameters.
func TestManyFaultsAreBounded(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/v1/campaigns/12/results", "/v1/campaigns", "/v1/campaigns/12/visitors.parquet"} {
		query := "?"
		for i := range 800 {
			query += fmt.Sprintf("x%d=&", i)
		}
		response, body, text := s.do("GET", path+query, s.token)
		faults, _ := body["errors"].([]any)
		if response.status != http.StatusBadRequest || len(text) > 20<<10 || len(faults) != 21 || !strings.Contains(text, "780 more faults") {
			t.Errorf("%s = %d, %d bytes, %d faults", path, response.status, len(text), len(faults))
		}
	}
}

func TestSeriesOverHTTP(t *testing.T) {
	s := newServer(t)
	s.apply(popupShop)
	event := func(minute int, visitor string, kind schema.Kind) schema.Event {
		e := at(minute, visitor, 0, kind, 10_000)
		e.SubjectID = 40
		return e
	}
	must.OK(t, s.writer.WriteEvents(t.Context(), []schema.Event{
		event(0, "a", schema.KindView), event(70, "a", schema.KindGoal), event(130, "b", schema.KindView), event(250, "a", schema.KindGoal),
	}))
	r, _ := s.results("/v1/campaigns/40/results?interval=hour")
	var got []string
	for _, p := range r.Series {
		v := p.Variations[0]
		got = append(got, p.Time.Format(time.TimeOnly)+" "+strings.Repeat("v", int(v.Visitors))+strings.Repeat("g", int(v.GoalsReached)))
	}
	if want := "01:00:00 v, 02:00:00 vg, 03:00:00 vvg, 04:00:00 vvg, 05:00:00 vvgg"; strings.Join(got, ", ") != want {
		t.Errorf("series = %s, want %s", strings.Join(got, ", "), want)
	}
	if response, body, _ := s.do("GET", "/v1/campaigns/40/results?interval=month", s.token); response.status != http.StatusBadRequest || body["code"] != "invalid_parameter" {
		t.Errorf("interval=month: %d %v", response.status, body)
	}

	for accept, want := range map[string]int{"application/sql": 406, "application/json": 200, "*/*": 200, "image/png": 406} {
		response, _, _ := s.with("GET", "/v1/campaigns/40/results?filters%5Bcity%5D%5B%5D=L%27Aquila", s.token, http.Header{"Accept": {accept}})
		if response.status != want {
			t.Errorf("Accept: %s = %d, want %d", accept, response.status, want)
		}
	}
}
