package ingest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"lifthouse/schema"
)

// ErrFull means that too many events are waiting to be written, or that the collector has stopped. The sender can retry
// shortly.
var ErrFull = errors.New("too many events wait to be written")

// Most of the cost of an insert does not depend on its size: one of a few events, with its fold, takes as much CPU time
// as one of hundreds. So a group waits for more requests.
//
// If the previous group had several senders, it waits three times as long as that group took to write, within limits.
// Then the store spends at most a quarter of its time on small inserts, however many senders there are. Without any
// wait, senders that resend at once would split into two alternating groups.
//
// Requests of fewer than patientRequest events, whose senders do not wait for the answer, wait until patientWait after
// the previous group, unless none has come for patientGap: then all senders may be waiting.
const (
	leastGroupWait = 8 * time.Millisecond
	mostGroupWait  = 250 * time.Millisecond
	patientRequest = 20
	patientWait    = 500 * time.Millisecond
	patientGap     = 100 * time.Millisecond
)

// Collector writes the events of concurrent senders in groups. While one group is written, the next one forms. So many
// small requests cost little more than a large one.
type Collector struct {
	writer     *Writer
	maxWaiting int64 // events that may wait
	capacity   *semaphore.Weighted
	queue      chan *writeRequest
	ended      chan struct{}
	grouped    bool          // the previous group had several senders
	took       time.Duration // to write the previous group
	written    time.Time     // when the previous group was written
}

// writeRequest has the events of one sender, who waits until they are stored.
type writeRequest struct {
	ctx    context.Context // ends when the sender disconnects
	events []schema.Event
	weight int64
	// isPatient: the sender, such as a page, does not wait for the answer
	isPatient bool
	err       error
	done      chan struct{}
}

// NewCollector returns a collector. It accepts events until the context ends, and then writes those that it has
// accepted. maxWaiting is the maximum number of events that wait to be written.
func NewCollector(ctx context.Context, w *Writer, maxWaiting int64) *Collector {
	c := &Collector{
		writer: w, maxWaiting: maxWaiting, capacity: semaphore.NewWeighted(maxWaiting),
		queue: make(chan *writeRequest), ended: make(chan struct{}),
	}
	go c.writeGroups(ctx)
	return c
}

// Names returns the names in the stored events.
func (c *Collector) Names(ctx context.Context) (*Names, error) { return c.writer.Names(ctx) }

// CountNames returns the numbers of names by website, or none before names are read.
func (c *Collector) CountNames() map[int64]NameCounts {
	if names := c.writer.names.Load(); names != nil {
		return names.CountNames()
	}
	return nil
}

// WriteEvents stores events and returns after they are stored. The error is ErrFull, the cause of the context's end, or
// an error of the store. After any error except ErrFull, some events may be stored; writing them again is safe.
func (c *Collector) WriteEvents(ctx context.Context, events []schema.Event) error {
	return c.queueEvents(ctx, events, false)
}

// WriteSoon is like WriteEvents, for a sender that does not wait for the answer. A few events may wait for those of
// other senders.
func (c *Collector) WriteSoon(ctx context.Context, events []schema.Event) error {
	return c.queueEvents(ctx, events, len(events) < patientRequest)
}

func (c *Collector) queueEvents(ctx context.Context, events []schema.Event, isPatient bool) error {
	weight := min(int64(len(events)), c.maxWaiting)
	if !c.capacity.TryAcquire(weight) {
		return ErrFull
	}
	r := &writeRequest{ctx: ctx, events: events, weight: weight, isPatient: isPatient, done: make(chan struct{})}
	select {
	case c.queue <- r:
	case <-c.ended:
		c.capacity.Release(weight)
		return ErrFull
	case <-ctx.Done():
		c.capacity.Release(weight)
		return context.Cause(ctx)
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeGroups writes one group after the other.
func (c *Collector) writeGroups(ctx context.Context) {
	defer close(c.ended)
	for {
		var group []*writeRequest
		select {
		case first := <-c.queue:
			group = c.gatherGroup(first)
		case <-ctx.Done():
			return
		}
		started := time.Now()
		var events []schema.Event
		for _, r := range group {
			r.err = context.Cause(r.ctx)
			if r.err == nil { // else the sender has disconnected
				events = append(events, r.events...)
			}
		}
		err := c.writer.WriteEvents(context.WithoutCancel(ctx), events)
		for _, r := range group {
			r.err = cmp.Or(r.err, err)
			c.capacity.Release(r.weight)
			close(r.done)
		}
		c.took = time.Since(started)
		c.written = time.Now()
	}
}

// gatherGroup returns a group of the first request and those that come before the group is due.
func (c *Collector) gatherGroup(first *writeRequest) []*writeRequest {
	var group []*writeRequest
	var due time.Time
	size := 0
	arePatient := true
	for r := first; r != nil; r = c.receiveUntil(due) {
		group = append(group, r)
		size += len(r.events)
		if size >= batchSize {
			break
		}
		// when this request should be written
		arePatient = arePatient && r.isPatient
		now := time.Now()
		wanted := now
		switch latest := c.written.Add(patientWait); {
		case r.isPatient:
			wanted = now.Add(patientGap)
			if latest.Before(wanted) {
				wanted = latest
			}
		case c.grouped:
			wanted = now.Add(min(max(leastGroupWait, 3*c.took), mostGroupWait))
		}
		if arePatient || wanted.Before(due) || due.IsZero() {
			due = wanted
		}
	}
	c.grouped = len(group) > 1
	return group
}

// receiveUntil returns a request that waits, or the next one that comes before a time; nil: none does.
func (c *Collector) receiveUntil(due time.Time) *writeRequest {
	select {
	case r := <-c.queue:
		return r
	default:
	}
	wait := time.Until(due)
	if wait <= 0 {
		return nil
	}
	select {
	case r := <-c.queue:
		return r
	case <-time.After(wait):
		return nil
	}
}
