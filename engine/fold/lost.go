package fold

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/moments"
	"lifthouse/schema"
)

// content is what the rows of a visitor contain of an event, without amounts in another currency: rows have them as
// they were converted when the event was folded.
type content struct {
	Subject schema.Subject
	Kind    moments.Kind
	At      int64
	Goal    int64    // of a goal event
	Amounts [3]int64 // of a goal event
	Foreign string
	Details string // the properties and the lines of a goal event
}

func (e *Event) content() content {
	if e.Kind != moments.Goal {
		return content{Subject: e.Subject, Kind: e.Kind, At: e.At}
	}
	amounts := e.Amounts
	items := e.Items
	if e.Foreign != "" {
		amounts = [3]int64{}
		items = withoutAmounts(items)
	}
	details := e.Properties
	if len(items) > 0 {
		lines := schema.Details{Items: items}
		details += lines.EncodeDetails()
	}
	return content{e.Subject, e.Kind, e.At, e.Goal, amounts, e.Foreign, details}
}

// LostEvents returns the events of which the stored rows of a visitor were made, and which are not among the visitor's
// stored events: from both together, AppendVisitorRows returns what the stored rows count. isShort reports whether rows
// of a subject were made of more events than are stored. The ids of lost events are not known, so they have others. The
// rows must be in the order of AppendVisitorRows, those of goals without exposures first. Rows of an automated visitor
// do not say which events they were made of, so none of them is returned. Rows do not name cancelled events and
// superseded revisions either; so an event counts again whose cancellation is lost. Orders that name no visitor are not
// returned: they are rows of customers.
func LostEvents(stored []FactRow, events []Event, isShort func(schema.Subject) bool) []Event {
	l := losses{events: events, present: map[content]int{}, missing: map[content]int{}, bare: map[content]int{}}
	type copied struct {
		id uint64
		content
	}
	isCounted := map[copied]bool{} // copies count once
	addPresent := func(id uint64, c content) {
		if of := (copied{id, c}); !isCounted[of] {
			isCounted[of] = true
			l.present[c]++
			if c.Subject.Kind == schema.SubjectNone {
				l.bare[c]++
			}
		}
	}
	for i := range events {
		if !events[i].OfCustomer { // a superseded revision, too: the rows may not have a later one
			addPresent(events[i].ID, events[i].content())
		}
	}
	distinct, carried := distinctEvents(events, nil)
	bare := carried
	for own := range splitEvents(distinct) {
		all := eventRows{own, bare, own, bare}
		for own, bare := all.nextEvent(); len(own) > 0; own, bare = all.nextEvent() {
			_, e := stateOf(own, bare)
			c := e.content()
			c.Subject = own[0].Subject
			addPresent(e.ID, c)
		}
		if own[0].isBare() {
			bare = withCarried(own, carried)
		}
	}
	for rows := range splitBySubject(stored) {
		if isShort(rows[0].Subject) && !IsAutomated(rows[0].Variation) {
			l.addRows(&rows[0], rows[1:])
		}
	}
	return l.lost
}

// losses are the events that stored rows were made of and that are not stored.
type losses struct {
	events           []Event
	present, missing map[content]int // numbers of events
	bare             map[content]int // those without exposures, stored or lost
	lost             []Event
}

// addRows adds the lost events of a visitor's row, and of the rows of the goal events.
func (l *losses) addRows(v *FactRow, goals []FactRow) {
	var variation int64
	var bare map[content]int // goals that count for the subject, too
	if v.Variation != "" {
		bare = maps.Clone(l.bare)
		variation, _ = strconv.ParseInt(strings.TrimSuffix(v.Variation, MultiExposed), 10, 64)
		// The first view, if it is lost, has the least id: of views at the same time, it is the first.
		first := Event{Subject: v.Subject, Visitor: v.Visitor, At: v.First, Kind: moments.View, Variation: variation}
		first.Attributes = v.Attributes
		first.Custom = v.Custom
		if slices.ContainsFunc(l.events, func(e Event) bool {
			hasSameLabels := e.Attributes == v.Attributes && e.Custom == v.Custom
			return e.content() == first.content() && e.Variation == variation && hasSameLabels
		}) {
			l.present[first.content()]--
		} else {
			l.lost = append(l.lost, first)
		}
	}
	for i, later := range v.Later {
		at := v.First + int64(later) //nolint:gosec // milliseconds
		e := Event{Subject: v.Subject, Visitor: v.Visitor, At: at, Kind: moments.Kind(v.LaterKinds[i])}
		if e.Kind == moments.View {
			e.Attributes = v.Attributes
			e.Custom = v.Custom
			e.Variation = variation
			if e.At == v.MultiExposed {
				e.Variation = math.MaxInt64 // another one; of views at the same time, it is not the first
			}
		}
		if e.Kind != moments.Goal {
			l.addUnlessPresent(&e, nil)
		}
	}
	for i := range goals {
		r := &goals[i]
		if r.Marks&CarriedMark != 0 {
			continue // it is no event of the visitor
		}
		at := r.First + int64(r.Since) //nolint:gosec // milliseconds
		e := Event{Subject: r.Subject, Visitor: r.Visitor, At: at, Kind: moments.Goal, Goal: r.Goal}
		e.Amounts = r.Amounts
		e.Foreign = r.Foreign
		e.State = AmountsConverted
		if r.Marks&UnknownValueMark != 0 {
			e.State = AmountsUnknown
		}
		e.Properties = r.Properties
		e.Items = r.Items
		l.addUnlessPresent(&e, bare)
	}
}

// addUnlessPresent adds an event that is lost. bare are goals without exposures that the subject of the event counts.
func (l *losses) addUnlessPresent(e *Event, bare map[content]int) {
	c := e.content()
	without := c
	without.Subject = schema.Subject{WebsiteID: c.Subject.WebsiteID, Kind: schema.SubjectNone}
	switch {
	case l.present[c] > 0:
		l.present[c]--
		return
	case bare[without] > 0:
		bare[without]--
		return
	}
	l.missing[c]++
	e.ID = schema.HashID(fmt.Sprint(c, l.missing[c]))
	if e.isBare() {
		l.bare[c]++
		for i := range l.events { // the same goal with an exposure counts once
			o := l.events[i].content()
			o.Subject = c.Subject
			if o == c {
				e.ID = l.events[i].ID
			}
		}
	}
	l.lost = append(l.lost, *e)
}
