package facts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestReportsDuringRefreshes reads reports while visitors arrive who convert in the same refresh. So a report whose
// statements read different facts would have visitors without a conversion.
func TestReportsDuringRefreshes(t *testing.T) {
	server := schematest.SharedServer(t)
	for name, store := range map[string]struct {
		driver.Conn
		alone bool
	}{
		"embedded": {schematest.OpenEmpty(t), true},
		"server":   {schematest.OpenConnection(t, server.DatabaseAddress(server.CreateDatabase(t))), false},
	} {
		t.Run(name, func(t *testing.T) {
			must.Get(schema.Migrate(t.Context(), store.Conn))(t)
			r := facts.NewRefresher(store.Conn, store.alone)
			reports := map[string]reported{
				"rows":  reportOf(t, store.Conn, r, query.Filters{Lists: []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}}),
				"cells": reportOf(t, store.Conn, r, query.Filters{}),
			}
			done := make(chan struct{})
			var both errgroup.Group
			both.Go(func() error {
				defer close(done)
				for visitor := range uint64(12) {
					if err := convert(t, store.Conn, r, visitor); err != nil {
						return err
					}
				}
				return nil
			})
			read := 0
			for running := true; running; read++ {
				select {
				case <-done:
					running = false // and one report after the last refresh
				default:
				}
				for name, report := range reports {
					checkConverted(t, name, report, running)
				}
			}
			must.OK(t, both.Wait())
			t.Logf("%d reports", read)
		})
	}
}

// checkConverted checks that every visitor of a report is converted, and that the last report has all of them.
func checkConverted(t *testing.T, name string, report reported, running bool) {
	t.Helper()
	found := must.Get(report.ReadRows(t.Context(), report.Question))(t)
	var visitors, converted int64
	for _, row := range found.Whole {
		visitors, converted = visitors+row.Visitors, converted+row.Converted
	}
	check.Equal(t, visitors, converted, "%s: %d visitors, %d of them converted", name, visitors, converted)
	check.That(t, (running || visitors == 12), "%s: %d visitors, %d of them converted", name, visitors, converted)
}

// convert stores a visitor who converts, and folds the events.
func convert(t *testing.T, conn driver.Conn, r *facts.Refresher, visitor uint64) error {
	t.Helper()
	at := campaignStart.Add(time.Duration(visitor) * time.Minute) //nolint:gosec // few
	view := schema.Event{
		EventID: 2 * visitor, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12,
		VisitorID: visitor, Kind: schema.KindView,
		Attributes: schema.Attributes{Device: "mobile"},
	}
	goal := view
	goal.EventID, goal.Kind, goal.GoalID, goal.Time = 2*visitor+1, schema.KindGoal, 3, at.Add(time.Second)
	if err := schema.InsertEvents(t.Context(), conn, []schema.Event{view, goal}, at); err != nil {
		return err
	}
	_, err := r.RefreshFacts(t.Context())
	return err
}

// reported is a report on a store.
type reported struct {
	facts.Reader
	plan.Question
}

// reportOf returns a report about campaign 12 with goal 3.
func reportOf(tb testing.TB, conn driver.Conn, r *facts.Refresher, filters query.Filters) reported {
	tb.Helper()
	return requested(tb, conn, r,
		query.Request{
			Operation: query.CampaignResults, AccountID: 1, SubjectID: 12, GoalID: 3,
			Metric: query.GoalConversionRate, Filters: filters,
		})
}

// requested returns a report about a campaign with two variations.
func requested(tb testing.TB, conn driver.Conn, of *facts.Refresher, r query.Request) reported {
	tb.Helper()
	p := must.Get(plan.New(r, &catalogue.AccountResources{
		Websites: map[int64]catalogue.Website{1: {ID: 1}},
		Goals:    map[int64]catalogue.Goal{3: {ID: 3, WebsiteID: 1, Name: "Purchase"}},
		Campaigns: map[int64]catalogue.LiveCampaign{r.SubjectID: {Campaign: catalogue.Campaign{
			ID: r.SubjectID, WebsiteID: 1, Name: "c", Type: "experiment", TargetMode: "live",
			Methodology:  catalogue.Frequentist,
			ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20,
			Variations: []catalogue.Variation{{ID: 1, Name: "v", Share: 50}},
		}}},
	}))(tb)
	return reported{facts.Reader{
		Shards: facts.Shards{of},
		Store:  &source.Store{Conn: conn, Limits: source.DefaultLimits},
	}, p.Question}
}

// TestAReportEndsWhileFactsChange checks that a report of an embedded store is read at most three times, although a
// refresh begins during each try.
func TestAReportEndsWhileFactsChange(t *testing.T) {
	w := newWorld(t, 15)
	w.Customers = 0 // each batch changes the facts of the subject
	r := facts.NewRefresher(w.conn, true)
	var refreshes errgroup.Group
	change := func() {
		w.send(t, 30)
		r.NoteEvents(w.at)
		refreshes.Go(func() error { return r.RefreshNoted(t.Context()) })
	}
	change()
	must.OK(t, refreshes.Wait())
	tries := 0
	x := requested(t, w.conn, r,
		query.Request{
			Operation: query.CampaignResults, AccountID: 1, SubjectID: 1, GoalID: 3,
			Metric: query.GoalConversionRate,
		})
	err := x.AtOnePosition(t.Context(), x.Question, func() error {
		tries++
		if change(); tries < 3 {
			return refreshes.Wait() // later refreshes wait for the report
		}
		return nil
	})
	must.That(t, err == nil, "%d tries, %v", tries, err)
	check.Equal(t, tries, 3, "%d tries, %v", tries, err)
	check.OK(t, refreshes.Wait())
	w.check(t)
}

// TestBreakdownsKnowNewValues reads breakdowns while visitors with new values arrive. A reader that
// knows the values of earlier breakdowns finds what one without knowledge finds.
func TestBreakdownsKnowNewValues(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	at, r := time.Now().UTC().Truncate(time.Hour), facts.NewRefresher(conn, true)
	var from, kept query.Filters
	from.From = at.Add(5 * time.Hour)
	kept.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	batches := tier.Of(4, 9)
	for batch := range batches {
		var events []schema.Event
		for i := range 2 + 320/(batches-1)*batch { // from 2 to more than 200 values
			id := uint64(1000*batch + i + 1)
			view := schema.Event{
				EventID: id, Time: at.Add(time.Duration(batch) * time.Hour), WebsiteID: 1,
				Subject: schema.SubjectCampaign, SubjectID: 12, VisitorID: id,
				VariationID: int64(i % 2), Kind: schema.KindView,
			}
			view.Device, view.City = []string{"mobile", "desktop"}[i/7%2], fmt.Sprint("city ", i/2)
			events = append(events, view)
		}
		must.OK(t, schema.InsertEvents(t.Context(), conn, events, at.Add(time.Duration(batch)*time.Hour)))
		must.Get(r.RefreshFacts(t.Context()))(t)
		for name, filters := range map[string]query.Filters{"all": {}, "from": from, "mobile": kept} {
			for _, top := range []int{2, plan.MaxBreakdown} {
				knowing, fresh := reportOf(t, conn, r, filters), reportOf(t, conn, facts.NewRefresher(conn, false),
					filters)
				q := knowing.Question
				q.Dimension, q.Top = "city", top
				found, want := must.Get(knowing.ReadRows(t.Context(), q))(t), must.Get(fresh.ReadRows(t.Context(),
					q))(t)
				check.Equal(t, fmt.Sprint(found.Whole, found.Slices), fmt.Sprint(want.Whole, want.Slices),
					"batch %d, %s, top %d", batch, name, top)
			}
		}
	}
}

// TestSumsOfRowsEqualThoseOfCells reads reports with a filter that all visitors pass, by one statement and by two. Reports
// without it read the cells. Totals of the goals are above 0; 0; below 0; and none have amounts; and all of these.
func TestSumsOfRowsEqualThoseOfCells(t *testing.T) {
	at := time.Now().UTC().AddDate(0, 0, -2).Truncate(time.Second) // one of the recent days
	values := map[int64][]int64{3: {7, 2}, 4: {7, -7}, 5: {2, -7}, 6: {0}, 7: {7, 0, -7, -9, 20}}
	for _, leastByDay := range []int64{1, 1e9} {
		conn := schematest.OpenMigrated(t)
		r := facts.NewRefresher(conn, true)
		r.LeastVisitorsByDay = leastByDay
		var events []schema.Event
		var several []facts.Measure
		for goal, of := range values {
			several = append(several, facts.Measure{Measure: plan.Measure{GoalID: goal}})
			for visitor := range uint64(40) {
				e := schema.Event{
					EventID: visitor + 1, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12,
					VisitorID:   visitor + 1,
					VariationID: int64(visitor % 2), Kind: schema.KindView,
					Attributes: schema.Attributes{Device: "mobile"},
				}
				for i, value := range of[:min(len(of), int(visitor%8))] {
					events = append(events, e)
					e.EventID, e.Kind, e.GoalID = uint64(goal)<<16|uint64(i)<<8|visitor, schema.KindGoal, goal
					e.Time, e.Value, e.Profit, e.ExtraValue = at.Add(time.Duration(i+
						1)*time.Second), value, -value, value*value
				}
				events = append(events, e)
			}
		}
		must.OK(t, schema.InsertEvents(t.Context(), conn, events, time.Now().UTC()))
		must.Get(r.RefreshFacts(t.Context()))(t)
		cells, rows := reportOf(t, conn, r, query.Filters{}), reportOf(t, conn, r,
			query.Filters{Lists: []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}})
		together := must.Get(rows.ReadMeasures(t.Context(), rows.Question, several))(t)
		for i, goal := range several {
			cells.GoalID, rows.GoalID = goal.GoalID, goal.GoalID
			want := fmt.Sprint(must.Get(cells.ReadRows(t.Context(), cells.Question))(t).Whole)
			check.Equal(t, fmt.Sprint(must.Get(rows.ReadRows(t.Context(), rows.Question))(t).Whole), want,
				"goal %d, %d", goal.GoalID, leastByDay)
			check.Equal(t, fmt.Sprint(together[i].Whole), want, "goal %d of several, %d", goal.GoalID, leastByDay)
		}
	}
}
