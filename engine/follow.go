package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"
)

// Version returns a number that changes whenever the results of the subject may
// change. Versions agree between servers of a store. It returns false if the
// version is not known because the store does not answer.
func (e *Engine) Version(ctx context.Context, subject plan.Subject) (uint64, bool) {
	if e.facts != nil {
		return e.factsVersion(ctx, subject)
	}
	version, _, err := e.Totals.Version(ctx, subject)
	if err != nil {
		return 0, false
	}
	stored, _ := e.Totals.Last(subject)
	if current, rollups := e.Rollups.Current(subject, stored); rollups {
		return xxhash.Sum64String(current.Version()), true
	}
	return version, true
}

// Watch records that a report of the subject is about to be read, so that its rollup is
// refreshed soon after each event for a while. It first adds a few events that have waited
// because nobody watched the subject.
func (e *Engine) Watch(ctx context.Context, subject plan.Subject) {
	e.addPostponed(ctx, subject, 0)
	e.Rollups.Watch(subject) // not before: reports at the same time wait, too
}

// addPostponed adds a few events to the rollup of the subject that have waited for at least the
// given time because nobody watches it.
func (e *Engine) addPostponed(ctx context.Context, subject plan.Subject, atLeast time.Duration) {
	if e.Rollups.Postponed(subject, atLeast) {
		e.refresh(ctx, subject)
	}
}

// BringUpToDate refreshes the rollup of the subject so that the next report
// includes every stored event. It reports whether it succeeded; otherwise the
// report must be counted from the events.
func (e *Engine) BringUpToDate(ctx context.Context, subject plan.Subject) bool {
	var reading errgroup.Group
	reading.Go(func() error { return e.Rollups.Poll(ctx) })
	if err := errors.Join(e.Totals.Poll(ctx), e.Totals.RefreshIfOld(ctx), reading.Wait()); err != nil {
		return false // Version reports the error
	}
	if e.Rollups.HasAll(subject) {
		return true
	}
	e.refresh(ctx, subject)
	return e.Rollups.HasAll(subject)
}

// refresh refreshes the rollup of the subject if it can.
func (e *Engine) refresh(ctx context.Context, subject plan.Subject) {
	refreshing, cancel := halfDeadline(ctx)
	defer cancel()
	if err := e.Rollups.Update(refreshing, subject); err != nil {
		slog.WarnContext(ctx, "refresh rollup failed", "err", err)
	}
}

// halfDeadline returns a context that ends after half of the remaining time,
// which leaves time for the following work.
func halfDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// Inserted adds events that this process inserted to those and to the totals in memory. Calls must be in the
// order of the inserts, and before Written.
func (e *Engine) Inserted(events []schema.Event, accepted time.Time) {
	e.store.Packed.Add(events, accepted.UnixMilli())
	e.Totals.Inserted(events, accepted)
	e.Rollups.Inserted(events, accepted)
}

// EventsInMemory returns the approximate size of the events of small subjects in memory.
func (e *Engine) EventsInMemory() int64 { return e.store.Packed.Bytes() }

// Written records a write of this process that changed the events of the given
// subjects; nil: of any subject.
func (e *Engine) Written(subjects []plan.Subject) {
	e.Totals.Written(subjects)
	if subjects == nil {
		e.store.Packed.Drop()
		e.Rollups.LookAgain()
	}
	e.Rollups.Wait(subjects)
}

// Follow reads the totals of a store that other processes write to at the given
// interval until the context ends. It retries failed reads of any store.
func (e *Engine) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := errors.Join(e.Totals.Poll(ctx), e.Rollups.Poll(ctx)); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "refresh data versions failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
