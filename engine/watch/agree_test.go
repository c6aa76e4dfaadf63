package watch_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/facts"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// banner is the campaign of past.
var banner = schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 2}

// scorecardOf returns the report that a server shows, and the status that its lists show.
func (p *past) scorecardOf(by *server) (*result.Report, *result.Status) {
	p.t.Helper()
	request := query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: 2, Scorecard: true}
	report := must.Get(by.ComputeReport(p.t.Context(), must.Get(by.PlanReport(request))(p.t)))(p.t)
	version := must.Get(by.ReadVersion(p.t.Context(), banner))(p.t)
	owned := p.catalogue.Snapshot().AccountResources(1)
	summary := must.Get(by.summaries.FindSummary(p.t.Context(), owned, watch.SummaryKey{AccountID: 1, Subject: banner},
		version))(p.t)
	return report, summary.Status
}

// TestRecordedLooksAreInWhatIsKept records a look after midnight, when no event arrives any more. The reports and
// statuses that were computed before must have it at once: on the server that wrote it, and on another one that has read
// the ledger.
func TestRecordedLooksAreInWhatIsKept(t *testing.T) {
	p := newPast(t, nil)
	for day := range 8 {
		p.arrive(day, []int{500, 500}, 50, 80)
	}
	must.OK(t, p.server.facts.RefreshFacts(t.Context()))
	other := p.another()
	for _, by := range []*server{p.server, other} {
		report, _ := p.scorecardOf(by)
		check.Equal(t, len(report.Looks), 0, "looks before one is recorded")
	}
	messages := p.pass(p.server, 9, 1)
	check.Equal(t, len(messages), 1, "messages: %q", messages)
	must.OK(t, other.Ledger.ReadNewRecords(t.Context()))
	for name, by := range map[string]*server{"the server that recorded it": p.server, "another one": other} {
		report, status := p.scorecardOf(by)
		must.Equal(t, len(report.Looks), 1, "%s: looks", name)
		check.That(t, report.Looks[0].RecordedAt != nil, "%s: the look is not marked as recorded", name)
		check.Equal(t, report.Decision.Status, result.DecisionShip, "%s: decision of the report", name)
		check.Equal(t, status.Decision.Status, result.DecisionShip, "%s: decision of the list", name)
		check.Equal(t, *status.Lift.Value, *report.Looks[0].Variations[0].Improvement.Value, "%s: lift of the list",
			name)
	}
}

// TestListsAgreeWithMessages renews the summary of a list before a message is written.
func TestListsAgreeWithMessages(t *testing.T) {
	p := newPast(t, nil)
	summaries := watch.NewSummaries(p.server.Engine, p.catalogue)
	p.server.recorder = watch.NewRecorder(p.server.Engine, p.catalogue, p.server.outbox, summaries)
	for day := range 8 {
		p.arrive(day, []int{500, 500}, 50, 80)
	}
	messages := p.pass(p.server, 9, 1)
	check.Equal(t, len(messages), 1, "messages: %q", messages)
	listed := summaries.LastSummaries(t.Context(), 1, []schema.Subject{banner})[0]
	must.That(t, listed != nil, "the list has no status")
	check.Equal(t, listed.Status.Decision.Status, result.DecisionShip)
}

// TestSubjectsWaitForTheirOwnEvents holds up the folds of a server while an event waits. If it is of another campaign,
// the looks of the campaign are recorded all the same. If it is of the same campaign, they are not, and then they are
// recorded once it is folded.
func TestSubjectsWaitForTheirOwnEvents(t *testing.T) {
	for name, test := range map[string]struct {
		campaign     int64
		before, then int // recorded looks
	}{"another campaign": {3, 1, 1}, "the same campaign": {2, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			p := newPast(t, nil)
			for day := range 8 {
				p.arrive(day, []int{500, 500}, 50, 80)
			}
			held := schematest.HeldConn{Conn: p.conn, Held: make(chan error)}
			shard := facts.NewRefresher(held, true)
			shard.LongestWait = time.Nanosecond
			shards := facts.Shards{shard}
			must.OK(t, shards.OpenFacts(t.Context()))
			e := engine.New(held, p.catalogue, source.DefaultLimits, shards)
			recorder := watch.NewRecorder(e, p.catalogue, outbox.New(p.conn), watch.NewSummaries(e, p.catalogue))
			ctx, stop := context.WithCancel(t.Context())
			var following sync.WaitGroup
			following.Go(func() { shard.FollowEvents(ctx) })
			held.Held <- nil // the events of the eight days
			for shard.ShownPosition().Refresh == 0 {
				runtime.Gosched()
			}

			accepted := time.Now()
			late := viewOf(1_000_000, test.campaign, 0, p.first.AddDate(0, 0, 8))
			must.OK(t, schema.InsertEvents(t.Context(), p.conn, []schema.Event{late}, accepted))
			shard.NoteEvents(accepted)
			now := p.first.AddDate(0, 0, 9).Add(time.Hour)
			recorder.RecordDue(t.Context(), now)
			recorded := must.Get(e.Ledger.SubjectRecords(t.Context(), banner))(t)
			check.Equal(t, len(recorded), test.before, "recorded looks while the event waits")
			close(held.Held)
			must.OK(t, shard.RefreshNoted(t.Context()))
			recorder.RecordDue(t.Context(), now)
			recorded = must.Get(e.Ledger.SubjectRecords(t.Context(), banner))(t)
			check.Equal(t, len(recorded), test.then, "recorded looks after the event is folded")
			stop()
			following.Wait()
		})
	}
}
