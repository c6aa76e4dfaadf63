package source

import (
	"cmp"
	"iter"
	"slices"

	"lifthouse/engine/visit"
)

// place is a row of sql/series.sql.
type place struct {
	bucket int64
	visit.Segment
}

// steps returns what each bucket adds to the cumulative report, by bucket, with
// the rows of sql/series.sql.
func (f *counting) steps() []visit.Step {
	at := map[place]*visit.Cell{}
	last, bucket := -1, int64(0)  // of the previous event
	var before, now visit.Visitor // totals of its visitor before the bucket and after the event
	add := func() {
		if last < 0 {
			return
		}
		v := &f.visitors[last]
		key := place{bucket, visit.Segment{VariationID: v.First.Variation, MultiExposed: v.MultiExposed}}
		if at[key] == nil {
			at[key] = visit.NewCell(f.limit)
		}
		at[key].Change(&before, &now)
	}
	for visitor, e := range f.counted() {
		if in := f.bucket(e); visitor != last || in != bucket {
			add()
			if before = now; visitor != last {
				before, now = visit.Visitor{}, visit.Visitor{}
			}
			last, bucket = visitor, in
		}
		now.Add(e)
	}
	add()
	steps := make([]visit.Step, 0, len(at))
	for key, c := range at {
		steps = append(steps, visit.Step{Bucket: key.bucket, Row: visit.Row{Segment: key.Segment, Moments: c.Moments()}})
	}
	slices.SortFunc(steps, func(a, b visit.Step) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return steps
}

// counted returns the counted events of the visitors in the report with the index of
// their visitor, grouped by visitor and sorted by time.
func (f *counting) counted() iter.Seq2[int, *visit.Event] {
	if f.packed != nil {
		return f.packed.counted(f)
	}
	return func(yield func(int, *visit.Event) bool) {
		for _, e := range f.countedEvents() {
			if !yield(e.visitorIndex, &e.Event) {
				return
			}
		}
	}
}

// inSeries reports whether the visitor is in the report, and exposed in the window.
func (f *counting) inSeries(v *visitorTotals) bool { return f.inReport(v) && v.First.At >= f.from }

// countedEvents returns the counted events in the order of counted. The store returns
// most of them in this order.
func (f *counting) countedEvents() []*eventRow {
	events := make([]*eventRow, 0, len(f.events))
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.Kind >= visit.View && f.inSeries(v) && f.counts(v, &e.Event) {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b *eventRow) int {
		return cmp.Or(cmp.Compare(a.visitorIndex, b.visitorIndex), cmp.Compare(a.At, b.At))
	})
	return events
}

func (f *counting) bucket(e *visit.Event) int64 {
	width, shift := f.plan.Interval.Grid()
	return (e.At + shift.Milliseconds()) / width.Milliseconds()
}
