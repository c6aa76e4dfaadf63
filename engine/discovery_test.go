package engine

import (
	"fmt"
	"strings"
	"testing"

	"lifthouse/engine/facts"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestDiscover imports events of campaigns that are not declared, and declares one. The report counts the events that
// arrived before, and says that the plan was declared late.
func TestDiscover(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	apply := func(file catalogue.File) {
		t.Helper()
		must.Get(c.ApplyFile(t.Context(), file, false))(t)
	}
	apply(must.Get(catalogue.ReadYAML(strings.NewReader("accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: " +
		"shop.example.com, currency: EUR}]}]")))(t))

	refresher := facts.NewRefresher(conn, true)
	e, w := New(conn, c, source.DefaultLimits, facts.Shards{refresher}), ingest.NewWriter(conn, nil)
	w.AfterInsert(refresher.NoteEvents)
	must.OK(t, e.facts.OpenFacts(t.Context()))

	var lines strings.Builder
	view := func(campaign, variation string, visitor int) {
		fmt.Fprintf(&lines,
			`{"eventId":"%s %d","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v%[2]d","event":"view","campaignId":%[1]q,"variationId":%[3]q}`+"\n", campaign, visitor, variation)
	}
	for i := range 2000 {
		view("layout", []string{"control", "b", "c"}[i%3], i)
		view("uneven", []string{"old", "old", "old", "new"}[i%4], i)
		if i%10 == 0 {
			view("12", []string{"0", "1"}[i/10%2], i)
			fmt.Fprintf(&lines,
				`{"eventId":"g%d","time":"2026-05-01T13:00:00Z","websiteId":1,"visitor":"v%[1]d","event":"goal","goalId":"purchase","value":5}`+"\n", i)
		}
	}
	must.Get(ingest.ImportFile(t.Context(), w, "-", ingest.Options{Input: strings.NewReader(lines.String())}))(t)
	must.OK(t, e.facts.RefreshFacts(t.Context()))
	discover := func() (all []Discovered) {
		t.Helper()
		return must.Get(e.Discover(t.Context(), c.Snapshot().AccountResources(1)))(t)
	}
	all := discover()
	var shown []string
	for i := range all {
		d := &all[i]
		line := fmt.Sprintf("%s %d from %s:", d.Name(), d.Visitors, d.Source)
		for k := range d.Variations {
			line += fmt.Sprintf(" %s %d", d.Variations[k].Name(), d.Variations[k].Visitors)
		}
		shown = append(shown, fmt.Sprintf("%s, equal %v", line, *d.EqualSplit > .001))
	}
	check.Equal(t, strings.Join(shown, "; "),
		"layout 2000 from -: control 667 b 667 c 666, equal true; uneven 2000 from -: old 1500 new 500, equal false; "+
			"12 200 from -: control 100 1 100, equal true", "discovered")

	owned := func() *catalogue.AccountResources { return c.Snapshot().AccountResources(1) }
	declare := func(how Declaration) (catalogue.File, error) {
		t.Helper()
		file, found, err := DeclareDiscovered(all, owned(), how)
		check.Equal(t, found, true, "found "+how.Campaign)
		return file, err
	}
	for _, how := range []Declaration{{Campaign: "other"}, {Campaign: "uneven", WebsiteID: 2}} {
		_, found, err := DeclareDiscovered(all, owned(), how)
		must.OK(t, err)
		check.Equal(t, found, false, "found "+how.Campaign)
	}
	for _, test := range []struct {
		how  Declaration
		want string
	}{
		{Declaration{Campaign: "uneven"}, `control: "": must be one of old, new`},
		{Declaration{Campaign: "uneven", Control: "old"}, "shares: the visitors are not divided equally"},
		{
			Declaration{Campaign: "uneven", Control: "old", Shares: []int{75, 20}},
			"must be 2 numbers in percent with the sum 100",
		},
		{Declaration{Campaign: "uneven", Control: "old", Shares: []int{75, 25}}, "goal: "},
	} {
		_, err := declare(test.how)
		must.That(t, err != nil, "%+v: %v, want %s", test.how, err, test.want)
		check.Contains(t, err.Error(), test.want, "%+v: %v, want %s", test.how, err, test.want)
	}
	apply(must.Get(declare(Declaration{
		Campaign: "uneven", Goal: "purchase", Control: "old",
		Shares: []int{75, 25},
	}))(t))
	apply(must.Get(declare(Declaration{Campaign: "layout", Goal: "purchase"}))(t))
	apply(must.Get(declare(Declaration{Campaign: "12", Ignored: true}))(t))
	check.Equal(t, len(discover()), 0, "discovered afterwards")
	check.Equal(t, owned().Websites[1].Currency, "EUR", "currency")
	check.Equal(t, len(owned().Goals), 1, "goals")
	for _, name := range []string{"layout", "uneven"} {
		id, _, err := schema.IDOf(1, schema.NameCampaign, name)
		must.OK(t, err)
		report := must.Get(e.ComputeReport(t.Context(),
			planOf(t, e, query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: id})))(t)
		check.Equal(t, report.Totals.Visitors, 2000, name)
		check.Equal(t, report.Checks.SampleRatio.Mismatch, false, "mismatch of "+name)
		check.That(t, strings.Contains(fmt.Sprint(report.Checks.Warnings), "DECLARED_LATE"), "%s: %v", name,
			report.Checks.Warnings)
	}
}
