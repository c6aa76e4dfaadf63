package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"

	"lifthouse/engine/metric"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

// TestAliases sends random requests in two forms: with the name of a metric and its goal, and with the expression of the
// metric. Both answer the same bytes. Outside the long tier it sends a fifth of them.
func TestAliases(t *testing.T) {
	s := newAskedServer(t)
	w := rand.New(rand.NewPCG(80, 8))
	goals := []metric.Goal{{ID: 3, Key: "purchase"}, {ID: 4, Key: "add-to-cart"}}
	const campaign, experiment = "/v1/campaigns/12/results", "/v1/widgets/7/experiments/2/results"
	names := map[string][]string{
		campaign: {
			"goalConversionRate", "goalsPerVisitor", "valuePerVisitor", "profitPerVisitor", "averageValue",
		},
		experiment: {
			"goalConversionRate", "goalsPerVisitor", "valuePerVisitor", "profitPerVisitor", "extraValuePerVisitor",
			"averageValue",
		},
	}
	requests := 100
	if tier.IsLong() {
		requests = 500
	}
	for n := range requests {
		path := worlds.Pick(w, campaign, campaign, experiment)
		goal := worlds.Pick(w, goals...)
		name := worlds.Pick(w, names[path]...)
		if w.IntN(2) == 0 {
			goal.Key = "" // written as its id
		}
		m, known := metric.NewAlias(name, &goal)
		check.That(t, known, "%s has no expression", name)
		shared := randomView(w)
		byName := url.Values{"compareMetric": {name}, "goal": {fmt.Sprint(goal.ID)}}
		byExpression := url.Values{"metric": {m.String()}}
		for _, values := range []url.Values{byName, byExpression} {
			for parameter, value := range shared {
				values[parameter] = value
			}
		}
		accept := worlds.Pick(w, "application/json", "application/json", "text/csv", "image/svg+xml")
		named := s.Get(path+"?"+byName.Encode()).Header("Accept", accept).Send()
		written := s.Get(path+"?"+byExpression.Encode()).Header("Accept", accept).Send()
		check.Equal(t, named.Status, http.StatusOK, "request %d: %v", n, named)
		check.Equal(t, written.Status, http.StatusOK, "request %d: %v", n, written)
		check.Equal(t, withoutClock(written.Text), withoutClock(named.Text), "request %d, %s: %s", n, accept,
			byExpression.Encode())
		check.Equal(t, written.Header.Get("ETag"), named.Header.Get("ETag"), "request %d: entity tags", n)
	}
}

// randomView returns parameters of a report besides its metric.
func randomView(w worlds.Rand) url.Values {
	values := url.Values{}
	set := func(percent int, name string, choices ...string) {
		if w.IntN(100) < percent {
			values.Set(name, worlds.Pick(w, choices...))
		}
	}
	set(30, "dimension", "device", "plan", "device,plan", "country")
	set(30, "visitors", "device = 'mobile'", "plan != 'free' or device like 'd*'", "not plan in ('pro', '')")
	set(20, "interval", "day", "week")
	set(20, "cap", "p95", "30", "1")
	set(20, "conversionWindow", "1d", "36h", "none")
	set(20, "filters[device][]", "mobile", "desktop")
	set(10, "filters[dateFrom]", "2026-05-01", "2026-04-30")
	set(10, "filters[dateTo]", "2026-05-02", "2026-05-20")
	set(10, "filters[goalValue]", "30", "0.5")
	set(10, "filters[zScore]", "2")
	set(10, "distribution", "goalValue")
	if values.Get("dimension") == "" && values.Get("filters[zScore]") == "" {
		set(10, "scorecard", "true")
	}
	return values
}
