package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"lifthouse/schema"
)

// groupSize is about how many events are written with one look-up and one
// insert.
const groupSize = batchSize

// ErrFull says that so much waits to be written that a sender should come
// back in a moment.
var ErrFull = errors.New("too many events wait to be written")

// linger is how long a group waits for senders who come back after the last
// one: without it they would take turns in two halves. A lone sender waits for
// nobody.
const linger = 8 * time.Millisecond

// Collector writes the events of many senders together: while one group is
// being written the next one gathers, so that many small senders cost little
// more than a large one.
type Collector struct {
	writer *Writer
	most   int64 // events that may wait
	room   *semaphore.Weighted
	queue  chan *delivery
	ended  chan struct{}
	many   bool // the last group was of several senders
}

// delivery is what one sender waits for.
type delivery struct {
	ctx      context.Context // ends when its sender has left
	events   []schema.Event
	weight   int64
	verdicts []Verdict
	err      error
	done     chan struct{}
}

// NewCollector returns a collector that writes until the context ends; what it
// has taken by then it still writes. Where more than so many events would wait
// to be written, senders are told to come back.
func NewCollector(ctx context.Context, w *Writer, maxWaiting int64) *Collector {
	c := &Collector{writer: w, most: maxWaiting, room: semaphore.NewWeighted(maxWaiting), queue: make(chan *delivery), ended: make(chan struct{})}
	go c.run(ctx)
	return c
}

// Write stores the events that are not stored yet, tells what became of each,
// and returns when they are stored. The error is ErrFull, the end of the
// context, or the store's: then it is unknown what is stored, and writing the
// events again is safe.
func (c *Collector) Write(ctx context.Context, events []schema.Event) ([]Verdict, error) {
	weight := min(int64(len(events)), c.most)
	if !c.room.TryAcquire(weight) {
		return nil, ErrFull
	}
	d := &delivery{ctx: ctx, events: events, weight: weight, done: make(chan struct{})}
	select {
	case c.queue <- d:
	case <-c.ended:
		c.room.Release(weight)
		return nil, ErrFull
	case <-ctx.Done():
		c.room.Release(weight)
		return nil, context.Cause(ctx)
	}
	select {
	case <-d.done:
		return d.verdicts, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run writes group after group.
func (c *Collector) run(ctx context.Context) {
	defer close(c.ended)
	for {
		select {
		case first := <-c.queue:
			c.writeGroup(context.WithoutCancel(ctx), c.gather(first))
		case <-ctx.Done():
			return
		}
	}
}

// gather adds to the first delivery those that wait already, and among many
// senders those that are about to come.
func (c *Collector) gather(first *delivery) []*delivery {
	group, size := []*delivery{first}, len(first.events)
	var ended <-chan time.Time
	for size < groupSize {
		select {
		case d := <-c.queue:
			group, size = append(group, d), size+len(d.events)
			continue
		default:
		}
		if len(group) == 1 && !c.many {
			break
		}
		if ended == nil {
			ended = time.After(linger)
		}
		select {
		case d := <-c.queue:
			group, size = append(group, d), size+len(d.events)
			continue
		case <-ended:
		}
		break
	}
	c.many = len(group) > 1
	return group
}

// dropAbandoned says whether the sender has left, who then waits for nothing:
// what it sent is not written.
func (c *Collector) dropAbandoned(d *delivery) bool {
	if d.ctx.Err() == nil {
		return false
	}
	d.err = context.Cause(d.ctx)
	c.room.Release(d.weight)
	close(d.done)
	return true
}

func (c *Collector) writeGroup(ctx context.Context, group []*delivery) {
	group = slices.DeleteFunc(group, c.dropAbandoned)
	if len(group) == 0 {
		return
	}
	events := group[0].events
	if len(group) > 1 {
		events = nil
		for _, d := range group {
			events = append(events, d.events...)
		}
	}
	verdicts, _, err := c.writer.WriteEach(ctx, events)
	for _, d := range group {
		if d.err = err; err == nil {
			d.verdicts, verdicts = verdicts[:len(d.events)], verdicts[len(d.events):]
		}
		c.room.Release(d.weight)
		close(d.done)
	}
}
