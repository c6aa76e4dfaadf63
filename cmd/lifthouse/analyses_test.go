package main

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestPublishedAnalysesOfTheRealData imports the same files with other mappings: rows left out, rows as visitors,
// groups joined.
func TestPublishedAnalysesOfTheRealData(t *testing.T) {
	tier.OnlyLong(t)
	udacity, hillstrom, revenue := realData+"/udacity_ab/ab_data.csv.gz", realData+
		"/hillstrom/hillstrom.csv.gz", realData+"/ab_test_revenue/AB_Test_Results.csv"
	groups, mails := []string{"control", "treatment"}, []string{"Womens E-Mail", "Mens E-Mail"}
	h, imported := (*house)(nil), ""
	for _, a := range []struct {
		dataset, analysis, mapping, file, query, metric string
		names                                           []string
	}{
		{"udacity_ab", "cleaned", "udacity.cleaned", udacity, "901/results", "converted", groups},
		{"udacity_ab", "raw_rows", "udacity.rows", udacity, "902/results", "converted", groups},
		{"hillstrom", "any_email_vs_none", "hillstrom.grouped", hillstrom, "801/results", "conversion", []string{"No E-Mail", "Any E-Mail"}},
		{"hillstrom", "any_email_vs_none", "hillstrom.grouped", hillstrom, "801/results?goal=1", "visit", []string{"No E-Mail", "Any E-Mail"}},
		{"hillstrom", "mens_vs_womens", "hillstrom.grouped", hillstrom, "802/results", "conversion", mails},
		{"hillstrom", "mens_vs_womens", "hillstrom.grouped", hillstrom, "802/results?goal=1", "visit", mails},
		{"ab_test_revenue", "raw_rows", "revenue.rows", revenue, "701/results", "converted", []string{"control", "variant"}},
	} {
		want := readReference(t, a.dataset, a.analysis)
		if imported != a.mapping {
			imported = a.mapping
			h = newHouse(t)
			catalogue, _, _ := strings.Cut(a.mapping, ".")
			h.must("apply", "-f", "testdata/"+catalogue+".catalog.yaml")
			h.must("import", "-m", "testdata/"+a.mapping+".mapping.yaml", a.file)
			h.token = strings.TrimSpace(h.must("token", "create"))
		}
		r := h.results("/v1/campaigns/" + a.query)
		compareRates(t, a.metric, r.Variations, want, a.names)
		if !strings.Contains(a.query, "goal=") {
			compareSums(t, r.Variations, want, a.names)
		}
		for country, segment := range want.Segments["country"] {
			if a.analysis == "cleaned" { // the rows have no country
				r = h.results("/v1/campaigns/" + a.query + "?filters[country][]=" + country)
				compareRates(t, a.metric, r.Variations, segment, a.names)
			}
		}
	}
}

// compareSums compares the sums of the values of the variations with the published sums.
func compareSums(t *testing.T, got []result.VariationResults, want reference, names []string) {
	t.Helper()
	for i, name := range names {
		for _, metric := range []string{"spend", "REVENUE"} {
			worth, known := want.Metrics[metric].Arms[name]
			value, err := strconv.ParseFloat(got[i].Value.String(), 64)
			check.That(t, !known || (err == nil && math.Abs(value-worth.Sum) <= 1e-6), "%s, %s: %v, %v; want %v",
				metric, name, value, err, worth.Sum)
		}
	}
}

// TestUdacityWithTheFirstGroupOfEachVisitor declares the same campaign again.
func TestUdacityWithTheFirstGroupOfEachVisitor(t *testing.T) {
	tier.OnlyLong(t)
	want := readReference(t, "udacity_ab", "first_group_by_time_any_conversion")
	text := must.Get(os.ReadFile("testdata/udacity.catalog.yaml"))(t)
	first := must.WriteFile(t, "first.yaml",
		strings.Replace(string(text), "controlShare: 50", "controlShare: 50\n            multipleExposures: first", 1))
	h := newHouse(t)
	h.must("apply", "-f", first)
	h.must("import", "-m", "testdata/udacity.mapping.yaml", realData+"/udacity_ab/ab_data.csv.gz")
	h.token = strings.TrimSpace(h.must("token", "create"))
	r := h.results("/v1/campaigns/900/results")
	compareRates(t, "converted", r.Variations, want, []string{"control", "treatment"})
	m := r.Checks.MultipleExposures
	check.Equal(t, m.Rule, "first", "multipleExposures = %+v, want the first of 1895", m)
	check.Equal(t, m.Visitors, 1895, "multipleExposures = %+v, want the first of 1895", m)
}
