package catalogue_test

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

//go:embed testdata/keyed.yaml
var keyedFile string

// TestKeys checks that a file with keys has the computed ids, that its export has the same keys and no computed id, and
// that applying the export changes nothing.
func TestKeys(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	file := must.Get(catalogue.ReadYAML(strings.NewReader(keyedFile)))(t)
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	must.OK(t, c.RefreshSnapshot(t.Context()))
	owned := c.Snapshot().AccountResources(1)

	idOf := func(kind schema.NameKind, key string) int64 {
		id, _, err := schema.IDOf(7, kind, key)
		must.OK(t, err)
		return id
	}
	purchase := idOf(schema.NameGoal, "purchase")
	campaign := owned.Campaigns[idOf(schema.NameCampaign, "checkout-layout")]
	check.Equal(t, campaign.PrimaryGoalID, purchase, "primary goal")
	check.Equal(t, campaign.Goals.Guardrails[0].GoalID, idOf(schema.NameGoal, "true"), "guardrail")
	check.Equal(t, campaign.Variations[1].ID, idOf(schema.NameVariation, "Käse 2"), "variation")
	check.Equal(t, owned.Widgets[5].PrimaryGoalID, purchase, "goal of a widget")
	check.Equal(t, len(owned.Campaigns), 2, "campaigns")
	check.Equal(t, must.Get(owned.FindID(schema.NameCampaign, "checkout-layout"))(t), campaign.ID, "found by key")
	_, err := owned.FindID(schema.NameGoal, "checkout-layout")
	check.That(t, err != nil, "a campaign is found as a goal")

	var exported strings.Builder
	must.OK(t, c.Snapshot().CatalogueFile().WriteYAML(&exported))
	check.Equal(t, regexp.MustCompile(`[0-9]{16}`).FindString(exported.String()), "", "the export has a computed id:\n%s", exported.String())
	again := must.Get(catalogue.ReadYAML(strings.NewReader(exported.String())))(t)
	again.Prune = true
	check.Equal(t, len(must.Get(c.ApplyFile(t.Context(), again, false))(t)), 0, "changes by the export")
}
