package watch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/facts"
	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// past is a running campaign whose days are over, so that people can act after its decisions.
type past struct {
	t         *testing.T
	first     time.Time
	conn      driver.Conn
	catalogue *catalogue.Catalogue
	campaign  catalogue.Campaign
	ids       uint64
	server    *server
}

// server is what a process has of the store.
type server struct {
	*engine.Engine
	facts    facts.Shards
	outbox   *outbox.Outbox
	recorder *watch.Recorder

	summaries *watch.Summaries
}

// newPast declares a campaign that started 30 days ago. change modifies it.
func newPast(t *testing.T, change func(*catalogue.Campaign)) *past {
	t.Helper()
	return newPastOfGoal(t, catalogue.Goal{ID: 1, WebsiteID: 1, Name: "Purchase"}, change)
}

// running returns a running campaign with one variation.
func running(id, website, goal int64, start time.Time) catalogue.Campaign {
	return catalogue.Campaign{
		ID: id, WebsiteID: website, Name: "Banner", Type: "experiment", TargetMode: "live",
		Methodology: catalogue.Frequentist, PrimaryGoalID: goal,
		ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20, TrafficAllocation: new(100),
		Initial:    catalogue.Initial{Active: true, StartDate: &catalogue.Date{Time: start}},
		Variations: []catalogue.Variation{{ID: 1, Name: "Green", Share: 50, Order: 1}},
	}
}

// viewOf returns a visitor's view of a campaign of website 1.
func viewOf(visitor uint64, campaign, variation int64, at time.Time) schema.Event {
	return schema.Event{
		EventID: 2 * visitor, VisitorID: visitor, WebsiteID: 1, Time: at, Subject: schema.SubjectCampaign,
		SubjectID: campaign, VariationID: variation, Kind: schema.KindView,
	}
}

// goalAfter returns the goal that follows a view.
func goalAfter(view schema.Event, goal int64, after time.Duration) schema.Event {
	view.EventID, view.Kind, view.GoalID, view.Time = view.EventID+1, schema.KindGoal, goal, view.Time.Add(after)
	return view
}

// newPastOfGoal is like newPast, with another primary goal.
func newPastOfGoal(t *testing.T, goal catalogue.Goal, change func(*catalogue.Campaign)) *past {
	t.Helper()
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	p := &past{t: t, conn: conn, catalogue: c, first: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -30)}
	p.campaign = running(2, 1, 1, p.first.Add(-time.Hour))
	if change != nil {
		change(&p.campaign)
	}
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{goal}, Campaigns: []catalogue.Campaign{p.campaign},
	}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	p.server = p.restart()
	return p
}

// newServer returns the only server of a store, which knows nothing yet.
func newServer(t *testing.T, conn driver.Conn, c *catalogue.Catalogue) *server {
	t.Helper()
	return openServer(t, conn, c, true)
}

// openServer returns a server of a store, which is the only one or not. Each of several reads the position of the facts
// before and after each report, which takes a third of the time of a test with many days.
func openServer(t *testing.T, conn driver.Conn, c *catalogue.Catalogue, alone bool) *server {
	t.Helper()
	shards, box := facts.Shards{facts.NewRefresher(conn, alone)}, outbox.New(conn)
	must.OK(t, shards.OpenFacts(t.Context()))
	e := engine.New(conn, c, source.DefaultLimits, shards)
	summaries := watch.NewSummaries(e, c)
	return &server{e, shards, box, watch.NewRecorder(e, c, box, summaries), summaries}
}

// restart returns the same server after a restart.
func (p *past) restart() *server { return newServer(p.t, p.conn, p.catalogue) }

// another returns another server of the store.
func (p *past) another() *server { return openServer(p.t, p.conn, p.catalogue, false) }

// arrive stores a day, accepted at its end, with the given visitors and converted visitors of each variation.
func (p *past) arrive(day int, visitors []int, converted ...int) {
	p.t.Helper()
	accepted := p.first.AddDate(0, 0, day).Add(23 * time.Hour)
	must.OK(p.t, schema.InsertEvents(p.t.Context(), p.conn, p.eventsOf(day, visitors, converted...), accepted))
}

func (p *past) eventsOf(day int, visitors []int, converted ...int) (events []schema.Event) {
	for variation, n := range visitors {
		for visitor := range n {
			p.ids++
			view := viewOf(p.ids, 2, int64(variation),
				p.first.AddDate(0, 0, day).Add(time.Hour+time.Duration(visitor)*time.Second))
			events = append(events, view)
			if visitor < converted[variation] {
				events = append(events, goalAfter(view, 1, time.Minute))
			}
		}
	}
	return events
}

// pass folds the stored events, and passes at an hour of a day. It returns the messages that were written, as event and
// state.
func (p *past) pass(by *server, day, hour int) []string {
	p.t.Helper()
	must.OK(p.t, by.facts.RefreshFacts(p.t.Context()))
	before := p.messages()
	by.recorder.RecordDue(p.t.Context(), p.first.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour))
	var written []string
	for _, m := range p.messages()[len(before):] {
		check.Equal(p.t, m.Data.CampaignID, 2, "message %+v", m.Data)
		check.Equal(p.t, m.Data.Name, "Banner", "message %+v", m.Data)
		check.That(p.t, m.Data.Text != "", "message %+v", m.Data)
		written = append(written, strings.TrimSpace(m.Event+" "+m.State))
	}
	return written
}

// messages returns all messages, the earliest first.
func (p *past) messages() []outbox.Sent {
	p.t.Helper()
	all := must.Get(outbox.New(p.conn).RecentMessages(p.t.Context(), 1, 0, 1000))(p.t)
	slices.Reverse(all)
	return all
}

// reportRuns reports the starts and stops up to a time, and returns the next planned one.
func (p *past) reportRuns(now time.Time) time.Time {
	p.t.Helper()
	return must.Get(watch.ReportRuns(p.t.Context(), p.catalogue.Snapshot(), outbox.New(p.conn), now))(p.t)
}

// TestDecisionsAreReportedOnce passes each day over a campaign with a winner. The message is written with the look, a
// day after its end, and never again: not by later passes, nor by another server, nor after a restart.
func TestDecisionsAreReportedOnce(t *testing.T) {
	p := newPast(t, nil)
	both := []int{500, 500}
	for day := range 9 {
		p.arrive(day, both, 50, 80)
		got := p.pass(p.server, day, 23)
		check.That(t, got == nil, "day %d: %q", day, got)
	}
	p.arrive(9, both, 50, 80)
	if got := p.pass(p.server, 9, 1); len(got) != 1 || got[0] != "decision.changed ship" {
		t.Fatalf("after the look: %q", got)
	}
	data := p.messages()[0].Data
	check.That(t, strings.HasPrefix(data.Text, "Ship Green"), "%+v", data)
	check.Contains(t, data.Sentence, "interval", "%+v", data)
	check.Contains(t, string(data.Worth), ") converted visitors a month for all visitors", "%+v", data)
	check.That(t, data.Lift != nil, "%+v", data)
	for _, other := range []*server{p.another(), p.another()} {
		for _, day := range []int{9, 10, 29} {
			got := p.pass(other, day, 2)
			check.That(t, !slices.Contains(got, "decision.changed ship"), "day %d: %q", day, got)
		}
	}
}

// TestTheEndIsRecordedOnce stops a campaign without visitors since its second week. A day later, the ledger has the exact
// sums of all full days up to the last look, and each look has those of its weeks. No server writes them again.
func TestTheEndIsRecordedOnce(t *testing.T) {
	p := newPast(t, nil)
	for day := range 11 {
		p.arrive(day, []int{500, 500}, 50, 60+day)
	}
	p.pass(p.server, 10, 12)
	// now, on day 30
	if _, _, err := p.catalogue.Switch(t.Context(), 1, 0, schema.SubjectCampaign, 2, false); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct {
		day, hour int // the first one is less than a day after the stop, at any time of day
		by        *server
		want      int // ends
	}{{31, 0, p.server, 0}, {32, 1, p.server, 1}, {33, 1, p.server, 1}, {33, 1, p.restart(), 1}} {
		p.pass(at.by, at.day, at.hour)
		records := must.Get(looks.ReadRecords(t.Context(), p.conn, nil))(t)
		ends := slices.DeleteFunc(slices.Clone(records), func(r looks.Record) bool { return r.Kind != looks.OfEnd })
		must.Equal(t, len(ends), at.want, "day %d: %d rows, %d ends; want %d", at.day, len(records), len(ends), at.want)
		must.Equal(t, len(records), 2+at.want, "day %d: %d rows, %d ends; want %d", at.day, len(records), len(ends),
			at.want)
		for _, r := range records {
			days, converted := min(r.Days, 10), int64(0)
			for day := 1; day <= days; day++ { // the first one is not a full day
				converted += int64(60 + day)
			}
			number := map[looks.Kind]int{looks.OfLook: r.Days / 7, looks.OfEnd: 14}[r.Kind]
			must.Equal(t, len(r.Strata), 1, "%+v", r)
			must.That(t, r.MismatchP != nil, "%+v", r)
			must.Equal(t, r.Visitors, int64(1000*days), "%+v", r)
			must.Equal(t, r.Number, number, "%+v", r)
			must.That(t, r.End.Equal(p.first.AddDate(0, 0, 1+r.Days)), "%+v", r)
			a, b := r.Strata[0].Control, r.Strata[0].Variation
			check.Equal(t, a.Visitors, int64(500*days), "%s: %+v\n%+v", r.Kind, a, b)
			check.Equal(t, a.Converted, int64(50*days), "%s: %+v\n%+v", r.Kind, a, b)
			check.Equal(t, b.Visitors, a.Visitors, "%s: %+v\n%+v", r.Kind, a, b)
			check.Equal(t, b.Converted, converted, "%s: %+v\n%+v", r.Kind, a, b)
			check.Equal(t, b.Goals.Sum.Int64(), converted, "%s: %+v\n%+v", r.Kind, a, b)
			check.Equal(t, b.Goals.Squares.Int64(), converted, "%s: %+v\n%+v", r.Kind, a, b)
		}
	}
}

// TestImportedDecisionsAreNotReported imports the events of a past campaign at once.
func TestImportedDecisionsAreNotReported(t *testing.T) {
	p := newPast(t, nil)
	var events []schema.Event
	for day := range 15 {
		events = append(events, p.eventsOf(day, []int{500, 500}, 50, 80)...)
	}
	must.OK(t, schema.InsertEvents(t.Context(), p.conn, events, time.Now()))
	got := p.pass(p.server, 30, 1)
	check.That(t, len(got) == 0, "%q", got)
}

// TestAutoStop stops a campaign that is to be rolled back, once. A person who starts it again knows the decision.
func TestAutoStop(t *testing.T) {
	for _, autoStop := range []string{
		"", catalogue.AutoStopRollBack, catalogue.AutoStopInvalid,
		catalogue.AutoStopBoth,
	} {
		t.Run("autoStop "+autoStop, func(t *testing.T) {
			p := newPast(t, func(c *catalogue.Campaign) { c.AutoStop = autoStop })
			both := []int{500, 500}
			for day := range 10 {
				p.arrive(day, both, 80, 30)
			}
			got := p.pass(p.server, 10, 1)
			must.That(t, slices.Contains(got, "decision.changed rollBack"), "%q", got)
			state := func() catalogue.LiveCampaign { return p.catalogue.Snapshot().AccountResources(1).Campaigns[2] }
			stops := autoStop == catalogue.AutoStopRollBack || autoStop == catalogue.AutoStopBoth
			must.That(t, state().Active != stops, "active %v", state().Active)
			if !stops {
				return
			}
			run := state().Runs[0]
			check.That(t, run.StoppedBy == "auto-stop: rollBack", "stopped by %q", run.StoppedBy)
			log, err := p.catalogue.ReadAuditLog(t.Context(), 1, p.first, 1)
			must.That(t, err == nil, "audit %+v, %v", log, err)
			check.Equal(t, log[0].By, "auto-stop: rollBack", "audit %+v, %v", log, err)
			check.Equal(t, log[0].Change, "inactive", "audit %+v, %v", log, err)
			p.reportRuns(time.Now())
			last := p.messages()[len(p.messages())-1]
			check.Equal(t, last.Event, catalogue.EventCampaignStopped, "%s %+v", last.Event, last.Data)
			check.Contains(t, last.Data.Text, "stopped automatically, because the decision is rollBack", "%s %+v",
				last.Event, last.Data)
			if _, _, err := p.catalogue.Switch(catalogue.WithAuthor(t.Context(), "a person"), 1, 0,
				schema.SubjectCampaign, 2, true); err != nil {
				t.Fatal(err)
			}
			p.pass(p.restart(), 12, 1)
			check.That(t, state().Active, "stopped again for the same decision")
		})
	}
}

// laggingConn reads the messages from a replica that has none yet.
type laggingConn struct{ driver.Conn }

func (c laggingConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if strings.Contains(query, "FROM messages") {
		query += " LIMIT 0"
	}
	return c.Conn.Query(ctx, query, args...)
}

// TestAutoStopWhileAReplicaLags stops a campaign although the message about its decision cannot be read yet.
func TestAutoStopWhileAReplicaLags(t *testing.T) {
	p := newPast(t, func(c *catalogue.Campaign) { c.AutoStop = catalogue.AutoStopRollBack })
	for day := range 10 {
		p.arrive(day, []int{500, 500}, 80, 30)
	}
	lagging := openServer(t, laggingConn{p.conn}, p.catalogue, false)
	got := p.pass(lagging, 10, 1)
	check.That(t, slices.Contains(got, "decision.changed rollBack"), "%q", got)
	check.That(t, !p.catalogue.Snapshot().AccountResources(1).Campaigns[2].Active, "not stopped")
}

// TestChecksHaveOneMessageADay lets the split of the visitors go wrong and the events stop and arrive again.
func TestChecksHaveOneMessageADay(t *testing.T) {
	p := newPast(t, nil)
	var got []string
	note := func(day, hour int) {
		for _, m := range p.pass(p.server, day, hour) {
			got = append(got, fmt.Sprint(day, " ", m))
		}
	}
	for day := range 3 {
		p.arrive(day, []int{500, 300}, 50, 30)
		note(day+1, 1)
		note(day+1, 2)
	}
	for day := 4; day < 7; day++ { // no events on days 3 to 5
		note(day, 23)
	}
	p.arrive(6, []int{500, 300}, 50, 30)
	note(7, 0)
	p.arrive(7, []int{500, 300}, 50, 30)
	note(8, 0)
	want := []string{
		"1 check.failed sampleRatio", "1 decision.changed invalid", "4 check.failed silence",
		"7 check.cleared silence",
	}
	slices.Sort(got)
	check.That(t, slices.Equal(got, want), "%q, want %q", got, want)
}

// TestMismatchOfASegmentIsRecordedOnce loses half of the treatment's visitors with one browser and of control's with
// another one, so that the split of all visitors is even. The alarm is in the ledger once, and every report and list that
// is read later has it.
func TestMismatchOfASegmentIsRecordedOnce(t *testing.T) {
	p := newPast(t, nil)
	arrive := func(day int, byVariation ...map[string]int) {
		var events []schema.Event
		for variation, counts := range byVariation {
			for browser, n := range counts {
				for range n {
					p.ids++
					view := viewOf(p.ids, 2, int64(variation), p.first.AddDate(0, 0, day).Add(time.Hour))
					view.Browser = browser
					events = append(events, view)
				}
			}
		}
		must.OK(t, schema.InsertEvents(t.Context(), p.conn, events, p.first.AddDate(0, 0, day).Add(23*time.Hour)))
	}
	arrive(0, map[string]int{"safari": 40, "edge": 40}, map[string]int{"safari": 40, "edge": 40})
	for day := 1; day < 4; day++ {
		arrive(day, map[string]int{"safari": 80, "edge": 40}, map[string]int{"safari": 40, "edge": 80})
		p.pass(p.server, day, 1)
	}
	before, _ := p.scorecardOf(p.server)
	must.That(t, !before.Checks.SampleRatio.Mismatch, "a mismatch before it is recorded: %+v",
		before.Checks.SampleRatio)
	got := p.pass(p.server, 4, 1)
	check.That(t, slices.Contains(got, "check.failed sampleRatio"), "messages %q", got)
	check.That(t, slices.Contains(got, "decision.changed invalid"), "messages %q", got)
	p.pass(p.server, 5, 1)
	p.pass(p.restart(), 6, 1)
	records := must.Get(p.server.Ledger.SubjectRecords(t.Context(), banner))(t)
	must.Equal(t, len(records), 1, "records")
	alarm := records[0]
	check.Equal(t, alarm.Kind, looks.OfSplit)
	check.That(t, alarm.End.Equal(p.first.AddDate(0, 0, 4)), "found at the end of %v", alarm.End)
	for name, by := range map[string]*server{"the server that recorded it": p.server, "another one": p.another()} {
		report, status := p.scorecardOf(by)
		check.Equal(t, *report.Checks.SampleRatio.PValue, *alarm.MismatchP, "%s: p-value", name)
		check.Equal(t, report.Decision.Status, result.DecisionInvalid, "%s: decision of the report", name)
		check.Equal(t, status.Decision.Status, result.DecisionInvalid, "%s: decision of the list", name)
		check.That(t, strings.Contains(report.Checks.SplitCause.Text, "browser"), "%s: %s", name,
			report.Checks.SplitCause.Text)
	}
}

// TestImportedSegmentsAreTested imports a past campaign whose split of all visitors is even, although one browser lost
// views in the treatment and another one in control.
func TestImportedSegmentsAreTested(t *testing.T) {
	p := newPast(t, func(c *catalogue.Campaign) {
		c.Active = false
		c.EndDate = &catalogue.Date{Time: c.StartDate.AddDate(0, 0, 10)}
	})
	var events []schema.Event
	for variation, counts := range []map[string]int{{"safari": 80, "edge": 40}, {"safari": 40, "edge": 80}} {
		for browser, n := range counts {
			for i := range 8 * n {
				p.ids++
				view := viewOf(p.ids, 2, int64(variation), p.first.AddDate(0, 0, i%8).Add(time.Hour))
				view.Browser = browser
				events = append(events, view)
			}
		}
	}
	must.OK(t, schema.InsertEvents(t.Context(), p.conn, events, p.first.AddDate(0, 0, 25)))
	p.pass(p.server, 26, 1)
	report, status := p.scorecardOf(p.server)
	check.That(t, report.Checks.SampleRatio.Mismatch, "no mismatch: %+v", report.Checks.SampleRatio)
	check.Equal(t, report.Decision.Status, result.DecisionInvalid, "decision of the report")
	check.Equal(t, status.Decision.Status, result.DecisionInvalid, "decision of the list")
	check.Equal(t, len(report.Looks), 1, "looks")
}

// TestStartsAndStopsAreReported starts and stops a campaign. Each start and stop has one message, also from another
// server, with its author and its time.
func TestStartsAndStopsAreReported(t *testing.T) {
	p := newPast(t, nil)
	p.reportRuns(time.Now())
	if got := p.messages(); len(got) > 0 {
		t.Fatalf("a start of 30 days ago: %+v", got)
	}
	for i, active := range []bool{false, true, false} {
		if _, _, err := p.catalogue.Switch(catalogue.WithAuthor(t.Context(), "token 3 Ann"), 1, 0,
			schema.SubjectCampaign, 2, active); err != nil {
			t.Fatal(err)
		}
		for range 2 { // another server
			p.reportRuns(time.Now())
		}
		got := p.messages()
		must.That(t, len(got) == i+1, "%d messages after %d changes", len(got), i+1)
		event := map[bool]string{true: catalogue.EventCampaignStarted, false: catalogue.EventCampaignStopped}[active]
		last := got[i]
		check.Equal(t, last.Event, event, "%s %+v at %s", last.Event, last.Data, last.RecordedAt)
		check.Equal(t, last.Data.By, "token 3 Ann", "%s %+v at %s", last.Event, last.Data, last.RecordedAt)
		check.That(t, time.Since(last.RecordedAt) <= time.Minute, "%s %+v at %s", last.Event, last.Data,
			last.RecordedAt)
	}
}

// TestPlannedStartsAndEndsAreReported declares a start and an end in the future. They are reported when they come. A
// campaign with a date of start that was never started is not.
func TestPlannedStartsAndEndsAreReported(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	start, end := now.Add(time.Hour), now.Add(48*time.Hour)
	p := newPast(t, func(c *catalogue.Campaign) {
		c.StartDate, c.EndDate = &catalogue.Date{Time: start}, &catalogue.Date{Time: end}
	})
	reported := func(at time.Time) (next time.Time, texts []string) {
		t.Helper()
		next = p.reportRuns(at)
		for _, m := range p.messages() {
			texts = append(texts, m.Event)
		}
		return next, texts
	}
	if next, got := reported(now); len(got) > 0 || !next.Equal(start) {
		t.Errorf("before: %q, next at %s", got, next)
	}
	if next, got := reported(start); !slices.Equal(got, []string{catalogue.EventCampaignStarted}) || !next.Equal(end) {
		t.Errorf("at the start: %q, next at %s", got, next)
	}
	if next, got := reported(end); !slices.Equal(got,
		[]string{catalogue.EventCampaignStarted, catalogue.EventCampaignStopped}) || !next.IsZero() {
		t.Errorf("at the end: %q, next at %s", got, next)
	}
	all := p.messages()
	check.That(t, all[1].Data.Text == "The campaign was stopped as planned.", "%+v", all[1].Data)

	never := newPast(t, func(c *catalogue.Campaign) { c.Active, c.StartDate = false, &catalogue.Date{Time: now} })
	if never.reportRuns(now.Add(time.Minute)); len(never.messages()) > 0 {
		t.Errorf("never started: %+v", never.messages())
	}
}
