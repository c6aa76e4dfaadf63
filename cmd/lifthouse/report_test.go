package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"lifthouse/engine/facts"
	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func thirtyHouse(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("import", "testdata/thirty.ndjson")
	return h
}

// TestReportForms checks that the output is JSON with --json, and that CSV equals that of the API.
func TestReportForms(t *testing.T) {
	h := thirtyHouse(t)
	h.token = strings.TrimSpace(h.must("token", "create"))
	var r result.Report
	for _, args := range [][]string{{}, {"--json"}} {
		err := json.Unmarshal([]byte(h.must(append([]string{"report", "campaign", "1", "--json"}, args...)...)), &r)
		must.That(t, err == nil, "%q: %d visitors, %v; want 10", args, r.Totals.Visitors, err)
		check.Equal(t, r.Totals.Visitors, 10, "%q: %d visitors, %v; want 10", args, r.Totals.Visitors, err)
	}
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet,
		h.url+"/v1/campaigns/1/results?dimension=device&interval=day", http.NoBody))(t)
	request.Header = http.Header{"Authorization": {"Bearer " + h.token}, "Accept": {"text/csv"}}
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer func() { _ = response.Body.Close() }()
	var fromAPI strings.Builder
	must.Get(bufio.NewReader(response.Body).WriteTo(&fromAPI))(t)
	got := h.must("report", "campaign", "1", "--dimension=device", "--interval=day", "--csv")
	check.Equal(t, got, fromAPI.String(), "--csv has\n%.300s\nthe API\n%.300s", got, fromAPI.String())
	check.That(t, strings.Count(got, "\n") >= 8, "--csv has\n%.300s\nthe API\n%.300s", got, fromAPI.String())
}

// TestVisitorsFile checks the file of a report's visitors, which the serving process writes.
func TestVisitorsFile(t *testing.T) {
	h := thirtyHouse(t)
	name := filepath.Join(t.TempDir(), "mobile.parquet")
	h.must("report", "campaign", "1", "--filter", "device=mobile", "--visitors-file", name)
	rows, err := parquet.ReadFile[facts.Visitor](name)
	must.That(t, err == nil, "%d visitors, %v; want 7", len(rows), err)
	check.Equal(t, len(rows), 7, "%d visitors, %v; want 7", len(rows), err)
}
