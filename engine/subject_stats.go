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

	"lifthouse/schema"
)

// memory is what all subjects have gathered, as last read.
type statsCache struct {
	reading       sync.Mutex
	last          atomic.Pointer[subjectStats]
	failure       atomic.Pointer[failure]
	rollups       atomic.Pointer[rollupStates]
	withoutRollup sync.Map // subjects that cannot be settled
	// followed says whether somebody settles what comes.
	rollupsFollowed atomic.Bool
}

// gathered does not change.
type subjectStats struct {
	readAt   time.Time
	versions map[Subject]uint64 // a subject without events has none, which is 0
	events   map[Subject]subjectTotals
	counts   map[collection][]counter
}

// stored is what a subject has in all.
type subjectTotals struct {
	events           uint64
	ingested, newest time.Time // of the last event to be accepted, and of the latest
}

func (s subjectTotals) with(events uint64, ingested, newest time.Time) subjectTotals {
	s.events += events
	if ingested.After(s.ingested) {
		s.ingested = ingested
	}
	if newest.After(s.newest) {
		s.newest = newest
	}
	return s
}

// failure is when and why it could not be read.
type failure struct {
	startedAt, failedAt time.Time
	err                 error
}

// collection are the campaigns or the widgets of a website.
type collection struct {
	website int64
	of      schema.Subject
}

// counted is what was ever stored of a subject, of one event and goal.
type counter struct {
	subject           int64
	event             schema.Kind
	goal              int64
	events            int64
	value, extraValue big.Int
}

const (
	// gatheredHolds is how long what was read is good for: whoever wants to keep
	// to a second has it read each second.
	statsMaxAge = 2 * time.Second
	// gatherMayTake is how long reading may keep an answer waiting, and how long
	// a store that failed is left alone.
	statsTimeout = time.Second
)

// gathered returns what was read, or reads it where that is too long ago.
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

// Version is a number that changes whenever what is stored of the subject
// changes: of the same version there is the same report. Versions agree
// between servers of a store. False stands for one that is not known, for the
// store does not say.
func (e *Engine) Version(ctx context.Context, subject Subject) (uint64, bool) {
	now, err := e.subjectStats(ctx)
	if err != nil {
		return 0, false
	}
	if state, rollups := e.usableRollup(subject, now.events[subject].ingested); rollups {
		return xxhash.Sum64String(fmt.Sprint(state.generation, state.through.UnixMilli())), true
	}
	return now.versions[subject], true
}

// RefreshVersions reads versions and counters as they stand now. Writers of
// this process call it when they have written, so that nobody is told the old
// ones after they were told that it is done.
// It returns when the context ends at the latest.
func (e *Engine) RefreshVersions(ctx context.Context) error {
	asked := time.Now()
	done := make(chan error, 1)
	go func() { done <- e.readVersions(context.WithoutCancel(ctx), asked) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return storeError(ctx, context.Cause(ctx))
	}
}

// readVersions reads them unless somebody else began to after they were asked
// for.
func (e *Engine) readVersions(ctx context.Context, asked time.Time) error {
	m := &e.stats
	m.reading.Lock()
	defer m.reading.Unlock()
	if last := m.last.Load(); last != nil && last.readAt.After(asked) {
		return nil // somebody else began after we asked
	}
	if failed := m.failure.Load(); failed != nil && failed.startedAt.After(asked) {
		return failed.err
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	now := &subjectStats{readAt: time.Now(), versions: map[Subject]uint64{}, events: map[Subject]subjectTotals{}, counts: map[collection][]counter{}}
	query := &Query{Params: []Param{{"counters", schema.CountersTable(e.store.Conn)}}}
	err := query.render("subject_stats.sql", struct{}{})
	if err == nil {
		err = e.store.each(ctx, query, now.add)
	}
	if err != nil {
		m.failure.Store(&failure{now.readAt, time.Now(), err})
		return err
	}
	m.last.Store(now)
	return nil
}

// settlements are how far the subjects are settled, as last read.
type rollupStates struct {
	readAt       time.Time
	of           map[Subject]rollupProgress
	missingSince map[Subject]time.Time // since when those that should be settled, and are not yet, were seen to wait
}

type rollupProgress struct {
	rollupState
	changedAt   time.Time // when the state was last seen to change
	behindSince time.Time // since when events were seen to wait; zero: none do
}

// RefreshSettled reads how far the subjects are settled now.
func (e *Engine) RefreshRollupStates(ctx context.Context) error {
	all, err := schema.RollupStates(ctx, e.store.Conn)
	if err != nil {
		return err
	}
	now := &rollupStates{readAt: time.Now(), of: map[Subject]rollupProgress{}, missingSince: map[Subject]time.Time{}}
	var last rollupStates
	if read := e.stats.rollups.Load(); read != nil {
		last = *read
	}
	for i := range all {
		s := &all[i]
		of := SubjectOf(s)
		if _, later := now.of[of]; later || !s.Complete {
			continue
		}
		is, was := rollupProgress{rollupState: rollupState{s.Generation, s.SharesSince, s.Events, s.Through, s.Newest}, changedAt: now.readAt}, last.of[of]
		if was.rollupState == is.rollupState {
			is.changedAt, is.behindSince = was.changedAt, was.behindSince
		}
		switch stored := e.stats.last.Load(); {
		case stored == nil || !s.Through.Before(stored.events[of].ingested):
			is.behindSince = time.Time{}
		case is.behindSince.IsZero():
			is.behindSince = now.readAt
		}
		now.of[of] = is
	}
	for _, of := range e.missingRollups(now) {
		if now.missingSince[of] = last.missingSince[of]; now.missingSince[of].IsZero() {
			now.missingSince[of] = now.readAt
		}
	}
	e.stats.rollups.Store(now)
	return nil
}

// unsettled are the subjects that are large enough to be settled, and are not.
func (e *Engine) missingRollups(now *rollupStates) []Subject {
	stored := e.stats.last.Load()
	if stored == nil || !e.stats.rollupsFollowed.Load() {
		return nil
	}
	var some []Subject
	for of, s := range stored.events {
		if _, rollups := now.of[of]; rollups || s.events <= e.store.limits.inProcessEvents() || e.WithoutRollup(of) {
			continue
		}
		if _, known := e.SharesSince(of); known {
			some = append(some, of)
		}
	}
	return some
}

// Followed notes that somebody settles what comes, so that it can be behind.
func (e *Engine) RollupsFollowed() { e.stats.rollupsFollowed.Store(true) }

// Refuse notes a subject that cannot be settled.
func (e *Engine) MarkWithoutRollup(subject Subject) { e.stats.withoutRollup.Store(subject, true) }

// Refused says whether a subject cannot be settled.
func (e *Engine) WithoutRollup(subject Subject) bool {
	_, is := e.stats.withoutRollup.Load(subject)
	return is
}

// SettleBy has settle called where an answer has to have every event.
func (e *Engine) SetRollupRefresh(refresh func(context.Context, Subject) error) {
	e.refreshRollup = refresh
}

// Freshen has the next report of the subject hold every event that is stored
// now: it settles what is not, and says whether all is. Where it is not, the
// report has to be counted from the events.
func (e *Engine) BringUpToDate(ctx context.Context, subject Subject) bool {
	if err := e.RefreshVersions(ctx); err != nil {
		return false // it shows in the version
	}
	if e.upToDate(subject) || e.refreshRollup == nil {
		return e.upToDate(subject)
	}
	refreshing, cancel := halfDeadline(ctx)
	defer cancel()
	if err := e.refreshRollup(refreshing, subject); err != nil {
		slog.WarnContext(ctx, "not settled", "error", err)
	}
	return e.upToDate(subject)
}

// halfOf is a context that ends when half the time that is left has gone by: the
// rest is for what follows.
func halfDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// upToDate says whether all of a subject is settled, or none of it is.
func (e *Engine) upToDate(subject Subject) bool {
	last, rollups := e.stats.last.Load(), e.stats.rollups.Load()
	if last == nil || rollups == nil {
		return false
	}
	state, known := rollups.of[subject]
	return !known || !state.through.Before(last.events[subject].ingested)
}

// Behind is for how long events have been waiting to be settled, of the
// subject that waits longest.
func (e *Engine) RollupLag() time.Duration {
	var most time.Duration
	if now := e.stats.rollups.Load(); now != nil {
		for _, s := range now.of {
			if !s.behindSince.IsZero() {
				most = max(most, time.Since(s.behindSince))
			}
		}
		for _, since := range now.missingSince {
			most = max(most, time.Since(since))
		}
	}
	return most
}

// settlement returns how far a subject is settled, and whether a report may be
// given as of then: when nothing came since, or not for long.
func (e *Engine) usableRollup(subject Subject, ingested time.Time) (rollupState, bool) {
	now := e.stats.rollups.Load()
	if now == nil {
		return rollupState{}, false
	}
	s, known := now.of[subject]
	return s.rollupState, known && (!s.through.Before(ingested) || time.Since(s.changedAt) < rollupMaxAge)
}

// add counts a row in. Rows come in one order, so that a version is the same
// on every server.
func (g *subjectStats) add(row driver.Rows) error {
	var at Subject
	var of, event string
	var events uint64
	var ingested, newest time.Time
	var c counter
	if err := row.Scan(&at.WebsiteID, &of, &at.ID, &at.ExperimentID, &event, &c.goal, &events, &c.value, &c.extraValue, &ingested, &newest); err != nil {
		return err
	}
	at.Kind, c.subject, c.event, c.events = schema.Subject(of), at.ID, schema.Kind(event), int64(events)
	g.versions[at] = xxhash.Sum64String(fmt.Sprint(g.versions[at], event, " ", c.goal, " ", events, " ", &c.value, " ", &c.extraValue, " ", ingested.UnixMilli()))
	g.events[at] = g.events[at].with(events, ingested, newest)
	in := collection{at.WebsiteID, at.Kind}
	g.counts[in] = append(g.counts[in], c)
	return nil
}

// FollowVersions reads versions and counters at the given interval until the
// context ends.
func (e *Engine) FollowVersions(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := errors.Join(e.RefreshRollupStates(ctx), e.RefreshVersions(ctx)); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "versions of the data not read", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
