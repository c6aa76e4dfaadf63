package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
)

func TestShareLinkAndView(t *testing.T) {
	c := open(t)
	mustApply(t, c, strings.Replace(valid, "domain: shop.example.com", "domain: shop.example.com\n        currency: EUR", 1))
	owned := c.Snapshot().AccountResources(1)
	for _, test := range []struct {
		name                         string
		subject                      schema.SubjectIDs
		link                         string
		campaigns, widgets, websites int
	}{
		{"campaign", schema.SubjectIDs{CampaignID: 12}, "?campaign=12#currency=EUR&share=lh_x", 1, 0, 1},
		{"widget", schema.SubjectIDs{WidgetID: 7}, "?widget=7#currency=EUR&share=lh_x", 0, 1, 1},
		{"experiment", schema.SubjectIDs{WidgetID: 7, ExperimentID: 2}, "?experiment=2&widget=7#currency=EUR&share=lh_x", 0, 1, 1},
		{"absent", schema.SubjectIDs{WidgetID: 7, ExperimentID: 3}, "?experiment=3&widget=7#share=lh_x", 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, owned.ShareLink("https://lift.example.com", &test.subject, "lh_x"), "https://lift.example.com/"+test.link, "ShareLink")
			view := owned.SharedView(&test.subject)
			check.That(t, len(view.Campaigns) == test.campaigns && len(view.Widgets) == test.widgets && len(view.Websites) == test.websites && len(view.Goals) == test.websites && view.Version == owned.Version,
				"SharedView = %+v", view)
			check.Equal(t, len(view.Widgets[7].Experiments) == 1, test.name == "experiment", "experiments")
		})
	}
	check.Equal(t, len(owned.Widgets[7].Experiments), 1, "experiments of the account")
}

func TestApplyToVersion(t *testing.T) {
	servers := twoServers(t, schematest.OpenMigrated(t))
	c := servers[0]
	was := c.Snapshot().AccountResources(1).Version
	file := func(name string, versions ...uint64) catalogue.File {
		file := c.Snapshot().AccountResources(1).CatalogueFile()
		file.Accounts[0].Name, file.AccountID = name, 1
		if versions != nil {
			file.Replaces = func(version uint64) bool { return slices.Contains(versions, version) }
		}
		return file
	}
	changes, version, err := servers[0].ApplyToVersion(t.Context(), file("First", 5, was), false)
	if is := c.Snapshot().AccountResources(1).Version; err != nil || len(changes) != 1 || version != is || version == was {
		t.Errorf("version %d, stored %d, before %d, %v", version, is, was, err)
	}
	for _, versions := range [][]uint64{{5}, {was}} {
		_, _, err := servers[1].ApplyToVersion(t.Context(), file("Second", versions...), false)
		check.That(t, err != nil && strings.Contains(err.Error(), "has changed"), "versions %d: %v, want ErrVersionChanged", versions, err)
	}
	if is := servers[1].Snapshot().AccountResources(1); is.Version != version || is.Name != "First" {
		t.Errorf("the other server has %s in version %d after the refusal, want First in %d", is.Name, is.Version, version)
	}
	if _, dry, err := servers[1].ApplyToVersion(t.Context(), file("Second"), true); err != nil || dry != version {
		t.Errorf("dry run: version %d, %v, want %d", dry, err, version)
	}
}
