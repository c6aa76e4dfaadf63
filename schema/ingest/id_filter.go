package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/bits-and-blooms/bloom/v3"

	"lifthouse/schema"
)

// The sizes of the Bloom filters. They use 10 bits per id for a false positive
// rate of 1 %. The first filter uses 20 MB, and each further filter has twice the
// capacity of all earlier ones. If the total capacity would exceed maxFilterIDs,
// about 100 MB, the filters are discarded.
const (
	falsePositives = 0.01
	firstCapacity  = 16 << 20
	maxFilterIDs   = 80 << 20
)

// idFilter contains the ids of all stored events. An event whose id is not in the
// filter is new and needs no look-up. If other processes write to the store, the filter
// is only valid for a write for which followBlocks made it current.
type idFilter struct {
	mu       sync.Mutex
	filters  []*bloom.BloomFilter // new ids are added to the last one; empty: the filter is disabled
	free     int                  // remaining capacity of the last filter
	capacity int                  // total capacity of the filters
	complete bool                 // the ids of all earlier events have been added
}

// SetExclusive declares that no other process writes to the store. It must be
// called before the first write.
func (w *Writer) SetExclusive() {
	w.exclusive, w.unattributed = true, map[int64]bool{}
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

// LoadIDs reads the ids of all stored events into the filter of an exclusive
// writer, which may write meanwhile. Until LoadIDs returns without an error, and
// also afterwards if it fails, every event is looked up.
func (w *Writer) LoadIDs(ctx context.Context) error {
	return w.loadIDs(ctx, "SELECT event_id FROM events", func() {})
}

// LoadIDsSlowly is LoadIDs on one core, half of the time, so that a server can serve
// meanwhile.
func (w *Writer) LoadIDsSlowly(ctx context.Context) error {
	began := time.Now()
	return w.loadIDs(ctx, "SELECT event_id FROM events SETTINGS max_threads = 1", func() {
		select {
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
		}
		began = time.Now()
	})
}

// idsBetweenPauses is the number of ids that are read between two pauses, in some ten
// milliseconds.
const idsBetweenPauses = 100_000

func (w *Writer) loadIDs(ctx context.Context, statement string, pause func()) error {
	rows, err := w.conn.Query(ctx, statement)
	if err != nil {
		return fmt.Errorf("read the ids of the events: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for n := 1; rows.Next(); n++ {
		if n%idsBetweenPauses == 0 {
			pause()
		}
		var id uint64
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("read the ids of the events: %w", err)
		}
		if !w.idFilter.addStored(id) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the ids of the events: %w", err)
	}
	w.idFilter.markComplete()
	return nil
}

// reset discards all ids and enables the filter.
func (f *idFilter) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters, f.free, f.capacity, f.complete = nil, 0, 0, false
	f.grow()
}

// discard discards all ids and disables the filter.
func (f *idFilter) discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters, f.free, f.capacity, f.complete = nil, 0, 0, false
}

// grow adds capacity, or disables the filter if the maximum is exceeded.
func (f *idFilter) grow() {
	capacity := max(firstCapacity, 2*f.capacity)
	if f.capacity += capacity; f.capacity > maxFilterIDs {
		f.filters, f.complete = nil, false
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

// isComplete reports whether the ids of all earlier events have been added.
func (f *idFilter) isComplete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.complete
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

func (f *idFilter) addAll(events []schema.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range events {
		f.add(events[i].EventID)
	}
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
	locations := bloom.Locations(binary.LittleEndian.AppendUint64(nil, id), f.filters[0].K())
	for _, filter := range f.filters {
		if filter.TestLocations(locations) {
			return true
		}
	}
	return false
}
