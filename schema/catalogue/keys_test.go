package catalogue_test

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
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

// TestKeysThatLookLikeNumbersNeedQuotes has one fault for each key without quotes, and none for those with quotes.
func TestKeysThatLookLikeNumbersNeedQuotes(t *testing.T) {
	file := func(keys ...string) string {
		text := "accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com, campaigns: ["
		for i, key := range keys {
			text += fmt.Sprintf("{key: %s, name: N%d, variations: [{key: %s, name: V}]}, ", key, i, key)
		}
		return text + "]}]}]"
	}
	_, err := catalogue.ReadYAML(strings.NewReader(file(`"2.0"`, `"."`, `"1e3"`, `"12.0"`)))
	check.OK(t, err)
	c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
	wrong, err := catalogue.ReadYAML(strings.NewReader(file("2.0", "1e3")))
	check.That(t, err != nil, "keys without quotes are read")
	_, err = c.ApplyFile(t.Context(), wrong, false)
	list, is := errors.AsType[faults.List](err)
	must.That(t, is, "%v", err)
	for _, fault := range list {
		check.Contains(t, fault.String(), "must be a string: add quotes")
	}
	check.Equal(t, len(list), 4, "faults: %v", list)
}

// TestTimeZonesAreThoseOfTheDatabase declares websites with the names of other files beside those of zones.
func TestTimeZonesAreThoseOfTheDatabase(t *testing.T) {
	c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
	for zone, isZone := range map[string]bool{
		"Europe/Berlin": true, "UTC": true, "EST5EDT": true, "": true, "localtime": false, "posixrules": false,
		"right/Europe/Berlin": false, "posix/Europe/Berlin": false, "Factory": false, "Local": false, "zone.tab": false,
		"../../etc/localtime": false, "/etc/localtime": false,
	} {
		site := catalogue.Website{ID: 1, Domain: "shop.example.com", Timezone: zone}
		account := catalogue.Account{ID: 1, Name: "Shop", Websites: []catalogue.Website{site}}
		_, err := c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{account}}, true)
		check.Equal(t, err == nil, isZone, "zone %q: %v", zone, err)
	}
}
