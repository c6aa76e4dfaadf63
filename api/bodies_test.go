package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/sync/errgroup"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// manyLines returns a number of events of few visitors.
func manyLines(from, lines int) string {
	var b strings.Builder
	for i := from; i < from+lines; i++ {
		b.WriteString(eventLine(fmt.Sprint("m", i), "") + "\n")
	}
	return b.String()
}

type receivedLines struct {
	Accepted, Rejected, More int
	Lines                    []struct{ Line int64 }
	Errors                   []struct{ Name string }
}

func (s *server) received(want int, token, body string, header http.Header) (r receivedLines) {
	s.t.Helper()
	response, text := s.post(token, body, header)
	must.That(s.t, response.status == want && json.Unmarshal([]byte(text), &r) == nil, "%d, want %d: %.500s", response.status, want, text)
	return r
}

// TestALargeBodyIsTakenInParts checks that the parts of a body are stored in order, and that the response lists the
// first lines that were rejected.
func TestALargeBodyIsTakenInParts(t *testing.T) {
	s := newServer(t)
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	const lines = 45_000
	text := manyLines(0, lines)
	first, others, _ := strings.Cut(text, "\n")
	text = first + "\nnonsense\n" + others + manyLines(lines-1, 1) // the last one is there twice
	for _, form := range []string{"lines", "array"} {
		body := text
		if form == "array" {
			body = "[" + strings.Join(strings.Split(strings.TrimSpace(strings.Replace(text, "nonsense", "7", 1)), "\n"), ",") + "]"
		}
		r := s.received(http.StatusOK, token, gzipped(body), http.Header{"Content-Encoding": {"gzip"}})
		check.That(t, r.Accepted == lines+1 && r.Rejected == 1 && len(r.Lines) == 1 && r.More == 0,
			"%s: %d accepted, %d rejected, %d listed, %d more", form, r.Accepted, r.Rejected, len(r.Lines), r.More)
		for i, line := range r.Lines {
			if i > 0 && line.Line <= r.Lines[i-1].Line {
				t.Fatalf("%s: line %d after %d", form, line.Line, r.Lines[i-1].Line)
			}
		}
	}
	wrong := s.received(http.StatusBadRequest, token, strings.Repeat("{}\n", 30_000), nil)
	check.That(t, len(wrong.Errors) == 1000 && wrong.More == 29_000, "%d faults are listed, %d more", len(wrong.Errors), wrong.More)
	cut := s.received(http.StatusBadRequest, token, "["+strings.Repeat(eventLine("cut", "")+",", 30_000), nil)
	_, err := json.Marshal(cut)
	check.That(t, err == nil && len(cut.Errors) == 1, "an array that does not end: %+v", cut)
	var stored uint64
	err = s.conn.QueryRow(t.Context(), "SELECT count() FROM events FINAL").Scan(&stored)
	check.That(t, err == nil && stored == lines, "%d stored, %v; want %d", stored, err, lines)
}

// TestTwelveBombsTakeLittleMemory sends bodies of a few hundred kilobytes that inflate to sixty megabytes. Few are
// processed at a time, the others get 503 with Retry-After, and small bodies are still stored.
func TestTwelveBombsTakeLittleMemory(t *testing.T) {
	tier.OnlyLong(t)
	s := newServer(t)
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	bomb := gzipped(strings.Repeat(eventLine("bomb", "")+"\n", 400_000))
	runtime.GC()
	var before, peak runtime.MemStats
	runtime.ReadMemStats(&before)
	var group errgroup.Group
	codes := make(chan int, 12)
	for range 12 {
		group.Go(func() error {
			response, _ := s.post(token, bomb, http.Header{"Content-Encoding": {"gzip"}})
			check.That(t, response.status != http.StatusServiceUnavailable || response.Get("Retry-After") != "", "no Retry-After")
			codes <- response.status
			return nil
		})
	}
	var most uint64
	ended := make(chan struct{})
	go func() {
		_ = group.Wait()
		close(ended)
	}()
	for small, done := 0, false; !done; small++ {
		response, text := s.post(token, eventLine(fmt.Sprint("small", small), ""), nil)
		check.That(t, response.status == http.StatusOK, "a small body beside them: %d %s", response.status, text)
		runtime.ReadMemStats(&peak)
		most = max(most, peak.HeapInuse)
		select {
		case <-ended:
			done = true
		default:
		}
	}
	taken := map[int]int{}
	for range 12 {
		taken[<-codes]++
	}
	check.That(t, taken[http.StatusOK] != 0 && taken[http.StatusOK]+taken[http.StatusServiceUnavailable] == 12, "answers: %v", taken)
	grown := int64(most) - int64(before.HeapInuse)
	check.That(t, grown <= 800<<20, "the heap grew by %d MiB", grown>>20)
	t.Logf("%v; the heap was %d MiB and grew to %d", taken, before.HeapInuse>>20, most>>20)
}

// TestABodyWhoseClientLeavesIsNotWritten checks that no event is stored if the client disconnects.
func TestABodyWhoseClientLeavesIsNotWritten(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.Timeout = 0 })
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	read, write := io.Pipe()
	request := s.request(http.MethodPost, "/events", read, "Authorization", "Bearer "+token, "Content-Type", "application/x-ndjson")
	left := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		left <- err
	}()
	for range 3 {
		must.Get(io.WriteString(write, manyLines(0, 10)))(t)
	}
	_ = write.CloseWithError(io.ErrClosedPipe)
	if err := <-left; err == nil {
		t.Error("half a body was answered")
	}
	var stored uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM events").Scan(&stored); err != nil || stored != 0 {
		t.Errorf("%d events of half a body are stored, %v", stored, err)
	}
}

// TestBoundsOfBodyFields sends a value beyond each bound of the document for each field of a body.
func TestBoundsOfBodyFields(t *testing.T) {
	s, ingests := newTwoSites(t)
	c := must.Get(theContract())(t)
	admin := s.admin()
	for _, body := range []struct {
		schema, path string
		right        map[string]any
		headers      []string
	}{
		{"NewToken", "/tokens", map[string]any{"scopes": []string{"read"}}, admin},
		{"NewShare", "/shares", map[string]any{"campaignId": 12}, admin},
		{"NewShare", "/shares", map[string]any{"widgetId": 7}, admin},
		{"Event", "/events", map[string]any{
			"eventId": "e", "time": time.Now().UnixMilli(), "websiteId": 1, "visitor": "a", "event": "goal", "goalId": 3,
			"campaignId": 12, "variationId": 1,
		}, []string{"Authorization", "Bearer " + ingests}},
	} {
		tried := 0
		for name, field := range c.doc.Components.Schemas[body.schema].Value.Properties {
			for _, value := range beyond(field.Value) {
				sent := map[string]any{name: value}
				for other, right := range body.right {
					if other != name {
						sent[other] = right
					}
				}
				text := must.Get(json.Marshal(sent))(t)
				headers := append([]string{"Content-Type", "application/json"}, body.headers...)
				response, answer := s.send(http.MethodPost, body.path, strings.NewReader(string(text)), headers...)
				check.That(t, response.status == http.StatusBadRequest && strings.Contains(answer, name),
					"POST %s %.100s = %d %.300s, want 400 that names %s", body.path, text, response.status, answer, name)
				tried++
			}
		}
		check.That(t, tried >= 4, "%s: %d values", body.schema, tried)
	}
}

// beyond returns values that a schema does not allow.
func beyond(field *openapi3.Schema) (values []any) {
	if field.Min != nil {
		values = append(values, *field.Min-1)
	}
	if field.Max != nil {
		values = append(values, *field.Max+1)
	}
	if field.MinLength > 0 {
		values = append(values, "")
	}
	if field.MaxLength != nil {
		values = append(values, strings.Repeat("n", int(*field.MaxLength)+1)) //nolint:gosec // a short text
	}
	if len(field.Enum) > 0 || field.Pattern != "" {
		values = append(values, "none of these")
	}
	if field.MinItems > 0 {
		values = append(values, []string{})
	}
	if field.Type.Is("integer") {
		values = append(values, 1.5)
	}
	return values
}
