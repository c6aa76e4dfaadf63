package packed

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"lifthouse/engine/visit"
	"lifthouse/schema"
)

// Word is an event in 8 bytes: 48 bits of the time in milliseconds since 1970, 4 bits
// of the kind, and 12 bits of the index of the variation.
type Word int64

// The limits of a word. The time reaches from the year -2490 to 6430, further than
// the times of the store.
const (
	kindShift     = 12
	timeShift     = 16
	maxVariations = 1 << kindShift
)

// At returns the time in milliseconds since 1970.
func (w Word) At() int64 { return int64(w >> timeShift) }

// Kind returns the kind of the event.
func (w Word) Kind() visit.Kind { return visit.Kind(w >> kindShift & (1<<(timeShift-kindShift) - 1)) }

func (w Word) variation() int { return int(w & (maxVariations - 1)) }

// GoalEvent is what a goal event has besides its word.
type GoalEvent struct {
	Goal    int64
	Amounts [3]int64 // value, profit and extra value, in 1/schema.MoneyScale
}

// Row is an event of a subject.
type Row struct {
	visit.Event
	Visitor    uint64
	Goal       int64
	attributes *schema.Attributes // of an added event; nil: they are in the store, or among the values of a column
}

// Events are the events of a subject by visitor, and by time. They are immutable.
type Events struct {
	Count   uint64
	Through int64 // latest acceptance time, in milliseconds since 1970

	visitors   []uint64 // ascending
	starts     []uint32 // index of the first word of each visitor; the last element is the number of words
	words      []Word
	goals      []GoalEvent // of the words with kind visit.Goal, in their order
	variations []int64     // ids
	firstIDs   []uint64    // event id of the first view of each visitor
	columns    map[string]*Column
}

// Visitors returns the number of visitors.
func (e *Events) Visitors() int { return len(e.visitors) }

// Of returns the events of a visitor, by time.
func (e *Events) Of(visitor int) []Word { return e.words[e.starts[visitor]:e.starts[visitor+1]] }

// Goals returns the goal events of all visitors, in the order of the words.
func (e *Events) Goals() []GoalEvent { return e.goals }

// Variation returns the id of the variation of an event.
func (e *Events) Variation(w Word) int64 { return e.variations[w.variation()] }

// Column returns the values of an attribute, or nil if they are not in memory.
func (e *Events) Column(name string) *Column { return e.columns[name] }

// bytes returns the approximate size in memory.
func (e *Events) bytes() int64 {
	const goal, word, visitor = 32, 8, 8 + 4 + 8
	size := int64(len(e.words)*word + len(e.goals)*goal + len(e.visitors)*visitor)
	for _, c := range e.columns {
		size += c.bytes
	}
	return size
}

// Pack returns the events with the given rows, which it sorts. It returns false if a
// word cannot hold them.
func Pack(rows []Row, through int64) (*Events, bool) {
	return new(Events).with(rows, through)
}

// with returns the events with more rows, which it sorts.
func (e *Events) with(rows []Row, through int64) (*Events, bool) {
	slices.SortFunc(rows, func(a, b Row) int { return a.compare(&b) })
	visitors, goals := 0, 0
	for i := range rows {
		if i == 0 || rows[i].Visitor != rows[i-1].Visitor {
			visitors++
		}
		if rows[i].Kind == visit.Goal {
			goals++
		}
	}
	b := &builder{
		to: &Events{
			Count: e.Count + uint64(len(rows)), Through: max(e.Through, through),
			visitors: make([]uint64, 0, len(e.visitors)+visitors), starts: make([]uint32, 0, len(e.visitors)+visitors+1),
			words: make([]Word, 0, len(e.words)+len(rows)), goals: make([]GoalEvent, 0, len(e.goals)+goals),
			variations: slices.Clone(e.variations), firstIDs: make([]uint64, 0, len(e.visitors)+visitors),
		},
		indexOf: map[int64]int{},
	}
	for i, id := range e.variations {
		b.indexOf[id] = i
	}
	next := 0
	for old := range e.rows() {
		for next < len(rows) && rows[next].compare(old) < 0 {
			b.add(&rows[next])
			next++
		}
		b.add(old)
	}
	for ; next < len(rows); next++ {
		b.add(&rows[next])
	}
	return b.finish(e)
}

// compare orders rows by visitor and time.
func (r *Row) compare(o *Row) int {
	return cmp.Or(cmp.Compare(r.Visitor, o.Visitor), cmp.Compare(r.At, o.At))
}

// rows returns the events in their order. Only first views have their event id; those
// of other views are math.MaxUint64, so that none of them precedes the first view.
func (e *Events) rows() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		goal := 0
		for i, visitor := range e.visitors {
			first := e.firstView(i)
			for k, w := range e.Of(i) {
				row := Row{Visitor: visitor, Event: visit.Event{At: w.At(), ID: math.MaxUint64, Variation: e.Variation(w), Kind: w.Kind()}}
				if k == first {
					row.ID = e.firstIDs[i]
				}
				if row.Kind == visit.Goal {
					row.Goal, row.Amounts = e.goals[goal].Goal, e.goals[goal].Amounts
					goal++
				}
				if !yield(&row) {
					return
				}
			}
		}
	}
}

// firstView returns the index of the first view among the events of a visitor, or -1.
func (e *Events) firstView(visitor int) int {
	first := -1
	words := e.Of(visitor)
	for i, w := range words {
		switch {
		case w.Kind() != visit.View:
		case first < 0 || w.At() == words[first].At() && e.Variation(w) < e.Variation(words[first]):
			first = i
		case w.At() > words[first].At():
			return first
		}
	}
	return first
}

// builder makes events of rows, which are added by visitor and time.
type builder struct {
	to      *Events
	indexOf map[int64]int // of variations
	first   Row           // first view of the last visitor
	exposed bool          // whether there is one
	added   []*schema.Attributes
	tooMany bool
}

func (b *builder) add(r *Row) {
	to := b.to
	if last := len(to.visitors) - 1; last < 0 || to.visitors[last] != r.Visitor {
		b.endVisitor()
		to.visitors, to.starts = append(to.visitors, r.Visitor), append(to.starts, uint32(len(to.words))) //nolint:gosec // few
	}
	index, known := b.indexOf[r.Variation]
	if !known {
		index = len(to.variations)
		b.indexOf[r.Variation] = index
		to.variations = append(to.variations, r.Variation)
		b.tooMany = b.tooMany || index >= maxVariations
	}
	to.words = append(to.words, Word(r.At<<timeShift|int64(r.Kind)<<kindShift|int64(index)))
	switch {
	case r.Kind == visit.Goal:
		to.goals = append(to.goals, GoalEvent{r.Goal, r.Amounts})
	case r.Kind == visit.View && (!b.exposed || precedes(r, &b.first)):
		b.first, b.exposed = *r, true
	}
}

// precedes reports whether a view precedes another one, as in visit.Exposure.
func precedes(r, o *Row) bool {
	return cmp.Or(cmp.Compare(r.At, o.At), cmp.Compare(r.Variation, o.Variation), cmp.Compare(r.ID, o.ID)) < 0
}

// endVisitor keeps the first view of the last visitor.
func (b *builder) endVisitor() {
	if len(b.to.visitors) == 0 {
		return
	}
	b.to.firstIDs, b.added = append(b.to.firstIDs, b.first.ID), append(b.added, b.first.attributes)
	b.first, b.exposed = Row{}, false
}

// finish returns the events with the columns of the earlier ones.
func (b *builder) finish(earlier *Events) (*Events, bool) {
	b.endVisitor()
	b.to.starts = append(b.to.starts, uint32(len(b.to.words))) //nolint:gosec // few
	if b.tooMany {
		return nil, false
	}
	for name, c := range earlier.columns {
		b.to.setColumn(name, c.with(earlier, b.to, name, b.added))
	}
	return b.to, true
}

// setColumn sets the values of an attribute of events that are not in use yet.
func (e *Events) setColumn(name string, c *Column) {
	if e.columns == nil {
		e.columns = map[string]*Column{}
	}
	e.columns[name] = c
}
