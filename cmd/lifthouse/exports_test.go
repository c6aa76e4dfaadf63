package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/must"
)

// reported returns visitors/converted/value of each variation in a report.
func (h *house) reported(args ...string) string {
	h.t.Helper()
	var r result.Report
	must.OK(h.t, json.Unmarshal([]byte(h.must(append([]string{"report"}, args...)...)), &r))
	var counts []string
	for _, v := range r.Variations {
		counts = append(counts, fmt.Sprintf("%d/%d/%s", v.Visitors, v.ConvertedVisitors, v.Value))
	}
	return strings.Join(counts, " ")
}

// TestExportsOfGrowthBook imports exposures and a metric in either order. One
// order is before the exposure of its visitor, and one is of a visitor without
// an exposure.
func TestExportsOfGrowthBook(t *testing.T) {
	files := []string{"exposures", "orders"}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		h := newHouse(t)
		h.must("apply", "-f", "testdata/exports.catalog.yaml")
		for _, i := range order {
			mapping := []string{"exposures", "metric"}[i]
			h.must("import", "-m", "testdata/growthbook."+mapping+".mapping.yaml", "testdata/growthbook."+files[i]+".csv")
		}
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"campaign", "12"}, "2/1/10 2/2/30"},
			{[]string{"campaign", "13"}, "1/0/0 1/1/19.9"},
			{[]string{"campaign", "12", "--filter", "country=US"}, "1/1/10 1/1/19.9"},
		} {
			if got := h.reported(c.args...); got != c.want {
				t.Errorf("%v, %q: %s, want %s", order, c.args, got, c.want)
			}
		}
	}
}

// TestExportsOfPostHog imports the same events as JSON lines, as JSON lines
// with properties as text, and as CSV.
func TestExportsOfPostHog(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/exports.catalog.yaml")
	for _, file := range []string{"testdata/posthog.ndjson", propertiesAsText(t), "testdata/posthog.csv"} {
		out := h.must("import", "-m", "testdata/posthog.mapping.yaml", file)
		if !strings.Contains(out, ": 8 rows accepted, 0 of 11 lines rejected") {
			t.Errorf("%s: %q", file, out)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"campaign", "12"}, "1/1/10 2/1/19.9"},
		{[]string{"campaign", "12", "--filter", "device=mobile", "--filter", "country=DE"}, "0/0/0 1/1/19.9"},
	} {
		if got := h.reported(c.args...); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}

func propertiesAsText(t *testing.T) string {
	t.Helper()
	lines := must.Get(os.ReadFile("testdata/posthog.ndjson"))(t)
	var out strings.Builder
	for line := range strings.Lines(string(lines)) {
		var event map[string]any
		must.OK(t, json.Unmarshal([]byte(line), &event))
		text := must.Get(json.Marshal(event["properties"]))(t)
		event["properties"] = string(text)
		must.OK(t, json.NewEncoder(&out).Encode(event))
	}
	path := filepath.Join(t.TempDir(), "text.ndjson")
	must.OK(t, os.WriteFile(path, []byte(out.String()), 0o600))
	return path
}
