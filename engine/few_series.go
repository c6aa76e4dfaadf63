package engine

import (
	"cmp"
	"slices"
)

// steps returns what each bucket adds to the report that ends with it, as
// sql/series.sql does, in its order.
func (f *few) steps() []step {
	type standing struct {
		bucket, variationID int64
		crossover           bool
	}
	at := map[standing]int{}
	var steps []step
	then := make([]counting, len(f.visitors)) // each visitor, at the end of the buckets so far
	events := f.inTime()
	for len(events) > 0 {
		of, bucket := events[0].of, f.bucket(events[0])
		v, before := &f.visitors[of], then[of]
		now := &then[of]
		for len(events) > 0 && events[0].of == of && f.bucket(events[0]) == bucket {
			now.did(events[0])
			events = events[1:]
		}
		key := standing{bucket, v.first.variationID, v.crossover}
		place, known := at[key]
		if !known {
			place, at[key] = len(steps), len(steps)
			steps = append(steps, step{bucket: bucket, row: row{variationID: key.variationID, crossover: key.crossover, Moments: noMoments()}})
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
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.variationID, b.variationID), cmp.Compare(one(a.crossover), one(b.crossover)))
	})
	return steps
}

// inTime returns the events that count of the visitors of the report, those of
// a visitor together, in the order of time. The store gives most of them so.
func (f *few) inTime() []*seen {
	events := make([]*seen, 0, len(f.events))
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.of]
		if e.kind >= viewKind && f.seenInWindow(v) && v.first.at >= f.from && f.counts(v, e) {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b *seen) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.at, b.at)) })
	return events
}

func (f *few) bucket(e *seen) int64 {
	width, shift := f.plan.Interval.grid()
	return (e.at + shift.Milliseconds()) / width.Milliseconds()
}
