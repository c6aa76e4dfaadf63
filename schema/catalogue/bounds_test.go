package catalogue_test

import (
	"fmt"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestBounds applies each field at its bounds and beyond them.
func TestBounds(t *testing.T) {
	c := open(t)
	name := func(n int) string { return strings.Repeat("é", n) }
	types := strings.Join(catalogue.CampaignTypes, " ")
	for _, test := range []struct {
		field          string // field of the resource
		set            func(site *catalogue.Website, to any)
		right, refused []any
	}{
		{"campaigns[0].name", func(w *catalogue.Website, to any) { w.Campaigns[0].Name = to.(string) }, []any{"x", name(255)}, []any{"", name(256)}},
		{"campaigns[0].description", func(w *catalogue.Website, to any) { w.Campaigns[0].Description = to.(string) }, []any{"", name(2048)}, []any{name(2049)}},
		{"campaigns[0].type", func(w *catalogue.Website, to any) { w.Campaigns[0].Type = to.(string) }, every(types), []any{"", "popup", "Experiment"}},
		{"campaigns[0].controlShare", func(w *catalogue.Website, to any) { w.Campaigns[0].ControlShare = to.(int) }, []any{0, 100}, []any{-1, 101}},
		{"campaigns[0].trafficAllocation", func(w *catalogue.Website, to any) { w.Campaigns[0].TrafficAllocation = to.(int) }, []any{0, 100}, []any{-1, 101}},
		{"campaigns[0].significanceLevel", func(w *catalogue.Website, to any) { w.Campaigns[0].SignificanceLevel = to.(int) }, []any{80, 90, 95, 100}, []any{0, 85, 99}},
		{"campaigns[0].methodology", func(w *catalogue.Website, to any) {
			w.Campaigns[0].Methodology, w.Campaigns[0].Prior = to.(string), nil
		}, every("bayesian frequentist"), []any{"", "Bayesian"}},
		{"campaigns[0].power", func(w *catalogue.Website, to any) { w.Campaigns[0].Power = to.(int) }, []any{60, 99}, []any{59, 100}},
		{"campaigns[0].mde", func(w *catalogue.Website, to any) { w.Campaigns[0].MDE = to.(float64) }, []any{1.0, 1.5, 100.0}, []any{0.99, 100.01}},
		{"campaigns[0].targetId", func(w *catalogue.Website, to any) { w.Campaigns[0].TargetID = to.(int64) }, []any{int64(0), int64(5)}, []any{int64(77), int64(-1)}},
		{"campaigns[0].primaryGoalId", func(w *catalogue.Website, to any) { w.Campaigns[0].PrimaryGoalID = to.(int64) }, []any{int64(0), int64(4)}, []any{int64(77), int64(-1)}},
		{"campaigns[0].variations[0].share", func(w *catalogue.Website, to any) { w.Campaigns[0].Variations[0].Share = to.(int) }, []any{0, 100}, []any{-1, 101}},
		{"campaigns[0].variations[0].targetId", func(w *catalogue.Website, to any) { w.Campaigns[0].Variations[0].TargetID = to.(int64) }, []any{int64(6)}, []any{int64(77)}},
		{
			"campaigns[0].variations[0].imageUrl", func(w *catalogue.Website, to any) { w.Campaigns[0].Variations[0].ImageURL = to.(string) },
			[]any{"", "https://a.example/b.png?c=1", "https://a.example/" + strings.Repeat("a", 2030)},
			[]any{"http://a.example/b.png", "javascript:alert(1)", "//a.example/b.png", "b.png", "https://", "https://u@a.example/", "https://a.example/#b", "https://a.example/" + strings.Repeat("a", 2031)},
		},
		{"widgets[0].experiments[0].variations[0].imageUrl", func(w *catalogue.Website, to any) { w.Widgets[0].Experiments[0].Variations[0].ImageURL = to.(string) }, []any{"https://a.example/b"}, []any{"data:image/png;base64,AA=="}},
		{
			"campaigns[0].id", func(w *catalogue.Website, to any) { w.Campaigns[0].ID = to.(int64) },
			[]any{int64(12), schema.FirstKeyID - 1},
			[]any{int64(0), int64(-1), schema.FirstKeyID, int64(1<<63 - 1)},
		},
		{"widgets[0].name", func(w *catalogue.Website, to any) { w.Widgets[0].Name = to.(string) }, []any{"x", name(255)}, []any{"", name(256)}},
		{"widgets[0].type", func(w *catalogue.Website, to any) { w.Widgets[0].Type = to.(string) }, every("popup callout bar embedded"), []any{"", "experiment"}},
		{"widgets[0].primaryGoalId", func(w *catalogue.Website, to any) { w.Widgets[0].PrimaryGoalID = to.(int64) }, []any{int64(3)}, []any{int64(77)}},
		{"widgets[0].variations[0].share", func(w *catalogue.Website, to any) { w.Widgets[0].Variations[0].Share = to.(int) }, []any{0, 100}, []any{-1, 101}},
		{"widgets[0].experiments[0].controlShare", func(w *catalogue.Website, to any) { w.Widgets[0].Experiments[0].ControlShare = to.(int) }, []any{0, 100}, []any{-1, 101}},
		{"widgets[0].experiments[0].name", func(w *catalogue.Website, to any) { w.Widgets[0].Experiments[0].Name = to.(string) }, []any{"", name(255)}, []any{name(256)}},
		{"widgets[0].experiments[0].primaryMetric", func(w *catalogue.Website, to any) { w.Widgets[0].Experiments[0].PrimaryMetric = to.(string) }, every(strings.Join(catalogue.ExperimentMetrics, " ")), []any{"submits"}},
		{"goals[0].name", func(w *catalogue.Website, to any) { w.Goals[0].Name = to.(string) }, []any{"x", name(255)}, []any{"", name(256)}},
		{"targets[0].name", func(w *catalogue.Website, to any) { w.Targets[0].Name = to.(string) }, []any{"x", name(255)}, []any{"", name(256), "\xff"}},
		{"domain", func(w *catalogue.Website, to any) { w.Domain = to.(string) }, []any{"a.bc"}, []any{"", "a", "A.bc"}},
	} {
		try := func(to any) error {
			file := must.Get(catalogue.ReadYAML(strings.NewReader(whole)))(t)
			test.set(&file.Accounts[0].Websites[0], to)
			_, err := c.ApplyFile(t.Context(), file, true)
			return err
		}
		for _, to := range test.right {
			must.OK(t, try(to), "%s: %.40v is rejected", test.field, to)
		}
		for _, to := range test.refused {
			err := try(to)
			check.That(t, err != nil && strings.Contains(err.Error(), "accounts[0].websites[0]."+test.field+": "),
				"%s: %.40v gives %.200v, want an error", test.field, fmt.Sprint(to), err)
		}
	}
}

func every(words string) []any {
	var all []any
	for word := range strings.FieldsSeq(words) {
		all = append(all, word)
	}
	return all
}
