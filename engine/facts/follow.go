package facts

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
)

// NoteEvents notes that this process stored events of a store that no other process writes to, all accepted at one
// time. Calls must be in the order of the inserts.
func (r *Refresher) NoteEvents(events int, accepted time.Time) {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.noted, r.notedEvents = accepted.UnixMilli(), r.notedEvents+events
}

// mostAwaited is the maximum number of noted events that a report waits for, which takes about two seconds. During
// an import more events are waiting, and reports show the state of the last refresh.
const mostAwaited = 200_000

// LastUnfoldedTime returns the acceptance time of the last noted event that is not folded yet, in milliseconds
// since 1970. It returns 0 if all events are folded, or if there are more than a report waits for.
func (r *Refresher) LastUnfoldedTime() int64 {
	r.noting.Lock()
	defer r.noting.Unlock()
	if r.noted <= r.folded || r.notedEvents-r.foldedEvents > mostAwaited {
		return 0
	}
	return r.noted
}

// RefreshNoted folds all events that were noted before the call.
func (r *Refresher) RefreshNoted(ctx context.Context) error {
	r.noting.Lock()
	noted, events := r.noted, r.notedEvents
	r.noting.Unlock()
	if _, err := r.RefreshFacts(ctx); err != nil {
		return err
	}
	r.noting.Lock()
	defer r.noting.Unlock()
	r.folded, r.foldedEvents = max(r.folded, noted), max(r.foldedEvents, events)
	return nil
}

const (
	// refreshInterval is the time between refreshes of a store with new events. A report of an embedded store does not
	// wait for it.
	refreshInterval = 3 * time.Second
	// scrubInterval is the time between scrubs of one part of the visitors. All parts are scrubbed once a day.
	scrubInterval = time.Minute
	scrubParts    = 24 * 60
)

// FindLosses compares the facts of all visitors with their events if a subject has fewer events than were folded: then
// events are lost. Other losses are found by the scrub.
func (r *Refresher) FindLosses(ctx context.Context) error {
	var short uint64
	if err := r.currentServer().QueryRow(ctx, r.currentServer().shortSubjects).Scan(&short); err != nil {
		return fmt.Errorf("count the events of subjects: %w", err)
	}
	if short == 0 {
		return nil
	}
	_, err := r.VerifyFacts(ctx, func(float64) {})
	return err
}

// FollowEvents keeps the facts up to date with the events until the context ends, and scrubs them.
func (r *Refresher) FollowEvents(ctx context.Context) {
	var losses sync.WaitGroup
	defer losses.Wait()
	losses.Go(func() {
		if err := r.FindLosses(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "look for lost events failed", "err", err)
		}
	})
	refresh, scrub := time.NewTicker(refreshInterval), time.NewTicker(scrubInterval)
	defer refresh.Stop()
	defer scrub.Stop()
	for part := uint64(time.Now().Unix()/60) % scrubParts; ; { //nolint:gosec // after 1970
		switch err := r.RefreshNoted(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			slog.WarnContext(ctx, "refresh failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-refresh.C:
		case <-scrub.C:
			first, last := visitorRange(part, scrubParts)
			if _, err := r.ScrubFacts(ctx, first, last); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "scrub failed", "err", err)
			}
			part = (part + 1) % scrubParts
		}
	}
}

// visitorRange returns the first and the last visitor id of a part, if all ids are divided into
// equal parts.
func visitorRange(part, parts uint64) (first, last uint64) {
	width := math.MaxUint64 / parts
	if first = part * width; part == parts-1 {
		return first, math.MaxUint64
	}
	return first, first + width - 1
}

// RebuildFacts deletes all facts and folds all events again.
func (r *Refresher) RebuildFacts(ctx context.Context) (Position, error) {
	if err := r.lockRefresh(ctx); err != nil {
		return Position{}, err
	}
	r.known = false
	server := r.currentServer()
	err := r.changeStoredParts(ctx, server, "TRUNCATE TABLE "+server.Facts+" SYNC")
	r.unlockRefresh()
	if err != nil {
		return Position{}, fmt.Errorf("delete the facts: %w", err)
	}
	return r.RefreshFacts(ctx)
}
