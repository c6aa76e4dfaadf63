package watch_test

import (
	"strings"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// disturbed is a store with two campaigns that have the same visitors.
type disturbed struct {
	conn      driver.Conn
	catalogue *catalogue.Catalogue
	first     time.Time // three days ago
	server    *server
}

// newDisturbed returns a store with the visitors of the first day. The banner doubles conversions only where visitors
// also see the sticky header.
func newDisturbed(t *testing.T) *disturbed {
	t.Helper()
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	banner, header := running(2, 1, 1, first), running(3, 1, 1, first)
	banner.Name, header.Name = "Free delivery banner", "Sticky header"
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}},
		Campaigns: []catalogue.Campaign{banner, header},
	}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	d := &disturbed{conn: conn, catalogue: c, first: first, server: newServer(t, conn, c)}
	d.send(t, 0, 1)
	return d
}

// send stores and folds the visitors of a day.
func (d *disturbed) send(t *testing.T, day int, liftedWith int64) {
	t.Helper()
	at := d.first.AddDate(0, 0, day)
	events := disturbedVisitors(uint64(day)*8000, at, liftedWith) //nolint:gosec // few days
	must.OK(t, schema.InsertEvents(t.Context(), d.conn, events, at.Add(12*time.Hour)))
	must.OK(t, d.server.facts.RefreshFacts(t.Context()))
}

// TestCampaignsThatDisturbEachOther has visitors of two campaigns at the same time. The report, its warnings and a
// message say so once a day has passed.
func TestCampaignsThatDisturbEachOther(t *testing.T) {
	d := newDisturbed(t)
	server, first := d.server, d.first
	reportOf := func(campaign int64) *result.Report {
		request := query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: campaign, Scorecard: true}
		return must.Get(server.ComputeReport(t.Context(), must.Get(server.PlanReport(request))(t)))(t)
	}
	check.Equal(t, len(reportOf(2).Checks.Interactions), 0, "interactions before they are measured")
	server.recorder.RecordDue(t.Context(), first.AddDate(0, 0, 3).Add(time.Hour))
	own := map[int64]string{2: "Free delivery banner", 3: "Sticky header"}
	for campaign, with := range map[int64]string{2: "Sticky header", 3: "Free delivery banner"} {
		report := reportOf(campaign)
		must.Equal(t, len(report.Checks.Interactions), 1, "interactions of campaign %d", campaign)
		found := report.Checks.Interactions[0]
		check.Equal(t, found.Kind, result.InteractionOfEffect, "kind")
		check.Equal(t, found.Name, with, "the other campaign of %d", campaign)
		check.Equal(t, found.Shared, 8000, "shared visitors")
		check.Contains(t, found.Text, "Decide both together")
		check.Contains(t, found.Text, report.Variations[1].Name+" of \""+own[campaign])
		check.Contains(t, found.Text, "depends on \""+with)
		check.Contains(t, report.WarningText(result.WarningInteraction), with)
	}
	sent := must.Get(server.outbox.RecentMessages(t.Context(), 1, 0, 100))(t)
	said := 0
	for _, m := range sent {
		if m.State == "interactions" || m.Data.Check == "interactions" && strings.Contains(m.Data.Text, "depends on") {
			said++
		}
	}
	check.Equal(t, said, 2, "messages about interactions, one for each campaign")

	// Visitors of the next day behave the other way, so the data of both days show nothing.
	d.send(t, 1, 0)
	server.recorder.RecordDue(t.Context(), first.AddDate(0, 0, 4).Add(time.Hour))
	check.Equal(t, len(reportOf(2).Checks.Interactions), 1, "an interaction that was found stays")
	for _, m := range must.Get(server.outbox.RecentMessages(t.Context(), 1, 0, 100))(t) {
		check.That(t, m.Event != catalogue.EventCheckCleared, "an interaction is withdrawn: %+v", m)
	}
}

// disturbedVisitors returns the events of 8,000 visitors of a day who see two campaigns. The treatment of one doubles
// conversions only where visitors see a variation of the other.
func disturbedVisitors(from uint64, day time.Time, liftedWith int64) (events []schema.Event) {
	for visitor := range uint64(8000) {
		ofBanner, ofHeader := int64(visitor%2), int64(visitor/2%2) //nolint:gosec // 0 or 1
		at := day.Add(time.Hour + time.Duration(visitor)*time.Second)
		view := viewOf(from+visitor+1, 2, ofBanner, at)
		also := viewOf(from+visitor+1, 3, ofHeader, at)
		also.EventID += 1_000_000
		events = append(events, view, also)
		rate := uint64(10)
		if ofBanner == 1 && ofHeader == liftedWith {
			rate = 20
		}
		if visitor/4%100 < rate {
			goal := goalAfter(view, 1, time.Minute)
			goal.Subject, goal.SubjectID, goal.VariationID = schema.SubjectNone, 0, 0
			events = append(events, goal)
		}
	}
	return events
}
