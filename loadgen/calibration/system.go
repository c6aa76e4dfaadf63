package calibration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"lifthouse/schema/catalogue"
)

// System is the system under test. Events are sent and results are read over
// HTTP.
type System struct {
	URL    string
	HTTP   *http.Client
	Apply  func(context.Context, catalogue.File) error
	Fold   func(context.Context) error           // called after the events have been sent: the results count all of them
	Tokens func(context.Context) (Tokens, error) // called after the catalogue has been applied

	tokens Tokens
}

// Tokens are the secrets of an account token with scope read and a website
// token with scope ingest.
type Tokens struct{ Read, Ingest string }

// Account and website of the catalogue.
const (
	AccountID = 1
	WebsiteID = 1
)

// targetBodyBytes is the size from which on a request body is sent.
const targetBodyBytes = 2 << 20

// sendEvents sends the events of all experiments concurrently.
func (s *System) sendEvents(ctx context.Context, all []experiment, o *Options, p *progress) error {
	var requests errgroup.Group
	requests.SetLimit(concurrentRequests)
	requestCtx, cancel := context.WithCancelCause(ctx) // canceled when a request fails
	defer cancel(nil)
	for next := 0; next < len(all); {
		var body bytes.Buffer
		lines := 0
		first := next
		for ; next < len(all) && body.Len() < targetBodyBytes; next++ {
			lines += all[next].writeEvents(&body, o)
		}
		if requestCtx.Err() != nil {
			break
		}
		count := next - first
		requests.Go(func() error {
			err := s.postLines(requestCtx, body.Bytes(), lines)
			if err != nil {
				cancel(err)
			}
			p.addDone(count)
			return err
		})
	}
	return errors.Join(requests.Wait(), ctx.Err())
}

// maxAttempts is the number of attempts to send a request.
const maxAttempts = 20

// postLines sends the lines. It retries if the server has no time for the request. A retry does not count an event
// twice, because events have ids. postLines returns an error unless all events are accepted.
func (s *System) postLines(ctx context.Context, body []byte, lines int) error {
	for attempt := 1; ; attempt++ {
		status, answer, err := s.sendRequest(ctx, http.MethodPost, "/events", s.tokens.Ingest, body)
		switch accepted := fastjson.GetInt(answer, "accepted"); {
		case err != nil:
			return err
		case status == http.StatusOK && accepted == lines:
			return nil
		case status == http.StatusOK:
			return fmt.Errorf("%d of %d events were accepted: %.300s", accepted, lines, answer)
		case status != http.StatusTooManyRequests && status < http.StatusInternalServerError, attempt == maxAttempts:
			return fmt.Errorf("POST /events: status %d: %.1000s", status, answer)
		}
		select {
		case <-time.After(time.Duration(attempt) * 200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readReport reads the results of an experiment. If days is set, the results
// include those at the end of each day.
func (s *System) readReport(ctx context.Context, parser *fastjson.Parser, e *experiment, metric string, days bool) (*results, error) {
	path := fmt.Sprintf("/v1/campaigns/%d/results?compareMetric=%s", e.id, metric)
	if days {
		path += "&interval=day"
	}
	status, answer, err := s.sendRequest(ctx, http.MethodGet, path, s.tokens.Read, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d: %.500s", path, status, answer)
	}
	body, err := parser.ParseBytes(answer)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	r := &results{final: comparisonsOf(body.GetArray("variations"))}
	for _, v := range body.GetArray("variations") {
		r.visitors += v.GetInt("visitors")
	}
	for _, point := range body.GetArray("series") {
		r.days = append(r.days, comparisonsOf(point.GetArray("variations")))
	}
	for _, look := range body.GetArray("looks") {
		var found []comparison
		for _, v := range look.GetArray("variations") {
			found = append(found, comparisonOf(v.GetInt("id"), v))
		}
		r.looks = append(r.looks, found)
	}
	if len(r.final) != len(e.shape.shares)-1 {
		return nil, fmt.Errorf("GET %s: %d comparisons, want %d", path, len(r.final), len(e.shape.shares)-1)
	}
	return r, nil
}

// sendRequest sends a request and reads the response. The body of a POST has JSON lines.
func (s *System) sendRequest(ctx context.Context, method, path, token string, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("Accept-Encoding", "identity") // compression costs more than it saves on the same machine
	response, err := s.HTTP.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// results has the visitors and the comparisons of one report.
type results struct {
	visitors int // of all variations

	final []comparison   // by variation
	days  [][]comparison // by day and variation
	looks [][]comparison // by look and variation; only of the declared metric
}

// comparison is the comparison of one variation against control.
type comparison struct {
	variation               int
	value                   *float64 // difference
	significant, decided    bool     // decided: the verdict is "better" or "worse"; a look has none
	difference, improvement bounds
}

// bounds are the bounds of an interval. A nil bound is infinite.
type bounds [2]*float64

func (b bounds) coversValue(truth float64) bool {
	isBelow := b[0] != nil && truth < *b[0]
	isAbove := b[1] != nil && truth > *b[1]
	return !isBelow && !isAbove
}

func comparisonsOf(variations []*fastjson.Value) []comparison {
	var all []comparison
	for _, v := range variations {
		c := v.Get("comparison")
		if c == nil || c.Type() != fastjson.TypeObject {
			continue // control
		}
		all = append(all, comparisonOf(v.GetInt("id"), c))
	}
	return all
}

// comparisonOf returns a comparison of a report, or of one of its looks.
func comparisonOf(variation int, c *fastjson.Value) comparison {
	verdict := string(c.GetStringBytes("verdict"))
	return comparison{
		variation:   variation,
		value:       numberOf(c.Get("difference", "value")),
		significant: c.GetBool("significant"),
		decided:     verdict == "better" || verdict == "worse",
		difference:  boundsOf(c.Get("difference", "interval")),
		improvement: boundsOf(c.Get("improvement", "interval")),
	}
}

func numberOf(v *fastjson.Value) *float64 {
	if v == nil {
		return nil
	}
	number, err := v.Float64()
	if err != nil {
		return nil
	}
	return &number
}

func boundsOf(v *fastjson.Value) bounds {
	if v == nil {
		return bounds{}
	}
	return bounds{numberOf(v.Get("0")), numberOf(v.Get("1"))}
}
