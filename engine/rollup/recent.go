package rollup

import (
	"slices"
	"sync"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// maxRecent is the maximum number of recent events of a subject, 16 bytes each. With more
// events, a step finds their visitors in the store.
const maxRecent = 1_000

// recent has the visitors of the events that this process inserted since the last step of
// their subjects. A step that knows them reads their events by the primary key. Otherwise
// it looks for events by their acceptance time, which takes twice as long.
type recent struct {
	mu sync.Mutex
	of map[plan.Subject][]recentEvent
}

type recentEvent struct {
	accepted int64 // in milliseconds since 1970
	visitor  uint64
}

// Inserted records events that this process inserted into a store that no other process
// writes to. Calls must be in the order of the inserts.
func (x *Index) Inserted(events []schema.Event, accepted time.Time) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.recent.mu.Lock()
	defer x.recent.mu.Unlock()
	for i := range events {
		e := &events[i]
		subject := plan.Subject{WebsiteID: e.WebsiteID, Kind: e.Subject, ID: e.SubjectID, ExperimentID: e.ExperimentID}
		if _, has := x.of[subject]; has {
			x.recent.add(subject, recentEvent{accepted.UnixMilli(), e.VisitorID})
		}
	}
}

func (r *recent) add(subject plan.Subject, e recentEvent) {
	if r.of == nil {
		r.of = map[plan.Subject][]recentEvent{}
	}
	if len(r.of[subject]) >= maxRecent {
		r.of[subject] = r.of[subject][:0] // the number of events shows that some are missing
	}
	r.of[subject] = append(r.of[subject], e)
}

// known returns the visitors of the events that a step adds, or nil if they are not known.
func (s *builder) known(d *backlog, since, through position) []uint64 {
	if s.recent == nil || s.shared != nil || d.state == nil || !since.at.Equal(d.state.Through) {
		return nil
	}
	return s.recent.visitors(d, since, through)
}

// visitors returns the visitors of the events that a step adds, or nil if they are not
// known: the number of the recent events is not that of the step.
func (r *recent) visitors(d *backlog, since, through position) []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	newer := slices.DeleteFunc(r.of[d.subject], func(e recentEvent) bool { return e.accepted <= since.at.UnixMilli() })
	if len(newer) == 0 {
		delete(r.of, d.subject)
		return nil
	}
	r.of[d.subject] = newer
	var visitors []uint64
	for _, e := range newer {
		if e.accepted <= through.at.UnixMilli() {
			visitors = append(visitors, e.visitor)
		}
	}
	if uint64(len(visitors)) != d.size() {
		return nil
	}
	slices.Sort(visitors)
	return slices.Compact(visitors)
}
