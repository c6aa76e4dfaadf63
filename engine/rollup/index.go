package rollup

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/live"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// maxAge is the maximum age of the last refresh while newer events wait. After
// it, reports are counted from the events.
const maxAge = 5 * time.Second

// Index has the states of the rollups of a store, as last read.
type Index struct {
	conn        driver.Conn
	sharesSince func(plan.Subject) (time.Time, bool)
	totals      *live.Totals
	leastEvents uint64 // subjects with fewer events have no rollup

	states   atomic.Pointer[states]
	without  sync.Map    // subjects that cannot have a rollup
	followed atomic.Bool // a refresher adds new events to the rollups
	ranks    ranks
	update   func(context.Context, plan.Subject) error // adds all events of a subject; nil: the rollups are not refreshed
}

// NewIndex returns the index of a store. Subjects with at most few events are
// counted in process and have no rollup. sharesSince returns when the current
// shares of a subject of the catalogue took effect.
func NewIndex(conn driver.Conn, few uint64, sharesSince func(plan.Subject) (time.Time, bool), totals *live.Totals) *Index {
	return &Index{conn: conn, leastEvents: few + 1, sharesSince: sharesSince, totals: totals}
}

// states has the states of all rollups. It is immutable.
type states struct {
	readAt       time.Time
	of           map[plan.Subject]progress
	missingSince map[plan.Subject]time.Time // when subjects without their rollup were first noticed
}

type progress struct {
	State
	changedAt   time.Time // when the last change of the state was noticed
	behindSince time.Time // since when events wait for a refresh; zero: none
}

// Current returns the rollup of a subject if it can serve a report: it has all
// events accepted until ingested, or was refreshed recently.
func (x *Index) Current(subject plan.Subject, ingested time.Time) (*Current, bool) {
	now := x.states.Load()
	if now == nil {
		return nil, false
	}
	s, known := now.of[subject]
	usable := known && (!s.Through.Before(ingested) || time.Since(s.changedAt) < maxAge)
	return &Current{State: s.State, ranks: &x.ranks}, usable
}

// RefreshIfOld reads the states if they are too old.
func (x *Index) RefreshIfOld(ctx context.Context) error {
	if now := x.states.Load(); now != nil && time.Since(now.readAt) <= live.MaxAge {
		return nil
	}
	return x.Refresh(ctx)
}

// Refresh reads the states.
func (x *Index) Refresh(ctx context.Context) error {
	all, err := readStates(ctx, x.conn)
	if err != nil {
		return source.StoreFailure(ctx, err)
	}
	now := &states{readAt: time.Now(), of: map[plan.Subject]progress{}, missingSince: map[plan.Subject]time.Time{}}
	var last states
	if read := x.states.Load(); read != nil {
		last = *read
	}
	stored := x.totals.Last()
	for of, s := range all {
		is, was := progress{State: s, changedAt: now.readAt}, last.of[of]
		if was.State.same(&is.State) {
			is.changedAt, is.behindSince = was.changedAt, was.behindSince
		}
		switch {
		case stored == nil || !s.Through.Before(stored[of].Ingested):
			is.behindSince = time.Time{}
		case is.behindSince.IsZero():
			is.behindSince = now.readAt
		}
		now.of[of] = is
	}
	for _, of := range x.missing(now, stored) {
		if now.missingSince[of] = last.missingSince[of]; now.missingSince[of].IsZero() {
			now.missingSince[of] = now.readAt
		}
	}
	x.states.Store(now)
	return nil
}

// missing returns the subjects that should have a rollup and have none.
func (x *Index) missing(now *states, stored map[plan.Subject]source.Stored) []plan.Subject {
	if !x.followed.Load() {
		return nil
	}
	var some []plan.Subject
	for of, s := range stored {
		if _, rollups := now.of[of]; rollups || s.Events < x.leastEvents || x.isWithout(of) {
			continue
		}
		if _, known := x.sharesSince(of); known {
			some = append(some, of)
		}
	}
	return some
}

// markWithout records that a subject cannot have a rollup.
func (x *Index) markWithout(subject plan.Subject) { x.without.Store(subject, true) }

func (x *Index) isWithout(subject plan.Subject) bool {
	_, is := x.without.Load(subject)
	return is
}

// HasAll reports whether the rollup of a subject has all its events, or the
// subject has no rollup. It returns false if the totals or the states were not
// read yet.
func (x *Index) HasAll(subject plan.Subject) bool {
	stored, now := x.totals.Last(), x.states.Load()
	if stored == nil || now == nil {
		return false
	}
	state, known := now.of[subject]
	return !known || !state.Through.Before(stored[subject].Ingested)
}

// Subjects reads the states and returns the subjects with a rollup, sorted.
func (x *Index) Subjects(ctx context.Context) ([]plan.Subject, error) {
	if err := x.Refresh(ctx); err != nil {
		return nil, err
	}
	var subjects []plan.Subject
	for subject := range x.states.Load().of {
		subjects = append(subjects, subject)
	}
	slices.SortFunc(subjects, func(a, b plan.Subject) int { return strings.Compare(a.String(), b.String()) })
	return subjects, nil
}

// Lag returns the longest time that events of a subject have been waiting for a
// refresh.
func (x *Index) Lag() time.Duration {
	var most time.Duration
	if now := x.states.Load(); now != nil {
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

// Update adds all written events to the rollup of a subject. It does nothing
// without a refresher, or if a rebuild is necessary or runs.
func (x *Index) Update(ctx context.Context, subject plan.Subject) error {
	if x.update == nil {
		return nil
	}
	return x.update(ctx, subject)
}

// LeastEvents returns the minimum number of events of a subject with a rollup.
func (x *Index) LeastEvents() uint64 { return x.leastEvents }

// Retire drops the rollups of the subjects for which of returns true, and reports
// whether there were any. Rollups include events, so they must be dropped before
// the events are deleted.
func (x *Index) Retire(ctx context.Context, of func(ingest.Subject) bool) (dropped bool, err error) {
	dropped, err = drop(ctx, x.conn, func(g generation) bool { return of(ingest.Subject(g.Subject)) })
	if err != nil {
		return dropped, err
	}
	return dropped, sweep(ctx, x.conn, nil) // also after a Retire that was interrupted
}
