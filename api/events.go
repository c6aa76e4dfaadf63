package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Intake is where events go.
type Intake struct {
	Collector  *ingest.Collector
	Deliveries *ingest.Deliveries
	Times      ingest.Times // that events may have
	Rejects    *ingest.Rejects
}

// Received says what became of the events of a request.
type Received struct {
	Stored     int           `json:"stored"`     // lines
	Duplicates int           `json:"duplicates"` // lines that were stored before, or stand twice
	Rejected   int           `json:"rejected"`   // lines
	Lines      []LineVerdict `json:"lines"`      // those that were not stored
}

// LineVerdict is what became of one line, or of one place of an array.
type LineVerdict struct {
	Line    int64  `json:"line"` // from 1
	Verdict string `json:"verdict"`
	Detail  string `json:"detail,omitempty"`
}

// The verdicts of lines that were not stored.
const (
	verdictRejected  = "rejected"
	verdictDuplicate = "duplicate"
	verdictConflict  = "duplicateConflict" // a duplicate with other content; the first to arrive stands
)

const keyHeader = "Idempotency-Key"

// keyPattern is what an idempotency key may be.
var keyPattern = regexp.MustCompile(`^[\x21-\x7e]{1,128}$`)

// eventTypes are the content types that a body of events may say it has.
// text/plain is what a page sends without a question before.
var eventTypes = []string{"application/json", "application/x-ndjson", "text/plain"}

// takeEvents stores the events of a body and answers once they are stored.
func (s *server) takeEvents(c *gin.Context) (any, error) {
	token := c.MustGet(tokenKey).(catalogue.Token)
	body := ingest.Body{WebsiteID: token.WebsiteID, Key: c.GetHeader(keyHeader), Times: s.intake.Times}
	if faults := eventFaults(c); len(faults) > 0 {
		return nil, &problemError{&problem{Status: http.StatusBadRequest, Code: "invalid_parameter", Detail: "the request cannot be understood as it stands; nothing was done", Errors: faults}}
	}
	if !isEvents(c.Request.Header.Values("Content-Type")) {
		return nil, &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "Content-Type: want application/x-ndjson, one JSON object a line, or application/json, an array of them"}}
	}
	text, err := s.plainBody(c.Request)
	if err != nil {
		return nil, s.unread(token.WebsiteID, text, err)
	}
	lines, err := body.Read(bytes.NewReader(text))
	if err != nil {
		return nil, s.unread(token.WebsiteID, text, bodyProblem(err))
	}
	received := rejectedOf(lines)
	s.keepRejects(token.WebsiteID, lines)
	if received.Rejected == len(lines) {
		return nil, noneTaken(received.Lines)
	}
	ctx, cancel := s.withDeadline(c.Request.Context()) // the body is here: a slow client is another matter
	defer cancel()
	if body.Key != "" {
		digest := sha256.Sum256(text)
		if err := within(ctx, func() error { return s.intake.Deliveries.Bind(ctx, token.WebsiteID, body.Key, digest) }); err != nil {
			return nil, s.intakeProblem(c, err)
		}
	}
	if err := s.store(ctx, lines, &received); err != nil {
		return nil, s.intakeProblem(c, err)
	}
	s.metrics.received(&received)
	return received, nil
}

// isEvents says whether a body of this type, or of none, may hold events.
func isEvents(types []string) bool {
	if len(types) == 0 || len(types) == 1 && types[0] == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(types[0])
	return err == nil && len(types) == 1 && slices.Contains(eventTypes, kind)
}

// eventFaults are what is wrong with the request beside its body.
func eventFaults(c *gin.Context) []fault {
	var faults []fault
	for name, values := range c.Request.URL.Query() {
		faults = append(faults, fault{"query", name, strings.Join(values, ","), "unknown parameter; there are none"})
	}
	if keys := c.Request.Header.Values(keyHeader); len(keys) > 1 || len(keys) == 1 && !keyPattern.MatchString(keys[0]) {
		faults = append(faults, fault{"header", keyHeader, strings.Join(keys, ", "), "want one key of 1 to 128 visible ASCII characters"})
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.Name, b.Name) })
	return faults
}

// unread keeps a body that cannot be read among the rejects, with what was
// read of it, and returns what is wrong with it.
func (s *server) unread(websiteID int64, text []byte, err error) error {
	var wrong *problemError
	if errors.As(err, &wrong) {
		reason := wrong.Detail
		for _, e := range wrong.Errors {
			reason += ": " + e.Detail
		}
		s.intake.Rejects.Keep(ingest.Reject{WebsiteID: websiteID, Way: ingest.WayHTTP, Reason: reason, Text: string(text[:min(len(text), keptOfBody)])})
	}
	return err
}

// keptOfBody is more of a body than is kept with the rejects, in bytes.
const keptOfBody = 4 << 10

// keepRejects keeps the lines that are wrong, so that somebody who looks for
// them finds them here too.
func (s *server) keepRejects(websiteID int64, lines []ingest.Line) {
	for _, line := range lines {
		if line.Fault != nil {
			s.intake.Rejects.Keep(ingest.Reject{WebsiteID: websiteID, Way: ingest.WayHTTP, Line: line.Number, Reason: line.Fault.Error(), Text: line.Text})
		}
	}
}

// plainBody reads the body, decompressed.
func (s *server) plainBody(request *http.Request) ([]byte, error) {
	var plain io.Reader
	switch encoding := strings.ToLower(strings.TrimSpace(request.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		plain = request.Body
	case "gzip":
		unzipped, err := gzip.NewReader(request.Body)
		if err != nil {
			return nil, bodyProblem(err)
		}
		plain = unzipped
	case "zstd":
		decoder, err := zstd.NewReader(request.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdMemory))
		if err != nil {
			return nil, bodyProblem(err)
		}
		defer decoder.Close()
		plain = decoder
	default:
		return nil, &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding", Detail: fmt.Sprintf("Content-Encoding %q: want gzip, zstd or none", encoding)}}
	}
	most := s.options.MaxEvents
	if most > 0 {
		plain = io.LimitReader(plain, most+1)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return nil, bodyProblem(err)
	}
	if most > 0 && int64(len(text)) > most {
		return nil, tooLong(most)
	}
	return text, nil
}

// zstdMemory bounds the window that a body's frame may ask for.
const zstdMemory = 32 << 20

func tooLong(most int64) error {
	return &problemError{&problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body: want at most %d bytes; send fewer events at once", most)}}
}

// bodyProblem refuses a body that cannot be read to its end.
func bodyProblem(err error) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return tooLong(long.Limit)
	}
	return &problemError{&problem{
		Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body cannot be read; nothing of it was stored",
		Errors: []fault{{"body", "", "", err.Error()}},
	}}
}

// noneTaken refuses a body of which no line is right.
func noneTaken(lines []LineVerdict) error {
	p := &problem{Status: http.StatusBadRequest, Code: "events_rejected", Detail: "no event can be taken; nothing was stored"}
	for _, line := range lines {
		p.Errors = append(p.Errors, fault{"body", "line " + strconv.FormatInt(line.Line, 10), "", line.Detail})
	}
	return &problemError{p}
}

// rejectedOf tells of the lines that are wrong.
func rejectedOf(lines []ingest.Line) Received {
	r := Received{Lines: []LineVerdict{}}
	for _, line := range lines {
		if line.Fault != nil {
			r.Rejected++
			r.Lines = append(r.Lines, LineVerdict{line.Number, verdictRejected, line.Fault.Error()})
		}
	}
	return r
}

// store writes the lines that are right and tells what became of them: a line
// of several rows is stored if any of them is.
func (s *server) store(ctx context.Context, lines []ingest.Line, received *Received) error {
	var events []schema.Event
	for _, line := range lines {
		events = append(events, line.Events...)
	}
	verdicts, err := s.intake.Collector.Write(ctx, events)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if line.Fault != nil {
			continue
		}
		own := verdicts[:len(line.Events)]
		verdicts = verdicts[len(line.Events):]
		switch {
		case slices.Contains(own, ingest.Conflict):
			received.Duplicates++
			received.Lines = append(received.Lines, LineVerdict{line.Number, verdictConflict, "stored before with other content, which stands"})
		case slices.Contains(own, ingest.Stored):
			received.Stored++
		default:
			received.Duplicates++
			received.Lines = append(received.Lines, LineVerdict{line.Number, verdictDuplicate, ""})
		}
	}
	slices.SortFunc(received.Lines, func(a, b LineVerdict) int { return int(a.Line - b.Line) })
	return nil
}

// intakeProblem says why events were not taken, and when to come back.
func (s *server) intakeProblem(c *gin.Context, err error) error {
	switch {
	case errors.Is(err, ingest.ErrFull):
		s.metrics.shed.Inc()
		return &problemError{&problem{Status: http.StatusServiceUnavailable, Code: string(engine.Busy), Detail: "too many events wait to be written: send the same again in a moment", retryAfter: 1}}
	case errors.Is(err, ingest.ErrKeyReused):
		return &problemError{&problem{
			Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused", Detail: "nothing was stored",
			Errors: []fault{{"header", keyHeader, c.GetHeader(keyHeader), "another body came under this key before; take a new key for a new body"}},
		}}
	}
	return untimely(engine.StoreFailure(c.Request.Context(), err), "the events were not stored in time, or it is not known that they were: send the same again, each counts once")
}
