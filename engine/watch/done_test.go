package watch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/daily"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// countingConn counts the reads of the messages of subjects, each of which is a judgement, and of facts.
type countingConn struct {
	driver.Conn
	messages, facts *atomic.Int64
}

func (c countingConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	isOfSubject := slices.Contains(args, any(clickhouse.Named("subject", string(schema.SubjectCampaign))))
	if strings.Contains(query, "FROM messages") && isOfSubject {
		c.messages.Add(1)
	}
	if strings.Contains(query, "FROM facts") {
		c.facts.Add(1)
	}
	return c.Conn.Query(ctx, query, args...)
}

// countedServer is a server whose judgements are counted.
type countedServer struct {
	*server
	countingConn
	p *past
}

// openCounted returns another process of the store.
func (p *past) openCounted() *countedServer {
	conn := countingConn{p.conn, &atomic.Int64{}, &atomic.Int64{}}
	return &countedServer{openServer(p.t, conn, p.catalogue, false), conn, p}
}

// judge passes at an hour of a day. It returns the number of judgements, and of statements that read facts.
func (c *countedServer) judge(day, hour int) (judged, read int64) {
	c.p.t.Helper()
	must.OK(c.p.t, c.server.facts.RefreshFacts(c.p.t.Context()))
	c.messages.Store(0)
	c.countingConn.facts.Store(0)
	c.recorder.RecordDue(c.p.t.Context(), c.p.first.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour))
	return c.messages.Load(), c.countingConn.facts.Load()
}

// TestAStartJudgesNothingThatWasJudgedToday starts processes on the same day and on the next one.
func TestAStartJudgesNothingThatWasJudgedToday(t *testing.T) {
	p := newPast(t, nil)
	for day := range 3 {
		p.arrive(day, []int{100, 100}, 10, 10)
	}
	const positions = 5 // most statements with which a process of several reads the position of the facts
	first, second := p.openCounted(), p.openCounted()
	for _, pass := range []struct {
		what      string
		by        *countedServer
		day, hour int
		want      int64
	}{
		{"the first start", first, 3, 1, 1},
		{"a later pass", first, 3, 2, 0},
		{"another process", second, 3, 3, 0},
		{"a restart", p.openCounted(), 3, 4, 0},
		{"the next day", second, 4, 1, 1},
		{"the next day of the first process", first, 4, 2, 0},
		{"a restart on the next day", p.openCounted(), 4, 3, 0},
		{"a clock that is 20 days ahead", first, 24, 1, 1},
		{"the right clock again", second, 4, 5, 1},
		{"a restart after that", p.openCounted(), 4, 6, 0},
		{"a clock that is behind midnight", p.openCounted(), 3, 23, 0},
	} {
		judged, read := pass.by.judge(pass.day, pass.hour)
		check.Equal(t, judged, pass.want, "judgements of %s", pass.what)
		check.Equal(t, read > positions, pass.want > 0, "%s reads facts: %d statements", pass.what, read)
	}
}

// TestWhatChangesIsJudgedAgain changes the definition of a campaign, and records a look, on a day on which the campaign
// was judged.
func TestWhatChangesIsJudgedAgain(t *testing.T) {
	p := newPast(t, nil)
	for day := range 3 {
		p.arrive(day, []int{100, 100}, 10, 10)
	}
	judged, _ := p.openCounted().judge(3, 1)
	must.Equal(t, judged, 1, "judgements of the first start")
	p.campaign.AutoStop = catalogue.AutoStopBoth
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}},
		Campaigns: []catalogue.Campaign{p.campaign},
	}}}}}
	must.Get(p.catalogue.ApplyFile(t.Context(), file, false))(t)
	again := func(what string) {
		t.Helper()
		judged, _ := p.openCounted().judge(3, 2)
		check.Equal(t, judged, 1, "judgements after %s", what)
		judged, _ = p.openCounted().judge(3, 3)
		check.Equal(t, judged, 0, "further judgements after %s", what)
	}
	again("another definition")
	for _, active := range []bool{false, true} {
		_, _, err := p.catalogue.Switch(t.Context(), 1, 0, schema.SubjectCampaign, 2, active)
		must.OK(t, err)
		again(fmt.Sprint("active: ", active))
	}
	for day := 3; day < 9; day++ {
		p.arrive(day, []int{100, 100}, 10, 10)
	}
	key := daily.Key{Kind: daily.Judged, Subject: banner}
	last := daily.New(p.conn)
	p.openCounted().judge(8, 23) // before the look of the first week
	must.OK(t, last.ReadRows(t.Context()))
	before := last.LastRow(key)
	p.arrive(9, []int{100, 100}, 10, 10)
	p.openCounted().judge(9, 1)
	must.OK(t, last.ReadRows(t.Context()))
	check.That(t, before.Basis != last.LastRow(key).Basis, "a recorded look does not change the basis")
}

// TestEachInteractionHasItsMessage measures a second interaction of a campaign, on the day on which the first one was
// reported. Another process measured both.
func TestEachInteractionHasItsMessage(t *testing.T) {
	p := newPast(t, nil)
	p.arrive(0, []int{100, 100}, 10, 10)
	website := daily.Key{Kind: daily.Measured, Subject: schema.Subject{WebsiteID: 1, Kind: schema.SubjectNone}}
	another := daily.New(p.conn)
	measure := func(with ...int) {
		var found []string
		for _, id := range with {
			found = append(found, fmt.Sprintf(
				`{"with":{"campaignId":%d},"name":"c","kind":"effect","evidence":40,"text":"It depends on %d."}`, id, id))
		}
		body := `[{"subject":{"campaignId":2},"interactions":[` + strings.Join(found, ",") + "]}]"
		another.NoteDone(daily.Row{Key: website, Day: daily.DayOf(p.first.AddDate(0, 0, 1)), Body: body})
		must.OK(t, another.WriteNoted(t.Context()))
	}
	written := func() string { return strings.Join(p.pass(p.server, 1, 0), ", ") }
	measure(3)
	check.Equal(t, written(), "check.failed interactions", "the first interaction")
	check.Equal(t, written(), "", "messages without a new interaction")
	measure(3, 4)
	check.Equal(t, written(), "check.failed interactions", "the second interaction")
	all := p.messages()
	must.Equal(t, len(all), 2, "messages")
	texts := []string{all[0].Data.Text, all[1].Data.Text}
	slices.Sort(texts)
	check.Equal(t, strings.Join(texts, " "), "It depends on 3. It depends on 4.")
	check.Equal(t, len(p.pass(p.restart(), 1, 0)), 0, "messages after a restart")
}

// TestInteractionsSurviveARestart measures interactions in one process. Another one has them from its start, and
// measures nothing on this day. If one of the campaigns is erased, no process has them.
func TestInteractionsSurviveARestart(t *testing.T) {
	d := newDisturbed(t)
	now := d.first.AddDate(0, 0, 3).Add(time.Hour)
	d.server.recorder.RecordDue(t.Context(), now)
	reportOf := func(s *server, campaign int64) *result.Report {
		request := query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: campaign, Scorecard: true}
		return must.Get(s.ComputeReport(t.Context(), must.Get(s.PlanReport(request))(t)))(t)
	}
	want := reportOf(d.server, 2).Checks.Interactions
	must.Equal(t, len(want), 1, "interactions")
	conn := countingConn{d.conn, &atomic.Int64{}, &atomic.Int64{}}
	started := openServer(t, conn, d.catalogue, true)
	must.OK(t, started.ReadDaily(t.Context()))
	check.That(t, slices.Equal(reportOf(started, 2).Checks.Interactions, want), "interactions after a restart")
	header := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 3}
	subjects := []schema.Subject{banner, header}
	got, same := started.LastVersions(t.Context(), subjects), d.server.LastVersions(t.Context(), subjects)
	for i := range subjects {
		check.Equal(t, got[i].Key(), same[i].Key(), "version of %s in another process", subjects[i])
	}
	conn.facts.Store(0)
	started.recorder.RecordDue(t.Context(), now.Add(time.Hour))
	check.Equal(t, conn.facts.Load(), 0, "statements that read facts after a restart")

	must.OK(t, started.DropSubjects(t.Context(), []schema.Subject{header}))
	must.OK(t, d.server.ReadDaily(t.Context()))
	for name, s := range map[string]*server{"the process": started, "another": d.server} {
		check.Equal(t, len(reportOf(s, 2).Checks.Interactions), 0, "%s: interactions with an erased campaign", name)
	}
	stored := daily.New(d.conn)
	must.OK(t, stored.ReadRows(t.Context()))
	check.That(t, stored.LastRow(daily.Key{Kind: daily.Judged, Subject: header}).Day.IsZero(), "a row is left")
	check.That(t, !stored.LastRow(daily.Key{Kind: daily.Judged, Subject: banner}).Day.IsZero(), "another row is gone")
}
