package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"lifthouse/engine/facts"
	"lifthouse/engine/result"
	"lifthouse/schema/schematest/must"
)

func thirtyHouse(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("import", "testdata/thirty.ndjson")
	return h
}

var acceptedAt = regexp.MustCompile(`data through \S+ \S+`)

func TestReportTable(t *testing.T) {
	const want = `
Not enough data for a verdict: there are too few visitors (a verdict needs 100
in each variation).

Campaign 1 · goal Purchase · goal conversion rate · frequentist, 95 % · 10
visitors · data through T

variation  visitors  converted    rate     95 % interval
Control           6          2  33.3 %   [9.7 %, 70.0 %]
New               4          3  75.0 %  [30.1 %, 95.4 %]

variation    lift    95 % interval       p  p at look 1  verdict
New        +125 %  [-39 %, +786 %]  0.2207            –  not enough data

Variation New: there are too few visitors (a verdict needs 100 in each
  variation).
The p-value is that of a single test. Conclusions come from the looks.
Warning: 15.4 % of the visitors were exposed to more than one variation
Warning: events have variation ids that the catalogue does not declare; their
  visitors are not in the report
Looks: 1, the last one on 2026-05-07 with 9 visitors.
Sample: 1 % of the 1,703 required visitors.

By device

variation          visitors  converted     rate      95 % interval
mobile · Control          4          2   50.0 %   [15.0 %, 85.0 %]
mobile · New              3          2   66.7 %   [20.8 %, 93.9 %]
desktop · Control         2          0    0.0 %    [0.0 %, 65.8 %]
desktop · New             1          1  100.0 %  [20.7 %, 100.0 %]

variation           lift    95 % interval       p  verdict
mobile · New       +33 %  [-69 %, +455 %]  0.6831  not enough data
desktop · New          –       [-48 %, ∞)  0.1573  not enough data
`
	h := thirtyHouse(t)
	got := acceptedAt.ReplaceAllString(h.must("report", "campaign", "1", "--dimension", "device", "--table"), "data through T")
	if got != want[1:] {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

// TestReportForms checks that the output into a pipe is JSON, and that CSV
// equals that of the API.
func TestReportForms(t *testing.T) {
	h := thirtyHouse(t)
	h.token = strings.TrimSpace(h.must("token", "create"))
	var r result.Report
	for _, args := range [][]string{{}, {"--json"}} {
		if err := json.Unmarshal([]byte(h.must(append([]string{"report", "campaign", "1"}, args...)...)), &r); err != nil || r.Totals.Visitors != 10 {
			t.Errorf("%q: %d visitors, %v; want 10", args, r.Totals.Visitors, err)
		}
	}
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/v1/campaigns/1/results?dimension=device&interval=day", http.NoBody))(t)
	request.Header = http.Header{"Authorization": {"Bearer " + h.token}, "Accept": {"text/csv"}}
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer func() { _ = response.Body.Close() }()
	var fromAPI strings.Builder
	must.Get(bufio.NewReader(response.Body).WriteTo(&fromAPI))(t)
	if got := h.must("report", "campaign", "1", "--dimension=device", "--interval=day", "--csv"); got != fromAPI.String() || strings.Count(got, "\n") < 8 {
		t.Errorf("--csv has\n%.300s\nthe API\n%.300s", got, fromAPI.String())
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--csv", "--json"}, exitUsage, "--json and --csv: must be only one of them"},
		{[]string{"--csv", "--watch", "--exit-code"}, exitUsage, "--watch prints a table or JSON, not --csv or --visitors\nreport: --exit-code needs one report"},
		{[]string{"--watch", "--every=10ms"}, exitUsage, `--every "10ms": must be a duration such as 60s or 30d, from 1s to 24h`},
		{[]string{"--dimension=colour"}, exitUsage, "must be one of browser"},
	} {
		if code, out, complaints := h.run(append([]string{"report", "campaign", "1"}, c.args...)...); code != c.code || !strings.Contains(complaints, c.want) {
			t.Errorf("%q: exit %d, %s%s; want %d and %s", c.args, code, out, complaints, c.code, c.want)
		}
	}
}

// TestVisitorsFile checks the file of a report's visitors, which the serving process writes.
func TestVisitorsFile(t *testing.T) {
	h := thirtyHouse(t)
	name := filepath.Join(t.TempDir(), "mobile.parquet")
	h.must("report", "campaign", "1", "--filter", "device=mobile", "--visitors", name)
	rows, err := parquet.ReadFile[facts.Visitor](name)
	if err != nil || len(rows) != 7 {
		t.Errorf("%d visitors, %v; want 7", len(rows), err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--visitors=x", "--json"}, exitUsage, "--json and --visitors: must be only one of them"},
		{[]string{"--visitors=x", "--dimension=device"}, exitUsage, "dimension"},
		{[]string{"--visitors=" + filepath.Join(name, "x")}, exitFailed, "not a directory"},
	} {
		if code, out, complaints := h.run(append([]string{"report", "campaign", "1"}, c.args...)...); code != c.code || !strings.Contains(complaints, c.want) {
			t.Errorf("%q: exit %d, %s%s; want %d and %s", c.args, code, out, complaints, c.code, c.want)
		}
	}
}

// TestWidgetTableComparesNothing checks a table without lifts.
func TestWidgetTableComparesNothing(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/operated.catalog.yaml")
	text := h.must("report", "widget", "7", "--table")
	if !strings.Contains(text, "nothing is compared") || !strings.Contains(text, "Plain") || strings.Contains(text, "lift") {
		t.Errorf("%s", text)
	}
	if text := h.must("report", "experiment", "7/2", "--table"); !strings.Contains(text, "Widget 7, experiment 2") || !strings.Contains(text, "not enough data") {
		t.Errorf("%s", text)
	}
}
