package ingest

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"lifthouse/schema"
)

//go:embed sql/event_visitors.sql
var eventVisitors string

// The sizes of the Bloom filters. They use 10 bits per id for a false positive
// rate of 1 %. The first filter uses 20 MB, the second 40 MB, the third 120 MB: each
// has twice the capacity of all earlier ones. If the total capacity would exceed
// maxFilterIDs, the filters are discarded.
const (
	falsePositives = 0.01
	firstCapacity  = 16 << 20
	maxFilterIDs   = 144 << 20
)

// idFilter contains the ids of all stored events. An event whose id is not in the
// filter is new and needs no look-up. If other processes write to the store, the filter
// is only valid for a write for which followBlocks made it current.
//
// The filter of an exclusive writer also contains the visitors that have views, and those
// that have unattributed goals, of each website. The goals of other visitors have no
// derived rows yet, and the views of other visitors add none, so neither needs a look-up.
type idFilter struct {
	mu           sync.Mutex
	filters      []*bloom.BloomFilter // new ids are added to the last one; empty: the filter is disabled
	free         int                  // remaining capacity of the last filter
	capacity     int                  // total capacity of the filters
	withVisitors bool                 // visitors are added too
	complete     bool                 // the ids of all earlier events have been added
	visitors     bool                 // the visitors of all earlier events have been added
}

// SetExclusive declares that no other process writes to the store. It must be
// called before the first write.
func (w *Writer) SetExclusive() {
	w.exclusive, w.unattributed = true, map[int64]bool{}
	w.idFilter.withVisitors = true
	w.idFilter.reset()
}

// LoadLastAccepted reads the acceptance time of the last stored event, so that
// new events get later acceptance times. It must be called before the first
// write.
func (w *Writer) LoadLastAccepted(ctx context.Context) error {
	if err := w.conn.QueryRow(ctx, newestEvent, clickhouse.Named("website_id", int64(0))).Scan(&w.lastAccepted); err != nil {
		return fmt.Errorf("read the acceptance time of the last event: %w", err)
	}
	w.through.Store(w.lastAccepted.UnixMilli())
	return nil
}

// LoadIDs reads the ids of all stored events into the filter, and for an exclusive writer
// their visitors. The writer may write meanwhile. Until LoadIDs returns without an error,
// and also afterwards if it fails, events are looked up.
func (w *Writer) LoadIDs(ctx context.Context) error {
	return w.loadIDs(ctx, "", func() {})
}

// LoadIDsSlowly is LoadIDs on one core, half of the time, so that a server can serve
// meanwhile.
func (w *Writer) LoadIDsSlowly(ctx context.Context) error {
	began := time.Now()
	return w.loadIDs(ctx, " SETTINGS max_threads = 1", func() {
		select {
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
		}
		began = time.Now()
	})
}

// rowsBetweenPauses is the number of rows that are read between two pauses, in some ten
// milliseconds.
const rowsBetweenPauses = 100_000

func (w *Writer) loadIDs(ctx context.Context, settings string, pause func()) error {
	f := &w.idFilter
	load := func(what, statement string, add func(driver.Rows) error) error {
		n := 0
		err := schema.EachRow(ctx, w.conn, statement+settings, func(row driver.Rows) error {
			if n++; n%rowsBetweenPauses == 0 {
				pause()
			}
			return add(row)
		})
		switch {
		case errors.Is(err, errTooManyIDs):
			return nil
		case err != nil:
			return fmt.Errorf("read the %s of the events: %w", what, err)
		}
		return nil
	}
	if err := load("ids", "SELECT event_id FROM events", f.loadID); err != nil {
		return err
	}
	f.markComplete()
	if !f.withVisitors {
		return nil
	}
	if err := load("visitors", eventVisitors, f.loadVisitor()); err != nil {
		return err
	}
	f.markVisitors()
	return nil
}

// errTooManyIDs ends the reading of ids after the filter was disabled.
var errTooManyIDs = errors.New("too many ids")

func (f *idFilter) loadID(row driver.Rows) error {
	var id uint64
	if err := row.Scan(&id); err != nil {
		return err
	}
	if !f.addStored(id) {
		return errTooManyIDs
	}
	return nil
}

// loadVisitor returns a function that adds the visitor of a view or an unattributed goal.
func (f *idFilter) loadVisitor() func(driver.Rows) error {
	type row struct {
		websiteID int64
		visitorID uint64
		viewed    bool
	}
	var last row
	return func(found driver.Rows) error {
		var r row
		if err := found.Scan(&r.websiteID, &r.visitorID, &r.viewed); err != nil || r == last {
			return err // many rows of a visitor follow each other
		}
		last = r
		kind := schema.KindGoal
		if r.viewed {
			kind = schema.KindView
		}
		if !f.addStoredVisitor(visitorKey(r.websiteID, r.visitorID, kind)) {
			return errTooManyIDs
		}
		return nil
	}
}

// visitorKey returns the id in the filter of a visitor of a website with views, or with
// unattributed goals.
func visitorKey(websiteID int64, visitorID uint64, of schema.Kind) uint64 {
	var key [24]byte
	binary.LittleEndian.PutUint64(key[:], uint64(websiteID)) //nolint:gosec // the same bits
	binary.LittleEndian.PutUint64(key[8:], visitorID)
	copy(key[16:], of) // view or goal
	return xxhash.Sum64(key[:])
}

// reset discards all ids and enables the filter.
func (f *idFilter) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
	f.grow()
}

// discard discards all ids and disables the filter.
func (f *idFilter) discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
}

// clear discards all ids. The caller must hold the lock.
func (f *idFilter) clear() {
	f.filters, f.free, f.capacity, f.complete, f.visitors = nil, 0, 0, false, false
}

// grow adds capacity, or disables the filter if the maximum is exceeded.
func (f *idFilter) grow() {
	capacity := max(firstCapacity, 2*f.capacity)
	if f.capacity += capacity; f.capacity > maxFilterIDs {
		f.filters, f.complete, f.visitors = nil, false, false
		return
	}
	f.filters, f.free = append(f.filters, bloom.NewWithEstimates(uint(capacity), falsePositives)), capacity
}

// markComplete declares that the ids of all earlier events have been added.
func (f *idFilter) markComplete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complete = len(f.filters) > 0
}

// markVisitors declares that the visitors of all earlier events have been added.
func (f *idFilter) markVisitors() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visitors = f.complete
}

// isComplete reports whether the ids of all earlier events have been added.
func (f *idFilter) isComplete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.complete
}

// hasVisitors reports whether the ids and the visitors of all earlier events have been added.
func (f *idFilter) hasVisitors() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.visitors
}

// add adds an id. The caller must hold the lock.
func (f *idFilter) add(id uint64) {
	if f.free == 0 && len(f.filters) > 0 {
		f.grow()
	}
	if len(f.filters) > 0 {
		last := f.filters[len(f.filters)-1]
		last.Add(binary.LittleEndian.AppendUint64(nil, id))
		f.free--
	}
}

// addStored adds the id of an earlier event, and reports whether the filter is
// enabled.
func (f *idFilter) addStored(id uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(id)
	return len(f.filters) > 0
}

// addStoredVisitor adds the visitor of an earlier event, and reports whether the filter is
// enabled.
func (f *idFilter) addStoredVisitor(key uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addVisitor(key)
	return len(f.filters) > 0
}

// addVisitor adds a visitor, unless the filter contains it. The caller must hold the lock.
func (f *idFilter) addVisitor(key uint64) {
	if !f.contains(key) {
		f.add(key)
	}
}

func (f *idFilter) addAll(events []schema.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range events {
		e := &events[i]
		f.add(e.EventID)
		if f.withVisitors && (e.Kind == schema.KindView || e.Subject == schema.SubjectNone) {
			f.addVisitor(visitorKey(e.WebsiteID, e.VisitorID, e.Kind))
		}
	}
}

// possiblyWith returns the visitors of a website that may have stored views, or unattributed
// goals. It may reuse the slice.
func (f *idFilter) possiblyWith(of schema.Kind, websiteID int64, visitors []uint64) []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.visitors {
		return visitors
	}
	return slices.DeleteFunc(visitors, func(id uint64) bool { return !f.contains(visitorKey(websiteID, id, of)) })
}

// possiblyStored returns the events with the verdict Stored that may already be
// in the store.
func (f *idFilter) possiblyStored(events []schema.Event, verdicts []Verdict) []schema.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.complete {
		return selectStored(events, verdicts)
	}
	var selected []schema.Event
	for i := range events {
		if verdicts[i] == Stored && f.contains(events[i].EventID) {
			selected = append(selected, events[i])
		}
	}
	return selected
}

// contains reports whether the filter may contain the id.
func (f *idFilter) contains(id uint64) bool {
	key := binary.LittleEndian.AppendUint64(nil, id)
	return slices.ContainsFunc(f.filters, func(filter *bloom.BloomFilter) bool { return filter.Test(key) })
}
