package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"lifthouse/engine/facts"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// visitorsOf returns the rows of a file of visitors.
func (s *server) visitorsOf(path string) []facts.Visitor {
	s.t.Helper()
	response := s.must(path)
	check.Equal(s.t, response.Get("Content-Type"), "application/vnd.apache.parquet", "%v", path)
	_, text := s.send(http.MethodGet, path, http.NoBody, s.withToken("Accept-Encoding", "gzip")...)
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
	rows := s.visitorsOf(path)
	must.Equal(t, len(rows), 2, "rows")
	rows = s.visitorsOf(path + "?filters%5Bdevice%5D%5B%5D=mobile&cap=1.5")
	check.That(t, len(rows) == 1 && rows[0].ID == schema.HashID("a") && rows[0].Device == "mobile" && rows[0].Views == 1 && rows[0].GoalsReached == 2 && rows[0].UncappedValue == 2 && rows[0].Value == 1.5,
		"rows %+v", rows)
	if rows = s.visitorsOf(path + "?filters%5BdateTo%5D=2020-01-01"); len(rows) != 0 {
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
		r, _ := s.results(path + "/results")
		rows := s.visitorsOf(path + "/visitors.parquet")
		check.That(t, r.Totals.Visitors == 1 && len(rows) == 1 && rows[0].Clicks == 1 && rows[0].Completions == 1, "%s: %+v, want the visitor of %+v", path, rows, r.Totals)
	}
	made, _ := s.create(s.admin(), `{"campaignId": 12, "expires": "7d"}`)
	_, token, _ := strings.Cut(made.URL, "lh_")
	response, text := s.send(http.MethodGet, "/v1/campaigns/12/visitors.parquet", http.NoBody, "Authorization", "Bearer lh_"+token)
	check.That(t, response.status == http.StatusForbidden, "with a share link: %d %s", response.status, text)
}
