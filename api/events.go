package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"
)

// Received is the outcome of a request with events.
type Received struct {
	Accepted int            `json:"accepted"` // lines that are stored; an event counts once however often it is sent
	Rejected int            `json:"rejected"` // lines
	Lines    []RejectedLine `json:"lines"`    // first rejected lines
	More     int            `json:"more"`     // further rejected lines
	// Undeclared lists names that the catalogue does not declare, at most 100. Events with these names are
	// stored.
	Undeclared []catalogue.Undeclared `json:"undeclared"`
}

// RejectedLine is a line or an array element that was rejected, and why.
type RejectedLine struct {
	Line   int64  `json:"line"` // from 1
	Detail string `json:"detail"`
}

const keyHeader = "Idempotency-Key"

var keyPattern = regexp.MustCompile(`^[\x21-\x7e]{1,128}$`)

// takeEvents stores the events of a body. It returns after they are stored.
func (s *API) takeEvents(c *gin.Context) (any, error) {
	token := tokenOf(c)
	if err := checkEventsRequest(c, &token); err != nil {
		return nil, err
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	if err := s.readBody(c.Request, held, s.options.MaxEvents); err != nil {
		return nil, s.rejectBody(token.WebsiteID, held.text, err)
	}
	if !held.acquireLines() {
		return nil, s.rejectBody(token.WebsiteID, held.text, bodiesBusy())
	}
	ctx, cancel := results.WithDeadline(c.Request.Context(), s.options.Timeout) // the body has arrived
	defer cancel()
	names, err := s.Collector.Names(ctx)
	if err != nil {
		return nil, s.intakeProblem(c, err)
	}
	events := ingest.Body{
		WebsiteID: token.WebsiteID, Key: c.GetHeader(keyHeader), Times: s.Times, Names: names, Source: token.Name,
	}
	writer := lineWriter{
		collector: s.Collector, journal: s.Journal,
		received: Received{Lines: []RejectedLine{}}, named: catalogue.NewEventNames(names.KeyOf),
	}
	err = events.ParseLines(held.text, func(line ingest.Line) error { return writer.addLine(ctx, line) })
	if err == nil {
		err = writer.storePart(ctx)
	}
	received := writer.received
	var unread *ingest.BodyError
	switch {
	case errors.As(err, &unread):
		return nil, s.rejectBody(token.WebsiteID, held.text, bodyProblem(err))
	case err != nil:
		return nil, s.intakeProblem(c, err)
	case received.Accepted == 0:
		return nil, noEventProblem(&received)
	}
	undeclared := s.Catalogue.Snapshot().UndeclaredNames(writer.named)
	received.Undeclared = undeclared[:min(len(undeclared), 100)]
	s.metrics.events.WithLabelValues("accepted").Add(float64(received.Accepted))
	s.metrics.events.WithLabelValues("rejected").Add(float64(received.Rejected))
	return received, nil
}

// checkEventsRequest checks the token, the parameters and the headers of a request with events.
func checkEventsRequest(c *gin.Context, token *catalogue.Token) error {
	if token.Sender != nil {
		c.Header("WWW-Authenticate", realm+`, error="insufficient_scope", scope="ingest"`)
		return newRefusal(http.StatusForbidden, "key_of_source",
			"the token is the key of a source, which sends to /in/ and the key")
	}
	found := query.ReadParameters(c.Request.URL.RawQuery)
	keys := c.Request.Header.Values(keyHeader)
	if len(keys) > 1 || len(keys) == 1 && !keyPattern.MatchString(keys[0]) {
		found.Add(keyHeader, strings.Join(keys, ", "), "must be one key of 1 to 128 visible ASCII characters")
	}
	if err := found.Err(); err != nil {
		return err
	}
	// A page can send text/plain without a CORS preflight request.
	if !hasContentType(c, []string{"application/json", "application/x-ndjson", "text/plain"}) {
		return newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Content-Type must be application/x-ndjson (one JSON object per line) or application/json "+
				"(an array of objects)")
	}
	return nil
}

// noEventProblem returns the problem for a body of which every line was rejected.
func noEventProblem(received *Received) error {
	p := newRefusal(http.StatusBadRequest, "events_rejected", "no event is valid; nothing was stored")
	for _, line := range received.Lines {
		at := "line " + strconv.FormatInt(line.Line, 10)
		p.Errors = append(p.Errors, fault{"body", at, "", line.Detail})
	}
	p.More = received.More
	return p
}

// lineWriter stores the valid lines of a body in order, in parts of chunkLines lines, and records the rejected ones.
type lineWriter struct {
	collector *ingest.Collector
	journal   *ingest.Journal
	received  Received              // what was stored and rejected so far
	named     *catalogue.EventNames // the names of the stored events
	part      []schema.Event        // of the lines that are not stored yet
	lines     int                   // such lines
}

// maxRejectedLines is the number of rejected lines that an answer lists.
const maxRejectedLines = 1000

// addLine adds a line to the current part, and stores the part if it is full.
func (w *lineWriter) addLine(ctx context.Context, line ingest.Line) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if line.Reason != "" {
		w.received.Rejected++
		if len(w.received.Lines) < maxRejectedLines {
			w.received.Lines = append(w.received.Lines, RejectedLine{line.Line, line.Reason})
		} else {
			w.received.More++
		}
		w.journal.BufferRejects(line.Reject)
		return nil
	}
	w.part = append(w.part, line.Events...)
	w.lines++
	if w.lines < chunkLines {
		return nil
	}
	return w.storePart(ctx)
}

// storePart stores the lines of the current part, if there are any, and begins the next part.
func (w *lineWriter) storePart(ctx context.Context) error {
	if w.lines == 0 {
		return nil
	}
	w.named.AddEvents(w.part)
	if err := w.collector.WriteEvents(ctx, w.part); err != nil {
		return err
	}
	w.received.Accepted += w.lines
	w.part = nil // the collector may still hold the events
	w.lines = 0
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

// rejectBody records the beginning of an unreadable body as a rejected line, and returns the problem.
func (s *API) rejectBody(websiteID int64, text []byte, err error) error {
	wrong, isProblem := errors.AsType[*problem](err)
	switch {
	case !isProblem:
	case wrong.Status == http.StatusServiceUnavailable:
		s.metrics.results.Shed.Inc()
	default:
		reason := wrong.Detail
		for _, e := range wrong.Errors {
			reason += ": " + e.Detail
		}
		s.Journal.BufferRejects(ingest.Reject{
			WebsiteID: websiteID, Channel: ingest.ChannelHTTP, Reason: reason,
			Text: string(text[:min(len(text), 4<<10)]), // the journal shortens it further
		})
	}
	return err
}

// intakeProblem returns the problem for events that could not be stored.
func (s *API) intakeProblem(c *gin.Context, err error) error {
	if errors.Is(err, ingest.ErrFull) {
		s.metrics.results.Shed.Inc()
		return unavailable(string(source.Busy), "too many events are waiting to be written: retry in a moment", 1, nil)
	}
	return describeTimeout(source.StoreFailure(c.Request.Context(), err),
		"the events were not stored in time, or their status is unknown: send the same events again; each event "+
			"counts once")
}

// Limits of the memory for all request bodies with events together.
const (
	smallBody   = 1 << 20  // size in bytes above which a body is large; most bodies are small
	smallBodies = 64 << 20 // total size of all small bodies in bytes
	largeBodies = 2        // concurrent large bodies; each can have Options.MaxEvents bytes
	chunkLines  = 20_000   // lines of a body that are parsed into events at once
	chunks      = 4        // such parts in memory at the same time
)

// bodies limits the memory of request bodies with events and catalogues. A kilobyte of gzip can contain a megabyte of
// events, which takes about ten megabytes of memory.
type bodies struct {
	small *semaphore.Weighted // bytes
	large *semaphore.Weighted // bodies
	lines *semaphore.Weighted // lines parsed into events
	wait  time.Duration       // maximum time that a large body waits for other large ones

	parsed *semaphore.Weighted // bodies of YAML; a parsed one takes hundreds of times its size
}

// body is a request body that is being processed. releaseMemory returns its share of the limits.
type body struct {
	of      *bodies
	text    []byte
	small   int64 // acquired bytes
	isLarge bool
	lines   int64 // acquired lines
}

// acquireLines acquires memory for the events of the body, and reports whether there is enough.
func (b *body) acquireLines() bool {
	lines := min(int64(bytes.Count(b.text, []byte("{")))+1, chunkLines) // each event has a brace
	if !b.of.lines.TryAcquire(lines) {
		return false
	}
	b.lines = lines
	return true
}

func (b *body) releaseMemory() {
	b.of.small.Release(b.small)
	if b.isLarge {
		b.of.large.Release(1)
	}
	b.of.lines.Release(b.lines)
}

// acquireMemory acquires memory for a text of the given size. A body that becomes large waits for other large bodies,
// and keeps the text that was already read.
func (b *body) acquireMemory(ctx context.Context, size int64) error {
	switch {
	case b.isLarge || size <= b.small:
		return nil
	case size > smallBody:
		waiting, cancel := context.WithTimeout(ctx, b.of.wait)
		defer cancel()
		if b.of.large.Acquire(waiting, 1) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return bodiesBusy()
		}
		b.isLarge = true
		b.of.small.Release(b.small)
		b.small = 0
		return nil
	case !b.of.small.TryAcquire(size - b.small):
		return bodiesBusy()
	}
	b.small = size
	return nil
}

// bodiesBusy returns the problem for a body that exceeds the limits.
func bodiesBusy() error {
	return unavailable(string(source.Busy),
		"too many large bodies at the same time: retry in a moment, or send less per request", retryAfter, nil)
}

// firstRead is the size of the first buffer for a compressed body or a body of unknown length. The buffer doubles as
// needed.
const firstRead = 64 << 10

// readBody reads and decompresses a body of at most most bytes within the limits; 0: any size. It stops if the client
// disconnects. Even after an error, the caller must release the body, and may use the part that was read.
func (s *API) readBody(request *http.Request, b *body, most int64) error {
	encoding := strings.ToLower(strings.TrimSpace(request.Header.Get("Content-Encoding")))
	plain, err := decompressBody(request.Body, encoding)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }()
	room := int64(firstRead)
	isPlain := encoding == "" || encoding == "identity"
	if known := request.ContentLength; known >= 0 && isPlain {
		room = known + 1 // one more byte, to detect the end
	}
	for {
		if most > 0 {
			room = min(room, most+1)
		}
		if err := b.acquireMemory(request.Context(), room); err != nil {
			return err
		}
		if b.isLarge && most > 0 {
			room = most + 1 // grow at once to the maximum, because two copies exist while a buffer grows
		}
		err = b.readUpTo(request.Context(), plain, room)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return bodyProblem(err)
		case most > 0 && int64(len(b.text)) > most:
			return tooLong(most)
		case err != nil:
			return nil
		}
		room *= 2
	}
}

// decompressBody returns the plain text of a body.
func decompressBody(sent io.Reader, encoding string) (io.ReadCloser, error) {
	switch encoding {
	case "", "identity":
		return io.NopCloser(sent), nil
	case "gzip":
		unzipped, err := gzip.NewReader(sent)
		if err != nil {
			return nil, bodyProblem(err)
		}
		return unzipped, nil
	case "zstd":
		decoder, err := zstd.NewReader(sent, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return nil, bodyProblem(err)
		}
		return decoder.IOReadCloser(), nil
	default:
		return nil, newRefusal(http.StatusUnsupportedMediaType, "unsupported_encoding",
			fmt.Sprintf("Content-Encoding %q: must be gzip, zstd or none", encoding))
	}
}

// readUpTo reads more of the text, until it has size bytes. It returns io.EOF at the end of the body.
func (b *body) readUpTo(ctx context.Context, plain io.Reader, size int64) error {
	if int64(cap(b.text)) < size {
		b.text = append(make([]byte, 0, size), b.text...)
	}
	for int64(len(b.text)) < size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := plain.Read(b.text[len(b.text):min(size, int64(len(b.text)+firstRead))])
		b.text = b.text[:len(b.text)+n]
		if err != nil {
			return err
		}
	}
	return nil
}

func tooLong(most int64) error {
	return newRefusal(http.StatusRequestEntityTooLarge, "body_too_large",
		fmt.Sprintf("the body must have at most %d bytes; send less per request", most))
}

// bodyProblem returns the problem for a body that cannot be read to its end.
func bodyProblem(err error) error {
	var long *http.MaxBytesError
	var found faults.List
	switch {
	case errors.As(err, &long):
		return tooLong(long.Limit)
	case errors.Is(err, context.Canceled), errors.As(err, &found):
		return err
	}
	return &problem{
		Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body cannot be read; nothing was changed",
		Errors: []fault{{"body", "", "", err.Error()}},
	}
}
