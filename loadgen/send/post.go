package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"lifthouse/loadgen/population"

	"golang.org/x/sync/errgroup"
)

// Server is a running server that accepts events.
type Server struct {
	URL    string           // without /events
	Tokens map[int64]string // by website id; scope ingest
	Client *http.Client
}

const (
	postConcurrency = 8       // requests in flight; the server writes concurrent requests together
	maxBodyBytes    = 1 << 20 // of a request
	maxAttempts     = 20      // per request
)

// PostScenario sends all events to the server. It retries requests that fail
// temporarily. Retries do not count an event twice, because events have ids.
func (r *Server) PostScenario(ctx context.Context, s *population.Scenario, report Report) (Progress, error) {
	var p Progress
	requests, ctx := errgroup.WithContext(ctx)
	requests.SetLimit(postConcurrency)
	err := population.GenerateEvents(ctx, s, population.EncodeNDJSON, func(batch population.Batch[[]byte]) error {
		for body := range splitBodies(batch.Data) {
			requests.Go(func() error {
				answer, err := PostEvents(ctx, r.Client, r.URL, r.Tokens[batch.WebsiteID], body)
				if err != nil {
					return err
				}
				return checkAccepted(answer)
			})
		}
		p.addCounts(batch.Visitors, batch.Events, len(batch.Data))
		report(p)
		return ctx.Err()
	})
	if postErr := requests.Wait(); postErr != nil { // the first failed request canceled ctx
		return p, postErr
	}
	return p, err
}

// splitBodies splits lines into request bodies.
func splitBodies(lines []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(lines) > 0 {
			end := len(lines)
			if end > maxBodyBytes {
				end = bytes.LastIndexByte(lines[:maxBodyBytes], '\n') + 1
			}
			if !yield(lines[:end]) {
				return
			}
			lines = lines[end:]
		}
	}
}

// ingestResponse is the server's response to a request with events.
type ingestResponse struct {
	Rejected int `json:"rejected"`
	Lines    []struct {
		Detail string `json:"detail"`
	} `json:"lines"`
}

// PostEvents posts lines of events to the API at url and returns the body of
// the response. PostEvents retries a request up to 20 times if the server does
// not respond, or responds with status 429 or 5xx.
func PostEvents(ctx context.Context, client *http.Client, url, token string, lines []byte) (answer []byte, err error) {
	for attempt := 1; ; attempt++ {
		answer, retryAfter, err := postOnce(ctx, client, url, token, lines)
		var permanent permanentError
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &permanent), attempt == maxAttempts:
			return nil, fmt.Errorf("POST %s/events: %w", url, err)
		}
		select {
		case <-time.After(max(retryAfter, time.Duration(attempt)*200*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// permanentError is an error that a retry does not change.
type permanentError struct{ error }

// postOnce sends a request once. If the response has a Retry-After header,
// postOnce returns its value with the error.
func postOnce(ctx context.Context, client *http.Client, url, token string, lines []byte) (answer []byte, retryAfter time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/events", bytes.NewReader(lines))
	if err != nil {
		return nil, 0, permanentError{err}
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
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if the header is missing
		return nil, time.Duration(seconds) * time.Second, statusError(response.Status, text)
	}
	return nil, 0, permanentError{statusError(response.Status, text)}
}

func statusError(status string, body []byte) error {
	return fmt.Errorf("%s: %s", status, body[:min(len(body), 1000)])
}

// checkAccepted returns an error if the server rejected any line.
func checkAccepted(answer []byte) error {
	var response ingestResponse
	if err := json.Unmarshal(answer, &response); err != nil {
		return fmt.Errorf("invalid response to POST /events: %w", err)
	}
	if response.Rejected == 0 {
		return nil
	}
	if len(response.Lines) == 0 {
		return fmt.Errorf("%d lines rejected", response.Rejected)
	}
	return fmt.Errorf("%d lines rejected, for example: %s", response.Rejected, response.Lines[0].Detail)
}
