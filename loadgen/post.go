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
const attempts = 20

// Post sends all events to a server. Requests that it is too busy for are sent
// again: an event counts once.
func (r *Receiver) Post(ctx context.Context, s *Scenario, tell Tell) (Progress, error) {
	var p Progress
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(senders)
	err := Produce(ctx, s, EncodeNDJSON, func(part Part[[]byte]) error {
		for body := range bodies(part.Made) {
			sending.Go(func() error {
				answer, err := PostEvents(ctx, r.Client, r.URL, r.Tokens[part.WebsiteID], body)
				if err != nil {
					return err
				}
				return wholly(answer)
			})
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

// PostEvents sends lines of events to a server's API until it has taken them, and
// returns its answer. It sends them again where the server does not answer or is
// too busy.
func PostEvents(ctx context.Context, client *http.Client, url, token string, lines []byte) (answer []byte, err error) {
	for attempt := 1; ; attempt++ {
		answer, after, err := postOnce(ctx, client, url, token, lines)
		var refused refusal
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &refused), attempt == attempts:
			return nil, fmt.Errorf("POST %s/events: %w", url, err)
		}
		select {
		case <-time.After(max(after, time.Duration(attempt)*200*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refusal is an answer that will be the same the next time.
type refusal struct{ error }

// postOnce sends a request once. With an error it may say after what time the
// next one makes sense.
func postOnce(ctx context.Context, client *http.Client, url, token string, lines []byte) (answer []byte, after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/events", bytes.NewReader(lines))
	if err != nil {
		return nil, 0, refusal{err}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	switch status := response.StatusCode; {
	case err != nil:
		return nil, 0, err
	case status == http.StatusOK:
		return text, 0, nil
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0: it does not say
		return nil, time.Duration(seconds) * time.Second, fmt.Errorf("%s: %s", response.Status, text[:min(len(text), 1000)])
	}
	return nil, 0, refusal{fmt.Errorf("%s: %s", response.Status, text[:min(len(text), 1000)])}
}

// wholly is an error where the server has not taken every line.
func wholly(answer []byte) error {
	var is received
	if err := json.Unmarshal(answer, &is); err != nil {
		return fmt.Errorf("the answer is not a server's of events: %w", err)
	}
	for _, line := range is.Lines {
		if is.Rejected > 0 && line.Detail != "" {
			return fmt.Errorf("%d lines rejected, such as: %s: %s", is.Rejected, line.Verdict, line.Detail)
		}
	}
	if is.Rejected > 0 {
		return fmt.Errorf("%d lines rejected", is.Rejected)
	}
	return nil
}
