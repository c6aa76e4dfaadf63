package api_test

import (
	"context"
	_ "embed"
	"encoding/json"
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

// polled is the part of a response that a dashboard reads.
type polled struct {
	answer
	text        string
	GeneratedAt time.Time `json:"generatedAt"`
	Stale       bool      `json:"stale"`
	Totals      struct {
		Visitors int `json:"visitors"`
	} `json:"totals"`
}

func (s *server) poll(path string, headers ...string) polled {
	s.t.Helper()
	var p polled
	p.answer, p.text = s.send(http.MethodGet, path, http.NoBody, s.withToken(headers...)...)
	if p.status == http.StatusOK {
		must.OK(s.t, json.Unmarshal([]byte(p.text), &p))
	}
	return p
}

// timesOfAnswer matches what an answer says about the time at which it is written.
var timesOfAnswer = regexp.MustCompile(`"(generatedAt|dataThrough)":"[^"]*"`)

// withoutClock returns the text of a report without the time at which it was written.
func withoutClock(text string) string { return timesOfAnswer.ReplaceAllString(text, `"$1":null`) }

func (p polled) withoutClock() string { return withoutClock(p.text) }

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
	tag := s.poll(bannerResults).Get("ETag")
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
		got := s.poll(bannerResults, "If-None-Match", tag)
		waiting := fmt.Sprintf(`"stale":true,"waiting":{"events":2,"reason":%q}`, reason)
		check.Equal(t, got.Totals.Visitors, 1, "%d %v\n%s", got.status, got.Header, got.text)
		check.Contains(t, got.text, waiting, "%d %v\n%s", got.status, got.Header, got.text)
		check.Contains(t, got.text, "2 accepted events are not in this report yet: "+message, "%d %v\n%s", got.status,
			got.Header, got.text)
		check.Equal(t, got.Get("ETag"), "", "%d %v\n%s", got.status, got.Header, got.text)
		check.Equal(t, got.Get("Cache-Control"), "no-store", "%d %v\n%s", got.status, got.Header, got.text)
		check.That(t, strings.HasPrefix(got.Get("Warning"), "110"), "%d %v\n%s", got.status, got.Header, got.text)
	}
	says("folding", "the server is still folding them")
	shard.LongestWait = time.Hour
	conn.Held <- schematest.ErrFull
	conn.Held <- schematest.ErrFull // the first failure has ended
	says("full", "the disk of the store is full")
	close(conn.Held)
	must.OK(t, shard.RefreshNoted(t.Context()))
	got := s.poll(bannerResults, "If-None-Match", tag)
	check.Equal(t, got.Totals.Visitors, 3, "%d %v, %d visitors", got.status, got.Header, got.Totals.Visitors)
	check.That(t, !got.Stale, "%d %v, %d visitors", got.status, got.Header, got.Totals.Visitors)
	check.That(t, got.Get("ETag") != "", "%d %v, %d visitors", got.status, got.Header, got.Totals.Visitors)
	stop()
	following.Wait()
}

func TestResultsAreKeptWhileNothingChanges(t *testing.T) {
	s := newServer(t)
	s.write(at(0, "a", 0, schema.KindView, 0))
	first := s.poll(bannerResults)
	must.Equal(t, first.Totals.Visitors, 1, "%d %v, %d visitors", first.status, first.Header, first.Totals.Visitors)
	must.Equal(t, first.Get("Cache-Control"), "private, max-age=1", "%d %v, %d visitors", first.status, first.Header,
		first.Totals.Visitors)
	must.That(t, strings.HasPrefix(first.Get("ETag"), `W/"`), "%d %v, %d visitors", first.status, first.Header, first.Totals.Visitors)
	must.That(t, first.Get("Vary") != "", "%d %v, %d visitors", first.status, first.Header, first.Totals.Visitors)
	check.Equal(t, s.poll(bannerResults).withoutClock(), first.withoutClock(), "nothing changed")
	check.Equal(t, s.outcomes("hit"), 1, "answers from what is kept")
	newer := s.poll(bannerResults, "Cache-Control", "max-age=0, No-Cache")
	check.That(t, newer.GeneratedAt.After(first.GeneratedAt), "no-cache: generated at %v as before, or another tag of the same data", newer.GeneratedAt)
	check.Equal(t, newer.Get("ETag"), first.Get("ETag"), "no-cache: generated at %v as before, or another tag of the same data", newer.GeneratedAt)
	other := s.poll(bannerResults + "?compareMetric=valuePerVisitor")
	check.That(t, other.Get("ETag") != first.Get("ETag"), "another question gets the same answer")
	check.That(t, other.text != first.text, "another question gets the same answer")
	s.write(at(1, "b", 0, schema.KindView, 0))
	second := s.poll(bannerResults, "If-None-Match", first.Get("ETag"))
	check.Equal(t, second.status, http.StatusOK, "after an event: %d, %d visitors, tag %s, was %s", second.status,
		second.Totals.Visitors, second.Get("ETag"), first.Get("ETag"))
	check.Equal(t, second.Totals.Visitors, 2, "after an event: %d, %d visitors, tag %s, was %s", second.status,
		second.Totals.Visitors, second.Get("ETag"), first.Get("ETag"))
	check.That(t, second.Get("ETag") != first.Get("ETag"), "after an event: %d, %d visitors, tag %s, was %s",
		second.status, second.Totals.Visitors, second.Get("ETag"), first.Get("ETag"))
	s.apply(strings.Replace(twoAccounts, "name: Button", "name: Knob", 1))
	third := s.poll(bannerResults, "If-None-Match", second.Get("ETag"))
	check.Equal(t, third.status, http.StatusOK, "after apply: %d, tag %s, was %s", third.status, third.Get("ETag"),
		second.Get("ETag"))
	check.That(t, third.Get("ETag") != second.Get("ETag"), "after apply: %d, tag %s, was %s", third.status,
		third.Get("ETag"), second.Get("ETag"))
	s.apply(twoAccounts)
	fourth := s.poll(bannerResults, "If-None-Match", second.Get("ETag"))
	check.That(t, fourth.status == http.StatusOK, "the definition of before came back: %d; want another version", fourth.status)
}

func TestStartAndStopShowAtOnce(t *testing.T) {
	s := newServer(t)
	writes := s.newToken(1, 0, catalogue.ScopeWrite)
	paths := []string{bannerResults, "/v1/campaigns", "/v1/campaigns/12"}
	for _, action := range []string{"stop", "start"} {
		before := map[string]polled{}
		for _, path := range paths {
			before[path] = polled{answer: s.must(path)}
		}
		if response, _, text := s.do("POST", "/v1/campaigns/12/"+action, writes); response.status != http.StatusOK || response.Get("ETag") != "" || response.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %v\n%s", action, response.status, response.Header, text)
		}
		for _, path := range paths {
			response, _ := s.send(http.MethodGet, path, http.NoBody,
				s.withToken("If-None-Match", before[path].Get("ETag"))...)
			check.That(t, response.status == http.StatusOK, "after %s, %s = %d", action, path, response.status)
		}
	}
}

func TestKeptResultsHaveAnAge(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.ResultsAge = time.Millisecond })
	first := s.poll(bannerResults)
	eventually(t, "another plot", func() bool {
		s.must(bannerResults, "Accept", "image/svg+xml")
		return s.outcomes("miss") > 2
	})
	check.Equal(t, s.poll(bannerResults).withoutClock(), first.withoutClock(), "a report has no age")
	check.Equal(t, s.outcomes("hit") > 0, true, "the report was not kept")
}

func TestWhatTheClientHasIsNotSentAgain(t *testing.T) {
	s, _ := newTwoSites(t)
	for _, path := range []string{
		bannerResults, "/v1/campaigns?websiteId=1", "/v1/campaigns/12",
		"/v1/widgets/7/results",
	} {
		first := s.must(path)
		tag := first.Get("ETag")
		for _, have := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			response, body := s.send(http.MethodGet, path, http.NoBody, s.withToken("If-None-Match", have)...)
			check.Equal(t, response.status, http.StatusNotModified, "%s, have %s: %d %q %v", path, have,
				response.status, body, response.Header)
			check.Equal(t, body, "", "%s, have %s: %d %q %v", path, have, response.status, body, response.Header)
			check.Equal(t, response.Get("ETag"), tag, "%s, have %s: %d %q %v", path, have, response.status, body,
				response.Header)
			check.That(t, response.Get("Cache-Control") != "", "%s, have %s: %d %q %v", path, have, response.status,
				body, response.Header)
			check.That(t, response.Get("Vary") != "", "%s, have %s: %d %q %v", path, have, response.status, body,
				response.Header)
			response, _ = s.send(http.MethodGet, path, http.NoBody,
				s.withToken("If-None-Match", have, "Accept-Encoding", "gzip")...)
			check.Equal(t, response.status, http.StatusNotModified, "%s, compressed, have %s", path, have)
		}
		response, _ := s.send(http.MethodGet, path, http.NoBody, s.withToken("If-None-Match", `"x"`)...)
		check.That(t, response.status == http.StatusOK, "%s, have another: %d", path, response.status)
	}
	first, table := s.poll(bannerResults), s.must(bannerResults, "Accept", "text/csv")
	check.That(t, first.Get("ETag") != table.Get("ETag"), "JSON and CSV have the same tag")
}

// must sends a request that must return 200.
func (s *server) must(path string, headers ...string) answer {
	s.t.Helper()
	response, text := s.send(http.MethodGet, path, http.NoBody, s.withToken(headers...)...)
	must.Equal(s.t, response.status, http.StatusOK, "%s %s", path, text)
	return response
}

//go:embed testdata/neighbours.yaml
var neighbours string

func TestNoAccountGetsAnythingKeptOfAnother(t *testing.T) {
	s := newServerOn(t, schematest.OpenMigrated(t))
	s.apply(neighbours)
	one, two, bound := s.newToken(1, 0, catalogue.ScopeRead), s.newToken(2, 0, catalogue.ScopeRead), s.newToken(1, 3,
		catalogue.ScopeRead)
	s.write(at(0, "a", 0, schema.KindView, 0))
	get := func(path, token string, headers ...string) (answer, string) {
		return s.send(http.MethodGet, path, http.NoBody,
			append([]string{"Authorization", "Bearer " + token}, headers...)...)
	}
	for _, path := range []string{bannerResults, "/v1/campaigns/12", "/v1/campaigns?websiteId=1"} {
		first, mine := get(path, one)
		must.Equal(t, first.status, http.StatusOK, "%s: %s", path, mine)
		for name, token := range map[string]string{"another account": two, "another website": bound} {
			for _, have := range [][]string{nil, {"If-None-Match", first.Get("ETag")}} {
				theirs, text := get(path, token, have...)
				check.That(t, theirs.status != http.StatusNotModified, "%s, %s, %q: %d %s", name, path, have,
					theirs.status, text)
				check.That(t, theirs.Get("ETag") != first.Get("ETag"), "%s, %s, %q: %d %s", name, path, have,
					theirs.status, text)
				check.That(t, text != mine, "%s, %s, %q: %d %s", name, path, have, theirs.status, text)
			}
		}
	}
	_, text := get(bannerResults, two)
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
			check.Equal(t, s.poll(bannerResults).status, http.StatusOK)
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
	good := s.poll(path)
	table := s.must(path, "Accept", "text/csv")
	exec := func(statement string) {
		t.Helper()
		must.OK(t, conn.Exec(t.Context(), statement))
	}
	stale := func(when string) {
		t.Helper()
		p := s.poll(path, "Cache-Control", "no-cache", "If-None-Match", good.Get("ETag"))
		check.Equal(t, p.status, http.StatusOK, "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		check.That(t, p.Stale, "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		check.Equal(t, p.Totals.Visitors, 1, "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		check.That(t, !p.GeneratedAt.After(good.GeneratedAt), "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		check.That(t, strings.HasPrefix(p.Get("Warning"), "110 "), "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		check.Equal(t, p.Get("ETag"), "", "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		check.Equal(t, p.Get("Cache-Control"), "no-store", "%s: %d %v\n%s", when, p.status, p.Header, p.text)
		other := s.poll("/v1/campaigns/14/results?dimension=device")
		check.That(t, other.status >= 500, "%s, never asked before: %d %s", when, other.status, other.text)
		check.Contains(t, other.text, `"requestId"`, "%s, never asked before: %d %s", when, other.status, other.text)
	}
	exec("RENAME TABLE facts TO elsewhere")
	hit := s.poll(path)
	check.That(t, !hit.Stale, "the kept answer is stale")
	check.Equal(t, hit.withoutClock(), good.withoutClock(), "nothing changed")
	stale("without the table")
	_, text := s.send(http.MethodGet, path, http.NoBody,
		s.withToken("Accept", "text/csv", "If-None-Match", table.Get("ETag"))...)
	check.That(t, text == "", "the table is what the client has, and is sent")
	exec("RENAME TABLE elsewhere TO facts")
	if p := s.poll(path, "Cache-Control", "no-cache"); p.Stale || p.Get("Warning") != "" ||
		p.Get("ETag") != good.Get("ETag") {
		t.Errorf("the store is back: stale %v, %v", p.Stale, p.Header)
	} else {
		good = p
	}
	must.OK(t, conn.Close())
	stale("without the store")
	check.Equal(t, s.outcomes("stale"), 2, "stale answers counted")
}

func TestKeptResultsKeepWithinTheirMemory(t *testing.T) {
	const limit = 60_000
	s := newServer(t, func(o *api.Options) { o.ResultsMemory = limit })
	for i := range 40 {
		s.poll(bannerResults + "?filters%5Bcity%5D%5B%5D=" + strconv.Itoa(i))
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
	s.poll(bannerResults + "?filters%5Bcity%5D%5B%5D=39")
	check.Equal(t, s.outcomes("hit"), 1, "the last one was not kept")
}
