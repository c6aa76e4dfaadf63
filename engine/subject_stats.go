package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// statsCache holds the last read statistics of all subjects.
type statsCache struct {
	reading sync.Mutex
	last    atomic.Pointer[subjectStats]
	failure atomic.Pointer[failure]
}

// subjectStats has the number of events and the counters of all subjects. It is
// immutable.
type subjectStats struct {
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
	// statsMaxAge is the maximum age of the statistics. A server reads them
	// every second.
	statsMaxAge = 2 * time.Second
	// statsTimeout is the maximum duration of a read, and the pause after a
	// failed one.
	statsTimeout = time.Second
)

// subjectStats returns the cached statistics, or reads them if they are too
// old.
func (e *Engine) subjectStats(ctx context.Context) (*subjectStats, error) {
	m := &e.stats
	if last := m.last.Load(); last != nil && time.Since(last.readAt) < statsMaxAge {
		return last, nil
	}
	if failed := m.failure.Load(); failed != nil && time.Since(failed.failedAt) < statsTimeout {
		return nil, failed.err
	}
	if err := e.RefreshVersions(ctx); err != nil {
		return nil, err
	}
	return m.last.Load(), nil
}

// Version returns a number that changes whenever the results of the subject may
// change. Versions agree between servers of a store. It returns false if the
// version is not known because the store does not answer.
func (e *Engine) Version(ctx context.Context, subject plan.Subject) (uint64, bool) {
	now, err := e.subjectStats(ctx)
	if err != nil {
		return 0, false
	}
	if current, rollups := e.rollups.Current(subject, now.events[subject].Ingested); rollups {
		return xxhash.Sum64String(fmt.Sprint(current.Generation, current.Through.UnixMilli())), true
	}
	return now.versions[subject], true
}

// RefreshVersions reads the current versions and counters. Writers of this
// process call it after a write, so that clients do not get old values after
// the acknowledgement. It returns when the context ends at the latest.
func (e *Engine) RefreshVersions(ctx context.Context) error {
	asked := time.Now()
	done := make(chan error, 1)
	go func() { done <- e.readVersions(context.WithoutCancel(ctx), asked) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return source.StoreFailure(ctx, context.Cause(ctx))
	}
}

// readVersions reads the statistics unless another goroutine started a read
// after asked.
func (e *Engine) readVersions(ctx context.Context, asked time.Time) error {
	m := &e.stats
	m.reading.Lock()
	defer m.reading.Unlock()
	if last := m.last.Load(); last != nil && last.readAt.After(asked) {
		return nil // another goroutine started a read later
	}
	if failed := m.failure.Load(); failed != nil && failed.startedAt.After(asked) {
		return failed.err
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	now := &subjectStats{readAt: time.Now(), versions: map[plan.Subject]uint64{}, events: map[plan.Subject]source.Stored{}, counts: map[collection][]counter{}}
	query := &source.Query{Params: []source.Param{{Name: "counters", Value: schema.CountersTable(e.store.Conn)}}}
	err := query.Render("subject_stats.sql", struct{}{})
	if err == nil {
		err = e.store.Each(ctx, query, now.add)
	}
	if err != nil {
		m.failure.Store(&failure{now.readAt, time.Now(), err})
		return err
	}
	m.last.Store(now)
	return nil
}

// BringUpToDate refreshes the rollup of the subject so that the next report
// includes every stored event. It reports whether it succeeded; otherwise the
// report must be counted from the events.
func (e *Engine) BringUpToDate(ctx context.Context, subject plan.Subject) bool {
	if err := e.RefreshVersions(ctx); err != nil {
		return false // Version reports it
	}
	if e.rollupHasAll(subject) {
		return true
	}
	refreshing, cancel := halfDeadline(ctx)
	defer cancel()
	if err := e.rollups.Update(refreshing, subject); err != nil {
		slog.WarnContext(ctx, "refresh rollup failed", "err", err)
	}
	return e.rollupHasAll(subject)
}

func (e *Engine) rollupHasAll(subject plan.Subject) bool {
	last := e.stats.last.Load()
	return last != nil && e.rollups.HasAll(subject, last.events[subject].Ingested)
}

// halfDeadline returns a context that ends after half of the remaining time,
// which leaves time for the following work.
func halfDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// add adds a row. Rows are sorted, so that versions agree between servers.
func (g *subjectStats) add(row driver.Rows) error {
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

// FollowVersions reads versions, counters and rollup states at the given
// interval until the context ends.
func (e *Engine) FollowVersions(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := errors.Join(e.rollups.Refresh(ctx), e.RefreshVersions(ctx)); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "refresh data versions failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
