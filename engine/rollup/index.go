package rollup

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/live"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// maxAge is the maximum time for which events of a subject that is watched may wait for a
// refresh. After it, reports are counted from the events. If other processes write to the
// store, it is the maximum age of the last refresh, because their events have waited
// unnoticed.
const maxAge = 5 * time.Second

// Index has the states of the rollups of a store, and the subjects whose rollups
// may lack events. The states are read once if no other process changes them.
type Index struct {
	conn        driver.Conn
	catalogue   *catalogue.Catalogue
	totals      *live.Totals
	leastEvents uint64 // subjects with fewer events have no rollup

	loading   sync.Mutex  // held while the states are read from the store
	unsure    atomic.Bool // the stored states may differ, because a report or a refresh failed
	lookDue   atomic.Bool // the totals may have changed in a way that waiting does not record
	refreshes atomic.Bool // a refresher adds new events to the rollups
	away      atomic.Bool // the last request did not reach the replica
	ranks     ranks
	recent    recent
	watched   watched
	refused   atomic.Uint64                             // refreshes that were refused because events were being deleted
	unusable  atomic.Uint64                             // refreshes that were refused because the events were restored
	lost      atomic.Uint64                             // refreshes that another process did at the same time
	update    func(context.Context, plan.Subject) error // adds all events of a subject; nil: the rollups are not refreshed
	shared    *shared                                   // nil: no other process writes to the store

	mu      sync.RWMutex // guards the rest
	readAt  time.Time    // when the states were last read
	of      map[plan.Subject]progress
	waiting map[plan.Subject]time.Time // subjects with events that their rollups may lack, since when
	without map[plan.Subject]bool      // subjects that cannot have a rollup
}

// progress is a state, and when it was stored or read.
type progress struct {
	State
	at time.Time
}

// NewIndex returns the index of a store. Subjects with at most few events are
// counted in process and have no rollup.
func NewIndex(conn driver.Conn, few uint64, c *catalogue.Catalogue, totals *live.Totals) *Index {
	return &Index{
		conn: conn, leastEvents: few + 1, catalogue: c, totals: totals,
		waiting: map[plan.Subject]time.Time{}, without: map[plan.Subject]bool{},
	}
}

// current returns the rollup of a subject, whether it lacks events that were accepted until
// ingested, and whether it can serve a report nevertheless; see maxAge.
func (x *Index) current(subject plan.Subject, ingested time.Time) (shard Shard, lacks, usable bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s, known := x.of[subject]
	if !known || x.away.Load() || !x.isValid(subject, &s.State) {
		return Shard{}, false, false
	}
	lacks = x.lacks(subject, &s.State, ingested)
	since := s.at
	if began := x.waiting[subject]; x.shared == nil && began.After(since) {
		since = began
	}
	return Shard{s.State, x}, lacks, !lacks || time.Since(since) < maxAge || x.lacksUnwatched(subject, &s.State)
}

// Load reads the states, unless they were read already.
func (x *Index) Load(ctx context.Context) error {
	x.mu.RLock()
	loaded := x.of != nil && !x.unsure.Load()
	x.mu.RUnlock()
	if loaded {
		return nil
	}
	return x.Reload(ctx)
}

// Reload reads the states again.
func (x *Index) Reload(ctx context.Context) error {
	err := x.readStates(ctx)
	if err == nil && x.shared != nil {
		if err = x.look(ctx); err != nil {
			x.unsure.Store(true)
			err = source.StoreFailure(ctx, err)
		}
	}
	if err != nil {
		return err
	}
	return x.LookAtAll(ctx)
}

func (x *Index) readStates(ctx context.Context) error {
	x.loading.Lock()
	defer x.loading.Unlock()
	x.unsure.Store(false)
	states, err := readStates(ctx, x.conn)
	if err != nil {
		x.unsure.Store(true)
		return source.StoreFailure(ctx, err)
	}
	x.replace(states)
	return nil
}

// replace sets all states.
func (x *Index) replace(states map[plan.Subject]State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now, last := time.Now(), x.of
	x.readAt = now
	x.of = make(map[plan.Subject]progress, len(states))
	for subject, s := range states {
		is := progress{s, now}
		if was := last[subject]; was.same(&s) {
			is.at = was.at
		}
		x.of[subject] = is
	}
}

// set sets the state of a subject after a refresh.
func (x *Index) set(subject plan.Subject, s *State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		return // Load reads it
	}
	x.of[subject] = progress{*s, time.Now()}
	stored, current := x.totals.Last(subject) // after the lock: Totals.Written is called before Wait
	if !current || x.lacks(subject, s, stored.Ingested) {
		x.waiting[subject] = time.Now()
	} else {
		delete(x.waiting, subject)
	}
}

// Wait records that events of the subjects were stored or deleted, so that their
// rollups must be refreshed.
func (x *Index) Wait(subjects []plan.Subject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.shared != nil {
		x.shared.writes++
	}
	for _, subject := range subjects {
		x.wait(subject)
		if x.shared != nil {
			x.shared.written[subject] = x.shared.writes
		}
	}
}

// await records that the rollup of a subject may lack events.
func (x *Index) await(subject plan.Subject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wait(subject)
}

func (x *Index) wait(subject plan.Subject) {
	if x.waiting[subject].IsZero() && !x.without[subject] {
		x.waiting[subject] = time.Now()
	}
}

// LookAtAll looks for rollups that lack events, or were built for other traffic
// shares than the current ones.
func (x *Index) LookAtAll(ctx context.Context) error {
	if x.update == nil {
		return nil // nothing would be done about them
	}
	if err := x.totals.RefreshIfOld(ctx); err != nil {
		return err
	}
	for subject, stored := range x.totals.All() {
		if stored.Events >= x.leastEvents && !x.isCurrent(subject, stored.Ingested) {
			x.mu.Lock()
			x.wait(subject)
			x.mu.Unlock()
		}
	}
	return nil
}

// isCurrent reports whether the rollup of a subject needs no refresh.
func (x *Index) isCurrent(subject plan.Subject, ingested time.Time) bool {
	x.mu.RLock()
	s, known := x.of[subject]
	is := known && x.isValid(subject, &s.State) && !x.lacks(subject, &s.State, ingested)
	x.mu.RUnlock()
	return is && !x.sharesChanged(subject, &s.State)
}

// sharesSince returns when the current shares of a subject took effect. It
// returns false if the subject is not in the catalogue.
func (x *Index) sharesSince(of plan.Subject) (time.Time, bool) {
	if of.Kind == schema.SubjectNone {
		return time.Time{}, false
	}
	snapshot := x.catalogue.Snapshot()
	account, known := snapshot.AccountOfWebsite(of.WebsiteID)
	if !known {
		return time.Time{}, false
	}
	p, err := plan.New(of.Request(account), snapshot.Account(account))
	if err != nil {
		return time.Time{}, false
	}
	return p.SharesSince, true
}

// LookAgain records that events of any subject may have changed.
func (x *Index) LookAgain() { x.lookDue.Store(true) }

func (x *Index) sharesChanged(subject plan.Subject, s *State) bool {
	since, known := x.sharesSince(subject)
	return known && since.UnixMilli() != s.SharesSince
}

// State returns the state of the rollup of a subject. It returns false if there is
// none.
func (x *Index) State(subject plan.Subject) (State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s, known := x.of[subject]
	return s.State, known
}

// backlogs returns the subjects of the catalogue whose rollups lack events, or
// were built for other shares, sorted.
func (x *Index) backlogs() []backlog {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []backlog
	for subject := range x.waiting {
		_, current := x.totals.Last(subject)
		switch d := x.candidate(subject); {
		case x.without[subject]:
			delete(x.waiting, subject)
		case d != nil && (d.mustRebuild() || d.lacks):
			all = append(all, *d)
		case current:
			delete(x.waiting, subject)
		}
	}
	sortBacklogs(all)
	return all
}

// candidates returns the subjects of the catalogue with enough events for a
// rollup, sorted.
func (x *Index) candidates() []backlog {
	stored := x.totals.All()
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []backlog
	for subject := range stored {
		if d := x.candidate(subject); d != nil {
			all = append(all, *d)
		}
	}
	sortBacklogs(all)
	return all
}

// candidate returns nil if the subject is not in the catalogue or has few events.
// The caller holds the lock.
func (x *Index) candidate(subject plan.Subject) *backlog {
	since, known := x.sharesSince(subject)
	stored, _ := x.totals.Last(subject)
	if !known || stored.Events < x.leastEvents {
		return nil
	}
	d := &backlog{subject: subject, order: x.order(), sharesSince: since.UnixMilli(), stored: stored.Events}
	if s, has := x.of[subject]; has {
		d.state, d.valid, d.lacks = &s.State, x.isValid(subject, &s.State), x.lacks(subject, &s.State, stored.Ingested)
		d.lostSome = x.shared != nil && !x.shared.lostNone(subject, &s.State)
	}
	return d
}

// isReplica reports whether the store is a replica of a cluster.
func (x *Index) isReplica() bool { return x.shared != nil && x.shared.order == generation.BySet }

// order returns the order of the events of the store.
func (x *Index) order() generation.Order {
	if x.shared != nil {
		return x.shared.order
	}
	return generation.ByTime
}

func sortBacklogs(all []backlog) {
	slices.SortFunc(all, func(a, b backlog) int { return strings.Compare(a.subject.String(), b.subject.String()) })
}

// markWithout records that a subject cannot have a rollup.
func (x *Index) markWithout(subject plan.Subject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.without[subject] = true
	delete(x.waiting, subject)
}

// HasAll reports whether the rollup of a subject has all its events, or the
// subject has no rollup. It returns false if the totals or the states must be
// read.
func (x *Index) HasAll(subject plan.Subject) bool {
	stored, current := x.totals.Last(subject)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if !current || x.of == nil {
		return false
	}
	s, known := x.of[subject]
	return !known || !x.isValid(subject, &s.State) || !x.lacks(subject, &s.State, stored.Ingested)
}

// subjects returns the subjects with a rollup.
func (x *Index) subjects() []plan.Subject {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.of))
}

// Update adds all written events to the rollup of a subject. It does nothing
// without a refresher, or if a rebuild is necessary or runs.
func (x *Index) Update(ctx context.Context, subject plan.Subject) error {
	if x.update == nil {
		return nil
	}
	return x.update(ctx, subject)
}

// Retire deletes the rollups of the subjects for which of returns true, and reports
// whether there were any. Rollups include events, so they must be deleted before
// the events are. When it returns, their rows are removed from disk.
func (x *Index) Retire(ctx context.Context, of func(ingest.Subject) bool) (retired bool, err error) {
	states, err := readStates(ctx, x.conn)
	if err != nil {
		return false, err
	}
	for subject := range states {
		if of(ingest.Subject(subject)) {
			delete(states, subject)
			retired = true
		}
	}
	kept, err := x.retireShared(ctx, of)
	if err != nil {
		return false, err
	}
	x.forget(states)
	return retired, sweep(ctx, x.conn, x.shared, states, kept)
}

// forget removes the states that are not among the given ones.
func (x *Index) forget(kept map[plan.Subject]State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for subject := range x.of {
		if _, keep := kept[subject]; !keep {
			delete(x.of, subject)
			x.wait(subject)
		}
	}
	clear(x.without)
}

// sweep deletes all rows except those of the states and of the given generations.
func sweep(ctx context.Context, conn driver.Conn, of *shared, states map[plan.Subject]State, kept []generation.ID) error {
	for _, s := range states {
		kept = append(kept, s.Generation, s.Visitors.ID)
	}
	return generation.Sweep(ctx, conn, kept, of != nil)
}
