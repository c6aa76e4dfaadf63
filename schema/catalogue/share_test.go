package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestShareLinkAndView(t *testing.T) {
	c := open(t)
	mustApply(t, c,
		strings.Replace(valid, "domain: shop.example.com", "domain: shop.example.com\n        currency: EUR", 1))
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
			check.Equal(t, owned.ShareLink("https://lift.example.com", &test.subject, "lh_x"),
				"https://lift.example.com/"+test.link, "ShareLink")
			view := owned.SharedView(&test.subject)
			check.Equal(t, len(view.Campaigns), test.campaigns, "SharedView = %+v", view)
			check.Equal(t, len(view.Widgets), test.widgets, "SharedView = %+v", view)
			check.Equal(t, len(view.Websites), test.websites, "SharedView = %+v", view)
			check.Equal(t, len(view.Goals), test.websites, "SharedView = %+v", view)
			check.Equal(t, view.Version, owned.Version, "SharedView = %+v", view)
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
	if is := c.Snapshot().AccountResources(1).Version; err != nil || len(changes) != 1 || version != is ||
		version == was {
		t.Errorf("version %d, stored %d, before %d, %v", version, is, was, err)
	}
	for _, versions := range [][]uint64{{5}, {was}} {
		_, _, err := servers[1].ApplyToVersion(t.Context(), file("Second", versions...), false)
		must.That(t, err != nil, "versions %d: %v, want ErrVersionChanged", versions, err)
		check.Contains(t, err.Error(), "has changed", "versions %d: %v, want ErrVersionChanged", versions, err)
	}
	if is := servers[1].Snapshot().AccountResources(1); is.Version != version || is.Name != "First" {
		t.Errorf("the other server has %s in version %d after the refusal, want First in %d", is.Name, is.Version, version)
	}
	if _, dry, err := servers[1].ApplyToVersion(t.Context(), file("Second"), true); err != nil || dry != version {
		t.Errorf("dry run: version %d, %v, want %d", dry, err, version)
	}
}

// TestTokensOfAnAccountAreBounded creates tokens until there are too many. Expired and revoked ones do not count.
func TestTokensOfAnAccountAreBounded(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	account := catalogue.Account{
		ID: 1, Name: "Shop",
		Websites: []catalogue.Website{{ID: 1, Domain: "shop.example.com"}},
	}
	must.Get(c.ApplyFile(t.Context(), catalogue.File{Accounts: []catalogue.Account{account}}, false))(t)
	token := catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}}
	_, _, err := c.CreateToken(t.Context(), token)
	must.OK(t, err)
	must.OK(t, conn.Exec(t.Context(), `
INSERT INTO catalogue
SELECT catalogue.* REPLACE (id + number + 1 AS id,
    '{"sha256": "' || hex(SHA256(toString(number))) || '", "scopes": ["read"]'
        || if(number % 2 = 0, '', ', "expiresAt": "2020-01-01T00:00:00Z"') || '}' AS body)
FROM catalogue CROSS JOIN numbers(1996) AS n
WHERE kind = 'token'`))
	_, last, err := c.CreateToken(t.Context(), token)
	must.OK(t, err)
	_, _, err = c.CreateToken(t.Context(), token)
	must.That(t, err != nil, "one too many: %v", err)
	check.Contains(t, err.Error(), "has 1000 tokens and share links", "one too many: %v", err)
	must.Get(c.RevokeToken(t.Context(), 1, last.ID))(t)
	_, _, err = c.CreateToken(t.Context(), token)
	check.OK(t, err, "after one is revoked")
	token.Scopes, token.WebsiteID, token.Name = []catalogue.Scope{catalogue.ScopeIngest}, 1, "big"
	token.Sender = &catalogue.Sender{Mapping: strings.Repeat("x", 16<<10+1)}
	_, _, err = c.CreateToken(t.Context(), token)
	must.That(t, err != nil, "a large mapping: %v", err)
	check.Contains(t, err.Error(), "sender.mapping", "a large mapping: %v", err)
}
