package ingest

import (
	"bytes"
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

// Read reads the events of a body: one JSON object a line, or one array of
// them. The error is a *BodyError, or the reader's own.
func (b Body) Read(r io.Reader) ([]Line, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if text = bytes.TrimPrefix(text, byteOrder); bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return b.array(text)
	}
	return b.lines(text)
}

func (b Body) lines(text []byte) ([]Line, error) {
	var lines []Line
	var reader jsonReader
	var number int64
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var fault error
		var event fields
		if len(line) > maxLine {
			fault = fmt.Errorf("longer than %d bytes: want one JSON event a line", maxLine)
		} else {
			event, fault = reader.event(line)
		}
		lines = append(lines, b.line(number, &event, fault))
		lines[len(lines)-1].note(func() []byte { return line })
	}
	if len(lines) == 0 {
		return nil, &BodyError{errors.New("no event: want one JSON object a line, or an array of them")}
	}
	return lines, nil
}

func (r *jsonReader) event(text []byte) (fields, error) {
	object, err := parseObject(&r.parser, text)
	if err != nil {
		return fields{}, err
	}
	return r.fields(object)
}

func (b Body) array(text []byte) ([]Line, error) {
	var reader jsonReader
	value, err := parseJSON(&reader.parser, text)
	if err != nil {
		return nil, &BodyError{err}
	}
	items, err := value.Array()
	if err != nil || len(items) == 0 {
		return nil, &BodyError{errors.New("no event: want one JSON object a line, or an array of them")}
	}
	lines := make([]Line, len(items))
	for i, item := range items {
		var event fields
		object, fault := item.Object()
		if fault != nil {
			fault = errors.New("want a JSON object")
		} else {
			event, fault = reader.fields(object)
		}
		lines[i] = b.line(int64(i)+1, &event, fault)
		lines[i].note(func() []byte { return item.MarshalTo(nil) })
	}
	return lines, nil
}

// note keeps the beginning of a line that is wrong.
func (l *Line) note(text func() []byte) {
	if l.Fault != nil {
		l.Text = origin{text: text()}.beginning()
	}
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
