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
	room     int                  // of all
	complete bool                 // they have the ids that were stored before
}

// Alone says, before the first write, that nobody else writes to the store.
func (w *Writer) SetExclusive() {
	w.exclusive, w.unattributed = true, map[int64]bool{}
	w.idFilter.open()
}

// Resume reads, before the first write, when the last stored event was
// accepted: what comes is accepted later.
func (w *Writer) Resume(ctx context.Context) error {
	if err := w.conn.QueryRow(ctx, newestEvent, clickhouse.Named("website_id", int64(0))).Scan(&w.stamped); err != nil {
		return fmt.Errorf("read when the last event was accepted: %w", err)
	}
	w.through.Store(w.stamped.UnixMilli())
	return nil
}

// Learn reads the ids of what a writer that is alone finds stored, while it
// writes already: until it has them, it looks every event up. The error is the
// store's; without the ids everything goes on, more slowly.
func (w *Writer) Learn(ctx context.Context) error {
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
		if !w.idFilter.learn(id) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the ids of the events: %w", err)
	}
	w.idFilter.close()
	return nil
}

func (k *idFilter) open() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.filters, k.free, k.room, k.complete = nil, 0, 0, false
	k.grow()
}

// grow makes room for more ids, or gives up.
func (k *idFilter) grow() {
	room := max(firstCapacity, 2*k.room)
	if k.room += room; k.room > maxFilterIDs {
		k.filters, k.complete = nil, false
		return
	}
	k.filters, k.free = append(k.filters, bloom.NewWithEstimates(uint(room), falsePositives)), room
}

// close says that all ids that were stored before open are in.
func (k *idFilter) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.complete = len(k.filters) > 0
}

// add remembers an id.
func (k *idFilter) add(id uint64) {
	if k.free == 0 && len(k.filters) > 0 {
		k.grow()
	}
	if len(k.filters) > 0 {
		last := k.filters[len(k.filters)-1]
		last.Add(binary.LittleEndian.AppendUint64(nil, id))
		k.free--
	}
}

// learn adds an id that was stored before; false stands for no room.
func (k *idFilter) learn(id uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(id)
	return len(k.filters) > 0
}

func (k *idFilter) addAll(events []schema.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range events {
		k.add(events[i].EventID)
	}
}

// maybe returns those of the events that stand and may be stored.
func (k *idFilter) maybe(events []schema.Event, verdicts []Verdict) []schema.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.complete {
		return chosen(events, verdicts)
	}
	var some []schema.Event
	for i := range events {
		if verdicts[i] == Stored && k.has(events[i].EventID) {
			some = append(some, events[i])
		}
	}
	return some
}

func (k *idFilter) has(id uint64) bool {
	locations := bloom.Locations(binary.LittleEndian.AppendUint64(nil, id), k.filters[0].K())
	for _, filter := range k.filters {
		if filter.TestLocations(locations) {
			return true
		}
	}
	return false
}
