package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// TestCollectorVerdicts has concurrent senders of overlapping events. Each event
// must be stored once, and exactly one of its senders gets the verdict Stored.
func TestCollectorVerdicts(t *testing.T) {
	conn := schematest.Open(t)
	c := ingest.NewCollector(t.Context(), ingest.NewWriter(conn), 1000)
	const senders, calls, own, shared = 16, 10, 5, 5
	var mutex sync.Mutex
	stored := map[uint64]int{}
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for call := range calls {
				var events []schema.Event
				for i := range own {
					events = append(events, view(fmt.Sprint(sender, " ", call, " ", i), 12))
				}
				for i := range shared {
					events = append(events, view(fmt.Sprint("shared ", call, " ", i), 12))
				}
				verdicts, err := c.Write(t.Context(), events)
				if err != nil || len(verdicts) != len(events) {
					t.Errorf("%d verdicts of %d events, %v", len(verdicts), len(events), err)
					return
				}
				mutex.Lock()
				for i, verdict := range verdicts {
					switch verdict {
					case ingest.Stored:
						stored[events[i].EventID]++
					case ingest.Conflict:
						t.Errorf("equal events conflict")
					case ingest.Duplicate:
					}
				}
				mutex.Unlock()
			}
		})
	}
	all.Wait()
	var rows, ids uint64
	if err := conn.QueryRow(t.Context(), "SELECT count(), uniqExact(event_id) FROM events").Scan(&rows, &ids); err != nil {
		t.Fatal(err)
	}
	if want := uint64(senders*calls*own + calls*shared); rows != want || ids != want || len(stored) != int(want) {
		t.Errorf("%d rows of %d ids, %d verdicts Stored; want %d", rows, ids, len(stored), want)
	}
	for id, times := range stored {
		if times != 1 {
			t.Errorf("event %d has %d verdicts Stored", id, times)
		}
	}
}

func TestCollectorFull(t *testing.T) {
	w := ingest.NewWriter(schematest.Open(t))
	if !w.Stop(t.Context()) { // block writes
		t.Fatal("a write is running")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := ingest.NewCollector(ctx, w, 2)
	for range 2 {
		go func() {
			for err := ingest.ErrFull; errors.Is(err, ingest.ErrFull); runtime.Gosched() {
				_, err = c.Write(ctx, []schema.Event{view("e", 12)})
			}
		}()
	}
	for {
		short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
		_, err := c.Write(short, []schema.Event{view("e", 12)})
		stop()
		if errors.Is(err, ingest.ErrFull) {
			return // both other senders wait
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func TestCollectorStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := ingest.NewCollector(ctx, ingest.NewWriter(schematest.Open(t)), 10)
	cancel()
	for {
		if _, err := c.Write(t.Context(), []schema.Event{view("e", 12)}); errors.Is(err, ingest.ErrFull) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
