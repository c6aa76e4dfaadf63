package ingest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/valyala/fastjson"
)

// Intake converts the bodies of a sender's requests to events, as its mapping says.
type Intake struct {
	WebsiteID int64
	Source    string // name of the sender's source
	ViewsOnly bool   // goals are rejected

	mapper *mapper
}

// NewIntake compiles the mapping of a sender: the name of a shipped one, or YAML. It returns an error if the mapping
// needs a file.
func NewIntake(mapping string, website int64, source string, viewsOnly bool) (*Intake, error) {
	var m *Mapping
	var err error
	switch {
	case IsShipped(mapping):
		m, err = ShippedMapping(mapping)
	case strings.TrimSpace(mapping) == "":
		err = noMapping("")
	default:
		m, err = ReadMapping(strings.NewReader(mapping))
	}
	if err != nil {
		return nil, err
	}
	if name := m.needingFile(); name != "" {
		return nil, fmt.Errorf("mapping: %s: rowNumber and lookup need a file", name)
	}
	compiled, err := newMapper(m, website, nil)
	if err != nil {
		return nil, err
	}
	return &Intake{WebsiteID: website, Source: source, ViewsOnly: viewsOnly, mapper: compiled}, nil
}

// The maximum number of items of a request, and the maximum size of its body in bytes, before and after decompression.
const (
	MaxItems    = 5000
	MaxItemText = 4 << 20
)

// Request describes the request in which a body arrived.
type Request struct {
	Arrived time.Time
	Header  func(name string) string
	Key     string // idempotency key, which identifies items without an id; empty: each of them is a new event
	Times   Times  // accepted times
	Names   *Names // of the store
	// Admit is called with the number of items before names of events are noted; its error ends ParseBody
	Admit func(items int) error
}

// Item is an element of a body.
type Item struct {
	Name   string         // what the sender calls it
	Events []schema.Event // one row per exposure
	Goals  []ItemGoal     // the goals of the events that are not cancelled
	// Ignored: the mapping has no event for the item. NoVisitor: it has, but the item names no visitor.
	Ignored, NoVisitor bool
	OfCustomer         bool // the item names a customer and no visitor
	Cut                bool // attributes of the item were too long and are cut
	// Dropped are the numbers of own attributes, properties and fields of lines that were dropped, by their kind
	Dropped map[string]int
	Reject  *Reject // nil: the item is valid
}

// ItemGoal is a goal of an event.
type ItemGoal struct {
	ID          int64
	HasCurrency bool // or no amount
}

// ofNobody follows the name of an item whose mapping says that it has no visitor.
const ofNobody = ", of nobody"

// ParseBody calls take for each item of a body, which may be compressed: the elements of an array, those of the
// mapping's list, or the body itself. It returns a *BodyError if the body is not valid JSON or has too many items,
// before it calls take.
func (in *Intake) ParseBody(sent []byte, request *Request, take func(*Item)) error {
	reader := jsonReaders.Get().(*jsonReader)
	defer jsonReaders.Put(reader)
	text, err := decompressBody(sent)
	if err != nil {
		return &BodyError{err}
	}
	body, err := parseJSON(&reader.parser, text)
	if err != nil {
		return &BodyError{err}
	}
	items := 0
	err = in.eachItem(reader, body, request, func(*jsonLine) error {
		items++
		if items > MaxItems {
			return &BodyError{fmt.Errorf("the body must have at most %d items", MaxItems)}
		}
		return nil
	})
	if err == nil && request.Admit != nil {
		err = request.Admit(items)
	}
	if err != nil {
		return err
	}
	number := int64(0)
	return in.eachItem(reader, body, request, func(line *jsonLine) error {
		number++
		switch {
		case line == nil:
			take(&Item{Reject: in.newReject(number, "the item must be a JSON object")})
		case len(text) > maxLine && len(line.objects[0].MarshalTo(nil)) > maxLine:
			take(&Item{Reject: in.newReject(number, fmt.Sprintf("the item is longer than %d bytes", maxLine))})
		default:
			take(in.parseItem(line, request, number))
		}
		return nil
	})
}

// decompressBody returns the text of a body. Its first bytes say whether it is compressed: not all senders set
// Content-Encoding.
func decompressBody(sent []byte) ([]byte, error) {
	const buffer, maxItemWindow = 4 << 10, 8 << 20
	plain, err := decompressReader(bytes.NewReader(sent), buffer, maxItemWindow)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(plain, MaxItemText+1))
	if len(text) > MaxItemText {
		err = fmt.Errorf("the body is longer than %d bytes after decompression", MaxItemText)
	}
	return text, err
}

// eachItem calls do for each item of a body, with nil for an element of an array that is not an object.
func (in *Intake) eachItem(
	reader *jsonReader, body *fastjson.Value, request *Request, do func(*jsonLine) error,
) error {
	elements := []*fastjson.Value{body}
	if body.Type() == fastjson.TypeArray {
		elements = body.GetArray()
	}
	for _, element := range elements {
		object, noObject := element.Object()
		if noObject != nil {
			if err := do(nil); err != nil {
				return err
			}
			continue
		}
		whole := jsonLine{reader, in.mapper, request.Header, []*fastjson.Object{object}, nil}
		if err := whole.eachItem(do); err != nil {
			return err
		}
	}
	return nil
}

// newReject returns a rejected item, without its text, which may have the address of a customer.
func (in *Intake) newReject(number int64, reason string) *Reject {
	return &Reject{WebsiteID: in.WebsiteID, Channel: ChannelHTTP, File: in.Source, Line: number, Reason: reason}
}

// parseItem returns an item, which is rejected as a whole if one of its events is invalid.
func (in *Intake) parseItem(line *jsonLine, request *Request, number int64) *Item {
	mapped := line.toMappedLine(number, request.Arrived)
	item := &Item{}
	if in.mapper.name >= 0 {
		item.Name, _ = mapped.cellAt(in.mapper.name) // only for the counts
	}
	events, err := in.mapper.lineEvents(nil, mapped)
	accepted := rules{
		times: request.Times, website: in.WebsiteID, names: request.Names, source: in.Source,
		isLenient: true,
	}
	for i := range events {
		event := &events[i]
		if !item.takeVisitor(event) {
			continue
		}
		if err == nil && in.ViewsOnly && event.isOrder() {
			err = errors.New("the source accepts views only")
		}
		if err == nil {
			// No id is computed from the content: a sender without ids repeats equal events that are different ones.
			fallback := fmt.Sprintf("%d:%s:%d:%d", in.WebsiteID, request.Key, number, i)
			if request.Key == "" {
				fallback = rand.Text()
			}
			before := len(item.Events)
			item.Events, err = accepted.validate(item.Events, event, fallback)
			if len(item.Events) > before {
				item.addGoal(&item.Events[before])
			}
		}
	}
	item.Ignored = err == nil && len(item.Events) == 0
	item.Cut = err == nil && accepted.cut > 0
	if err == nil {
		item.Dropped = accepted.dropped
	}
	if err != nil {
		item.Events = nil
		item.Goals = nil
		item.NoVisitor = false
		item.OfCustomer = false
		item.Reject = in.newReject(number, hideEmails(err.Error()))
	}
	return item
}

// takeVisitor notes the event's lack of a visitor. It reports whether the event has a visitor or a customer.
func (item *Item) takeVisitor(event *fields) bool {
	hasVisitor := event.values[fieldVisitor] != ""
	switch {
	case event.values[fieldCustomer] != "":
		item.OfCustomer = item.OfCustomer || !hasVisitor
		return true
	case event.ofNobody:
		item.Name = strings.TrimSuffix(item.Name, ofNobody) + ofNobody
	case !hasVisitor:
		item.NoVisitor = true
	}
	return hasVisitor
}

// isOrder reports whether the event is a goal, or says that a customer had bought.
func (f *fields) isOrder() bool {
	kind := schema.Kind(f.values[fieldEvent])
	return kind == schema.KindGoal || kind == schema.KindCustomer
}

// addGoal adds the goal of an event, if it has one and counts.
func (item *Item) addGoal(e *schema.Event) {
	if e.GoalID != 0 && !e.Cancelled {
		hasAmount := e.Value != 0 || e.Profit != 0 || e.ExtraValue != 0
		item.Goals = append(item.Goals, ItemGoal{e.GoalID, e.Currency != "" || !hasAmount})
	}
}

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
	reader := jsonReader{}
	number := int64(0)
	found := false
	accepted := rules{times: b.Times, website: b.WebsiteID, names: b.Names, source: b.Source}
	for text := range lines {
		number++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
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
			line.Reason = hideEmails(err.Error())
			line.Text = withoutCustomers(origin{text: text}.rejectText(nil), []fields{event})
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
			err = decoder.Decode(&element)
			if err == nil && !yield(element) {
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
