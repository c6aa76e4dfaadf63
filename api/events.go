package api

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
)

// Received is the outcome of a request with events.
type Received struct {
	Accepted int            `json:"accepted"` // lines that are stored; an event counts once however often it is sent
	Rejected int            `json:"rejected"` // lines
	Lines    []RejectedLine `json:"lines"`    // first rejected lines
	More     int            `json:"more"`     // further rejected lines
	// Undeclared lists names that the catalogue does not declare, at most
	// maxUndeclared. Events with these names are stored.
	Undeclared []catalogue.Undeclared `json:"undeclared"`
}

// The maximum number of lines and of undeclared names in a response.
const (
	maxRejected   = 1000
	maxUndeclared = 100
)

func (r *Received) rejectLine(line int64, detail string) {
	r.Rejected++
	if len(r.Lines) == maxRejected {
		r.More++
		return
	}
	r.Lines = append(r.Lines, RejectedLine{line, detail})
}

// RejectedLine is a line or an array element that was rejected, and why.
type RejectedLine struct {
	Line   int64  `json:"line"` // from 1
	Detail string `json:"detail"`
}

const keyHeader = "Idempotency-Key"

// keyPattern matches idempotency keys.
var keyPattern = regexp.MustCompile(`^[\x21-\x7e]{1,128}$`)

// eventTypes has the valid content types of bodies with events. A page can send
// text/plain without a CORS preflight request.
var eventTypes = []string{"application/json", "application/x-ndjson", "text/plain"}

// takeEvents stores the events of a body. It returns after they are stored.
func (s *server) takeEvents(c *gin.Context) (any, error) {
	token := tokenOf(c)
	events := ingest.Body{WebsiteID: token.WebsiteID, Key: c.GetHeader(keyHeader), Times: s.Times}
	if faults := eventFaults(c); len(faults) > 0 {
		return nil, &problemError{&problem{Status: http.StatusBadRequest, Code: "invalid_parameter", Detail: "the request is invalid; nothing was changed", Errors: faults}}
	}
	if !hasContentType(c, eventTypes) {
		return nil, &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "Content-Type must be application/x-ndjson (one JSON object per line) or application/json (an array of objects)"}}
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	if err := s.readBody(c.Request, held, s.options.MaxEvents); err != nil {
		return nil, s.rejectBody(token.WebsiteID, held.text, err)
	}
	// Each event has a brace.
	if err := held.holdLines(min(int64(bytes.Count(held.text, []byte("{")))+1, chunkLines)); err != nil {
		return nil, s.rejectBody(token.WebsiteID, held.text, err)
	}
	ctx, cancel := results.WithDeadline(c.Request.Context(), s.options.Timeout) // the body has arrived
	defer cancel()
	w := &eventWriter{server: s, named: catalogue.NewEventNames(), received: Received{Lines: []RejectedLine{}}}
	var unread *ingest.BodyError
	switch err := w.storeLines(ctx, events, held.text); {
	case errors.As(err, &unread):
		return nil, s.rejectBody(token.WebsiteID, held.text, bodyProblem(err))
	case err != nil:
		return nil, s.intakeProblem(c, err)
	case w.received.Accepted == 0:
		return nil, noneTaken(&w.received)
	}
	undeclared := s.Catalogue.Snapshot().UndeclaredNames(w.named)
	w.received.Undeclared = undeclared[:min(len(undeclared), maxUndeclared)]
	s.metrics.countEvents(&w.received)
	return w.received, nil
}

// eventWriter stores the valid lines of a body, in parts of chunkLines lines, and records the rejected ones.
type eventWriter struct {
	server   *server
	received Received
	named    *catalogue.EventNames // names in the stored lines
	part     []schema.Event
	lines    int // in the part
}

// storeLines stores the valid lines in order.
func (w *eventWriter) storeLines(ctx context.Context, body ingest.Body, text []byte) error {
	err := body.ParseLines(text, func(line ingest.Line) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if line.Reason != "" {
			w.received.rejectLine(line.Line, line.Reason)
			w.server.Journal.BufferRejects(line.Reject)
			return nil
		}
		w.part = append(w.part, line.Events...)
		if w.lines++; w.lines < chunkLines {
			return nil
		}
		return w.storePart(ctx)
	})
	if err != nil || w.lines == 0 {
		return err
	}
	return w.storePart(ctx)
}

// storePart stores the events of the part.
func (w *eventWriter) storePart(ctx context.Context) error {
	w.named.AddEvents(w.part)
	if err := w.server.Collector.WriteEvents(ctx, w.part); err != nil {
		return err
	}
	w.received.Accepted += w.lines
	w.part, w.lines = nil, 0 // the collector may still hold the events
	return nil
}

// hasContentType reports whether the body has one of the content types, or none.
func hasContentType(c *gin.Context, allowed []string) bool {
	types := c.Request.Header.Values("Content-Type")
	if len(types) == 0 || len(types) == 1 && types[0] == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(types[0])
	return err == nil && len(types) == 1 && slices.Contains(allowed, kind)
}

// eventFaults returns the errors of the query and the headers.
func eventFaults(c *gin.Context) []fault {
	var faults []fault
	for name, values := range c.Request.URL.Query() {
		faults = append(faults, fault{"query", name, strings.Join(values, ","), "unknown parameter; this operation has no parameters"})
	}
	if keys := c.Request.Header.Values(keyHeader); len(keys) > 1 || len(keys) == 1 && !keyPattern.MatchString(keys[0]) {
		faults = append(faults, fault{"header", keyHeader, strings.Join(keys, ", "), "must be one key of 1 to 128 visible ASCII characters"})
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.Name, b.Name) })
	return faults
}

// rejectBody records the beginning of an unreadable body as a rejected line, and
// returns the problem.
func (s *server) rejectBody(websiteID int64, text []byte, err error) error {
	var wrong *problemError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Status == http.StatusServiceUnavailable {
		s.metrics.results.Shed.Inc()
	} else {
		reason := wrong.Detail
		for _, e := range wrong.Errors {
			reason += ": " + e.Detail
		}
		s.Journal.BufferRejects(ingest.Reject{WebsiteID: websiteID, Channel: ingest.ChannelHTTP, Reason: reason, Text: string(text[:min(len(text), keptOfBody)])})
	}
	return err
}

// keptOfBody is the maximum size of the beginning of a body that is recorded, in
// bytes. The journal shortens it further.
const keptOfBody = 4 << 10

// noneTaken returns the problem for a body without any valid line.
func noneTaken(r *Received) error {
	p := &problem{Status: http.StatusBadRequest, Code: "events_rejected", Detail: "no event is valid; nothing was stored", More: r.More}
	for _, line := range r.Lines {
		p.Errors = append(p.Errors, fault{"body", "line " + strconv.FormatInt(line.Line, 10), "", line.Detail})
	}
	return &problemError{p}
}

// intakeProblem returns the problem for events that could not be stored.
func (s *server) intakeProblem(c *gin.Context, err error) error {
	if errors.Is(err, ingest.ErrFull) {
		s.metrics.results.Shed.Inc()
		return &problemError{&problem{Status: http.StatusServiceUnavailable, Code: string(source.Busy), Detail: "too many events are waiting to be written: retry in a moment", retryAfter: 1}}
	}
	return describeTimeout(source.StoreFailure(c.Request.Context(), err), "the events were not stored in time, or their status is unknown: send the same events again; each event counts once")
}
