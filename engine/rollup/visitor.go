package rollup

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// The values of the column event. active exists only in rollups.
const (
	activeKind int8 = 0
	viewKind   int8 = 1
	goalKind   int8 = 7
)

// eventRow is a row of the events.
type eventRow struct {
	at         int64 // milliseconds since 1970
	id         uint64
	variation  int64
	kind       int8
	goal       int64
	amounts    [3]int64 // value, profit, extra value
	accepted   int64    // milliseconds since 1970
	fresh      bool     // accepted since the last step
	attributes []string // of a view: schema.CubeAttributes
}

// place is the key of a part of a visitor's sums, without the attributes.
type place struct {
	kind          int8
	goal          int64
	firstDay, day int32 // since 1970
}

// sums are the measures of a row of the table rollups.
type sums struct {
	visitors, sinceShares, events int64
	eventsSquares                 big.Int
	amounts                       [3]amounts // value, profit, extra value
	valueTimesGoals               big.Int
}

type amounts struct {
	sum, squares      big.Int
	nonzero, negative int64
}

// totals are a visitor's totals for one kind of event at the end of a day.
type totals struct {
	events  int64
	amounts [3]int64
}

// part is what a day adds to a visitor's sums.
type part struct {
	place
	sums
}

// visitorTotals has the sums of one visitor, before or after a step.
type visitorTotals struct {
	first        *eventRow // first view: the minimum by time, variation and id
	multiExposed bool
	parts        []part
}

// totalsOf adds up the events of a visitor. It returns nil for a visitor
// without a view. sql/rebuild.sql computes the same sums.
func totalsOf(events []eventRow, sharesSince int64) *visitorTotals {
	var p visitorTotals
	for i := range events {
		e := &events[i]
		if e.kind != viewKind {
			continue
		}
		p.multiExposed = p.multiExposed || p.first != nil && e.variation != p.first.variation
		if p.first == nil || cmp.Or(cmp.Compare(e.at, p.first.at), cmp.Compare(e.variation, p.first.variation), cmp.Compare(e.id, p.first.id)) < 0 {
			p.first = e
		}
	}
	if p.first == nil {
		return nil
	}
	firstDay := dayOf(p.first.at)
	days := map[place]totals{}
	var active []int32
	for i := range events {
		e := &events[i]
		if e.at < p.first.at {
			continue
		}
		day := dayOf(e.at)
		active = append(active, day)
		count(days, place{e.kind, e.goal, firstDay, day}, e)
		if e.kind == goalKind {
			count(days, place{e.kind, 0, firstDay, day}, e)
		}
	}
	p.addActiveDays(active)
	p.addDays(days, sharesSince)
	return &p
}

func count(days map[place]totals, at place, e *eventRow) {
	t := days[at]
	t.events++
	for i, amount := range e.amounts {
		t.amounts[i] += amount
	}
	days[at] = t
}

func dayOf(at int64) int32 { return int32(at / (24 * time.Hour).Milliseconds()) } //nolint:gosec // until 2299

// addActiveDays adds each active day after the first, with the previous active
// day.
func (p *visitorTotals) addActiveDays(days []int32) {
	slices.Sort(days)
	days = slices.Compact(days)
	for i := 1; i < len(days); i++ {
		p.parts = append(p.parts, part{place{activeKind, 0, days[i-1], days[i]}, sums{visitors: 1, events: 1}})
	}
}

// addDays adds what each day adds to the sums at the end of the previous day.
func (p *visitorTotals) addDays(days map[place]totals, sharesSince int64) {
	order := make([]place, 0, len(days))
	for at := range days {
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.goal, b.goal), cmp.Compare(a.day, b.day))
	})
	var before totals
	for i, at := range order {
		if i == 0 || order[i-1].kind != at.kind || order[i-1].goal != at.goal {
			before = totals{}
		}
		after := before.with(days[at])
		s := change(before, after)
		if at.kind == viewKind && before.events == 0 && p.first.at >= sharesSince {
			s.sinceShares = 1
		}
		p.parts = append(p.parts, part{at, s})
		before = after
	}
}

func (t totals) with(more totals) totals {
	t.events += more.events
	for i, amount := range more.amounts {
		t.amounts[i] += amount
	}
	return t
}

// change returns the sums with the later totals minus the sums with the earlier
// ones.
func change(before, after totals) sums {
	s := sums{visitors: one(before.events == 0), events: after.events - before.events}
	product(&s.eventsSquares, after.events, after.events, before.events, before.events)
	for i := range s.amounts {
		was, is := before.amounts[i], after.amounts[i]
		s.amounts[i].sum.SetInt64(is - was)
		product(&s.amounts[i].squares, is, is, was, was)
		s.amounts[i].nonzero = one(is != 0) - one(was != 0)
		s.amounts[i].negative = one(is < 0) - one(was < 0)
	}
	product(&s.valueTimesGoals, after.amounts[0], after.events, before.amounts[0], before.events)
	return s
}

// product sets d to a·b - c·e.
func product(d *big.Int, a, b, c, e int64) {
	if a == c && b == e {
		return
	}
	d.Mul(big.NewInt(a), big.NewInt(b))
	d.Sub(d, new(big.Int).Mul(big.NewInt(c), big.NewInt(e)))
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// add adds other sums, or subtracts them if sign is -1.
func (s *sums) add(o *sums, sign int64) {
	s.visitors += sign * o.visitors
	s.sinceShares += sign * o.sinceShares
	s.events += sign * o.events
	addBig(&s.eventsSquares, &o.eventsSquares, sign)
	for i := range s.amounts {
		to, from := &s.amounts[i], &o.amounts[i]
		addBig(&to.sum, &from.sum, sign)
		addBig(&to.squares, &from.squares, sign)
		to.nonzero += sign * from.nonzero
		to.negative += sign * from.negative
	}
	addBig(&s.valueTimesGoals, &o.valueTimesGoals, sign)
}

func addBig(to, from *big.Int, sign int64) {
	switch {
	case from.Sign() == 0:
	case sign < 0:
		to.Sub(to, from)
	default:
		to.Add(to, from)
	}
}

func (s *sums) isZero() bool {
	zero := s.visitors == 0 && s.sinceShares == 0 && s.events == 0 && s.eventsSquares.Sign() == 0 && s.valueTimesGoals.Sign() == 0
	for i := range s.amounts {
		a := &s.amounts[i]
		zero = zero && a.sum.Sign() == 0 && a.squares.Sign() == 0 && a.nonzero == 0 && a.negative == 0
	}
	return zero
}
