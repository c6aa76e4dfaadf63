package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"lifthouse/schema"
)

// Line is what stands on one line of a body, or in one place of its array.
type Line struct {
	Number int64          // from 1
	Events []schema.Event // one for each exposure; none where the line is wrong
	Fault  error          // names each field that is wrong, its value and what is allowed
	Text   string         // the beginning of a line that is wrong
}

// BodyError is a body that cannot be read to its end: nothing of it is taken.
type BodyError struct{ error }

// Unwrap returns what is wrong.
func (e *BodyError) Unwrap() error { return e.error }

// Body says how the events of a body are read.
type Body struct {
	WebsiteID int64  // whose events these are; others are refused
	Key       string // with the line's number the id of events without one; empty: each needs its own
	Times     Times  // that are taken
}

// Each reads the events of a body, one JSON object a line or one array of
// them, and calls take for each line or each place of the array. It keeps none
// of them. The error is a *BodyError, or that of take, which ends it.
func (b Body) Each(text []byte, take func(Line) error) error {
	text = bytes.TrimPrefix(text, byteOrder)
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return b.eachOfArray(text, take)
	}
	return b.eachLine(text, take)
}

var errNoEvent = &BodyError{errors.New("no event: want one JSON object a line, or an array of them")}

func (b Body) eachLine(text []byte, take func(Line) error) error {
	var reader jsonReader
	var number int64
	found := false
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		found = true
		if err := take(b.parse(&reader, number, line)); err != nil {
			return err
		}
	}
	if !found {
		return errNoEvent
	}
	return nil
}

// eachOfArray takes one element after the other: the tree of a large array
// would be many times its size.
func (b Body) eachOfArray(text []byte, take func(Line) error) error {
	var reader jsonReader
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return notJSON(err)
	}
	var number int64
	for decoder.More() {
		var element json.RawMessage
		if err := decoder.Decode(&element); err != nil {
			return notJSON(err)
		}
		number++
		if err := take(b.parse(&reader, number, element)); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &BodyError{errors.New("not JSON: something follows the array")}
	}
	if number == 0 {
		return errNoEvent
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &BodyError{fmt.Errorf("not JSON: %w", err)}
}

// parse makes rows of a line.
func (b Body) parse(reader *jsonReader, number int64, text []byte) Line {
	var fault error
	var event fields
	if len(text) > maxLine {
		fault = fmt.Errorf("longer than %d bytes: want one JSON event a line", maxLine)
	} else {
		event, fault = reader.event(text)
	}
	line := b.line(number, &event, fault)
	if line.Fault != nil {
		line.Text = origin{text: text}.beginning()
	}
	return line
}

func (r *jsonReader) event(text []byte) (fields, error) {
	object, err := parseObject(&r.parser, text)
	if err != nil {
		return fields{}, err
	}
	return r.fields(object)
}

// line makes rows of an event's fields, if all of them are right.
func (b Body) line(number int64, event *fields, fault error) Line {
	line := Line{Number: number, Fault: fault}
	if fault != nil {
		return line
	}
	fallback := ""
	if b.Key != "" {
		fallback = strconv.FormatInt(b.WebsiteID, 10) + ":" + b.Key + ":" + strconv.FormatInt(number, 10)
	}
	rows, err := build(nil, event, fallback, b.Times)
	switch {
	case err != nil:
		line.Fault = err
	case event.values[fieldEventID] == "" && fallback == "":
		line.Fault = errors.New("eventId: missing: want an id, or the header Idempotency-Key, so that a repetition counts once")
	case rows[0].WebsiteID != b.WebsiteID:
		line.Fault = fmt.Errorf("unknown_website: websiteId %d is not the token's", rows[0].WebsiteID)
	default:
		line.Events = rows
	}
	return line
}
