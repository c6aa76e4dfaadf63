package catalogue_test

import (
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestUndeclaredNamesAreLimited checks that random names do not fill the memory.
func TestUndeclaredNamesAreLimited(t *testing.T) {
	c := open(t)
	named := catalogue.NewEventNames(func(schema.NamedID) string { return "" })
	for id := range int64(30_000) {
		named.AddEvents([]schema.Event{{
			WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: id + 1,
			Kind: schema.KindView,
		}})
	}
	found := c.Snapshot().UndeclaredNames(named)
	must.Equal(t, len(found), 10_000, "%d undeclared names, the first %+v; want 10,000 of a catalogue without campaigns", len(found), found[0])
	check.That(t, strings.HasSuffix(found[0].Detail, "it declares none"), "%d undeclared names, the first %+v; want 10,000 of a catalogue without campaigns", len(found), found[0])
}
