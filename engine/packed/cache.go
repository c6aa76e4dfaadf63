package packed

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/schema"
)

// MaxBytes bounds the events in memory. It suffices for 200 campaigns of 10,000
// visitors with six events each, which take about 1 MB each.
const MaxBytes = 256 << 20

// maxPending is the maximum number of added events of a subject that wait for the next
// report. If there are more, for example during an import, the events of the subject
// are dropped: adding them would cost the writer more than a report costs to read them.
const maxPending = 256

// pendingBytes is the approximate size of a pending event.
const pendingBytes = 512

// Cache keeps the events of subjects of a store that no other process writes to. It
// drops those that were not used for the longest time.
//
// Events are current if their number and their latest acceptance time are those of the
// totals of the subject. Until events are deleted, the events in memory are part of
// those in the store, so that equal numbers mean equal events. A deletion must call
// Drop when it ends.
//
// Its methods may be called at the same time. The methods of a nil Cache do nothing.
type Cache struct {
	mu       sync.Mutex
	limit    int64
	bytes    int64
	drops    uint64
	subjects *simplelru.LRU[plan.Subject, *entry]
}

// entry has the events of a subject, and those that were added since.
type entry struct {
	events  *Events
	whole   bool // the events are all that the store had at some time
	pending []schema.Event
	through int64 // acceptance time of the last pending event
}

func (e *entry) bytes() int64 { return e.events.bytes() + pendingBytes*int64(len(e.pending)) }

// NewCache returns an empty cache that keeps at most the given number of bytes.
func NewCache(limit int64) *Cache {
	c := &Cache{limit: limit}
	subjects, err := simplelru.NewLRU(math.MaxInt32, func(_ plan.Subject, e *entry) { c.bytes -= e.bytes() })
	if err != nil {
		panic(err) // only for a size below 1
	}
	c.subjects = subjects
	return c
}

// Get returns the events of a subject if they include those of its totals: their number
// and their latest acceptance time. Otherwise it returns nil.
func (c *Cache) Get(subject plan.Subject, count uint64, through int64) *Events {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, kept := c.subjects.Get(subject)
	if !kept {
		return nil
	}
	if !c.addPending(subject, e) {
		return nil
	}
	e.whole = e.whole || e.events.Count == count && e.events.Through == through
	if !e.whole || e.events.Count < count || e.events.Through < through {
		c.subjects.Remove(subject)
		return nil
	}
	return e.events
}

// addPending adds the pending events of a subject to the others. The caller holds the
// lock.
func (c *Cache) addPending(subject plan.Subject, e *entry) bool {
	if len(e.pending) == 0 {
		return true
	}
	rows := make([]Row, len(e.pending))
	for i := range e.pending {
		rows[i] = rowOf(&e.pending[i])
	}
	events, packed := e.events.with(rows, e.through)
	if !packed {
		c.subjects.Remove(subject)
		return false
	}
	c.bytes -= e.bytes()
	e.events, e.pending = events, nil
	c.bytes += e.bytes()
	c.evict()
	return true
}

// kinds maps the kinds of events.
var kinds = map[schema.Kind]visit.Kind{
	schema.KindView: visit.View, schema.KindClick: visit.Click, schema.KindSubmit: visit.Submit, schema.KindCompletion: visit.Completion,
	schema.KindConversion: visit.Conversion, schema.KindContact: visit.Contact, schema.KindGoal: visit.Goal,
}

func rowOf(e *schema.Event) Row {
	return Row{
		Event: visit.Event{
			At: e.Time.UnixMilli(), ID: e.EventID, Variation: e.VariationID, Kind: kinds[e.Kind],
			Amounts: [3]int64{e.Value, e.Profit, e.ExtraValue},
		},
		Visitor: e.VisitorID, Goal: e.GoalID, attributes: &e.Attributes,
	}
}

// Drops returns a number that changes when all events are dropped.
func (c *Cache) Drops() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops
}

// Keep keeps the events of a subject, which were read from the store after Drops
// returned a number.
func (c *Cache) Keep(subject plan.Subject, events *Events, drops uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops != drops {
		return
	}
	c.subjects.Remove(subject)
	e := &entry{events: events}
	c.subjects.Add(subject, e)
	c.bytes += e.bytes()
	c.evict()
}

// Replace replaces the events of a subject by those with more columns, unless others
// are kept meanwhile.
func (c *Cache) Replace(subject plan.Subject, events, by *Events) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, kept := c.subjects.Peek(subject)
	if !kept || e.events != events {
		return
	}
	c.bytes -= e.bytes()
	e.events = by
	c.bytes += e.bytes()
	c.evict()
}

// evict drops events until the others are within the limit. The caller holds the lock.
func (c *Cache) evict() {
	for c.bytes > c.limit && c.subjects.Len() > 0 {
		c.subjects.RemoveOldest()
	}
}

// Add adds events that were inserted into the store, and the time at which they were
// accepted. Calls must be in the order of the inserts.
func (c *Cache) Add(events []schema.Event, accepted int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subjects.Len() == 0 {
		return
	}
	added := map[plan.Subject][]schema.Event{}
	for i := range events {
		e := &events[i]
		subject := plan.Subject{WebsiteID: e.WebsiteID, Kind: e.Subject, ID: e.SubjectID, ExperimentID: e.ExperimentID}
		if c.subjects.Contains(subject) {
			added[subject] = append(added[subject], *e)
		}
	}
	for subject, some := range added {
		e, _ := c.subjects.Peek(subject)
		switch {
		case accepted <= max(e.through, e.events.Through): // they were read from the store
		case len(e.pending)+len(some) > maxPending:
			c.subjects.Remove(subject)
		default:
			e.pending, e.through = append(e.pending, some...), accepted
			c.bytes += pendingBytes * int64(len(some))
		}
	}
	c.evict()
}

// Drop drops all events, because some were deleted from the store.
func (c *Cache) Drop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	c.subjects.Purge()
}

// Bytes returns the approximate size of the events in memory.
func (c *Cache) Bytes() int64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
