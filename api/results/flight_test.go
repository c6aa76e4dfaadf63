package results

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// until returns when the given number of requests wait for the only computation.
func (f *flightGroup[T]) until(waiting int) {
	for {
		f.mu.Lock()
		now := 0
		for _, run := range f.under {
			now += run.waiting
		}
		f.mu.Unlock()
		if now == waiting {
			return
		}
		runtime.Gosched()
	}
}

func TestAComputationOutlivesWhoBeganIt(t *testing.T) {
	var f flightGroup[[]byte]
	finish := make(chan struct{})
	compute := func(ctx context.Context) ([]byte, error) {
		select {
		case <-finish:
			return []byte("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	first, leave := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	clients.Go(func() {
		_, _, err := f.joinFlight(first, "k", compute)
		check.That(t, errors.Is(err, context.Canceled), "the client that left gets %v", err)
	})
	f.until(1)
	clients.Go(func() {
		body, joined, err := f.joinFlight(t.Context(), "k", compute)
		check.Equal(t, string(body), "done", "who stayed: %q, joined %v, %v", body, joined, err)
		must.That(t, joined, "who stayed: %q, joined %v, %v", body, joined, err)
		check.That(t, err == nil, "who stayed: %q, joined %v, %v", body, joined, err)
	})
	f.until(2)
	leave()
	f.until(1)
	close(finish)
	clients.Wait()
}

func TestAComputationEndsWithTheLastWhoWaits(t *testing.T) {
	var f flightGroup[[]byte]
	ended := make(chan struct{})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _, _ = f.joinFlight(ctx, "k", func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		})
	}()
	f.until(1)
	leave()
	<-ended
	<-left
	body, joined, err := f.joinFlight(t.Context(), "k",
		func(context.Context) ([]byte, error) { return []byte("again"), nil })
	check.Equal(t, string(body), "again", "the next: %q, joined %v, %v", body, joined, err)
	check.That(t, !joined, "the next: %q, joined %v, %v", body, joined, err)
	check.That(t, err == nil, "the next: %q, joined %v, %v", body, joined, err)
}

func TestAPanicOfAComputationIsItsError(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	var f flightGroup[[]byte]
	_, _, err := f.joinFlight(t.Context(), "k", func(context.Context) ([]byte, error) { panic("wrong") })
	must.That(t, err != nil, "%v", err)
	check.Contains(t, err.Error(), "wrong", "%v", err)
}
