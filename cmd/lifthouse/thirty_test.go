package main

import (
	"math"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// The thirty events of testdata/thirty.ndjson, worked out on paper. Visitors c… saw control, t… the new variation:
//
//	c1  12.50 on one goal                       t1  30 + 10 on two goals (the repeat with 31 is no event)
//	c2  two views, the later first in the file  t2  25, at the very end of 2 May
//	c3  20 at the instant of the view, then -5  t3  nothing
//	c4  99 before the first view: not counted   t4  5
//	c5  first seen at the very end of 2 May; 7 on the other goal
//	e1  first seen on 30 April, again on 1 May
//
// x1 and x2 saw both (x2 at one instant: its first is the lower, control), u1 variation 7, which there is not, and n1
// no view at all.
const thirtyPath = "/v1/campaigns/1/results?compareMetric=valuePerVisitor"

type paper struct {
	visitors, views, converted, goals int64
	value                             string
}

func compareWithPaper(t *testing.T, where string, got []result.VariationResults, want ...paper) {
	t.Helper()
	must.Equal(t, len(got), len(want), "%s: variations", where)
	for i, w := range want {
		g := paper{got[i].Visitors, got[i].Views, got[i].ConvertedVisitors, got[i].GoalsReached, got[i].Value.String()}
		check.Equal(t, g, w, "%s, %s", where, got[i].Name)
	}
}

func TestThirtyEventsByHand(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	check.Contains(t, h.must("import", "testdata/thirty.ndjson"), "30 rows accepted, 0 of 30 lines rejected")
	h.token = strings.TrimSpace(h.must("token", "create"))
	query := func(extra string) result.Report { return h.results(thirtyPath + extra) }

	r := query("")
	compareWithPaper(t, "all", r.Variations, paper{6, 8, 2, 3, "27.5"}, paper{4, 4, 3, 4, "70"})
	check.Equal(t, r.Totals.Visitors, 10, "totals = %+v", r.Totals)
	check.Equal(t, r.Totals.Value.String(), "97.5", "totals = %+v", r.Totals)
	checkThirtyWelch(t, r.Variations)
	c := r.Checks
	check.Equal(t, c.MultipleExposures.Rule, "exclude", "multipleExposures = %+v, want 2 of 13 excluded",
		c.MultipleExposures)
	check.Equal(t, c.MultipleExposures.Visitors, 2, "multipleExposures = %+v, want 2 of 13 excluded",
		c.MultipleExposures)
	check.Equal(t, c.MultipleExposures.Share, 2.0/13, "multipleExposures = %+v, want 2 of 13 excluded",
		c.MultipleExposures)
	check.That(t, c.MultipleExposures.Warning, "multipleExposures = %+v, want 2 of 13 excluded", c.MultipleExposures)
	must.Equal(t, len(c.UnknownVariations), 1, "unknownVariations = %+v, want 1 visitor and 2 events of 7",
		c.UnknownVariations)
	check.Equal(t, c.UnknownVariations[0], (result.UnknownVariation{VariationID: 7, Visitors: 1, Events: 2}),
		"unknownVariations = %+v, want 1 visitor and 2 events of 7", c.UnknownVariations)
	// B is the mean over C = 30, 300, 3000 and 30,000 of Π (1 + 2k/C) over k < 8 and k < 4, divided by Π (1 + k/C) over
	// k < 12. In a report of all visitors, p is min(1, 2/B), because segments have half of the error budget, and in a
	// report with a filter, which here has the same visitors, min(1, 1/B).
	const inverse = 0.9920844836703426
	for _, of := range []struct {
		sampleRatio stats.SampleRatioCheck
		want        float64
	}{
		{*c.SampleRatio, min(1, 2*inverse)},
		{*query("&filters[country][]=fr&filters[country][]=de").Checks.SampleRatio, inverse},
	} {
		s := of.sampleRatio
		check.That(t, near(s.PValue, of.want), "sampleRatio = %+v, want 8 and 4, p = %v and no mismatch", s, of.want)
		check.That(t, !s.Mismatch, "sampleRatio = %+v, want 8 and 4, p = %v and no mismatch", s, of.want)
		check.Equal(t, s.Observed[0], 8, "sampleRatio = %+v, want 8 and 4, p = %v and no mismatch", s, of.want)
		check.Equal(t, s.Observed[1], 4, "sampleRatio = %+v, want 8 and 4, p = %v and no mismatch", s, of.want)
	}

	checkThirtyScore(t, h)
	compareWithPaper(t, "goal 2", query("&goal=2").Variations, paper{6, 8, 1, 1, "7"}, paper{4, 4, 0, 0, "0"})

	r = query("&filters[dateFrom]=2026-05-01&filters[dateTo]=2026-05-02")
	compareWithPaper(t, "1 and 2 May", r.Variations, paper{4, 5, 2, 3, "27.5"}, paper{4, 4, 2, 3, "45"})
	check.Equal(t, r.Checks.Window.EarlierVisitors, 1, "earlierVisitors")

	compareWithPaper(t, "France", query("&filters[country][]=fr").Variations, paper{4, 6, 1, 1, "12.5"},
		paper{2, 2, 1, 2, "40"})
	compareWithPaper(t, "no country", query("&filters[country][]=").Variations, paper{value: "0"}, paper{value: "0"})

	devices := query("&dimension=device").Breakdown
	must.Equal(t, len(devices), 2, "devices = %+v", devices)
	must.Equal(t, devices[0].Value, "mobile", "devices = %+v", devices)
	must.Equal(t, devices[1].Value, "desktop", "devices = %+v", devices)
	compareWithPaper(t, "mobile", devices[0].Variations, paper{4, 5, 2, 3, "27.5"}, paper{3, 3, 2, 3, "45"})
	compareWithPaper(t, "desktop", devices[1].Variations, paper{2, 3, 0, 0, "0"}, paper{1, 1, 1, 1, "25"})
}

func close12(got *float64, want float64) bool {
	return got != nil && math.Abs(*got-want) <= 1e-12*math.Abs(want)
}

// checkThirtyWelch checks Welch's test. Control has the values 0, 0, 0, 0,
// 12.5, 15 and the new variation 0, 5, 25, 40, with the variances 1531.25/30
// and 4100/12.
func checkThirtyWelch(t *testing.T, v []result.VariationResults) {
	t.Helper()
	vc, vt := 1531.25/30/6, 4100.0/12/4
	m := v[0].Metrics.ValuePerVisitor
	if !close12(m.Value, 27.5/6) || !close12(m.StandardError, math.Sqrt(vc)) {
		t.Errorf("control's value per visitor = %v ± %v", *m.Value, *m.StandardError)
	}
	c := v[1].Comparison
	if !close12(c.Difference.Value, 70.0/4-27.5/6) || !close12(c.Improvement.Value, 70.0/4/(27.5/6)-1) {
		t.Errorf("difference %v, improvement %v", *c.Difference.Value, *c.Improvement.Value)
	}
	f := c.Frequentist
	if f.Test != stats.TestWelch || !close12(f.Statistic, (70.0/4-27.5/6)/math.Sqrt(vc+vt)) ||
		!close12(f.DegreesOfFreedom, (vc+vt)*(vc+vt)/(vc*vc/5+vt*vt/3)) {
		t.Errorf("test %s, t = %v with %v degrees of freedom", f.Test, *f.Statistic, *f.DegreesOfFreedom)
	}
	check.That(t, !c.Significant, "significant %v, verdict %s; want too few data", c.Significant, c.Verdict)
	check.Equal(t, c.Verdict, stats.VerdictInsufficientData, "significant %v, verdict %s; want too few data",
		c.Significant, c.Verdict)
}

// checkThirtyScore checks the score test of 2 of 6 against 3 of 4. The pooled rate is a half, so z² = 3/2.
func checkThirtyScore(t *testing.T, h *house) {
	t.Helper()
	r := h.results("/v1/campaigns/1/results")
	f := r.Variations[1].Comparison.Frequentist
	if f.Test != stats.TestScore || !close12(f.Statistic, math.Sqrt(1.5)) ||
		!close12(f.PValue, math.Erfc(math.Sqrt(0.75))) {
		t.Errorf("test %s, z = %v, p = %v; want the root of 1.5 and %v", f.Test, *f.Statistic, *f.PValue,
			math.Erfc(math.Sqrt(0.75)))
	}
}
