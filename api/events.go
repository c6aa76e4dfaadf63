package api

import (
	"crypto/sha256"
	"errors"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/gin-gonic/gin"
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
	Lines      []LineVerdict `json:"lines"`      // those that were not stored, the first of them
	More       int           `json:"more"`       // those that were not stored and are not listed
}

// mostVerdicts is how many lines an answer lists: who sends so many wrong ones
// learns no more from the rest.
const maxVerdicts = 1000

func (r *Received) list(line int64, verdict, detail string) {
	if len(r.Lines) == maxVerdicts {
		r.More++
		return
	}
	r.Lines = append(r.Lines, LineVerdict{line, verdict, detail})
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
	events := ingest.Body{WebsiteID: token.WebsiteID, Key: c.GetHeader(keyHeader), Times: s.intake.Times}
	if faults := eventFaults(c); len(faults) > 0 {
		return nil, &problemError{&problem{Status: http.StatusBadRequest, Code: "invalid_parameter", Detail: "the request cannot be understood as it stands; nothing was done", Errors: faults}}
	}
	if !isEvents(c.Request.Header.Values("Content-Type")) {
		return nil, &problemError{&problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "Content-Type: want application/x-ndjson, one JSON object a line, or application/json, an array of them"}}
	}
	held := &body{of: s.bodies}
	defer held.release()
	if err := s.readBody(c.Request, held); err != nil {
		return nil, s.unread(token.WebsiteID, held.text, err)
	}
	d := &delivery{server: s, body: events, held: held}
	if err := d.survey(c.Request.Context()); err != nil {
		return nil, s.unread(token.WebsiteID, held.text, err)
	}
	if d.received.Rejected == d.lines {
		return nil, noneTaken(&d.received)
	}
	ctx, cancel := s.withDeadline(c.Request.Context()) // the body is here: a slow client is another matter
	defer cancel()
	if events.Key != "" {
		digest := sha256.Sum256(held.text)
		if err := within(ctx, func() error { return s.intake.Deliveries.Bind(ctx, token.WebsiteID, events.Key, digest) }); err != nil {
			return nil, s.intakeProblem(c, err)
		}
	}
	if err := d.store(ctx); err != nil {
		return nil, s.intakeProblem(c, err)
	}
	s.metrics.received(&d.received)
	return d.received, nil
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
		faults = append(faults, fault{"header", keyHeader, strings.Join(keys, ", "), "must be one key of 1 to 128 visible ASCII characters"})
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.Name, b.Name) })
	return faults
}

// unread keeps a body that cannot be read among the rejects, with what was
// read of it, and returns what is wrong with it.
func (s *server) unread(websiteID int64, text []byte, err error) error {
	var wrong *problemError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Status == http.StatusServiceUnavailable {
		s.metrics.shed.Inc()
	} else {
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

// noneTaken refuses a body of which no line is right.
func noneTaken(r *Received) error {
	p := &problem{Status: http.StatusBadRequest, Code: "events_rejected", Detail: "no event can be taken; nothing was stored", More: r.More}
	for _, line := range r.Lines {
		p.Errors = append(p.Errors, fault{"body", "line " + strconv.FormatInt(line.Line, 10), "", line.Detail})
	}
	return &problemError{p}
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
