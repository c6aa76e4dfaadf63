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

// Line is the result for one line of a request body, or for one element of its array.
type Line struct {
	Number int64          // line number or position in the array, from 1
	Events []schema.Event // one row per exposure; empty if the line is invalid
	Fault  error          // names each invalid field, its value and what is allowed; nil if the line is valid
	Text   string         // the beginning of an invalid line
}

// BodyError is a request body that is not valid NDJSON or JSON.
type BodyError struct{ error }

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.error }

// Body contains the options for the events of a request body.
type Body struct {
	WebsiteID int64  // events of other websites are rejected
	Key       string // idempotency key: with the line number, it identifies events without eventId; empty: eventId is required
	Times     Times  // accepted times
}

// ParseLines parses a body of one JSON event per line, or of one array of events, and
// calls take for each line or element. It returns a *BodyError, or the first error of
// take. After a *BodyError, the caller must discard the events that take has
// received.
func (b Body) ParseLines(text []byte, take func(Line) error) error {
	text = bytes.TrimPrefix(text, byteOrder)
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return b.eachOfArray(text, take)
	}
	return b.eachLine(text, take)
}

var errNoEvent = &BodyError{errors.New("no event: the body must have one JSON object per line, or an array of objects")}

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
		if err := take(b.parseLine(&reader, number, line)); err != nil {
			return err
		}
	}
	if !found {
		return errNoEvent
	}
	return nil
}

// eachOfArray decodes one element at a time, because the tree of a large array would
// need many times the memory of its text.
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
		if err := take(b.parseLine(&reader, number, element)); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &BodyError{errors.New("not JSON: data after the array")}
	}
	if number == 0 {
		return errNoEvent
	}
	return nil
}

// notJSON returns a *BodyError. It replaces io.EOF, which a caller could mistake for
// success.
func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &BodyError{fmt.Errorf("not JSON: %w", err)}
}

// parseLine parses and validates the event of a line.
func (b Body) parseLine(reader *jsonReader, number int64, text []byte) Line {
	var fault error
	var event fields
	if len(text) > maxLine {
		fault = fmt.Errorf("longer than %d bytes: the body must have one JSON event per line", maxLine)
	} else {
		event, fault = reader.readEvent(text)
	}
	line := b.buildLine(number, &event, fault)
	if line.Fault != nil {
		line.Text = origin{text: text}.rejectText()
	}
	return line
}

func (r *jsonReader) readEvent(text []byte) (fields, error) {
	object, err := parseObject(&r.parser, text)
	if err != nil {
		return fields{}, err
	}
	return r.readFields(object)
}

// buildLine validates the fields of an event and builds its rows.
func (b Body) buildLine(number int64, event *fields, fault error) Line {
	line := Line{Number: number, Fault: fault}
	if fault != nil {
		return line
	}
	fallback := ""
	if b.Key != "" {
		fallback = strconv.FormatInt(b.WebsiteID, 10) + ":" + b.Key + ":" + strconv.FormatInt(number, 10)
	}
	rows, err := buildRows(nil, event, fallback, b.Times)
	switch {
	case err != nil:
		line.Fault = err
	case event.values[fieldEventID] == "" && fallback == "":
		line.Fault = errors.New("eventId: missing: must be an id that is the same in every retry, unless the request has the header Idempotency-Key")
	case rows[0].WebsiteID != b.WebsiteID:
		line.Fault = fmt.Errorf("unknown_website: websiteId %d is not the website of the token", rows[0].WebsiteID)
	default:
		line.Events = rows
	}
	return line
}
