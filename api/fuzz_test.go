package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"lifthouse/api"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// shopOfFewVisitors returns a server with some views and goals with very different values.
func shopOfFewVisitors(tb testing.TB) *server {
	tb.Helper()
	s := newServer(tb, func(o *api.Options) { o.TokenRate, o.ResultsAge = 0, 0 })
	var events []schema.Event
	for i := range 40 {
		visitor := fmt.Sprint("v", i)
		events = append(events, at(i, visitor, int64(i%2), schema.KindView, 0))
		if i%3 > 0 {
			events = append(events, at(i+1, visitor, int64(i%2), schema.KindGoal, int64(i*i*i)*1000-schema.MoneyScale))
		}
	}
	must.OK(tb, s.writer.WriteEvents(tb.Context(), events))
	return s
}

// reportForms are the content types of reports.
var reportForms = []string{"application/json", "text/csv", "image/svg+xml"}

// notNumbers matches cells that are no numbers of a table.
var notNumbers = regexp.MustCompile(`,[+-]?(Inf|NaN)\b`)

// FuzzReportRequests sends requests with arbitrary query strings. No response may be a 5xx, JSON must be
// valid, and tables must have no infinite numbers.
func FuzzReportRequests(f *testing.F) {
	for _, query := range []string{
		"", "filters%5BzScore%5D=1e308", "filters[zScore]=1e308&interval=day",
		"filters[zScore]=5e-324&dimension=device", "filters[goalValue]=1e308",
		"filters[goalValue]=-1e308&filters[zScore]=3",
		"interval=hour&compareMetric=valuePerVisitor", "dimension=referrer&filters[country][]=US&filters[country][]=", "filters[dateFrom]=2026-05-01&filters[dateTo]=2026-05-02", "filters[utmSource]=*%25_'\\",
		"filters[dateFrom]=0001-01-01T00:00:00Z", "filters[dateTo]=9999-12-31T23:59:59Z&interval=week",
		"filters[visitorType]=new&goal=3&websiteId=1", "goal=%2B3", "filters[device][999]=a",
		"filters[dateFrom]=1969-12-31T23:59:59.9994Z&interval=hour",
		"compareMetric=profitPerVisitor&filters[goalValue]=0.1",
	} {
		for form := range reportForms {
			f.Add(query, uint8(form), uint8(len(query)%3))
		}
	}
	s := shopOfFewVisitors(f)
	paths := []string{"/v1/campaigns/12/results", "/v1/campaigns/14/results", "/v1/campaigns/12/dimensions/device"}
	f.Fuzz(func(t *testing.T, query string, form, path uint8) {
		if strings.ContainsAny(query, " \t\r\n#\x00") || len(query) > 8<<10 {
			t.Skip()
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://lifthouse"+paths[int(path)%len(paths)], http.NoBody)
		request.URL.RawQuery = query
		request.Header.Set("Authorization", "Bearer "+s.token)
		request.Header.Set("Accept", reportForms[int(form)%len(reportForms)])
		response := httptest.NewRecorder()
		s.api.ServeHTTP(response, request)
		check.That(t, response.Code < 500, "%s?%s (%s): %d %s", request.URL.Path, query, request.Header.Get("Accept"),
			response.Code, response.Body)
		kind := response.Header().Get("Content-Type")
		check.That(t, !strings.Contains(kind, "json") || json.Valid(response.Body.Bytes()), "%s?%s: no JSON: %.500s",
			request.URL.Path, query, response.Body)
		infinite := notNumbers.MatchString(response.Body.String())
		check.That(t, !infinite || !strings.Contains(kind, "csv"), "%s?%s: %.500s", request.URL.Path, query,
			response.Body)
	})
}
