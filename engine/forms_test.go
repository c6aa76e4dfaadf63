package engine

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"lifthouse/engine/plan"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/worlds"
)

// checkForms checks that the CSV has a row for each variation, and that the SVG is XML with valid numbers.
func checkForms(t worlds.TB, plan *plan.Plan, results *result.Report) {
	t.Helper()
	table := must.Get(render.CSV(results))(t)
	records, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	want := 1 + len(plan.Variations)*(1+len(results.Breakdown)+len(results.Series))
	check.That(t, err == nil && len(records) == want, "%d lines of CSV, %v; want %d\n%+v", len(records), err, want, plan)
	svg := must.Get(render.ForestPlot(results))(t)
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for err == nil {
		_, err = decoder.Token()
	}
	check.That(t, errors.Is(err, io.EOF) && !strings.Contains(string(svg), "NaN") && !strings.Contains(string(svg), "Inf"), "the picture: %v\n%s\n%+v", err, svg, plan)
}
