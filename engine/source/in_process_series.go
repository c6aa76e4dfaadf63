package source

import (
	"cmp"
	"slices"

	"lifthouse/engine/visit"
)

// steps returns what each bucket adds to the cumulative report, by bucket, with
// the rows of sql/series.sql.
func (f *counting) steps() []visit.Step {
	type place struct {
		bucket int64
		visit.Segment
	}
	at := map[place]*visit.Cell{}
	through := make([]visit.Visitor, len(f.visitors)) // totals of each visitor at the end of the previous bucket
	events := f.countedEvents()
	for len(events) > 0 {
		of, bucket := events[0].visitorIndex, f.bucket(events[0])
		v, now := &f.visitors[of], &through[of]
		before := *now
		for len(events) > 0 && events[0].visitorIndex == of && f.bucket(events[0]) == bucket {
			now.Add(&events[0].Event)
			events = events[1:]
		}
		key := place{bucket, visit.Segment{VariationID: v.First.Variation, MultiExposed: v.MultiExposed}}
		if at[key] == nil {
			at[key] = visit.NewCell(f.limit)
		}
		at[key].Change(&before, now)
	}
	steps := make([]visit.Step, 0, len(at))
	for key, c := range at {
		steps = append(steps, visit.Step{Bucket: key.bucket, Row: visit.Row{Segment: key.Segment, Moments: c.Moments()}})
	}
	slices.SortFunc(steps, func(a, b visit.Step) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return steps
}

// countedEvents returns the counted events of the visitors in the report,
// grouped by visitor and sorted by time. The store returns most of them in this
// order.
func (f *counting) countedEvents() []*eventRow {
	events := make([]*eventRow, 0, len(f.events))
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.Kind >= visit.View && f.inReport(v) && v.First.At >= f.from && f.counts(v, e) {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b *eventRow) int {
		return cmp.Or(cmp.Compare(a.visitorIndex, b.visitorIndex), cmp.Compare(a.At, b.At))
	})
	return events
}

func (f *counting) bucket(e *eventRow) int64 {
	width, shift := f.plan.Interval.Grid()
	return (e.At + shift.Milliseconds()) / width.Milliseconds()
}
