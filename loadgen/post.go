package loadgen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// Receiver is a server that takes events.
type Receiver struct {
	URL    string           // without /events
	Tokens map[int64]string // by website, of the scope ingest
	Client *http.Client
}

// senders is how many requests are under way at once: the server writes what
// comes together.
const senders = 8

// mostBody is about how many bytes a request has.
const mostBody = 1 << 20

// attempts is how often a request is sent before its refusal counts.
const attempts = 8

// Post sends all events to a server. Requests that it is too busy for are sent
// again: an event counts once.
func (r *Receiver) Post(ctx context.Context, s *Scenario, tell Tell) (Progress, error) {
	var p Progress
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(senders)
	err := Produce(ctx, s, EncodeNDJSON, func(part Part[[]byte]) error {
		for body := range bodies(part.Made) {
			sending.Go(func() error { return r.send(ctx, part.WebsiteID, body) })
		}
		p.add(part.Visitors, part.Events, len(part.Made))
		tell(p)
		return ctx.Err()
	})
	if sent := sending.Wait(); sent != nil { // which is why nothing more was made
		return p, sent
	}
	return p, err
}

// bodies cuts lines into requests.
func bodies(lines []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(lines) > 0 {
			end := len(lines)
			if end > mostBody {
				end = bytes.LastIndexByte(lines[:mostBody], '\n') + 1
			}
			if !yield(lines[:end]) {
				return
			}
			lines = lines[end:]
		}
	}
}

// received is what the server says of a request's lines.
type received struct {
	Rejected int `json:"rejected"`
	Lines    []struct {
		Verdict string `json:"verdict"`
		Detail  string `json:"detail"`
	} `json:"lines"`
}

// send sends a request until the server has taken all of it, or refuses it.
func (r *Receiver) send(ctx context.Context, website int64, body []byte) error {
	for attempt := 1; ; attempt++ {
		after, err := r.attempt(ctx, website, body)
		var refused refusal
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused), attempt == attempts:
			return fmt.Errorf("POST %s/events: %w", r.URL, err)
		}
		select {
		case <-time.After(max(after, time.Duration(attempt)*200*time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refusal is an answer that will be the same the next time.
type refusal struct{ error }

// attempt sends a request once. With an error it may say after what time the
// next one makes sense.
func (r *Receiver) attempt(ctx context.Context, website int64, body []byte) (after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/events", bytes.NewReader(body))
	if err != nil {
		return 0, refusal{err}
	}
	request.Header.Set("Authorization", "Bearer "+r.Tokens[website])
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := r.Client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	switch status := response.StatusCode; {
	case err != nil:
		return 0, err
	case status == http.StatusOK:
		return 0, wholly(text)
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0: it does not say
		return time.Duration(seconds) * time.Second, fmt.Errorf("%s: %s", response.Status, text[:min(len(text), 1000)])
	}
	return 0, refusal{fmt.Errorf("%s: %s", response.Status, text[:min(len(text), 1000)])}
}

// wholly is an error where the server has not taken every line.
func wholly(answer []byte) error {
	var is received
	if err := json.Unmarshal(answer, &is); err != nil {
		return refusal{fmt.Errorf("the answer is not a server's of events: %w", err)}
	}
	for _, line := range is.Lines {
		if is.Rejected > 0 && line.Detail != "" {
			return refusal{fmt.Errorf("%d lines rejected, such as: %s: %s", is.Rejected, line.Verdict, line.Detail)}
		}
	}
	if is.Rejected > 0 {
		return refusal{fmt.Errorf("%d lines rejected", is.Rejected)}
	}
	return nil
}
