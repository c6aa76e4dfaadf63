package engine

import (
	"cmp"
	"slices"
)

// steps returns what each bucket adds to the cumulative report, in the order
// and with the rows of sql/series.sql.
func (f *inProcess) steps() []step {
	type segment struct {
		bucket, variationID int64
		multiExposed        bool
	}
	at := map[segment]int{}
	var steps []step
	then := make([]visitorTotals, len(f.visitors)) // totals of each visitor at the end of the previous bucket
	events := f.countedEvents()
	for len(events) > 0 {
		of, bucket := events[0].visitorIndex, f.bucket(events[0])
		v, before := &f.visitors[of], then[of]
		now := &then[of]
		for len(events) > 0 && events[0].visitorIndex == of && f.bucket(events[0]) == bucket {
			now.add(events[0])
			events = events[1:]
		}
		key := segment{bucket, v.first.variationID, v.multiExposed}
		place, known := at[key]
		if !known {
			place, at[key] = len(steps), len(steps)
			steps = append(steps, step{bucket: bucket, row: row{variationID: key.variationID, multiExposed: key.multiExposed, Moments: noMoments()}})
		}
		m := &steps[place].Moments
		m.add(now)
		if before.views > 0 {
			was := noMoments()
			was.add(&before)
			m.takeAway(&was)
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.variationID, b.variationID), cmp.Compare(one(a.multiExposed), one(b.multiExposed)))
	})
	return steps
}

// countedEvents returns the counted events of the visitors in the report,
// grouped by visitor and sorted by time. The store returns most of them in this
// order.
func (f *inProcess) countedEvents() []*eventRow {
	events := make([]*eventRow, 0, len(f.events))
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.kind >= viewKind && f.inReport(v) && v.first.at >= f.from && f.counts(v, e) {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b *eventRow) int {
		return cmp.Or(cmp.Compare(a.visitorIndex, b.visitorIndex), cmp.Compare(a.at, b.at))
	})
	return events
}

func (f *inProcess) bucket(e *eventRow) int64 {
	width, shift := f.plan.Interval.grid()
	return (e.at + shift.Milliseconds()) / width.Milliseconds()
}
