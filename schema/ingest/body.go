package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"lifthouse/schema"
)

// Line is a line of a request body, or an element of its array.
type Line struct {
	Events []schema.Event // one row per exposure; empty if the line is rejected
	Reject                // without a reason: the line is valid
}

// BodyError is a request body that is not valid NDJSON or JSON.
type BodyError struct{ error }

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.error }

// Body contains the options for the events of a request body.
type Body struct {
	WebsiteID int64 // events of other websites are rejected
	// idempotency key: with the line number, it identifies events without eventId; empty: eventId is required
	Key   string
	Times Times // accepted times
	// names of the store, and the source of the events; nil: names are not noted
	Names  *Names
	Source string
}

// ParseLines parses a body of one JSON event per line, or of one array of events, and calls take for each line or
// element. It returns a *BodyError if the array is not valid JSON, before it calls take, or if there is no event.
// Otherwise it returns the first error of take.
func (b Body) ParseLines(text []byte, take func(Line) error) error {
	text = bytes.TrimPrefix(text, byteOrder)
	lines := bytes.Lines(text)
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		if !json.Valid(text) {
			return &BodyError{fmt.Errorf("not JSON: %w", json.Unmarshal(text, new(any)))}
		}
		lines = elementsOf(text)
	}
	reader, number, found := jsonReader{}, int64(0), false
	accepted := rules{times: b.Times, website: b.WebsiteID, names: b.Names, source: b.Source}
	for text := range lines {
		number++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		found = true
		line := Line{Reject: Reject{WebsiteID: b.WebsiteID, Channel: ChannelHTTP, Line: number}}
		event, err := reader.readEvent(text)
		if err == nil {
			fallback := ""
			if b.Key != "" {
				fallback = fmt.Sprintf("%d:%s:%d", b.WebsiteID, b.Key, number)
			}
			line.Events, err = accepted.validate(nil, &event, fallback)
		}
		if err != nil {
			line.Reason, line.Text = err.Error(), origin{text: text}.rejectText()
		}
		if err := take(line); err != nil {
			return err
		}
	}
	if !found {
		return &BodyError{errors.New("no event: the body must have one JSON object per line, or an array of objects")}
	}
	return nil
}

// elementsOf returns the elements of an array, which must be valid JSON. It decodes one at a time, because the tree of
// a large array would need many times the memory of its text.
func elementsOf(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		decoder := json.NewDecoder(bytes.NewReader(array))
		_, err := decoder.Token()
		for err == nil && decoder.More() {
			var element json.RawMessage
			if err = decoder.Decode(&element); err == nil && !yield(element) {
				return
			}
		}
	}
}

func (r *jsonReader) readEvent(text []byte) (fields, error) {
	if len(text) > maxLine {
		return fields{}, fmt.Errorf("longer than %d bytes: the body must have one JSON event per line", maxLine)
	}
	object, err := parseObject(&r.parser, text)
	if err != nil {
		return fields{}, err
	}
	return r.readFields(object)
}
