package story_test

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine"
	"lifthouse/engine/enginetest"
	"lifthouse/engine/plan"
	"lifthouse/engine/story"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// shop has a campaign that excludes multi-exposed visitors, one that counts them for their first variation, one without
// a primary goal, and a widget with an experiment.
//
//go:embed testdata/shop.yaml
var shop string

func openShop(t *testing.T) (driver.Conn, *catalogue.Catalogue) {
	t.Helper()
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	file := must.Get(catalogue.ReadYAML(strings.NewReader(shop)))(t)
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	return conn, c
}

var start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// randomEvent returns an event of few visitors at few times, so that all edge cases occur.
func randomEvent(r *rand.Rand, id uint64) schema.Event {
	e := schema.Event{
		EventID: id, Time: start.Add(time.Duration(r.IntN(12)) * time.Minute), WebsiteID: 1, VisitorID: r.Uint64N(120),
		Subject: schema.SubjectCampaign, SubjectID: 12 + r.Int64N(4), VariationID: r.Int64N(2), Kind: schema.KindView,
	}
	if r.IntN(20) == 0 {
		e.VariationID = 9
	}
	if r.IntN(3) == 0 {
		e.Subject, e.SubjectID, e.ExperimentID = schema.SubjectWidget, 7, 2*r.Int64N(2)
	}
	switch r.IntN(5) {
	case 0, 1:
		e.Kind, e.GoalID, e.Value = schema.KindGoal, 3+r.Int64N(3), r.Int64N(1_000_000)-100_000
	case 2:
		e.Kind = schema.KindClick
	}
	if e.Kind == schema.KindGoal && r.IntN(3) == 0 {
		e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectNone, 0, 0, 0
	}
	return e
}

// counts are what a report and the stories of all visitors must agree on, by variation.
type counts struct {
	visitors, views, converted, goals, value int64
}

// TestStoriesAddUpToReports compares the stories of all visitors with the reports of each goal.
func TestStoriesAddUpToReports(t *testing.T) {
	for seed := range uint64(tier.Of(1, 20)) {
		conn, c := openShop(t)
		r := rand.New(rand.NewPCG(seed, 24))
		events := make([]schema.Event, 1_500)
		for i := range events {
			events[i] = randomEvent(r, uint64(i))
			if i >= 500 && r.IntN(4) == 0 { // a copy with other content
				time, value := events[i].Time, events[i].Value
				events[i] = events[i-500]
				events[i].Time, events[i].Value = time, value
				if events[i].Kind == schema.KindGoal &&
					r.IntN(2) == 0 { // a revision, of which half are sent by a back office
					events[i].Revision, events[i].Cancelled = r.Uint64N(4), r.IntN(4) == 0
					if r.IntN(2) == 0 {
						events[i].Subject = schema.SubjectNone
						events[i].SubjectID = 0
						events[i].ExperimentID = 0
						events[i].VariationID = 0
					}
				}
			}
		}
		e, w, shards := enginetest.OpenWithFacts(t, conn, c)
		if seed%2 == 1 {
			shards[0].MaxVisitorEvents = 14 // about a fifth of the visitors are automated
		}
		for part := 0; part < len(events); part += 500 {
			must.OK(t, w.WriteEvents(t.Context(), events[part:part+500]))
		}
		stories := map[schema.Subject][]*story.Chapter{}
		for visitor := range uint64(120) {
			for _, chapter := range story.ExplainEvents(&ingest.OfVisitor{Events: storedOf(t, conn, visitor)},
				e.MaxVisitorEvents(), c.Snapshot(), e.Books(), e.AsOfFirstView) {
				stories[chapter.Subject] = append(stories[chapter.Subject], chapter)
			}
		}
		for _, subject := range []schema.Subject{
			{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12},
			{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 13},
			{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 14},
			{WebsiteID: 1, Kind: schema.SubjectWidget, ID: 7},
			{WebsiteID: 1, Kind: schema.SubjectWidget, ID: 7, ExperimentID: 2},
		} {
			compare(t, e, subject, stories[subject])
		}
	}
}

// storedOf reads the events of a visitor by its hash.
func storedOf(t *testing.T, conn driver.Conn, visitor uint64) []ingest.Accepted {
	t.Helper()
	rows := must.Get(conn.Query(t.Context(), fmt.Sprintf("SELECT ingested_at, version, event_id, time, website_id, toString(subject), subject_id, experiment_id, variation_id, visitor_id, toString(event), goal_id, value, revision, cancelled FROM events WHERE visitor_id = %d", visitor)))(t)
	defer func() { _ = rows.Close() }()
	var events []ingest.Accepted
	for rows.Next() {
		var e ingest.Accepted
		must.OK(t,
			rows.Scan(&e.At, &e.Version, &e.EventID, &e.Time, &e.WebsiteID, (*string)(&e.Subject), &e.SubjectID,
				&e.ExperimentID, &e.VariationID, &e.VisitorID, (*string)(&e.Kind), &e.GoalID, &e.Value, &e.Revision,
				&e.Cancelled))
		events = append(events, e)
	}
	must.OK(t, rows.Err())
	return events
}

func compare(t *testing.T, e *engine.Engine, subject schema.Subject, chapters []*story.Chapter) {
	t.Helper()
	for _, goal := range []int64{0, 3, 4} {
		request := plan.ResultsRequest(1, subject)
		request.GoalID = goal
		p := must.Get(e.PlanReport(request))(t)
		report := must.Get(e.ComputeReport(t.Context(), p))(t)
		sums := map[int64]counts{}
		for _, chapter := range chapters {
			if chapter.Counts {
				first := chapter.First.VariationID
				sums[first] = added(sums[first], chapter, p.GoalID)
			}
		}
		for _, v := range report.Variations {
			want := counts{v.Visitors, v.Views, v.ConvertedVisitors, v.GoalsReached, v.Value.Units.Int64()}
			check.Equal(t, sums[v.ID], want, "%s, goal %d, variation %d: stories", subject, goal, v.ID)
			delete(sums, v.ID)
		}
		check.That(t, len(sums) == 0, "%s, goal %d: the stories count other variations: %+v", subject, goal, sums)
	}
}

// added adds the events of a chapter that count in the report of a goal, or of all goals.
func added(c counts, chapter *story.Chapter, goal int64) counts {
	c.visitors++
	reached := int64(0)
	for _, line := range chapter.Lines {
		switch {
		case !line.Counts:
		case line.Kind == schema.KindView:
			c.views++
		case line.Kind == schema.KindGoal && (goal == 0 || goal == line.GoalID):
			reached++
			c.value += line.Value
		}
	}
	c.goals += reached
	c.converted += min(reached, 1)
	return c
}
