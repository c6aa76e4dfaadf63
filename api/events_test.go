package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest/must"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// eventLine returns an event of website 1 with additional fields.
func eventLine(id, more string) string {
	return fmt.Sprintf(`{"eventId":%q,"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":12,"variationId":1%s}`, id, more)
}

// post sends a body of events.
func (s *server) post(token, body string, header http.Header) (answer, string) {
	s.t.Helper()
	request := must.Get(http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+"/events", strings.NewReader(body)))(s.t)
	request.Header.Set("Content-Type", "application/x-ndjson")
	for name, values := range header {
		request.Header[name] = values
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, text := exchange(s.t, request)
	return response, string(text)
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func zstandard(text string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(text), nil))
}

func TestEventsAreTaken(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.MaxBody, o.MaxEvents = 4_000, 20_000 })
	ingest := s.newToken(1, 1, catalogue.ScopeIngest)
	encoded := func(name string) http.Header { return http.Header{"Content-Encoding": {name}} }
	typed := func(name string) http.Header { return http.Header{"Content-Type": {name}} }
	key := func(keys ...string) http.Header { return http.Header{"Idempotency-Key": keys} }
	withoutID := strings.Replace(eventLine("", ""), `"eventId":"",`, "", 1)
	for _, c := range []struct {
		name, token, body string
		header            http.Header
		status            int
		want              string
	}{
		{"nobody", "", eventLine("e", ""), nil, 401, "unauthenticated"},
		{"a reader", s.token, eventLine("e", ""), nil, 403, `scope ingest`},
		{"one", ingest, eventLine("e1", ""), nil, 200, `{"accepted":1,"rejected":0,"lines":[],"more":0,"undeclared":[]}`},
		{"again", ingest, eventLine("e1", ""), nil, 200, `{"accepted":1,"rejected":0,"lines":[],"more":0,"undeclared":[]}`},
		{"otherwise", ingest, eventLine("e1", `,"device":"tablet"`), nil, 200, `{"accepted":1,"rejected":0,"lines":[],"more":0,"undeclared":[]}`},
		{"some wrong", ingest, eventLine("e2", "") + "\nx\n" + eventLine("e2", "") + "\n" + eventLine("e3", ""), nil, 200, `{"accepted":3,"rejected":1,"lines":[{"line":2,"detail":"not JSON`},
		{"an array", ingest, "[" + eventLine("e4", "") + "," + eventLine("e5", "") + "]", typed("application/json; charset=utf-8"), 200, `"accepted":2`},
		{"as text", ingest, eventLine("e6", ""), typed("text/plain;charset=UTF-8"), 200, `"accepted":1`},
		{"gzip", ingest, gzipped(eventLine("e7", "")), encoded("gzip"), 200, `"accepted":1`},
		{"zstd", ingest, zstandard(eventLine("e8", "")), encoded("zstd"), 200, `"accepted":1`},
		{"a bare goal", ingest, `{"eventId":"g","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":3}`, nil, 200, `"accepted":1`},
		{"an undeclared goal", ingest, `{"eventId":"g2","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":33}`, nil, 200, `"more":0,"undeclared":[{"websiteId":1,"kind":"goal","id":33,"events":1,"detail":"the catalogue declares no goal 33 for website 1; it declares 3"}]}`},
		{"a key for ids", ingest, withoutID, key("k1"), 200, `"accepted":1`},
		{"the key again", ingest, withoutID, key("k1"), 200, `"accepted":1`},
		{"the key, compressed", ingest, gzipped(withoutID), http.Header{"Idempotency-Key": {"k1"}, "Content-Encoding": {"gzip"}}, 200, `"accepted":1`},
		{"no id", ingest, withoutID, nil, 400, "must be an id that is the same in every retry, unless the request has the header Idempotency-Key"},
		{"a bad key", ingest, withoutID, key("a b"), 400, "1 to 128 visible ASCII"},
		{"two keys", ingest, withoutID, key("a", "b"), 400, "must be one key"},
		{"another's website", ingest, strings.Replace(eventLine("e9", ""), `"websiteId":1`, `"websiteId":2`, 1), nil, 400, "unknown_website: websiteId 2 is not the website of the token"},
		{"a website that is nowhere", ingest, strings.Replace(eventLine("e9", ""), `"websiteId":1`, `"websiteId":77`, 1), nil, 400, "unknown_website: websiteId 77 is not the website of the token"},
		{"nothing", ingest, "", nil, 400, "no event"},
		{"no JSON", ingest, "[", nil, 400, "invalid_body"},
		{"not gzip", ingest, eventLine("e9", ""), encoded("gzip"), 400, "invalid_body"},
		{"cut off", ingest, gzipped(eventLine("e9", ""))[:60], encoded("gzip"), 400, "invalid_body"},
		{"another encoding", ingest, "x", encoded("br"), 415, "must be gzip, zstd or none"},
		{"another type", ingest, "x", typed("text/csv"), 415, "application/x-ndjson"},
		{"too long", ingest, strings.Repeat(" ", 4_001), nil, 413, "at most 4000 bytes"},
		{"a bomb", ingest, gzipped(strings.Repeat(" ", 20_001)), encoded("gzip"), 413, "at most 20000 bytes"},
		{"a bomb of nothing", ingest, gzipped(strings.Repeat("\x00", 1<<20)), encoded("gzip"), 413, "at most 20000 bytes"},
		{"a wrong sum", ingest, gzipped(eventLine("e9", ""))[:len(gzipped(eventLine("e9", "")))-8] + "12345678", encoded("gzip"), 400, "invalid checksum"},
		{"zstd cut off", ingest, zstandard(eventLine("e9", ""))[:60], encoded("zstd"), 400, "invalid_body"},
		{"zstd that asks for 2 GiB", ingest, "\x28\xb5\x2f\xfd\x00\xa8\x29\x00\x00hello", encoded("zstd"), 400, "window size exceeded"},
		{"too deep", ingest, strings.Repeat("[", 3_000), nil, 400, "not JSON: unexpected end of JSON input"},
		{"deeper", ingest, gzipped(strings.Repeat("[", 19_000)), encoded("gzip"), 400, "exceeded max depth"},
		{"a bomb of zstd", ingest, zstandard(strings.Repeat(" ", 20_001)), encoded("zstd"), 413, "at most 20000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, text := s.post(c.token, c.body, c.header)
			if response.status != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%d %.600s; want %d and %q", response.status, text, c.status, c.want)
			}
		})
	}
	var rows, bare uint64
	must.OK(t, s.conn.QueryRow(t.Context(), "SELECT count(), countIf(subject = 'none') FROM events FINAL").Scan(&rows, &bare))
	if rows != 11 || bare != 2 {
		t.Errorf("%d rows stored, %d of no subject; want 11 and 2", rows, bare)
	}
}

// TestAZstdBodyMayBeLongerThanItsWindow checks that decompressed bodies are
// only limited by MaxEvents.
func TestAZstdBodyMayBeLongerThanItsWindow(t *testing.T) {
	s := newServer(t)
	body := zstandard(eventLine("e1", "") + strings.Repeat("\n", 40<<20))
	if response, text := s.post(s.newToken(1, 1, catalogue.ScopeIngest), body, http.Header{"Content-Encoding": {"zstd"}}); response.status != http.StatusOK || !strings.Contains(text, `"accepted":1`) {
		t.Errorf("%d %.300s", response.status, text)
	}
}

// TestALargeBodyIsStoredInParts sends more lines than are parsed at once, as lines and as an array.
func TestALargeBodyIsStoredInParts(t *testing.T) {
	s := newServer(t)
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	lines := make([]string, 45_000)
	for i := range lines {
		lines[i] = eventLine(fmt.Sprint("large", i%44_000), "")
	}
	lines[0], lines[len(lines)-1] = "{}", "7"
	for _, body := range []string{strings.Join(lines, "\n"), "[" + strings.Join(lines, ",") + "]"} {
		_, text := s.post(token, body, nil)
		if want := `"accepted":44998,"rejected":2,"lines":[{"line":1,`; !strings.Contains(text, want) || !strings.Contains(text, `{"line":45000,"detail":"must be a JSON object"}`) {
			t.Errorf("%.600s; want %s", text, want)
		}
	}
	other := strings.ReplaceAll(strings.Join(lines, ","), `"large`, `"broken`)
	if response, text := s.post(token, "["+other, nil); response.status != http.StatusBadRequest {
		t.Errorf("an unclosed array: %d %.300s", response.status, text)
	}
	var stored uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT uniqExact(event_id) FROM events").Scan(&stored); err != nil || stored != 44_000 {
		t.Errorf("%d events are stored, %v; want 44000", stored, err)
	}
}

// TestEventsShowInReports checks that acknowledged events are in the next
// report.
func TestEventsShowInReports(t *testing.T) {
	s := newServer(t)
	ingest := s.newToken(1, 1, catalogue.ScopeIngest)
	for n := 1; n <= 5; n++ {
		id := fmt.Sprint("visitor", n)
		if response, text := s.post(ingest, strings.Replace(eventLine(id, ""), `"visitor":"v"`, `"visitor":"`+id+`"`, 1), nil); response.status != http.StatusOK {
			t.Fatalf("%d %s", response.status, text)
		}
		_, body, text := s.do("GET", "/v1/campaigns/12/results", s.token)
		if got := body["totals"].(map[string]any)["visitors"]; got != float64(n) {
			t.Fatalf("%v visitors after %d were taken\n%.300s", got, n, text)
		}
	}
}

// BenchmarkEvents sends a hundred events per request from 32 clients, and
// single events from one client.
func BenchmarkEvents(b *testing.B) {
	s := newServer(b)
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	deliver := func(body string) {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL+"/events", strings.NewReader(body))
		if err != nil {
			b.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			b.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			b.Errorf("status %d", response.StatusCode)
		}
	}
	sent := 0
	body := func(events int) string {
		var lines strings.Builder
		for range events {
			sent++
			id := fmt.Sprint("bench", sent)
			lines.WriteString(strings.Replace(eventLine(id, ""), `"visitor":"v"`, `"visitor":"`+id+`"`, 1) + "\n")
		}
		return lines.String()
	}
	b.Run("many", func(b *testing.B) {
		const senders, size, requests = 32, 100, 64
		for b.Loop() {
			b.StopTimer()
			bodies := make([][]string, senders)
			for i := range bodies {
				for range requests {
					bodies[i] = append(bodies[i], body(size))
				}
			}
			b.StartTimer()
			var all sync.WaitGroup
			for _, own := range bodies {
				all.Go(func() {
					for _, text := range own {
						deliver(text)
					}
				})
			}
			all.Wait()
		}
		b.ReportMetric(float64(b.N*senders*size*requests)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("lone", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			b.StopTimer()
			text := body(1)
			b.StartTimer()
			started := time.Now()
			deliver(text)
			took = append(took, time.Since(started))
		}
		reportPercentiles(b, took)
	})
}

func TestMetricsCountTheInbox(t *testing.T) {
	s := newServer(t)
	s.api.CountInbox(ingest.Moved{Accepted: 5, Rejected: 4})
	s.api.CountInbox(ingest.Moved{Rejected: 1})
	metrics := s.metrics()
	for _, want := range []string{`{verdict="accepted"} 5`, `{verdict="rejected"} 5`} {
		if !strings.Contains(metrics, "lifthouse_inbox_rows_total"+want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestMetricsOfAStoreOnServers(t *testing.T) {
	s := newServer(t)
	s.api.SetServers([]schema.Server{{Host: "a", Port: 9000, Answers: true}, {Host: "b", Port: 9000, Answers: true}})
	s.api.SetServers([]schema.Server{{Host: "a", Port: 9000, Answers: true}, {Host: "b", Port: 9000}})
	metrics := s.metrics()
	for _, want := range []string{
		`lifthouse_store_server_up{server="a:9000"} 1`, `lifthouse_store_server_up{server="b:9000"} 0`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
