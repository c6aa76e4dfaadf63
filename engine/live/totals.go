package live

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// Totals has the totals of all subjects of a store, as last read.
type Totals struct {
	store   *source.Store
	own     atomic.Bool // see SetOwn
	reading sync.Mutex  // held while totals are read from the store
	failure atomic.Pointer[failure]

	mu        sync.RWMutex // guards the rest
	readAt    time.Time    // when all totals were last read; zero: they must be read
	isReading bool         // totals are being read, and may lack the last writes
	of        map[collection]map[plan.Subject]*total
	added     map[plan.Subject]bool   // subjects whose totals have the events of the current write
	written   map[plan.Subject]uint64 // the last write to a subject after its totals were read
	toAny     uint64                  // the last write to any subject after all totals were read; 0: none
	writes    uint64                  // the number of the last write
}

// New returns the totals of a store. They are read when they are first needed.
func New(store *source.Store) *Totals {
	return &Totals{store: store, written: map[plan.Subject]uint64{}}
}

// SetOwn sets that only this process writes to the store, and that it calls
// Written after each write. The totals are then read only after writes.
func (t *Totals) SetOwn() { t.own.Store(true) }

// total has the totals of a subject. It is immutable once it is in Totals.
type total struct {
	version  uint64
	stored   source.Stored
	counters []counter
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
	ingested, newest  time.Time // last acceptance time and latest event time
}

const (
	// MaxAge is the maximum age of the totals of a store that other processes write
	// to. A server reads them every second.
	MaxAge = 2 * time.Second
	// timeout is the maximum duration of a read, and the pause after a failed one.
	timeout = time.Second
)

// Written records a write of this process to the given subjects; nil: to any
// subject. Totals that Inserted did not change are read when they are next needed, once
// after many writes.
func (t *Totals) Written(subjects []plan.Subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	for _, subject := range subjects {
		if !t.added[subject] {
			t.written[subject] = t.writes
		}
	}
	t.added = nil
	if subjects == nil {
		t.toAny = t.writes
	}
}

// isNew reports whether all totals were read recently, or after the last write to
// any subject.
func (t *Totals) isNew() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return !t.readAt.IsZero() && t.toAny == 0 && (t.own.Load() || time.Since(t.readAt) < MaxAge)
}

// RefreshIfOld reads the totals that are too old.
func (t *Totals) RefreshIfOld(ctx context.Context) error {
	if t.isNew() {
		return t.readWritten(ctx)
	}
	if failed := t.failure.Load(); failed != nil && time.Since(failed.failedAt) < timeout {
		return failed.err
	}
	return t.Refresh(ctx)
}

// readWritten reads the totals of the subjects written since the last read.
func (t *Totals) readWritten(ctx context.Context) error {
	t.mu.RLock()
	current := len(t.written) == 0
	t.mu.RUnlock()
	if current {
		return nil
	}
	return until(ctx, func(ctx context.Context) error { return t.read(ctx, t.subjectsWritten) })
}

// Poll reads what other processes may have changed, or all totals again after a
// failure.
func (t *Totals) Poll(ctx context.Context) error {
	if t.own.Load() && t.isNew() {
		return nil
	}
	return t.Refresh(ctx)
}

// Version returns a number that changes whenever the stored events of the
// subject change, and the acceptance time of its last event. Versions agree
// between servers of a store.
func (t *Totals) Version(ctx context.Context, subject plan.Subject) (version uint64, ingested time.Time, err error) {
	if err := t.RefreshIfOld(ctx); err != nil {
		return 0, time.Time{}, err
	}
	now := t.last(subject)
	return now.version, now.stored.Ingested, nil
}

// last returns the last read totals of a subject.
func (t *Totals) last(of plan.Subject) total {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if found := t.of[collection{of.WebsiteID, of.Kind}][of]; found != nil {
		return *found
	}
	return total{}
}

// Last returns the last read totals of a subject, and whether no write has changed
// them since.
func (t *Totals) Last(of plan.Subject) (_ source.Stored, current bool) {
	t.mu.RLock()
	_, changed := t.written[of]
	current = !t.readAt.IsZero() && t.toAny == 0 && !changed
	t.mu.RUnlock()
	return t.last(of).stored, current
}

// All returns the last read totals by subject.
func (t *Totals) All() map[plan.Subject]source.Stored {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := map[plan.Subject]source.Stored{}
	for _, subjects := range t.of {
		for subject, now := range subjects {
			all[subject] = now.stored
		}
	}
	return all
}

// Stored returns the totals of a subject. They are read at once unless the last
// ones are new enough.
func (t *Totals) Stored(ctx context.Context, of plan.Subject) (source.Stored, error) {
	if t.isNew() {
		err := t.readWritten(ctx)
		return t.last(of).stored.OrNone(), err
	}
	query, err := source.FreshnessQuery(of, schema.CountersTable(t.store.Conn))
	if err != nil {
		return source.Stored{}, err
	}
	var now source.Stored
	err = t.store.Each(ctx, query, func(row driver.Rows) error { return row.Scan(&now.Events, &now.Ingested, &now.Newest) })
	return now.OrNone(), err
}

// Refresh reads the current totals. It returns when the context ends at the
// latest.
func (t *Totals) Refresh(ctx context.Context) error {
	asked := time.Now()
	return until(ctx, func(ctx context.Context) error {
		return t.read(ctx, func() ([]plan.Subject, bool) { return nil, !t.readAt.After(asked) })
	})
}

// until calls work and returns when the context ends at the latest.
func until(ctx context.Context, work func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- work(context.WithoutCancel(ctx)) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return source.StoreFailure(ctx, context.Cause(ctx))
	}
}

// subjectsWritten returns the subjects written since the last read. The caller
// holds the lock.
func (t *Totals) subjectsWritten() ([]plan.Subject, bool) {
	if t.readAt.IsZero() || t.toAny != 0 {
		return nil, true
	}
	return slices.Collect(maps.Keys(t.written)), len(t.written) > 0
}

// read reads totals, one goroutine after another. due returns those to read (nil:
// all), and false if other goroutines read them meanwhile.
func (t *Totals) read(ctx context.Context, due func() ([]plan.Subject, bool)) error {
	asked := time.Now()
	t.reading.Lock()
	defer t.reading.Unlock()
	if failed := t.failure.Load(); failed != nil && failed.startedAt.After(asked) {
		return failed.err
	}
	t.mu.Lock()
	subjects, is := due()
	writes := t.writes
	t.isReading = is
	t.mu.Unlock()
	if !is {
		return nil
	}
	started := time.Now()
	found, err := t.stored(ctx, subjects)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isReading = false
	if err != nil {
		t.failure.Store(&failure{started, time.Now(), err})
		t.readAt = time.Time{}
		return err
	}
	t.set(found, subjects, started)
	maps.DeleteFunc(t.written, func(_ plan.Subject, number uint64) bool { return number <= writes })
	if subjects == nil && t.toAny <= writes { // else a write has come since the read began
		t.toAny = 0
	}
	return nil
}

// set sets the totals of some subjects; nil: of all. The caller holds the lock.
func (t *Totals) set(found map[collection]map[plan.Subject]*total, subjects []plan.Subject, readAt time.Time) {
	if subjects == nil {
		t.of, t.readAt = found, readAt
		return
	}
	for in, changed := range found {
		if t.of[in] == nil {
			t.of[in] = map[plan.Subject]*total{}
		}
		maps.Copy(t.of[in], changed)
	}
}

// stored reads the totals of some subjects and maybe others; nil: of all subjects.
func (t *Totals) stored(ctx context.Context, subjects []plan.Subject) (map[collection]map[plan.Subject]*total, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	query := &source.Query{Params: []source.Param{{Name: "counters", Value: schema.CountersTable(t.store.Conn)}}}
	if subjects != nil {
		var websites, ids []int64
		for _, subject := range subjects {
			websites, ids = append(websites, subject.WebsiteID), append(ids, subject.ID)
		}
		query.Params = append(query.Params, source.Param{Name: "websites", Value: websites}, source.Param{Name: "ids", Value: ids})
	}
	if err := query.Render("subject_stats.sql", struct{ Some bool }{subjects != nil}); err != nil {
		return nil, err
	}
	found := map[collection]map[plan.Subject]*total{}
	return found, t.store.Each(ctx, query, func(row driver.Rows) error { return add(found, row) })
}

// add adds a row. Rows are sorted, so that versions agree between servers.
func add(to map[collection]map[plan.Subject]*total, row driver.Rows) error {
	var at plan.Subject
	var of, event string
	var events uint64
	var c counter
	if err := row.Scan(&at.WebsiteID, &of, &at.ID, &at.ExperimentID, &event, &c.goal, &events, &c.value, &c.extraValue, &c.ingested, &c.newest); err != nil {
		return err
	}
	at.Kind, c.subject, c.event, c.events = schema.Subject(of), at.ID, schema.Kind(event), int64(events)
	in := collection{at.WebsiteID, at.Kind}
	if to[in] == nil {
		to[in] = map[plan.Subject]*total{}
	}
	if to[in][at] == nil {
		to[in][at] = &total{}
	}
	to[in][at].add(&c)
	return nil
}
