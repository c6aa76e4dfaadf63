package visitors

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/visit"
)

// Attributes are the columns of the attributes of a first view.
var Attributes = []string{
	"device", "country", "channel", "browser", "os", "visitor_type", "referrer", "utm_source", "utm_medium", "utm_campaign",
	"city", "region", "utm_content", "utm_term", "first_visit_page",
}

// Event is a stored event of a visitor.
type Event struct {
	visit.Event
	Goal       int64
	Attributes []string // of a view: the values of Attributes
}

// first is what both tables have of the first view of a visitor.
type first struct {
	variation    int64
	multiExposed bool
	attributes   []string
	at           int64 // milliseconds since 1970
}

// exposure is a row of the table exposures.
type exposure struct {
	first
	multiExposedAt int64 // milliseconds since 1970; 0: never
	counts         [visit.Goal]uint32
	laterHours     []uint32
	laterKinds     []uint8
	lastMS         uint64
}

// conversion is a row of the table conversions.
type conversion struct {
	first
	goal, at        int64
	number          uint32
	amounts, before [3]int64
}

// rowsOf returns the rows of a visitor. It returns nil without a view.
// sql/rebuild_exposures.sql and sql/rebuild_conversions.sql compute the same rows.
func rowsOf(events []Event) (*exposure, []conversion) {
	var x visit.Exposure
	for i := range events {
		if e := &events[i]; e.Kind == visit.View {
			x.See(&e.Event, i)
		}
	}
	if !x.Exposed {
		return nil, nil
	}
	row := &exposure{first: first{x.First.Variation, x.MultiExposed, events[x.Row].Attributes, x.First.At}}
	var counted []*Event
	for i := range events {
		e := &events[i]
		if !x.Counts(&e.Event) {
			continue
		}
		counted = append(counted, e)
		if e.Kind < visit.Goal {
			row.counts[e.Kind]++
		}
		if e.Kind == visit.View && e.Variation != x.First.Variation && (row.multiExposedAt == 0 || e.At < row.multiExposedAt) {
			row.multiExposedAt = e.At
		}
	}
	row.setLater(counted, &events[x.Row])
	return row, conversionsOf(counted, row.first)
}

// setLater sets the events after the first view.
func (row *exposure) setLater(counted []*Event, firstView *Event) {
	later := slices.DeleteFunc(slices.Clone(counted), func(e *Event) bool { return e == firstView })
	slices.SortFunc(later, func(a, b *Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind)) })
	row.laterHours, row.laterKinds = make([]uint32, len(later)), make([]uint8, len(later))
	for i, e := range later {
		row.laterHours[i], row.laterKinds[i] = uint32(hourOf(e.At)-hourOf(row.at)), uint8(e.Kind) //nolint:gosec // not before the first view
		row.lastMS = uint64(e.At - row.at)                                                        //nolint:gosec // not before the first view
	}
}

// hourOf returns the hours since 1970 of a time not before 1970.
func hourOf(ms int64) int64 { return ms / time.Hour.Milliseconds() }

// conversionsOf returns the rows of the counted goal events.
func conversionsOf(counted []*Event, of first) []conversion {
	goals := slices.DeleteFunc(slices.Clone(counted), func(e *Event) bool { return e.Kind != visit.Goal })
	slices.SortFunc(goals, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.Goal, b.Goal), cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
	})
	rows := make([]conversion, len(goals))
	for i, e := range goals {
		row := conversion{first: of, goal: e.Goal, at: e.At, number: 1, amounts: e.Amounts}
		if i > 0 && goals[i-1].Goal == e.Goal {
			last := &rows[i-1]
			row.number = last.number + 1
			for k := range row.before {
				row.before[k] = last.before[k] + last.amounts[k]
			}
		}
		rows[i] = row
	}
	return rows
}
