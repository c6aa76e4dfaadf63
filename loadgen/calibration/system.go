package calibration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"lifthouse/loadgen/send"
	"lifthouse/schema/catalogue"
)

// System is the system under test. Events are sent and results are read over
// HTTP.
type System struct {
	URL    string
	HTTP   *http.Client
	Apply  func(context.Context, catalogue.File) error
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

// sendEvents sends the events of all experiments with o.Parallel concurrent requests.
func (s *System) sendEvents(ctx context.Context, all []experiment, o *Options, p *progress) error {
	var requests errgroup.Group
	requests.SetLimit(o.Parallel)
	requestCtx, cancel := context.WithCancelCause(ctx) // canceled when a request fails
	defer cancel(nil)
	for next := 0; next < len(all); {
		var body bytes.Buffer
		lines, first := 0, next
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

// postLines sends the lines. It returns an error unless all events are accepted.
func (s *System) postLines(ctx context.Context, body []byte, lines int) error {
	answer, err := send.PostEvents(ctx, s.HTTP, s.URL, s.tokens.Ingest, body)
	if err != nil {
		return err
	}
	if accepted := fastjson.GetInt(answer, "accepted"); accepted != lines {
		return fmt.Errorf("%d of %d events were accepted: %.300s", accepted, lines, answer)
	}
	return nil
}

// readReport reads the results of an experiment. If days is set, the results
// include those at the end of each day.
func (s *System) readReport(ctx context.Context, parser *fastjson.Parser, e *experiment, metric string, days bool) (*results, error) {
	path := fmt.Sprintf("/v1/campaigns/%d/results?compareMetric=%s", e.id, metric)
	if days {
		path += "&interval=day"
	}
	answer, err := s.fetchBody(ctx, path)
	if err != nil {
		return nil, err
	}
	body, err := parser.ParseBytes(answer)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	r := &results{final: comparisonsOf(body.GetArray("variations"))}
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

func (s *System) fetchBody(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.tokens.Read)
	request.Header.Set("Accept-Encoding", "identity") // compression costs more than it saves on the same machine
	response, err := s.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.500s", path, response.Status, answer)
	}
	return answer, err
}

// results has the comparisons of one report.
type results struct {
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
	return (b[0] == nil || *b[0] <= truth) && (b[1] == nil || truth <= *b[1])
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
