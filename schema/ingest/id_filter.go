package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/bits-and-blooms/bloom/v3"

	"lifthouse/schema"
)

// The ids that a process keeps in mind. At 10 bits each, one unknown id in a
// hundred is looked up for nothing. The first filter takes 20 MB; the next ones
// are twice as large, until all together have room for mostKnownIDs in 100 MB:
// beyond that nothing is kept.
const (
	falsePositives = 0.01
	firstCapacity  = 16 << 20
	maxFilterIDs   = 80 << 20
)

// known remembers the ids of all stored events, so that one with another id is
// surely new and needs no look-up. That holds where nobody else writes to the
// store.
type idFilter struct {
	mu       sync.Mutex
	filters  []*bloom.BloomFilter // the last takes new ids; none: none are kept
	free     int                  // room left in the last
	capacity int                  // of all
	complete bool                 // they have the ids that were stored before
}

// Alone says, before the first write, that nobody else writes to the store.
func (w *Writer) SetExclusive() {
	w.exclusive, w.unattributed = true, map[int64]bool{}
	w.idFilter.reset()
}

// Resume reads, before the first write, when the last stored event was
// accepted: what comes is accepted later.
func (w *Writer) LoadLastAccepted(ctx context.Context) error {
	if err := w.conn.QueryRow(ctx, newestEvent, clickhouse.Named("website_id", int64(0))).Scan(&w.lastAccepted); err != nil {
		return fmt.Errorf("read when the last event was accepted: %w", err)
	}
	w.through.Store(w.lastAccepted.UnixMilli())
	return nil
}

// Learn reads the ids of what a writer that is alone finds stored, while it
// writes already: until it has them, it looks every event up. The error is the
// store's; without the ids everything goes on, more slowly.
func (w *Writer) LoadIDs(ctx context.Context) error {
	rows, err := w.conn.Query(ctx, "SELECT event_id FROM events")
	if err != nil {
		return fmt.Errorf("read the ids of the events: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
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

func (f *idFilter) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters, f.free, f.capacity, f.complete = nil, 0, 0, false
	f.grow()
}

// grow makes room for more ids, or gives up.
func (f *idFilter) grow() {
	room := max(firstCapacity, 2*f.capacity)
	if f.capacity += room; f.capacity > maxFilterIDs {
		f.filters, f.complete = nil, false
		return
	}
	f.filters, f.free = append(f.filters, bloom.NewWithEstimates(uint(room), falsePositives)), room
}

// close says that all ids that were stored before open are in.
func (f *idFilter) markComplete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complete = len(f.filters) > 0
}

// add remembers an id.
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

// learn adds an id that was stored before; false stands for no room.
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

// maybe returns those of the events that stand and may be stored.
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

func (f *idFilter) contains(id uint64) bool {
	locations := bloom.Locations(binary.LittleEndian.AppendUint64(nil, id), f.filters[0].K())
	for _, filter := range f.filters {
		if filter.TestLocations(locations) {
			return true
		}
	}
	return false
}
