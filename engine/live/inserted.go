package live

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// counterKey identifies a counter of a subject.
type counterKey struct {
	event schema.Kind
	goal  int64
}

// Inserted adds events that this process inserted to the totals in memory, so that they
// need not be read again. Calls must be in the order of the inserts, and before the call
// of Written for the same events. Subjects whose totals are not current, or may include
// the events already, are left to Written.
func (t *Totals) Inserted(events []schema.Event, accepted time.Time) {
	if !t.own.Load() {
		return
	}
	added := countersOf(events, accepted)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readAt.IsZero() || t.toAny != 0 || t.isReading {
		return
	}
	t.added = map[plan.Subject]bool{}
	for subject, more := range added {
		in := collection{subject.WebsiteID, subject.Kind}
		now := t.of[in][subject]
		if _, changed := t.written[subject]; changed || now != nil && !now.stored.Ingested.Before(accepted) {
			continue
		}
		if t.of[in] == nil {
			t.of[in] = map[plan.Subject]*total{}
		}
		t.of[in][subject] = now.with(more)
		t.added[subject] = true
	}
}

// countersOf returns the counters of events by subject.
func countersOf(events []schema.Event, accepted time.Time) map[plan.Subject]map[counterKey]*counter {
	all := map[plan.Subject]map[counterKey]*counter{}
	var amount big.Int
	for i := range events {
		e := &events[i]
		subject := plan.Subject{WebsiteID: e.WebsiteID, Kind: e.Subject, ID: e.SubjectID, ExperimentID: e.ExperimentID}
		of := all[subject]
		if of == nil {
			of = map[counterKey]*counter{}
			all[subject] = of
		}
		c := of[counterKey{e.Kind, e.GoalID}]
		if c == nil {
			c = &counter{subject: e.SubjectID, event: e.Kind, goal: e.GoalID, ingested: accepted, newest: e.Time}
			of[counterKey{e.Kind, e.GoalID}] = c
		}
		c.events++
		c.value.Add(&c.value, amount.SetInt64(e.Value))
		c.extraValue.Add(&c.extraValue, amount.SetInt64(e.ExtraValue))
		if e.Time.After(c.newest) {
			c.newest = e.Time
		}
	}
	return all
}

// with returns the totals with more counters. The totals may be nil.
func (t *total) with(more map[counterKey]*counter) *total {
	var counters []counter
	if t != nil {
		counters = slices.Clone(t.counters)
	}
	for i := range counters {
		c := &counters[i]
		added := more[counterKey{c.event, c.goal}]
		if added == nil {
			continue
		}
		delete(more, counterKey{c.event, c.goal})
		c.events += added.events
		c.value = *new(big.Int).Add(&c.value, &added.value) // the old ones are in use
		c.extraValue = *new(big.Int).Add(&c.extraValue, &added.extraValue)
		c.ingested = added.ingested
		if added.newest.After(c.newest) {
			c.newest = added.newest
		}
	}
	for _, c := range more {
		counters = append(counters, *c)
	}
	slices.SortFunc(counters, func(a, b counter) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.event), slices.Index(kinds, b.event)), cmp.Compare(a.goal, b.goal))
	})
	now := &total{}
	for i := range counters {
		now.add(&counters[i])
	}
	return now
}

// kinds are the kinds of events in the order of the column event.
var kinds = []schema.Kind{
	schema.KindView, schema.KindClick, schema.KindSubmit, schema.KindCompletion, schema.KindConversion, schema.KindContact, schema.KindGoal,
}

// add adds a counter. Counters are added in the order of sql/subject_stats.sql, so that
// versions agree between servers.
func (t *total) add(c *counter) {
	t.version = xxhash.Sum64String(fmt.Sprint(t.version, string(c.event), " ", c.goal, " ", c.events, " ", &c.value, " ", &c.extraValue, " ", c.ingested.UnixMilli()))
	t.stored = t.stored.With(uint64(c.events), c.ingested, c.newest) //nolint:gosec // not negative
	t.counters = append(t.counters, *c)
}
