package rollup

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/visit"
	"lifthouse/engine/visitors"
)

// eventRow is a row of the events.
type eventRow struct {
	visitors.Event
	accepted int64 // milliseconds since 1970
	number   int64 // position in the order of the events
	fresh    bool  // accepted since the last step
}

// place is the key of a part of a visitor's sums, without the attributes.
type place struct {
	kind          visit.Kind // NoKind: a day on which the visitor is active
	goal          int64
	firstDay, day int32 // since 1970
}

// sums are the measures of a row of the table rollups.
type sums struct {
	visit.Sums
	sinceShares int64
}

// part is what a day adds to a visitor's sums.
type part struct {
	place
	sums
}

// visitorTotals has the sums of one visitor, before or after a step.
type visitorTotals struct {
	visit.Exposure
	attributes []string // of the first view: visitors.Attributes
	parts      []part
}

// totalsOf adds up the events of a visitor. It returns nil for a visitor
// without a view. sql/rebuild.sql computes the same sums.
func totalsOf(events []eventRow, sharesSince int64) *visitorTotals {
	var p visitorTotals
	for i := range events {
		if e := &events[i]; e.Kind == visit.View {
			p.See(&e.Event.Event, i)
		}
	}
	if !p.Exposed {
		return nil
	}
	p.attributes = events[p.Row].Attributes
	firstDay := dayOf(p.First.At)
	days := map[place]visit.Totals{}
	var active []int32
	for i := range events {
		e := &events[i]
		if !p.Counts(&e.Event.Event) {
			continue
		}
		day := dayOf(e.At)
		active = append(active, day)
		count(days, place{e.Kind, e.Goal, firstDay, day}, e)
		if e.Kind == visit.Goal {
			count(days, place{e.Kind, 0, firstDay, day}, e)
		}
	}
	p.addActiveDays(active)
	p.addDays(days, sharesSince)
	return &p
}

func count(days map[place]visit.Totals, at place, e *eventRow) {
	t := days[at]
	t.Add(&e.Event.Event)
	days[at] = t
}

func dayOf(at int64) int32 { return int32(at / (24 * time.Hour).Milliseconds()) } //nolint:gosec // until 2299

// addActiveDays adds each active day after the first, with the previous active
// day.
func (p *visitorTotals) addActiveDays(days []int32) {
	slices.Sort(days)
	days = slices.Compact(days)
	for i := 1; i < len(days); i++ {
		p.parts = append(p.parts, part{place{visit.NoKind, 0, days[i-1], days[i]}, sums{Sums: visit.Sums{Visitors: 1, Events: 1}}})
	}
}

// addDays adds what each day adds to the sums at the end of the previous day.
func (p *visitorTotals) addDays(days map[place]visit.Totals, sharesSince int64) {
	order := make([]place, 0, len(days))
	for at := range days {
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.goal, b.goal), cmp.Compare(a.day, b.day))
	})
	var before visit.Totals
	for i, at := range order {
		if i == 0 || order[i-1].kind != at.kind || order[i-1].goal != at.goal {
			before = visit.Totals{}
		}
		after := before.Plus(days[at])
		var s sums
		s.Change(before, after)
		if at.kind == visit.View && before.Events == 0 && p.First.At >= sharesSince {
			s.sinceShares = 1
		}
		p.parts = append(p.parts, part{at, s})
		before = after
	}
}

// add adds other sums, or subtracts them if sign is -1.
func (s *sums) add(o *sums, sign int64) {
	s.Add(&o.Sums, sign)
	s.sinceShares += sign * o.sinceShares
}

func (s *sums) isZero() bool { return s.sinceShares == 0 && s.IsZero() }
