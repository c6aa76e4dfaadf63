package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
)

// TestUndeclaredNames checks which names of events are undeclared, how often they occur, and which names are declared.
func TestUndeclaredNames(t *testing.T) {
	c := open(t)
	mustApply(t, c, `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}, {id: 30, name: Signup}]
        campaigns:
          - {id: 12, name: Banner, type: experiment, controlShare: 50, variations: [{id: 1, name: New, share: 100}]}
          - {id: 345, name: Other, type: experiment, controlShare: 50, variations: [{id: 7, name: New, share: 100}]}
        widgets:
          - {id: 7, name: Newsletter, type: popup, variations: [{id: 1, name: Plain}], experiments: [{id: 2, name: Wording, variations: [{id: 4, name: Short}]}]}
      - id: 2
        domain: blog.example.com
        campaigns:
          - {id: 90, name: Title, type: experiment, controlShare: 50, variations: [{id: 1, name: New, share: 100}]}
`)
	campaign := func(id, variation int64) schema.Event {
		return schema.Event{WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: id, VariationID: variation, Kind: schema.KindView}
	}
	widget := func(id, experiment, variation int64) schema.Event {
		return schema.Event{WebsiteID: 1, Subject: schema.SubjectWidget, SubjectID: id, ExperimentID: experiment, VariationID: variation, Kind: schema.KindClick}
	}
	goal := func(event uint64, id int64) schema.Event {
		return schema.Event{EventID: event, WebsiteID: 1, Subject: schema.SubjectNone, Kind: schema.KindGoal, GoalID: id}
	}
	shown := campaign(12, 0)
	shown.EventID, shown.Kind, shown.GoalID = 5, schema.KindGoal, 31 // one goal event with two exposures
	alsoShown := widget(7, 2, 4)
	alsoShown.EventID, alsoShown.Kind, alsoShown.GoalID = 5, schema.KindGoal, 31
	events := []schema.Event{
		campaign(12, 0), campaign(12, 1), widget(7, 0, 0), widget(7, 0, 1), widget(7, 2, 4), goal(1, 3), goal(2, 30), // declared
		campaign(21, 1), campaign(21, 0), campaign(21, 9), campaign(90, 1), // campaigns
		campaign(12, 2), campaign(345, 1), widget(7, 0, 4), widget(7, 2, 1), // variations
		widget(8, 0, 0), widget(7, 3, 0), // a widget, an experiment
		goal(3, 4), goal(3, 4), shown, alsoShown, // goals
	}
	named := catalogue.NewEventNames(func(schema.NamedID) string { return "" })
	named.AddEvents(events[:9])
	named.AddEvents(events[9:])
	want := []string{
		"3 the catalogue declares no campaign 21 for website 1; it declares 12, 345",
		"1 campaign 90 belongs to website 2, not to website 1",
		"1 the catalogue declares no experiment 3 of widget 7 for website 1; it declares 2",
		"1 the catalogue declares no goal 4 for website 1; it declares 3, 30",
		"1 the catalogue declares no goal 31 for website 1; it declares 3, 30",
		"1 the catalogue declares no variation 2 of campaign 12 for website 1; it declares 0, 1",
		"1 the catalogue declares no variation 1 of campaign 345 for website 1; it declares 0, 7",
		"1 the catalogue declares no variation 4 of widget 7 for website 1; it declares 0, 1",
		"1 the catalogue declares no variation 1 of widget 7, experiment 2 for website 1; it declares 0, 4",
		"1 the catalogue declares no widget 8 for website 1; it declares 7",
	}
	var got []string
	for _, u := range c.Snapshot().UndeclaredNames(named) {
		got = append(got, string(rune('0'+u.Events))+" "+u.Detail)
	}
	check.That(t, slices.Equal(got, want), "undeclared are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// TestUndeclaredNamesAreLimited checks that random names do not fill the memory.
func TestUndeclaredNamesAreLimited(t *testing.T) {
	c := open(t)
	named := catalogue.NewEventNames(func(schema.NamedID) string { return "" })
	for id := range int64(30_000) {
		named.AddEvents([]schema.Event{{WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: id + 1, Kind: schema.KindView}})
	}
	found := c.Snapshot().UndeclaredNames(named)
	check.That(t, len(found) == 10_000 && strings.HasSuffix(found[0].Detail, "it declares none"),
		"%d undeclared names, the first %+v; want 10,000 of a catalogue without campaigns", len(found), found[0])
}
