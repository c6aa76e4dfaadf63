package facts

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/moments"
	"lifthouse/engine/source"
)

// NoteEvents notes that this process stored events of a store that no other process writes to, all accepted at one
// time. Calls must be in the order of the inserts.
func (r *Refresher) NoteEvents(accepted time.Time) {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.noted = accepted.UnixMilli()
}

// longestWait is the default of Refresher.LongestWait.
const longestWait = 2 * time.Second

// LastUnfoldedTime returns a time, in milliseconds since 1970, that changes with the events that wait to be folded: the
// acceptance time of the last noted one, or the start of a refresh that takes long. It returns 0 if no event waits.
func (r *Refresher) LastUnfoldedTime() int64 {
	r.noting.Lock()
	defer r.noting.Unlock()
	switch {
	case r.noted > r.folded:
		return r.noted
	case r.isSlow():
		return r.began.UnixMilli()
	}
	return 0
}

// isSlow reports whether the running refresh takes longer than a report waits. The caller must hold noting.
func (r *Refresher) isSlow() bool { return r.running > 0 && time.Since(r.began) > r.LongestWait }

// IsFollowing reports whether FollowEvents keeps the facts up to date.
func (r *Refresher) IsFollowing() bool { return r.following.Load() }

// AwaitNoted waits until the events that were noted before the call are folded. If FollowEvents folds them, it waits
// for at most LongestWait, and not at all while an earlier call has waited in vain. It returns the events that still
// wait.
func (r *Refresher) AwaitNoted(ctx context.Context) (moments.Waiting, error) {
	if !r.IsFollowing() {
		if r.LastUnfoldedTime() == 0 {
			return moments.Waiting{}, nil
		}
		return moments.Waiting{}, r.RefreshNoted(ctx)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	r.noting.Lock()
	noted, before := r.noted, r.refreshes
	r.noting.Unlock()
	deadline := time.NewTimer(r.LongestWait)
	defer deadline.Stop()
	for {
		r.noting.Lock()
		failed, changed, isFolded := r.failed, r.changed, r.folded >= noted
		hasFailed := failed != nil && (r.isLate || isFolded || r.refreshes > before)
		isLate := !isFolded && r.isLate || r.isSlow()
		r.isLate = isLate && !isFolded
		r.noting.Unlock()
		isFull := source.IsFull(failed)
		switch {
		case hasFailed && isFull:
			return r.countWaiting(ctx, moments.DiskFull)
		case hasFailed && !isFolded:
			return moments.Waiting{}, failed
		case isLate:
			return r.countWaiting(ctx, moments.Folding)
		case isFolded:
			return moments.Waiting{}, nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			r.noting.Lock()
			r.isLate = r.folded < noted
			r.noting.Unlock()
		case <-ctx.Done():
			return moments.Waiting{}, context.Cause(ctx)
		}
	}
}

// countWaiting returns the events that wait for a reason.
func (r *Refresher) countWaiting(ctx context.Context, reason string) (moments.Waiting, error) {
	server := r.currentServer()
	waits, after := moments.Waiting{Reason: reason}, clickhouse.Named("after", r.ShownPosition().Through)
	if err := server.QueryRow(ctx, server.waiting, after).Scan(&waits.Events); err != nil {
		return waits, fmt.Errorf("count the events that wait: %w", err)
	}
	return waits, nil
}

// RefreshNoted folds all events that were noted before the call.
func (r *Refresher) RefreshNoted(ctx context.Context) error {
	r.noting.Lock()
	noted := r.noted
	if r.running++; r.running == 1 {
		r.began = time.Now()
	}
	r.noting.Unlock()
	_, err := r.RefreshFacts(ctx)
	r.noting.Lock()
	defer r.noting.Unlock()
	r.running--
	if ctx.Err() != nil {
		return err
	}
	if r.failed = err; err == nil {
		r.folded = max(r.folded, noted)
		r.isLate = r.isLate && r.folded < r.noted
	}
	r.refreshes++
	close(r.changed)
	r.changed = make(chan struct{})
	return err
}

// setProgress notes how many of the visitors of the running refresh are folded.
func (r *Refresher) setProgress(done, touched int) {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.done, r.touched = done, touched
}

// progressInterval is the time between two calls of the function that shows the progress of a refresh.
const progressInterval = 100 * time.Millisecond

// FoldAccepted folds all events that were accepted before the call. It calls progress with the numbers of visitors that
// the running refresh has folded and will fold.
func (r *Refresher) FoldAccepted(ctx context.Context, progress func(done, touched int)) error {
	folded := make(chan error, 1)
	go func() { folded <- r.RefreshNoted(ctx) }()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-folded:
			return err
		case <-tick.C:
			r.noting.Lock()
			done, touched := r.done, r.touched
			r.noting.Unlock()
			progress(done, touched)
		}
	}
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
	r.following.Store(true)
	defer r.following.Store(false)
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
		case <-r.wake:
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
