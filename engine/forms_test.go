package engine

import (
	"cmp"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
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

// TestValuesAreThoseOfFirstViews compares the values of every attribute with plain loops.
func TestValuesAreThoseOfFirstViews(t *testing.T) {
	w := worlds.New(9)
	conn := schematest.OpenMigrated(t)
	events := w.Events(1, 900)
	events = newStored(t, conn, events).events
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	campaign := catalogue.Campaign{
		ID: 1, WebsiteID: 1, Name: "c", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist, SignificanceLevel: 95, Power: 80, MDE: 20, ControlShare: 50,
		Variations: []catalogue.Variation{{ID: 1, Name: "v", Share: 100}},
	}
	site := catalogue.Website{ID: 1, Domain: "a.example.com", Campaigns: []catalogue.Campaign{campaign}}
	must.Get(c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}, false))(t)
	e, _ := openEngine(conn, c)
	first := map[uint64]schema.Event{}
	for _, event := range events {
		if event.Subject != schema.SubjectCampaign || event.Kind != schema.KindView {
			continue
		}
		if before, seen := first[event.VisitorID]; !seen || cmp.Or(event.Time.Compare(before.Time), cmp.Compare(event.VariationID, before.VariationID), cmp.Compare(event.EventID, before.EventID)) < 0 {
			first[event.VisitorID] = event
		}
	}
	for _, name := range query.Dimensions {
		visitors := map[string]int64{}
		for _, event := range first {
			visitors[attribute(name, &event)]++
		}
		var want []facts.Value
		for value, n := range visitors {
			want = append(want, facts.Value{Value: value, Visitors: n})
		}
		slices.SortFunc(want, func(a, b facts.Value) int {
			return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.Value, b.Value))
		})
		for _, most := range []int{2, 1000} {
			got := must.Get(e.ReadValues(t.Context(), planOf(t, e, query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: 1}), name, most))(t)
			listed := want[:min(most, len(want))]
			check.That(t, slices.Equal(got.Values, listed) && got.Visitors == int64(len(first)) && got.DistinctValues == int64(len(want)),
				"%s: %+v of %d visitors, %d values; want %+v of %d, %d", name, got.Values, got.Visitors, got.DistinctValues, listed, len(first), len(want))
		}
	}
}
