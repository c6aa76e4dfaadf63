package facts_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestAnotherCurrencyOfAWebsiteFoldsAgain declares other currencies of a website, also after a restart and without any
// new event: the facts are always those that a rebuild would make, and they are folded once.
func TestAnotherCurrencyOfAWebsiteFoldsAgain(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var events []schema.Event
	for i := range uint64(30) {
		e := schema.Event{
			EventID: 2 * i, Time: at, WebsiteID: 1 + int64(i%2), Subject: schema.SubjectCampaign,
			SubjectID: 1, VisitorID: i, Kind: schema.KindView,
		}
		events = append(events, e)
		e.EventID, e.Kind, e.GoalID, e.Value, e.Subject, e.SubjectID = e.EventID+
			1, schema.KindGoal, 3, schema.MoneyScale, schema.SubjectNone, 0
		e.Currency = []string{"", "EUR", "JPY"}[i%3]
		events = append(events, e)
	}
	must.OK(t, schema.InsertEvents(t.Context(), conn, events, at.Add(time.Hour)))
	for _, declared := range []map[int64]string{
		{1: "EUR"},
		{1: "JPY", 2: "JPY"},
		{},
		{2: "EUR"},
		{1: "EUR", 2: "EUR"},
	} {
		for _, alone := range []bool{true, false} {
			r := facts.NewRefresher(conn, alone)
			r.SetCurrencies(func() map[int64]string { return declared })
			position := must.Get(r.RefreshFacts(t.Context()))(t)
			check.Equal(t, must.Get(r.RefreshFacts(t.Context()))(t), position,
				"the second refresh changes the position")
			rows, cells := must.Get(facts.ReadAll(t.Context(), conn))(t), must.Get(facts.ReadAllCells(t.Context(),
				conn))(t)
			must.Get(r.RebuildFacts(t.Context()))(t)
			check.That(t, reflect.DeepEqual(rows, must.Get(facts.ReadAll(t.Context(), conn))(t)),
				"%v: other rows than after a rebuild", declared)
			check.That(t, reflect.DeepEqual(cells, must.Get(facts.ReadAllCells(t.Context(), conn))(t)),
				"%v: other cells than after a rebuild", declared)
			unknown := map[string]int{}
			for i := range rows {
				if row := &rows[i]; row.Grain == fold.OfGoal && row.Marks != 0 {
					unknown[fmt.Sprint(row.Subject.WebsiteID, row.Foreign)]++
				}
			}
			for website := range int64(2) {
				for _, code := range []string{"EUR", "JPY"} {
					want := 10 // 5 goals, for the campaign and alone
					if declared[website+1] == code {
						want = 0
					}
					check.Equal(t, unknown[fmt.Sprint(website+1, code)], want, fmt.Sprint(declared, website+1, code))
				}
			}
		}
	}
}
