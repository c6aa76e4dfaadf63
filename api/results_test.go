package api_test

import (
	_ "embed"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"lifthouse/engine/facts"
	"lifthouse/engine/result"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// judgedCampaigns declares campaigns with different methods for the same visitors.
//
//go:embed testdata/judged.yaml
var judgedCampaigns string

func (s *server) apply(text string) {
	s.t.Helper()
	file := must.Get(catalogue.ReadYAML(strings.NewReader(text)))(s.t)
	must.Get(s.catalogue.ApplyFile(s.t.Context(), file, false))(s.t)
}

// plant writes the same visitors into campaigns 22 to 26. Visitors of variation 2 buy more often.
func (s *server) plant() {
	s.t.Helper()
	for campaign := int64(22); campaign <= 26; campaign++ {
		simulated := population.SimpleCampaign{
			WebsiteID: 1, CampaignID: campaign, GoalID: 3, Visitors: 6_000,
			Start: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10), Days: 10, Seed: 7,
			Variations: []population.SimpleVariation{
				{ID: 0, Share: 1, ConversionRate: 0.10, MeanValue: 50},
				{ID: 1, Share: 1, ConversionRate: 0.10, MeanValue: 50},
				{ID: 2, Share: 1, ConversionRate: 0.16, MeanValue: 50},
			},
		}
		must.OK(s.t, s.writer.WriteEvents(s.t.Context(), slices.Collect(simulated.GenerateEvents())))
	}
}

// readReport reads a report, which the server must have.
func (s *server) readReport(path string) (r result.Report) {
	s.t.Helper()
	s.Get(path).Send().RequireStatus(http.StatusOK).JSON(&r)
	return r
}

func TestResultsOfPlantedVisitors(t *testing.T) {
	s := newServer(t)
	s.apply(judgedCampaigns)
	s.plant()
	t.Run("by methodology", func(t *testing.T) { checkMethodologies(t, s) })
	t.Run("every null has a reason", func(t *testing.T) { checkNulls(t, s) })
	t.Run("tools of MCP", func(t *testing.T) { checkMCP(t, s) })
}

func checkMethodologies(t *testing.T, s *server) {
	t.Helper()
	r := s.readReport("/v1/campaigns/22/results")
	same, better := r.Variations[1].Comparison, r.Variations[2].Comparison
	check.Equal(t, same.Verdict, stats.VerdictInconclusive, "verdicts %s, %s, correction %s", same.Verdict,
		better.Verdict, better.Frequentist.Correction)
	check.Equal(t, better.Verdict, stats.VerdictBetter, "verdicts %s, %s, correction %s", same.Verdict, better.Verdict,
		better.Frequentist.Correction)
	check.Equal(t, better.Frequentist.Correction, stats.CorrectionDunnett, "verdicts %s, %s, correction %s",
		same.Verdict, better.Verdict, better.Frequentist.Correction)
	must.That(t, better.Sequential != nil, "sequential %+v, bayesian %+v", better.Sequential, better.Bayesian)
	check.That(t, better.Sequential.Significant, "sequential %+v, bayesian %+v", better.Sequential, better.Bayesian)
	check.That(t, better.Bayesian == nil, "sequential %+v, bayesian %+v", better.Sequential, better.Bayesian)
	if c := r.Conclusion; c.Status != stats.StatusWinner || *c.VariationID != 2 || !strings.HasPrefix(c.Text, "Better is better than Control: the goal conversion rate has a lift of +") {
		t.Errorf("conclusion = %+v", c)
	}
	p := r.Power
	check.That(t, p.RequiredVisitors != nil, "power = %+v", p)
	check.That(t, p.Progress != nil, "power = %+v", p)
	check.That(t, p.DaysRemaining != nil, "power = %+v", p)
	check.That(t, p.MinimumDetectableEffect != nil, "power = %+v", p)

	r = s.readReport("/v1/campaigns/23/results")
	b := r.Variations[2].Comparison.Bayesian
	must.That(t, b != nil, "bayesian = %+v", b)
	check.That(t, *b.ChanceToBeatControl >= 0.999, "bayesian = %+v", b)
	check.That(t, *b.ChanceToBeBest >= 0.99, "bayesian = %+v", b)
	check.That(t, *b.ExpectedLoss <= *b.ExpectedLossControl, "bayesian = %+v", b)
	check.That(t, r.Variations[2].Comparison.Frequentist == nil, "bayesian = %+v", b)

	r = s.readReport("/v1/campaigns/24/results")
	c := r.Variations[2].Comparison
	check.That(t, !c.Significant, "level 100: %+v, %+v", c, r.Conclusion)
	check.That(t, c.Difference.Interval == nil, "level 100: %+v, %+v", c, r.Conclusion)
	check.Equal(t, c.Difference.Reason, stats.ReasonLevel100, "level 100: %+v, %+v", c, r.Conclusion)
	check.That(t, c.Difference.Value != nil, "level 100: %+v, %+v", c, r.Conclusion)
	check.That(t, r.Conclusion.Status != stats.StatusWinner, "level 100: %+v, %+v", c, r.Conclusion)
	var raw map[string]any
	s.Get("/v1/campaigns/24/results").Send().JSON(&raw)
	check.Equal(t, raw["significanceLevel"], 100.0, "significanceLevel")

	r = s.readReport("/v1/campaigns/25/results")
	check.That(t, r.Checks.SampleRatio.Mismatch, "wrong shares: %+v, %+v", r.Checks, r.Conclusion)
	check.Equal(t, r.Conclusion.Status, stats.StatusInvalid, "wrong shares: %+v, %+v", r.Checks, r.Conclusion)
	must.Equal(t, len(r.Checks.Warnings), 1, "wrong shares: %+v, %+v", r.Checks, r.Conclusion)
	check.Equal(t, r.Checks.Warnings[0].Code, "SAMPLE_RATIO_MISMATCH", "wrong shares: %+v, %+v", r.Checks, r.Conclusion)

	r = s.readReport("/v1/campaigns/26/results")
	must.Equal(t, len(r.Checks.Leak), 1, "leak = %+v", r.Checks.Leak)
	check.Equal(t, r.Checks.Leak[0].VariationID, 1, "leak = %+v", r.Checks.Leak)
}

// checkNulls checks the nulls in reports with and without data.
func checkNulls(t *testing.T, s *server) {
	t.Helper()
	for _, path := range []string{
		"22/results", "23/results", "24/results?dimension=device",
		"26/results?compareMetric=profitPerVisitor", "22/results?filters%5Bcity%5D%5B%5D=none",
	} {
		var raw map[string]any
		s.Get("/v1/campaigns/" + path).Send().RequireStatus(http.StatusOK).JSON(&raw)
		unexplained(t, path, raw)
	}
}

// mayBeNull has fields that may be null without a reason: control has no comparison, and a request may have no goal,
// dimension, z-score or window. dataThrough and newestEvent are null with the warning NO_EVENTS.
var mayBeNull = []string{"comparison", "outliers", "goal", "dimension", "from", "to", "conversionWindow"}

func unexplained(t *testing.T, path string, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			unexplained(t, path, item)
		}
	case map[string]any:
		for name, field := range v {
			ends, isList := field.([]any)
			open := isList && slices.Contains(ends, nil)
			reasons, _ := v["reasons"].([]any)
			if name == "variationId" && len(reasons) > 0 {
				continue
			}
			check.That(t,
				field != nil && !open || slices.Contains(mayBeNull, name) || v["reason"] != nil ||
					v[name+"Reason"] != nil,
				"%s.%s is null without a reason: %v", path, name, v)
			unexplained(t, path+"."+name, field)
		}
	}
}

// readVisitors returns the rows of a file of visitors.
func (s *server) readVisitors(path string) []facts.Visitor {
	s.t.Helper()
	response := s.Get(path).Send().RequireStatus(http.StatusOK)
	check.Equal(s.t, response.Header.Get("Content-Type"), "application/vnd.apache.parquet", "%v", path)
	text := s.Get(path).Header("Accept-Encoding", "gzip").Send().Text
	rows, err := parquet.Read[facts.Visitor](strings.NewReader(text), int64(len(text)))
	must.OK(s.t, err, "%v", path)
	return rows
}

func TestVisitorsOverHTTP(t *testing.T) {
	s, _ := newTwoSites(t)
	event := func(minute int, visitor string, kind schema.Kind, device string) schema.Event {
		e := at(minute, visitor, 0, kind, 10_000)
		e.Device = device
		return e
	}
	must.OK(t, s.writer.WriteEvents(t.Context(), []schema.Event{
		event(0, "a", schema.KindView, "mobile"), event(70, "a", schema.KindGoal, ""),
		event(130, "b", schema.KindView, "desktop"), event(250, "a", schema.KindGoal, ""),
	}))
	const path = "/v1/campaigns/12/visitors.parquet"
	rows := s.readVisitors(path)
	must.Equal(t, len(rows), 2, "rows")
	rows = s.readVisitors(path + "?filters%5Bdevice%5D%5B%5D=mobile&cap=1.5")
	must.Equal(t, len(rows), 1, "rows %+v", rows)
	check.Equal(t, rows[0].ID, schema.HashID("a"), "rows %+v", rows)
	check.Equal(t, rows[0].Device, "mobile", "rows %+v", rows)
	check.Equal(t, rows[0].Views, 1, "rows %+v", rows)
	check.Equal(t, rows[0].GoalsReached, 2, "rows %+v", rows)
	check.Equal(t, rows[0].UncappedValue, 2, "rows %+v", rows)
	check.Equal(t, rows[0].Value, 1.5, "rows %+v", rows)
	if rows = s.readVisitors(path + "?filters%5BdateTo%5D=2020-01-01"); len(rows) != 0 {
		t.Errorf("%d rows before the first view", len(rows))
	}
}

func TestVisitorsOfWidgetsOverHTTP(t *testing.T) {
	s, _ := newTwoSites(t)
	s.token = s.newToken(1, 0, catalogue.ScopeRead)
	var events []schema.Event
	for i, kind := range []schema.Kind{schema.KindView, schema.KindClick, schema.KindCompletion} {
		for _, experiment := range []int64{0, 2} {
			e := at(i, "a", 0, kind, 0)
			e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectWidget, 7, experiment, 1
			events = append(events, e)
		}
	}
	s.write(events...)
	for _, path := range []string{"/v1/widgets/7", "/v1/widgets/7/experiments/2"} {
		r := s.readReport(path + "/results")
		rows := s.readVisitors(path + "/visitors.parquet")
		check.Equal(t, r.Totals.Visitors, 1, "%s: %+v, want the visitor of %+v", path, rows, r.Totals)
		must.Equal(t, len(rows), 1, "%s: %+v, want the visitor of %+v", path, rows, r.Totals)
		check.Equal(t, rows[0].Clicks, 1, "%s: %+v, want the visitor of %+v", path, rows, r.Totals)
		check.Equal(t, rows[0].Completions, 1, "%s: %+v, want the visitor of %+v", path, rows, r.Totals)
	}
	share := s.createShare(s.newToken(1, 0, catalogue.ScopeAdmin), `{"campaignId": 12, "expires": "7d"}`)
	secret := regexp.MustCompile(`lh_[\w-]+`).FindString(share.URL)
	s.Get("/v1/campaigns/12/visitors.parquet").Token(secret).Send().CheckStatus(http.StatusForbidden)
}
