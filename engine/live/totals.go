package live

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// Totals has the last read totals of all subjects of a store.
type Totals struct {
	store   *source.Store
	reading sync.Mutex
	last    atomic.Pointer[totals]
	failure atomic.Pointer[failure]
}

// New returns the totals of a store. They are read when they are first needed.
func New(store *source.Store) *Totals { return &Totals{store: store} }

// totals has the number of events and the counters of all subjects. It is
// immutable.
type totals struct {
	readAt   time.Time
	versions map[plan.Subject]uint64 // 0: no events
	events   map[plan.Subject]source.Stored
	counts   map[collection][]counter
}

// failure records a failed read.
type failure struct {
	startedAt, failedAt time.Time
	err                 error
}

// collection identifies the campaigns or the widgets of a website.
type collection struct {
	website int64
	of      schema.Subject
}

// counter has the totals of a subject for one event kind and goal.
type counter struct {
	subject           int64
	event             schema.Kind
	goal              int64
	events            int64
	value, extraValue big.Int
}

const (
	// MaxAge is the maximum age of the totals, and of the states of the rollups. A
	// server reads them every second.
	MaxAge = 2 * time.Second
	// timeout is the maximum duration of a read, and the pause after a failed one.
	timeout = time.Second
)

// current returns the last read totals, or reads them if they are too old.
func (t *Totals) current(ctx context.Context) (*totals, error) {
	if last := t.last.Load(); last != nil && time.Since(last.readAt) < MaxAge {
		return last, nil
	}
	if failed := t.failure.Load(); failed != nil && time.Since(failed.failedAt) < timeout {
		return nil, failed.err
	}
	if err := t.Refresh(ctx); err != nil {
		return nil, err
	}
	return t.last.Load(), nil
}

// Version returns a number that changes whenever the stored events of the
// subject change, and the acceptance time of its last event. Versions agree
// between servers of a store.
func (t *Totals) Version(ctx context.Context, subject plan.Subject) (version uint64, ingested time.Time, err error) {
	now, err := t.current(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	return now.versions[subject], now.events[subject].Ingested, nil
}

// Last returns the last read totals by subject, or nil if they were not read
// yet.
func (t *Totals) Last() map[plan.Subject]source.Stored {
	if last := t.last.Load(); last != nil {
		return last.events
	}
	return nil
}

// Stored returns the totals of a subject. They are read at once unless the last
// ones are new enough.
func (t *Totals) Stored(ctx context.Context, of plan.Subject) (source.Stored, error) {
	if last := t.last.Load(); last != nil && time.Since(last.readAt) < MaxAge {
		return last.events[of].OrNone(), nil
	}
	query, err := source.FreshnessQuery(of, schema.CountersTable(t.store.Conn))
	if err != nil {
		return source.Stored{}, err
	}
	var now source.Stored
	err = t.store.Each(ctx, query, func(row driver.Rows) error { return row.Scan(&now.Events, &now.Ingested, &now.Newest) })
	return now.OrNone(), err
}

// Refresh reads the current totals. Writers of this process call it after a write,
// so that clients do not get old values after the acknowledgement. It returns when
// the context ends at the latest.
func (t *Totals) Refresh(ctx context.Context) error {
	asked := time.Now()
	done := make(chan error, 1)
	go func() { done <- t.read(context.WithoutCancel(ctx), asked) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return source.StoreFailure(ctx, context.Cause(ctx))
	}
}

// read reads the totals unless another goroutine started a read after asked.
func (t *Totals) read(ctx context.Context, asked time.Time) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	if last := t.last.Load(); last != nil && last.readAt.After(asked) {
		return nil // another goroutine started a read later
	}
	if failed := t.failure.Load(); failed != nil && failed.startedAt.After(asked) {
		return failed.err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	now := &totals{readAt: time.Now(), versions: map[plan.Subject]uint64{}, events: map[plan.Subject]source.Stored{}, counts: map[collection][]counter{}}
	query := &source.Query{Params: []source.Param{{Name: "counters", Value: schema.CountersTable(t.store.Conn)}}}
	err := query.Render("subject_stats.sql", struct{}{})
	if err == nil {
		err = t.store.Each(ctx, query, now.add)
	}
	if err != nil {
		t.failure.Store(&failure{now.readAt, time.Now(), err})
		return err
	}
	t.last.Store(now)
	return nil
}

// add adds a row. Rows are sorted, so that versions agree between servers.
func (g *totals) add(row driver.Rows) error {
	var at plan.Subject
	var of, event string
	var events uint64
	var ingested, newest time.Time
	var c counter
	if err := row.Scan(&at.WebsiteID, &of, &at.ID, &at.ExperimentID, &event, &c.goal, &events, &c.value, &c.extraValue, &ingested, &newest); err != nil {
		return err
	}
	at.Kind, c.subject, c.event, c.events = schema.Subject(of), at.ID, schema.Kind(event), int64(events)
	g.versions[at] = xxhash.Sum64String(fmt.Sprint(g.versions[at], event, " ", c.goal, " ", events, " ", &c.value, " ", &c.extraValue, " ", ingested.UnixMilli()))
	g.events[at] = g.events[at].With(events, ingested, newest)
	in := collection{at.WebsiteID, at.Kind}
	g.counts[in] = append(g.counts[in], c)
	return nil
}
