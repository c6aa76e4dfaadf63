package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// realData is the directory of published experiments and their results.
const realData = "../../../shared/data"

// reference is the compared part of reference.json: an analysis with its segments.
type reference struct {
	Metrics map[string]struct {
		Arms map[string]struct {
			N    int64   `json:"n"`
			Sum  float64 `json:"sum"`
			Mean float64 `json:"mean"`
		} `json:"arms"`
		Comparisons map[string]struct {
			Welch   struct{ P float64 } `json:"welch"`
			ZPooled struct{ Z float64 } `json:"z_pooled"`
		} `json:"comparisons"`
	} `json:"metrics"`
	Segments map[string]map[string]reference `json:"segments"`
}

func readReference(t *testing.T, dataset, analysis string) reference {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(realData, "reference.json"))
	if os.IsNotExist(err) {
		t.Skipf("SKIP: the real data are not here (%s)", realData)
	}
	must.OK(t, err)
	var all struct {
		Datasets map[string]struct {
			Analyses map[string]json.RawMessage `json:"analyses"`
		} `json:"datasets"`
	}
	must.OK(t, json.Unmarshal(text, &all))
	return must.JSON[reference](t, all.Datasets[dataset].Analyses[analysis])
}

// newRealHouse returns a store with a data set.
func newRealHouse(t *testing.T, name, file string) *house {
	t.Helper()
	h := newHouse(t)
	h.must("apply", "-f", "testdata/"+name+".catalog.yaml")
	h.must("import", "-m", "testdata/"+name+".mapping.yaml", realData+file)
	h.token = strings.TrimSpace(h.must("token", "create"))
	return h
}

// near reports whether two numbers agree to 1e-9 relative.
func near(got *float64, want float64) bool {
	return got != nil && math.Abs(*got-want) <= 1e-9*math.Abs(want)
}

func TestHillstromEqualsItsReference(t *testing.T) {
	tier.OnlyLong(t)
	all := readReference(t, "hillstrom", "all")
	h := newRealHouse(t, "hillstrom", "/hillstrom/hillstrom.csv.gz")
	names := []string{"No E-Mail", "Mens E-Mail", "Womens E-Mail"}
	query := func(extra string) result.Report { return h.results("/v1/campaigns/800/results?" + extra) }
	total := query("compareMetric=valuePerVisitor&dimension=channel")
	if got := total.Checks.SampleRatio.PValue; !near(got, 1) {
		t.Errorf("sample ratio p = %v, want 1: 21,306, 21,307 and 21,387 visitors are closer to thirds than the prior", *got)
	}
	compareSpend(t, "all", total.Variations, all, names)
	check.Equal(t, len(total.Breakdown), len(all.Segments["channel"]), "channels")
	for _, slice := range total.Breakdown {
		compareSpend(t, "channel "+slice.Value, slice.Variations, all.Segments["channel"][slice.Value], names)
	}
	segments := map[string]func(value string) string{
		"zip_code":        func(v string) string { return "filters[region][]=" + url.QueryEscape(v) },
		"history_segment": func(v string) string { return "filters[city][]=" + url.QueryEscape(v) },
		"newbie": func(v string) string {
			return "filters[visitorType]=" + map[string]string{"0": "returning", "1": "new"}[v]
		},
	}
	for dimension, filter := range segments {
		for value, want := range all.Segments[dimension] {
			r := query("compareMetric=valuePerVisitor&" + filter(value))
			compareSpend(t, dimension+" "+value, r.Variations, want, names)
			compareRates(t, "visit", query("goal=1&"+filter(value)).Variations, want, names)
			compareRates(t, "conversion", query(filter(value)).Variations, want, names)
		}
	}
	compareRates(t, "visit", query("goal=1").Variations, all, names)
	sameThroughTheCommand(t, h, "/v1/campaigns/800/results?compareMetric=valuePerVisitor&dimension=channel&filters[region][]=Urban&filters[region][]=Rural",
		"campaign", "800", "--metric", "valuePerVisitor", "--dimension", "channel", "--filter", "region=Urban",
		"--filter", "region=Rural")
}

func compareSpend(t *testing.T, where string, got []result.VariationResults, want reference, names []string) {
	t.Helper()
	spend := want.Metrics["spend"]
	for i, name := range names {
		w := spend.Arms[name]
		if got[i].Visitors != w.N || !near(got[i].Metrics.ValuePerVisitor.Value, w.Mean) && w.Mean != 0 {
			t.Errorf("%s, %s: %d visitors spend %v, want %d spend %v", where, name, got[i].Visitors,
				*got[i].Metrics.ValuePerVisitor.Value, w.N, w.Mean)
		}
		if i == 0 {
			continue
		}
		p := spend.Comparisons[name+" vs "+names[0]].Welch.P
		f := got[i].Comparison.Frequentist
		check.That(t, near(f.PValue, p), "%s, %s: Welch p = %v, want %v", where, name, f.PValue, p)
	}
}

// compareRates compares the score z with the pooled z. They differ by the factor sqrt((N-1)/N).
func compareRates(t *testing.T, metric string, got []result.VariationResults, want reference, names []string) {
	t.Helper()
	rates := want.Metrics[metric]
	for i, name := range names {
		w := rates.Arms[name]
		check.Equal(t, got[i].Visitors, w.N, "%s, %s: %d of %d, want %v of %d", metric, name, got[i].ConvertedVisitors,
			got[i].Visitors, w.Sum, w.N)
		check.Equal(t, float64(got[i].ConvertedVisitors), w.Sum, "%s, %s: %d of %d, want %v of %d", metric, name,
			got[i].ConvertedVisitors, got[i].Visitors, w.Sum, w.N)
		if i == 0 {
			continue
		}
		n := float64(got[0].Visitors + got[i].Visitors)
		z := rates.Comparisons[name+" vs "+names[0]].ZPooled.Z * math.Sqrt((n-1)/n)
		f := got[i].Comparison.Frequentist
		check.That(t, near(f.Statistic, z), "%s, %s: z = %v, want %v", metric, name, f.Statistic, z)
	}
}

func TestUdacityEqualsItsReference(t *testing.T) {
	tier.OnlyLong(t)
	want := readReference(t, "udacity_ab", "exclude_users_in_both_groups")
	h := newRealHouse(t, "udacity", "/udacity_ab/ab_data.csv.gz")
	names := []string{"control", "treatment"}
	r := h.results("/v1/campaigns/900/results")
	compareRates(t, "converted", r.Variations, want, names)
	m := r.Checks.MultipleExposures
	check.Equal(t, m.Visitors, 1895, "multipleExposures = %+v, want 1895 visitors excluded", m)
	check.Equal(t, m.Rule, "exclude", "multipleExposures = %+v, want 1895 visitors excluded", m)
	for country, segment := range want.Segments["country"] {
		filtered := h.results("/v1/campaigns/900/results?filters[country][]=" + country)
		compareRates(t, "converted", filtered.Variations, segment, names)
		check.Equal(t, fmt.Sprint(filtered.Filters), "map[country:["+country+"]]", "filters echoed as")
	}

	before := r
	h.must("import", "-m", "testdata/udacity.mapping.yaml",
		realData+"/udacity_ab/ab_data.csv.gz") // each event counts once
	r = h.results("/v1/campaigns/900/results")
	check.Equal(t, r.Totals.Visitors, before.Totals.Visitors, "importing again changed the totals: %+v, were %+v",
		r.Totals, before.Totals)
	check.Equal(t, r.Totals.Views, before.Totals.Views, "importing again changed the totals: %+v, were %+v", r.Totals,
		before.Totals)
}

// TestRevenueWithoutItsOutlier removes an order of 196.01, which dominates the mean.
func TestRevenueWithoutItsOutlier(t *testing.T) {
	all := readReference(t, "ab_test_revenue", "users_exclude_crossover")
	h := newRealHouse(t, "revenue", "/ab_test_revenue/AB_Test_Results.csv")
	for _, test := range []struct {
		filter    string
		value     string
		converted int64
		p         float64
	}{
		{"", "470.56", 54, 0.161724},
		{"&filters[zScore]=5", "274.55", 53, 0.176524},
	} {
		r := h.results("/v1/campaigns/700/results?compareMetric=valuePerVisitor" + test.filter)
		c := r.Variations[0]
		p := *r.Variations[1].Comparison.Frequentist.PValue
		check.Equal(t, c.Visitors, 2390, "%q: %d visitors, %s of %d, p %v; want 2390, %s of %d, p %v", test.filter,
			c.Visitors, c.Value, c.ConvertedVisitors, p, test.value, test.converted, test.p)
		check.Equal(t, c.Value.String(), test.value, "%q: %d visitors, %s of %d, p %v; want 2390, %s of %d, p %v",
			test.filter, c.Visitors, c.Value, c.ConvertedVisitors, p, test.value, test.converted, test.p)
		check.Equal(t, c.ConvertedVisitors, test.converted,
			"%q: %d visitors, %s of %d, p %v; want 2390, %s of %d, p %v", test.filter, c.Visitors, c.Value,
			c.ConvertedVisitors, p, test.value, test.converted, test.p)
		check.That(t, math.Abs(p-test.p) <= 5e-7, "%q: %d visitors, %s of %d, p %v; want 2390, %s of %d, p %v",
			test.filter, c.Visitors, c.Value, c.ConvertedVisitors, p, test.value, test.converted, test.p)
		check.Equal(t, r.Checks.MultipleExposures.Visitors, 1541, "multi-exposed visitors")
		o := r.Checks.Outliers
		check.Equal(t, (o != nil), (test.filter != ""), "outliers = %+v, want one removed", o)
		check.That(t, (o == nil || o.Removed == 1), "outliers = %+v, want one removed", o)
	}
	r := h.results("/v1/campaigns/700/results?compareMetric=valuePerVisitor")
	p := r.Variations[1].Comparison.Frequentist.PValue
	want := all.Metrics["REVENUE"].Comparisons["variant vs control"].Welch.P
	check.That(t, near(p, want), "Welch p = %v, want %v", *p, want)
	for i, name := range []string{"control", "variant"} {
		check.Equal(t, r.Variations[i].Visitors, all.Metrics["REVENUE"].Arms[name].N, "%s: visitors", name)
	}
}

// sameThroughTheCommand compares the output of the command with the response of the API.
func sameThroughTheCommand(t *testing.T, h *house, path string, args ...string) {
	t.Helper()
	fromAPI, fromCommand := h.results(path), must.JSON[result.Report](t,
		h.must(append([]string{"report", "--json"}, args...)...))
	fromCommand.GeneratedAt = fromAPI.GeneratedAt
	one := must.Get(json.Marshal(fromAPI))(t)
	other := must.Get(json.Marshal(fromCommand))(t)
	check.That(t, string(one) == string(other), "lifthouse report %s differs from %s:\n%.300s\n%.300s",
		strings.Join(args, " "), path, other, one)
}

// TestHillstromScorecardEqualsSciPy compares the scorecard with SciPy 1.10.1 and NumPy on the same file: the score test
// with the factor (N-1)/N of the variance, Welch's test (ttest_ind), and for average value the variance of the delta
// method with Welch's degrees of freedom.
func TestHillstromScorecardEqualsSciPy(t *testing.T) {
	tier.OnlyLong(t)
	readReference(t, "hillstrom", "all") // skips without the data
	h := newRealHouse(t, "hillstrom", "/hillstrom/hillstrom.csv.gz")
	r := h.results("/v1/campaigns/800/results?scorecard=true")
	type row struct{ difference, statistic, p float64 }
	want := map[string][]row{
		"Visit goalConversionRate":    {{0.07658956365153125, 22.48577698549253, 5.719061071478447e-112}, {0.045233106587052985, 13.94901728816859, 3.189700546547975e-44}},
		"Purchase goalConversionRate": {{0.006805006519615695, 7.385027757114281, 1.5242158729730612e-13}, {0.003111057511085258, 3.7795166936881053, 0.00015713305889762723}},
		"Purchase valuePerVisitor":    {{0.7698271558945367, 5.300140358411668, 1.1638149682254859e-07}, {0.4244122159365966, 3.2563715760253915, 0.0011293971023632519}},
		"Purchase averageValue":       {{-0.47577607908147, -0.04127906895230011, 0.9670736301284808}, {7.892056986729116, 0.6549837901607515, 0.5124818480691475}},
	}
	found := 0
	for _, row := range r.Scorecard {
		for i, w := range want[row.Goal.Name+" "+string(row.Metric)] {
			c := row.Variations[i+1].Comparison
			if !near(c.Difference.Value, w.difference) || !near(c.Frequentist.Statistic, w.statistic) ||
				!near(c.Frequentist.PValue, w.p) {
				t.Errorf("%s of %s, %s: %v, %v, %v; want %+v", row.Metric, row.Goal.Name, row.Variations[i+1].Name,
					*c.Difference.Value, *c.Frequentist.Statistic, *c.Frequentist.PValue, w)
			}
			found++
		}
	}
	check.Equal(t, found, 8, "%d comparisons in %d rows", found, len(r.Scorecard))
	check.Equal(t, len(r.Scorecard), 10, "%d comparisons in %d rows", found, len(r.Scorecard))
}
