package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
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

// storedLines is the answer to a request that stores events.
type storedLines struct {
	Accepted, Rejected, More int
	Lines                    []struct{ Line int64 }
	Errors                   []struct{ Name string }
}

// TestALargeBodyIsTakenInParts sends more lines than are parsed at once, as lines and as an array. The response lists the
// first lines that were rejected, in order.
func TestALargeBodyIsTakenInParts(t *testing.T) {
	s := newServer(t)
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	const lines = 45_000
	sent := strings.Split(strings.TrimSpace(manyLines(0, lines)), "\n")
	sent = slices.Concat([]string{"{}"}, sent, sent[lines-1:], []string{"7"}) // the last one is there twice
	for _, body := range []string{strings.Join(sent, "\n"), "[" + strings.Join(sent, ",") + "]"} {
		var r storedLines
		response := s.PostEvents(token, gzipped(body)).Header("Content-Encoding", "gzip").Send()
		response.RequireStatus(http.StatusOK).JSON(&r)
		must.Equal(t, r.Accepted, lines+1, "%.1s…: %+v", body, r)
		must.Equal(t, r.Rejected, 2, "%.1s…: %+v", body, r)
		must.Equal(t, len(r.Lines), 2, "%.1s…: %+v", body, r)
		must.Equal(t, r.More, 0, "%.1s…: %+v", body, r)
		check.Equal(t, r.Lines[0].Line, 1, "%.1s…: %+v", body, r)
		check.Equal(t, r.Lines[1].Line, lines+3, "%.1s…: %+v", body, r)
	}
	var wrong, cut storedLines
	s.PostEvents(token, strings.Repeat("{}\n", 30_000)).Send().RequireStatus(http.StatusBadRequest).JSON(&wrong)
	check.Equal(t, len(wrong.Errors), 1000, "%d faults are listed, %d more", len(wrong.Errors), wrong.More)
	check.Equal(t, wrong.More, 29_000, "%d faults are listed, %d more", len(wrong.Errors), wrong.More)
	endless := "[" + strings.Repeat(eventLine("cut", "")+",", 30_000)
	s.PostEvents(token, endless).Send().RequireStatus(http.StatusBadRequest).JSON(&cut)
	check.Equal(t, len(cut.Errors), 1, "faults of an array that does not end: %+v", cut)
	check.Equal(t, s.storedEvents(), lines, "stored")
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
			response := s.PostEvents(token, bomb).Header("Content-Encoding", "gzip").Send()
			isRefused := response.Status == http.StatusServiceUnavailable
			check.That(t, !isRefused || response.Header.Get("Retry-After") != "", "no Retry-After")
			codes <- response.Status
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
		response := s.PostEvents(token, eventLine(fmt.Sprint("small", small), "")).Send()
		check.Equal(t, response.Status, http.StatusOK, "a small body beside them: %v", response)
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
	check.That(t, taken[http.StatusOK] != 0, "answers: %v", taken)
	check.Equal(t, taken[http.StatusOK]+taken[http.StatusServiceUnavailable], 12, "answers: %v", taken)
	grown := int64(most) - int64(before.HeapInuse)
	check.That(t, grown <= 800<<20, "the heap grew by %d MiB", grown>>20)
	t.Logf("%v; the heap was %d MiB and grew to %d", taken, before.HeapInuse>>20, most>>20)
}

// TestABodyWhoseClientLeavesIsNotWritten checks that no event is stored if the client disconnects.
func TestABodyWhoseClientLeavesIsNotWritten(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.Timeout = 0 })
	token := s.newToken(1, 1, catalogue.ScopeIngest)
	read, write := io.Pipe()
	request := s.PostEvents(token, "").Build()
	request.Body, request.GetBody, request.ContentLength = read, nil, -1
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
	check.That(t, <-left != nil, "half a body was answered")
	check.Equal(t, s.storedEvents(), 0, "stored events of half a body")
}

// TestBoundsOfBodyFields sends a value beyond each bound of the document for each field of a body.
func TestBoundsOfBodyFields(t *testing.T) {
	s, ingests := newTwoSites(t)
	c := must.Get(theContract())(t)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	for _, body := range []struct {
		schema, path string
		right        map[string]any
		token        string
	}{
		{"NewToken", "/tokens", map[string]any{"scopes": []string{"read"}}, admin},
		{"NewShare", "/shares", map[string]any{"campaignId": 12}, admin},
		{"NewShare", "/shares", map[string]any{"widgetId": 7}, admin},
		{"Event", "/events", map[string]any{
			"eventId": "e", "time": time.Now().UnixMilli(), "websiteId": 1, "visitor": "a", "event": "goal",
			"goalId":     3,
			"campaignId": 12, "variationId": 1,
		}, ingests},
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
				response := s.Post(body.path, string(text)).Token(body.token).Type("application/json").Send()
				check.Equal(t, response.Status, http.StatusBadRequest, "%.100s: %v", text, response)
				check.Contains(t, response.Text, name, "%.100s: %v", text, response)
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
