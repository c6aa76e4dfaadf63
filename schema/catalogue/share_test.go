package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

func TestShareLinkAndView(t *testing.T) {
	c := open(t)
	mustApply(t, c, strings.Replace(valid, "domain: shop.example.com", "domain: shop.example.com\n        currency: EUR", 1))
	owned := c.Snapshot().AccountResources(1)
	for _, test := range []struct {
		name                         string
		subject                      catalogue.PageSubject
		link                         string
		campaigns, widgets, websites int
	}{
		{"campaign", catalogue.PageSubject{CampaignID: 12}, "https://lift.example.com/?campaign=12#currency=EUR&share=lh_x", 1, 0, 1},
		{"widget", catalogue.PageSubject{WidgetID: 7}, "https://lift.example.com/?widget=7#currency=EUR&share=lh_x", 0, 1, 1},
		{"experiment", catalogue.PageSubject{WidgetID: 7, ExperimentID: 2}, "https://lift.example.com/?experiment=2&widget=7#currency=EUR&share=lh_x", 0, 1, 1},
		{"absent", catalogue.PageSubject{WidgetID: 7, ExperimentID: 3}, "https://lift.example.com/?experiment=3&widget=7#share=lh_x", 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := owned.ShareLink("https://lift.example.com", &test.subject, "lh_x"); got != test.link {
				t.Errorf("ShareLink = %s, want %s", got, test.link)
			}
			view := owned.SharedView(&test.subject)
			if len(view.Campaigns) != test.campaigns || len(view.Widgets) != test.widgets || len(view.Websites) != test.websites || len(view.Goals) != test.websites || view.Version != owned.Version {
				t.Errorf("SharedView = %+v", view)
			}
			if experiments := len(view.Widgets[7].Experiments); (experiments == 1) != (test.name == "experiment") {
				t.Errorf("%d experiments", experiments)
			}
		})
	}
	if len(owned.Widgets[7].Experiments) != 1 {
		t.Error("the view changed the account")
	}
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
		if _, _, err := servers[1].ApplyToVersion(t.Context(), file("Second", versions...), false); err == nil || !strings.Contains(err.Error(), "has changed") {
			t.Errorf("versions %d: %v, want ErrVersionChanged", versions, err)
		}
	}
	if is := servers[1].Snapshot().AccountResources(1); is.Version != version || is.Name != "First" {
		t.Errorf("the other server has %s in version %d after the refusal, want First in %d", is.Name, is.Version, version)
	}
	if _, dry, err := servers[1].ApplyToVersion(t.Context(), file("Second"), true); err != nil || dry != version {
		t.Errorf("dry run: version %d, %v, want %d", dry, err, version)
	}
}

func TestFileOfOneAccount(t *testing.T) {
	c := open(t)
	mustApply(t, c, "accounts: [{id: 1, name: A}, {id: 2, name: B, websites: [{id: 2, domain: b.example.com}]}]")
	file := must.Get(catalogue.ReadYAML(strings.NewReader("accounts: [{id: 1, name: A}]")))(t)
	file.AccountID, file.Prune = 1, true
	if changes, err := c.ApplyFile(t.Context(), file, false); err != nil || len(changes) != 0 {
		t.Errorf("changes %+v, %v, want none: the other account stays", changes, err)
	}
	file.AccountID = 2
	if _, err := c.ApplyFile(t.Context(), file, false); err == nil || !strings.Contains(err.Error(), "must be 2") {
		t.Errorf("another account: %v", err)
	}
}

// TestFilesThatExhaustTheParser has short files that would take much memory or time.
func TestFilesThatExhaustTheParser(t *testing.T) {
	const n = 30_000
	for _, test := range []struct{ name, text, want string }{
		{"lists", strings.Repeat("[", n), "max depth"},
		{"mappings", strings.Repeat("{a: ", n), "max depth"},
		{"entries in a line", strings.Repeat("- ", n), "max depth"},
		{"keys in a line", strings.Repeat("a: ", n), "not allowed"},
		{"keys in brackets", "{" + strings.Repeat("a:\n", n), "expected"},
		{"question marks", strings.Repeat("? ", n), "max depth"},
		{"anchors", strings.Repeat("&a\n", n), "expected"},
		{"tags", strings.Repeat("!a\n", n), "expected"},
		{"empty entries", strings.Repeat("-\n", n), "must have fields"},
		{"empty keys", strings.Repeat("a:\n", n), "unknown field"},
		{"empty keys of entries", strings.Repeat("- a:\n", n), "must have fields"},
		{"empty keys in brackets", "{" + strings.Repeat("a:,", n) + "}", "unknown field"},
		{"keys without values", "{" + strings.Repeat("a,", n) + "}", "unknown field"},
		{"a list in itself", "accounts: &a [{websites: *a}]", "aliases are not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := catalogue.ReadYAML(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%.300v, want %s", err, test.want)
			}
		})
	}
	const fine = "accounts: # lists may begin at the column of their key\n- id: 1\n  name: A\n  websites:\n  - id: 1\n    domain: a.example.com\n    goals:\n"
	if file, err := catalogue.ReadYAML(strings.NewReader(fine + strings.Repeat("    - {id: 1, name: A}\n", 2000))); err != nil || len(file.Accounts[0].Websites[0].Goals) != 2000 {
		t.Errorf("a long file: %.300v", err)
	}
}
