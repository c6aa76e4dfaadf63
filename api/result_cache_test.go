package api_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const bannerResults = "/v1/campaigns/12/results"

// polled is a response and what a dashboard reads of its report.
type polled struct {
	reply
	shownReport
}

type shownReport struct {
	GeneratedAt time.Time `json:"generatedAt"`
	Stale       bool      `json:"stale"`
	Totals      struct {
		Visitors int `json:"visitors"`
	} `json:"totals"`
}

// PollReport sends the request of a dashboard and reads the report, if the response has one.
func (b *requestBuilder) PollReport() (p polled) {
	b.server.t.Helper()
	p.reply = b.Send()
	if p.Status == http.StatusOK {
		p.JSON(&p.shownReport)
	}
	return p
}

// timesOfAnswer matches what an answer says about the time at which it is written.
var timesOfAnswer = regexp.MustCompile(`"(generatedAt|dataThrough)":"[^"]*"`)

// withoutClock returns the text of a report without the time at which it was written.
func withoutClock(text string) string { return timesOfAnswer.ReplaceAllString(text, `"$1":null`) }

func (p polled) withoutClock() string { return withoutClock(p.Text) }

func (s *server) write(events ...schema.Event) {
	s.t.Helper()
	must.OK(s.t, s.writer.WriteEvents(s.t.Context(), events))
}

// fold writes and folds events, which a server does within shortestInterval.
func (s *server) fold(events ...schema.Event) {
	s.t.Helper()
	s.write(events...)
	must.Get(s.facts.AwaitNoted(s.t.Context()))(s.t)
}

// TestReportsSayHowManyEventsWait holds up the folds of a server. Its reports are those of the last fold, say how many
// events wait and why, and are neither kept nor confirmed.
func TestReportsSayHowManyEventsWait(t *testing.T) {
	conn := schematest.HeldConn{Conn: schematest.OpenMigrated(t), Held: make(chan error)}
	s := newServerWith(t, conn)
	go func() { conn.Held <- nil }()
	s.fold(at(0, "a", 0, schema.KindView, 0))
	tag := s.Get(bannerResults).PollReport().Header.Get("ETag")
	shard := s.facts[0]
	shard.LongestWait = time.Nanosecond
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { shard.FollowEvents(ctx) })
	for !shard.IsFollowing() {
		runtime.Gosched()
	}
	s.write(at(1, "b", 0, schema.KindView, 0), at(2, "c", 0, schema.KindView, 0))
	says := func(reason, message string) {
		t.Helper()
		got := s.Get(bannerResults).Header("If-None-Match", tag).PollReport()
		waiting := fmt.Sprintf(`"stale":true,"waiting":{"events":2,"reason":%q}`, reason)
		check.Equal(t, got.Totals.Visitors, 1, "%v", got)
		check.Contains(t, got.Text, waiting, "%v", got)
		check.Contains(t, got.Text, "2 accepted events are not in this report yet: "+message, "%v", got)
		check.Equal(t, got.Header.Get("ETag"), "", "%v", got)
		check.Equal(t, got.Header.Get("Cache-Control"), "no-store", "%v", got)
		check.That(t, strings.HasPrefix(got.Header.Get("Warning"), "110"), "%v", got)
	}
	says("folding", "the server is still folding them")
	shard.LongestWait = time.Hour
	conn.Held <- schematest.ErrFull
	conn.Held <- schematest.ErrFull // the first failure has ended
	says("full", "the disk of the store is full")
	close(conn.Held)
	must.OK(t, shard.RefreshNoted(t.Context()))
	got := s.Get(bannerResults).Header("If-None-Match", tag).PollReport()
	check.Equal(t, got.Totals.Visitors, 3, "%v", got)
	check.That(t, !got.Stale, "%v", got)
	check.That(t, got.Header.Get("ETag") != "", "%v", got)
	stop()
	following.Wait()
}

func TestResultsAreKeptWhileNothingChanges(t *testing.T) {
	s := newServer(t)
	s.write(at(0, "a", 0, schema.KindView, 0))
	first := s.Get(bannerResults).PollReport()
	must.Equal(t, first.Totals.Visitors, 1, "%v", first)
	must.Equal(t, first.Header.Get("Cache-Control"), "private, max-age=1", "%v", first)
	must.That(t, strings.HasPrefix(first.Header.Get("ETag"), `W/"`), "%v", first)
	must.That(t, first.Header.Get("Vary") != "", "%v", first)
	check.Equal(t, s.Get(bannerResults).PollReport().withoutClock(), first.withoutClock(), "nothing changed")
	check.Equal(t, s.outcomes("hit"), 1, "answers from what is kept")
	newer := s.Get(bannerResults).Header("Cache-Control", "max-age=0, No-Cache").PollReport()
	check.That(t, newer.GeneratedAt.After(first.GeneratedAt), "no-cache: %v", newer)
	check.Equal(t, newer.Header.Get("ETag"), first.Header.Get("ETag"), "no-cache: %v", newer)
	other := s.Get(bannerResults + "?compareMetric=valuePerVisitor").PollReport()
	check.That(t, other.Header.Get("ETag") != first.Header.Get("ETag"), "another question gets the same answer")
	check.That(t, other.Text != first.Text, "another question gets the same answer")
	s.write(at(1, "b", 0, schema.KindView, 0))
	second := s.Get(bannerResults).Header("If-None-Match", first.Header.Get("ETag")).PollReport()
	check.Equal(t, second.Status, http.StatusOK, "after an event: %v", second)
	check.Equal(t, second.Totals.Visitors, 2, "after an event: %v", second)
	check.That(t, second.Header.Get("ETag") != first.Header.Get("ETag"), "after an event: %v", second)
	s.apply(strings.Replace(twoAccounts, "name: Banner", "name: Header", 1))
	third := s.Get(bannerResults).Header("If-None-Match", second.Header.Get("ETag")).PollReport()
	check.Equal(t, third.Status, http.StatusOK, "after apply: %v", third)
	check.That(t, third.Header.Get("ETag") != second.Header.Get("ETag"), "after apply: %v", third)
	s.apply(twoAccounts)
	fourth := s.Get(bannerResults).Header("If-None-Match", second.Header.Get("ETag")).PollReport()
	check.Equal(t, fourth.Status, http.StatusOK, "the definition of before came back; want another version")
}

func TestStartAndStopShowAtOnce(t *testing.T) {
	s := newServer(t)
	writes := s.newToken(1, 0, catalogue.ScopeWrite)
	paths := []string{bannerResults, "/v1/campaigns", "/v1/campaigns/12"}
	for _, action := range []string{"stop", "start"} {
		tags := map[string]string{}
		for _, path := range paths {
			tags[path] = s.Get(path).Send().RequireStatus(http.StatusOK).Header.Get("ETag")
		}
		changed := s.Post("/v1/campaigns/12/"+action, "").Token(writes).Send().RequireStatus(http.StatusOK)
		must.Equal(t, changed.Header.Get("ETag"), "", "%v", changed)
		must.Equal(t, changed.Header.Get("Cache-Control"), "no-store", "%v", changed)
		for _, path := range paths {
			response := s.Get(path).Header("If-None-Match", tags[path]).Send()
			check.Equal(t, response.Status, http.StatusOK, "after %s: %v", action, response)
		}
	}
}

func TestKeptResultsHaveAnAge(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.ResultsAge = time.Millisecond })
	first := s.Get(bannerResults).PollReport()
	eventually(t, "another plot", func() bool {
		s.Get(bannerResults).Header("Accept", "image/svg+xml").Send().RequireStatus(http.StatusOK)
		return s.outcomes("miss") > 2
	})
	check.Equal(t, s.Get(bannerResults).PollReport().withoutClock(), first.withoutClock(), "a report has no age")
	check.Equal(t, s.outcomes("hit") > 0, true, "the report was not kept")
}

func TestWhatTheClientHasIsNotSentAgain(t *testing.T) {
	s, _ := newTwoSites(t)
	for _, path := range []string{
		bannerResults, "/v1/campaigns?websiteId=1", "/v1/campaigns/12",
		"/v1/widgets/7/results",
	} {
		tag := s.Get(path).Send().RequireStatus(http.StatusOK).Header.Get("ETag")
		for _, have := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			response := s.Get(path).Header("If-None-Match", have).Send()
			check.Equal(t, response.Status, http.StatusNotModified, "have %s: %v", have, response)
			check.Equal(t, response.Text, "", "have %s: %v", have, response)
			check.Equal(t, response.Header.Get("ETag"), tag, "have %s: %v", have, response)
			check.That(t, response.Header.Get("Cache-Control") != "", "have %s: %v", have, response)
			check.That(t, response.Header.Get("Vary") != "", "have %s: %v", have, response)
			response = s.Get(path).Header("If-None-Match", have).Header("Accept-Encoding", "gzip").Send()
			check.Equal(t, response.Status, http.StatusNotModified, "%s, compressed, have %s", path, have)
		}
		response := s.Get(path).Header("If-None-Match", `"x"`).Send()
		check.Equal(t, response.Status, http.StatusOK, "have another: %v", response)
	}
	first := s.Get(bannerResults).PollReport()
	table := s.Get(bannerResults).Header("Accept", "text/csv").Send().RequireStatus(http.StatusOK)
	check.That(t, first.Header.Get("ETag") != table.Header.Get("ETag"), "JSON and CSV have the same tag")
}

//go:embed testdata/neighbours.yaml
var neighbours string

func TestNoAccountGetsAnythingKeptOfAnother(t *testing.T) {
	s := newServerOn(t, schematest.OpenMigrated(t))
	s.apply(neighbours)
	one, two, bound := s.newToken(1, 0, catalogue.ScopeRead), s.newToken(2, 0, catalogue.ScopeRead), s.newToken(1, 3,
		catalogue.ScopeRead)
	s.write(at(0, "a", 0, schema.KindView, 0))
	for _, path := range []string{bannerResults, "/v1/campaigns/12", "/v1/campaigns?websiteId=1"} {
		mine := s.Get(path).Token(one).Send().RequireStatus(http.StatusOK)
		for name, token := range map[string]string{"another account": two, "another website": bound} {
			asks := s.Get(path).Token(token)
			has := s.Get(path).Token(token).Header("If-None-Match", mine.Header.Get("ETag"))
			for _, request := range []*requestBuilder{asks, has} {
				theirs := request.Send()
				check.That(t, theirs.Status != http.StatusNotModified, "%s: %v", name, theirs)
				check.That(t, theirs.Header.Get("ETag") != mine.Header.Get("ETag"), "%s: %v", name, theirs)
				check.That(t, theirs.Text != mine.Text, "%s: %v", name, theirs)
			}
		}
	}
	text := s.Get(bannerResults).Token(two).Send().Text
	check.Contains(t, text, `"visitors":0`, "account 2 sees %s", text)
	check.That(t, !strings.Contains(text, `"visitors":1`), "account 2 sees %s", text)
}

// counted returns the value of a metric, or 0.
func (s *server) counted(metric string) int {
	s.t.Helper()
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(metric) + ` (\S+)$`).FindStringSubmatch(s.metrics())
	if found == nil {
		return 0
	}
	value := must.Get(strconv.ParseFloat(found[1], 64))(s.t)
	return int(value)
}

func (s *server) outcomes(outcome string) int {
	s.t.Helper()
	return s.counted(fmt.Sprintf("lifthouse_results_total{outcome=%q}", outcome))
}

func TestIdenticalConcurrentRequestsRunOnce(t *testing.T) {
	s := newServer(t)
	s.write(at(0, "a", 0, schema.KindView, 0))
	var clients sync.WaitGroup
	start := make(chan struct{})
	for range 20 {
		clients.Go(func() {
			<-start
			s.Get(bannerResults).Send().CheckStatus(http.StatusOK)
		})
	}
	close(start)
	clients.Wait()
	miss, other := s.outcomes("miss"), s.outcomes("hit")+s.outcomes("shared")
	check.Equal(t, miss, 1, "%d computed, %d not; want 1 and 19", miss, other)
	check.Equal(t, other, 19, "%d computed, %d not; want 1 and 19", miss, other)
}

func TestTheLastGoodAnswerIsGivenWhenTheStoreFails(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	s := newServerWith(t, conn)
	s.write(at(0, "a", 0, schema.KindView, 0))
	const path = bannerResults + "?dimension=device" // a report without a dimension needs no statement
	good := s.Get(path).PollReport()
	table := s.Get(path).Header("Accept", "text/csv").Send().RequireStatus(http.StatusOK)
	exec := func(statement string) {
		t.Helper()
		must.OK(t, conn.Exec(t.Context(), statement))
	}
	stale := func(when string) {
		t.Helper()
		request := s.Get(path).Header("Cache-Control", "no-cache").Header("If-None-Match", good.Header.Get("ETag"))
		p := request.PollReport()
		check.Equal(t, p.Status, http.StatusOK, "%s: %v", when, p)
		check.That(t, p.Stale, "%s: %v", when, p)
		check.Equal(t, p.Totals.Visitors, 1, "%s: %v", when, p)
		check.That(t, !p.GeneratedAt.After(good.GeneratedAt), "%s: %v", when, p)
		check.That(t, strings.HasPrefix(p.Header.Get("Warning"), "110 "), "%s: %v", when, p)
		check.Equal(t, p.Header.Get("ETag"), "", "%s: %v", when, p)
		check.Equal(t, p.Header.Get("Cache-Control"), "no-store", "%s: %v", when, p)
		other := s.Get("/v1/campaigns/14/results?dimension=device").PollReport()
		check.That(t, other.Status >= 500, "%s, never asked before: %v", when, other)
		check.Contains(t, other.Text, `"requestId"`, "%s, never asked before: %v", when, other)
	}
	exec("RENAME TABLE facts TO elsewhere")
	hit := s.Get(path).PollReport()
	check.That(t, !hit.Stale, "the kept answer is stale")
	check.Equal(t, hit.withoutClock(), good.withoutClock(), "nothing changed")
	stale("without the table")
	text := s.Get(path).Header("Accept", "text/csv").Header("If-None-Match", table.Header.Get("ETag")).Send().Text
	check.That(t, text == "", "the table is what the client has, and is sent")
	exec("RENAME TABLE elsewhere TO facts")
	back := s.Get(path).Header("Cache-Control", "no-cache").PollReport()
	check.That(t, !back.Stale, "the store is back: %v", back)
	check.Equal(t, back.Header.Get("Warning"), "", "the store is back: %v", back)
	check.Equal(t, back.Header.Get("ETag"), good.Header.Get("ETag"), "the store is back: %v", back)
	good = back
	must.OK(t, conn.Close())
	stale("without the store")
	check.Equal(t, s.outcomes("stale"), 2, "stale answers counted")
}

func TestKeptResultsKeepWithinTheirMemory(t *testing.T) {
	const limit = 60_000
	s := newServer(t, func(o *api.Options) { o.ResultsMemory = limit })
	for i := range 40 {
		s.Get(bannerResults + "?filters%5Bcity%5D%5B%5D=" + strconv.Itoa(i)).PollReport()
	}
	bytes := s.counted("lifthouse_results_kept_bytes")
	dropped := s.counted("lifthouse_results_evictions_total")
	answers := s.counted("lifthouse_results_kept")
	check.That(t, bytes <= limit, "%d answers, %d bytes, %d dropped; want at most %d bytes", answers, bytes, dropped,
		limit)
	check.That(t, bytes >= limit/4, "%d answers, %d bytes, %d dropped; want at most %d bytes", answers, bytes, dropped,
		limit)
	check.Equal(t, dropped+answers, 40, "%d answers, %d bytes, %d dropped; want at most %d bytes", answers, bytes,
		dropped, limit)
	check.That(t, dropped != 0, "%d answers, %d bytes, %d dropped; want at most %d bytes", answers, bytes, dropped,
		limit)
	s.Get(bannerResults + "?filters%5Bcity%5D%5B%5D=39").PollReport()
	check.Equal(t, s.outcomes("hit"), 1, "the last one was not kept")
}
