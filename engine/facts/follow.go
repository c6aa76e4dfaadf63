package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// NoteEvents notes that this process stored events of a store that no other process writes to, all accepted at one
// time. Calls must be in the order of the inserts.
func (r *Refresher) NoteEvents(accepted time.Time) { r.backlog.note(accepted.UnixMilli()) }

// IsFollowing reports whether FollowEvents keeps the facts up to date.
func (r *Refresher) IsFollowing() bool { return r.following.Load() }

// AwaitNoted waits until the events that were noted before the call are folded. If FollowEvents folds them, it waits
// for at most LongestWait, and not at all while an earlier call has waited in vain. It returns the events that still
// wait.
func (r *Refresher) AwaitNoted(ctx context.Context) (moments.Waiting, error) {
	since := r.backlog.start(r.LongestWait)
	waits := since.waits || !r.isConverted()
	if !r.IsFollowing() {
		if !waits {
			return moments.Waiting{}, nil
		}
		err := r.RefreshNoted(ctx)
		if source.IsFull(err) {
			return r.countWaiting(ctx, moments.DiskFull)
		}
		return moments.Waiting{}, err
	}
	if waits || !r.alone { // else nothing waits: other processes store no events
		r.wakeUp()
	}
	return r.awaitFolded(ctx, since)
}

// wakeUp makes FollowEvents refresh at once.
func (r *Refresher) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// awaitFolded waits until FollowEvents has folded the events that were noted at a moment, see AwaitNoted.
func (r *Refresher) awaitFolded(ctx context.Context, since backlogAt) (moments.Waiting, error) {
	deadline := time.NewTimer(r.LongestWait)
	defer deadline.Stop()
	for {
		now := r.backlog.check(since, r.isConverted(), r.LongestWait)
		switch {
		case source.IsFull(now.failed):
			return r.countWaiting(ctx, moments.DiskFull)
		case now.failed != nil && !now.isFolded:
			return moments.Waiting{}, now.failed
		case now.isLate:
			return r.countWaiting(ctx, moments.Folding)
		case now.isFolded:
			return moments.Waiting{}, nil
		}
		select {
		case <-now.changed:
		case <-deadline.C:
			r.backlog.expire(since, r.isConverted())
		case <-ctx.Done():
			return moments.Waiting{}, context.Cause(ctx)
		}
	}
}

// countWaiting returns the events that wait for a reason.
func (r *Refresher) countWaiting(ctx context.Context, reason string) (moments.Waiting, error) {
	server := r.currentServer()
	waits := moments.Waiting{Reason: reason}
	after := clickhouse.Named("after", r.ShownPosition().Through)
	if err := server.QueryRow(ctx, server.render("waiting.sql", ""), after).Scan(&waits.Events); err != nil {
		return waits, fmt.Errorf("count the events that wait: %w", err)
	}
	if now := r.FoldProgress(); now.All > 0 {
		waits.Fold = now.AsFold()
		if !now.IsRebuild {
			waits.Events = max(waits.Events-now.Done, 1)
		}
	}
	return waits, nil
}

// AsFold returns the progress as reports have it; nil: no fold of all events runs.
func (p Progress) AsFold() *moments.FoldAll {
	if p.All == 0 {
		return nil
	}
	f := &moments.FoldAll{Events: p.Done, Of: p.All, Rebuild: p.IsRebuild}
	if left, known := p.Left(); known {
		f.SecondsLeft = new(int64(left.Seconds()))
	}
	return f
}

// CountWaiting returns the number of events that wait and may change the facts of a subject: its own, and goals without
// exposures of visitors who saw it. Views of other visitors may wait, too, but these are events of the subject.
func (r *Refresher) CountWaiting(ctx context.Context, of schema.Subject) (events int64, err error) {
	server := r.currentServer()
	shown := r.ShownPosition()
	err = server.QueryRow(ctx, server.render("waiting_of.sql", ""),
		clickhouse.Named("after", shown.Through), clickhouse.Named("website", of.WebsiteID),
		clickhouse.Named("subject", string(of.Kind)), clickhouse.Named("id", of.ID),
		clickhouse.Named("experiment", of.ExperimentID),
		clickhouse.Named("section", server.sectionOf(of, fold.OfVisitor))).Scan(&events)
	if err != nil {
		return 0, fmt.Errorf("count the events of %s that wait: %w", of, err)
	}
	if shown.Through == 0 { // in the first fold, some of them are in the facts
		folded := r.SubjectCounters(of)
		events = max(events-int64(folded.AllEvents()), 1) //nolint:gosec // a count
	}
	return events, nil
}

// RefreshNoted folds all events that were noted before the call.
func (r *Refresher) RefreshNoted(ctx context.Context) error {
	noted := r.backlog.begin()
	_, err := r.RefreshFacts(ctx)
	if ctx.Err() != nil {
		r.backlog.abandon()
		return err
	}
	r.backlog.end(noted, err)
	return err
}

const (
	// A store with new events is refreshed shortestInterval after the last refresh, or up to longestInterval after it,
	// so that refreshes take 1 % of the time: those of many visitors take longer. A report of an embedded store does
	// not wait for it.
	shortestInterval = 3 * time.Second
	longestInterval  = 10 * time.Second
	// scrubInterval is the time between scrubs of one part of the visitors. All parts are scrubbed once a day.
	scrubInterval = time.Minute
	scrubParts    = 24 * 60
	// longestPause is the maximum time between a refresh and the next one that a report asks for. A refresh of many
	// events costs less for each of them than one of few, and reports and inserts need the cores, too.
	longestPause = 500 * time.Millisecond
)

// FindLosses looks for lost events of subjects that have fewer events than were folded. It finds the visitors in
// seconds; other losses are found by the scrub.
func (r *Refresher) FindLosses(ctx context.Context) error {
	server, err := r.shownServer(ctx)
	if err != nil {
		return err
	}
	short, err := schema.QueryRows(ctx, server, server.render("short_subjects.sql", ""),
		func(row driver.Rows, of *schema.Subject) error {
			return row.Scan(&of.WebsiteID, (*scannedKind)(&of.Kind), &of.ID, &of.ExperimentID)
		}, server.sectionsOfGrain(fold.OfVisitor)...)
	if err != nil {
		return fmt.Errorf("count the events of subjects: %w", err)
	}
	suspected := map[schema.Visitor]bool{}
	for _, of := range short {
		visitors, err := schema.QueryRows(ctx, server, server.render("short_of_subject.sql", ""), scanVisitor,
			clickhouse.Named("website", of.WebsiteID), clickhouse.Named("subject", string(of.Kind)),
			clickhouse.Named("id", of.ID), clickhouse.Named("experiment", of.ExperimentID),
			clickhouse.Named("section", server.sectionOf(of, fold.OfVisitor)))
		if err != nil {
			return fmt.Errorf("look for the visitors of %s who lost events: %w", of, err)
		}
		for _, v := range visitors {
			suspected[v] = true
		}
	}
	r.deleting.RLock()
	defer r.deleting.RUnlock()
	_, err = r.recheckVisitors(ctx, slices.SortedFunc(maps.Keys(suspected), schema.Visitor.Compare))
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
		r.scrubCellsUntil(ctx)
	})
	scrub := time.NewTicker(scrubInterval)
	defer scrub.Stop()
	part := uint64(time.Now().Unix()/60) % scrubParts //nolint:gosec // after 1970
	for {
		began := time.Now()
		if err := r.RefreshNoted(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "refresh failed", "err", err)
		}
		took := time.Since(began)
		refresh := time.NewTimer(min(max(shortestInterval, 100*took), longestInterval))
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(took, longestPause)):
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

// scrubCellsUntil compares the cells of all subjects with their visitors once a day, and drops generations of facts
// that no report reads any more, until the context ends. Refreshes do not wait for it.
func (r *Refresher) scrubCellsUntil(ctx context.Context) {
	scrub := time.NewTicker(scrubInterval)
	defer scrub.Stop()
	generation := r.ShownPosition().Generation
	for part := uint64(0); ; part = (part + 1) % scrubParts {
		select {
		case <-ctx.Done():
			return
		case <-scrub.C:
		}
		_, err := r.ScrubCells(ctx, part, scrubParts)
		if shown := r.ShownPosition().Generation; err == nil && shown == generation {
			err = r.DropOldFacts(ctx) // reports that began before the rebuild have ended
		} else {
			generation = shown
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "scrub failed", "err", err)
		}
	}
}

// visitorRange returns the first and the last visitor id of a part, if all ids are divided into equal parts.
func visitorRange(part, parts uint64) (first, last uint64) {
	width := math.MaxUint64 / parts
	first = part * width
	if part == parts-1 {
		return first, math.MaxUint64
	}
	return first, first + width - 1
}

// HoldScrubs holds off comparisons of facts with events until release is called: events that are deleted before their
// facts are not lost.
func (r *Refresher) HoldScrubs() (release func()) {
	r.deleting.Lock()
	return r.deleting.Unlock
}

// EraseVisitors deletes all facts of visitors whose events are already deleted. It cancels the facts, and returns when
// a merge has removed them from the disks of all active replicas.
func (r *Refresher) EraseVisitors(ctx context.Context, visitors []schema.Visitor) error {
	_, err := r.changeFacts(ctx, func(ctx context.Context) error {
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			stored, err := r.readStored(ctx, setOf(some))
			if err != nil {
				return err
			}
			if err := r.replaceRows(ctx, stored, nil, r.turn.position.nextRefresh()); err != nil {
				return err
			}
		}
		r.noteLost(ctx, setOf(visitors), nil)
		return errors.Join(r.moveOn(ctx), r.dropBuild(ctx))
	})
	if err != nil {
		return err
	}
	// A merge of all facts removes the cancelled rows. It does not change the sums that reports read. A deletion would,
	// because it changes one part after another.
	server := r.currentServer()
	merge := "OPTIMIZE TABLE " + server.Facts + " FINAL SETTINGS optimize_throw_if_noop = 1"
	if err := r.changeStoredParts(ctx, server, merge); err != nil {
		return fmt.Errorf("remove the facts of erased visitors: %w", err)
	}
	count := server.render("count_rows.sql", "")
	for some := range slices.Chunk(visitors, visitorsAtOnce) {
		var left uint64
		if err := server.QueryRow(ctx, count, visitorParams(some)...).Scan(&left); err != nil {
			return fmt.Errorf("remove the facts of erased visitors: %w", err)
		}
		if left > 0 {
			return errors.New("facts of erased visitors are still on disk: repeat the command")
		}
	}
	return nil
}

// RefoldVisitors computes the facts of visitors again, some of whose events are deleted.
func (r *Refresher) RefoldVisitors(ctx context.Context, visitors []schema.Visitor) error {
	if len(visitors) == 0 {
		return nil
	}
	slices.SortFunc(visitors, schema.Visitor.Compare)
	_, err := r.changeFacts(ctx, func(ctx context.Context) error {
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			stored, err := r.readStored(ctx, setOf(some))
			if err != nil {
				return err
			}
			events, err := r.turn.on.readEvents(ctx, some, r.turn.position.Through)
			if err != nil {
				return err
			}
			want := foldEvents(events, r.MaxVisitorEvents)
			if err := r.replaceRows(ctx, stored, want, r.turn.position.nextRefresh()); err != nil {
				return err
			}
		}
		r.noteLost(ctx, setOf(visitors), nil)
		return errors.Join(r.moveOn(ctx), r.dropBuild(ctx))
	})
	return schema.WrapError(err, "compute the facts of visitors again")
}

// moveOn stores a new position without changing facts. Thus a refresh of another process that has read deleted facts is
// overtaken, and all processes read the facts again.
func (r *Refresher) moveOn(ctx context.Context) error {
	return r.storeChanges(ctx, nil, nil, r.turn.position.nextRefresh())
}

// DropSubjects deletes all facts of subjects whose events are already deleted.
func (r *Refresher) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	_, err := r.changeFacts(ctx, func(ctx context.Context) error {
		var sections []uint64
		for grain := fold.OfVisitor; grain < fold.OfPosition; grain++ {
			sections = append(sections, r.turn.on.sectionsOf(slices.Values(subjects), grain)...)
		}
		del := "ALTER TABLE " + r.turn.on.Facts +
			" DELETE WHERE section IN {sections:Array(UInt64)} SETTINGS mutations_sync = 1"
		if err := r.changeStoredParts(ctx, r.turn.on, del, clickhouse.Named("sections", sections)); err != nil {
			return fmt.Errorf("delete facts: %w", err)
		}
		r.turn.known = false
		if err := r.loadState(ctx); err != nil {
			return err
		}
		return errors.Join(r.moveOn(ctx), r.dropBuild(ctx))
	})
	return err
}

// changeStoredParts executes a statement that changes stored parts, and returns when all reachable replicas have
// executed it. Other replicas execute it when they are back.
func (r *Refresher) changeStoredParts(ctx context.Context, on *server, statement string, params ...any) error {
	if err := on.Exec(ctx, statement, params...); err != nil || len(r.servers) == 1 {
		return err
	}
	for _, replica := range r.servers {
		if err := replica.Exec(ctx, "SYSTEM SYNC REPLICA "+replica.Facts); err != nil && !schema.IsUnreachable(err) {
			return err
		}
	}
	return nil
}
