package facts

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
)

// Noted adds events that this process stored, of a store that no other process writes to, all accepted at one
// time. Calls must be in the order of the inserts. The next refresh folds their visitors.
func (r *Refresher) Noted(events []schema.Event, accepted time.Time) {
	r.noting.Lock()
	defer r.noting.Unlock()
	if r.waiting == nil {
		r.waiting = map[Visitor]struct{}{}
	}
	for i := range events {
		r.waiting[Visitor{events[i].WebsiteID, events[i].VisitorID}] = struct{}{}
	}
	r.noted = accepted.UnixMilli()
}

// Waiting returns when the last of the noted events that are not folded yet was accepted, in milliseconds since 1970;
// 0: all are folded.
func (r *Refresher) Waiting() int64 {
	r.noting.Lock()
	defer r.noting.Unlock()
	if r.noted <= r.folded {
		return 0
	}
	return r.noted
}

// RefreshNoted returns when all events that were noted before are folded. The first refresh, and the first one after an
// error, finds in the store whose events are not folded.
func (r *Refresher) RefreshNoted(ctx context.Context) error {
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	r.noting.Lock()
	touched, through := make([]Visitor, 0, len(r.waiting)), r.noted
	for v := range r.waiting {
		touched = append(touched, v)
	}
	clear(r.waiting)
	r.noting.Unlock()
	var err error
	switch {
	case !r.allNoted:
		_, err = r.Refresh(ctx)
	case len(touched) > 0:
		_, err = r.RefreshVisitors(ctx, touched, through)
	}
	if r.allNoted = err == nil; err == nil {
		r.noting.Lock()
		r.folded = through
		r.noting.Unlock()
	}
	return err
}

const (
	// refreshInterval is the time between refreshes of a store with new events. A report of an embedded store does not
	// wait for it.
	refreshInterval = 3 * time.Second
	// scrubInterval is the time between scrubs of a part of the visitors, so that all are scrubbed once a day.
	scrubInterval = time.Minute
	scrubParts    = 24 * 60
)

// Follow keeps the facts up to date with the events until the context ends, and scrubs them.
func (r *Refresher) Follow(ctx context.Context) {
	refresh, scrub := time.NewTicker(refreshInterval), time.NewTicker(scrubInterval)
	defer refresh.Stop()
	defer scrub.Stop()
	for part := uint64(time.Now().Unix()/60) % scrubParts; ; { //nolint:gosec // after 1970
		var err error
		if r.alone {
			err = r.RefreshNoted(ctx)
		} else {
			_, err = r.Refresh(ctx)
		}
		switch {
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
			if _, err := r.Scrub(ctx, first, last); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "scrub failed", "err", err)
			}
			part = (part + 1) % scrubParts
		}
	}
}

// visitorRange returns the first and the last visitor id of one of some parts.
func visitorRange(part, parts uint64) (first, last uint64) {
	width := math.MaxUint64 / parts
	if first = part * width; part == parts-1 {
		return first, math.MaxUint64
	}
	return first, first + width - 1
}

// Rebuild deletes all facts, and folds all events again.
func (r *Refresher) Rebuild(ctx context.Context) (Position, error) {
	r.mu.Lock()
	err := r.server().Exec(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"alter_sync": 2})), "TRUNCATE TABLE "+r.server().Facts+" SYNC")
	r.known = false
	r.mu.Unlock()
	if err != nil {
		return Position{}, fmt.Errorf("delete the facts: %w", err)
	}
	return r.Refresh(ctx)
}
