// Package rollup maintains the table rollups: sums over visitors by cube, from
// which the engine reads reports without the events. A refresher adds new
// events at short intervals.
//
// A step takes the visitors with new events, subtracts their old amounts and
// adds their new ones. Both are computed from the events, so errors cannot
// accumulate. A step inserts one block, atomically, with the new state: a
// killed process leaves nothing to repair.
//
// A rebuild computes a new generation of a subject in several inserts, and
// publishes it with one more. It is cheaper than steps after many new events.
// It also follows every change of past events; see Index.Retire.
package rollup

import (
	"cmp"
	"context"
	_ "embed" // a statement
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// bulkRate is the number of new events per second, over all subjects, above
	// which an import is assumed. The refresher defers large backlogs during an
	// import: the import ends sooner, and one rebuild after it is cheaper than
	// many steps.
	bulkRate = 5_000
	// maxDeferral is the maximum time for which a backlog is deferred.
	maxDeferral = 5 * time.Minute
	// idleFactor is the pause after a refresh, as a multiple of its duration.
	// The pause is at most maxIdle. So the refresher uses about a tenth of the
	// capacity, and the rest is left for reads and writes.
	idleFactor = 9
	maxIdle    = 5 * time.Second
	// fewEvents is a small backlog. It waits for the second refresh if its subject is watched,
	// and otherwise until something reads it: a step for a few events costs as much as one for a
	// thousand. No event of a subject that is watched may wait for maxAge, so that backlogs
	// do not wait if the pause between refreshes exceeds maxPause.
	fewEvents = 1_000
	maxPause  = 2 * time.Second
	// refreshWait is the maximum time that a report waits for a running
	// refresh: longer than a step, shorter than a rebuild. After it, the report
	// is counted from the events.
	refreshWait = time.Second
)

// Refresher maintains the rollups of a store that no other process writes to.
type Refresher struct {
	*builder
	writer     *ingest.Writer
	index      *Index
	refreshing chan struct{}                // holds a token while a refresh runs
	snapshot   *catalogue.Snapshot          // for which all rollups were looked at
	lastLook   time.Time                    // time of the last look at the backlogs
	observed   map[plan.Subject]observation // at the last look
}

// observation has the number of stored events of a subject at the last look.
type observation struct {
	stored        uint64
	deferredSince time.Time // zero: not deferred
	waitsOnce     bool      // it has few new events; if its subject is watched, it is due at the next look
}

// New returns the refresher of a store, and sets it in the index.
func New(conn driver.Conn, writer *ingest.Writer, index *Index) *Refresher {
	s := &Refresher{builder: newBuilder(conn, index.shared), writer: writer, index: index, refreshing: make(chan struct{}, 1), observed: map[plan.Subject]observation{}}
	index.update = s.RefreshSubject
	s.recent = &index.recent
	return s
}

// Follow refreshes the rollups at the given interval until the context ends. It
// defers large backlogs during imports.
func (s *Refresher) Follow(ctx context.Context, every time.Duration) {
	s.index.refreshes.Store(true)
	var restored *RestoredError
	for {
		began := time.Now()
		switch err := s.index.ifReached(ctx, func(ctx context.Context, _ *Index) error { return s.refreshChosen(ctx, s.ready) }); {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, ingest.ErrRemoving):
			s.index.refused.Add(1)
		case errors.As(err, &restored): // a look has logged it
			s.index.unusable.Add(1)
		case onlyBusy(err):
			slog.DebugContext(ctx, "rollup is not refreshed", "reason", err)
		default:
			slog.WarnContext(ctx, "refresh rollups failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(every, min(idleFactor*time.Since(began), maxIdle))):
		}
	}
}

// onlyBusy reports whether all errors that are joined in err are errBusy.
func onlyBusy(err error) bool {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return errors.Is(err, errBusy)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(each error) bool { return !errors.Is(each, errBusy) })
}

// exclusively runs work while no other refresh runs and no event is removed. It
// waits until the context waiting ends; the work runs until ctx ends.
func (s *Refresher) exclusively(waiting, ctx context.Context, work func(context.Context) error) error {
	select {
	case s.refreshing <- struct{}{}:
		defer func() { <-s.refreshing }()
		return s.writer.Refresh(ctx, work)
	case <-waiting.Done():
		return fmt.Errorf("wait for a running refresh: %w", context.Cause(waiting))
	}
}

// through returns the position up to which the events are refreshed.
func (s *Refresher) through(ctx context.Context) (position, error) {
	if s.shared == nil {
		return position{at: s.writer.Through()}, nil
	}
	if err := s.index.refuseRestored(ctx); err != nil {
		return position{}, err
	}
	s.events = s.index.lastSeen()
	if s.events.Removing || s.events.Mutating {
		return position{}, ingest.ErrRemoving
	}
	return s.events.Last, nil
}

// RefreshAll refreshes the rollups of all subjects, although another process may do so.
func (s *Refresher) RefreshAll(ctx context.Context) error {
	return s.insist(ctx, func(ctx context.Context) error {
		return s.refreshBacklogs(ctx, func(all []backlog) []backlog { return all })
	})
}

// insist reads what is stored, and does work exclusively that another process may do at the
// same time. It is for processes that do not follow the writes.
func (s *Refresher) insist(ctx context.Context, work func(context.Context) error) error {
	return s.exclusively(ctx, ctx, func(ctx context.Context) error {
		if err := s.index.totals.Refresh(ctx); err != nil {
			return err
		}
		if err := s.index.Reload(ctx); err != nil {
			return err
		}
		s.insists = true
		defer func() { s.insists = false }()
		return work(ctx)
	})
}

// refreshChosen refreshes the backlogs that the function selects.
func (s *Refresher) refreshChosen(ctx context.Context, chosen func([]backlog) []backlog) error {
	return s.exclusively(ctx, ctx, func(ctx context.Context) error {
		if err := s.index.Poll(ctx); err != nil {
			return err
		}
		if snapshot := s.index.catalogue.Snapshot(); s.index.lookDue.Swap(false) || snapshot != s.snapshot {
			if err := s.index.LookAtAll(ctx); err != nil {
				s.index.LookAgain()
				return err
			}
			s.snapshot = snapshot
		}
		if err := s.index.totals.RefreshIfOld(ctx); err != nil {
			return err
		}
		return s.refreshBacklogs(ctx, chosen)
	})
}

func (s *Refresher) refreshBacklogs(ctx context.Context, chosen func([]backlog) []backlog) error {
	if err := s.sweepIfDue(ctx); err != nil {
		return err
	}
	through, err := s.through(ctx)
	if err != nil {
		return err
	}
	all := chosen(s.index.backlogs())
	var errs []error
	for i := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d := &all[i]
		err := s.confirm(ctx, d)
		switch {
		case err != nil:
		case d.mustRebuild() || d.size() > max(stepEvents, d.state.Events/2):
			err = s.rebuild(ctx, d, through)
		default:
			err = s.catchUp(ctx, d, through)
		}
		errs = append(errs, s.recordOutcome(ctx, d, err))
	}
	return errors.Join(errs...)
}

// RefreshSubject adds all written events to the rollup of a subject. It does
// nothing if a rebuild is necessary or runs.
func (s *Refresher) RefreshSubject(ctx context.Context, subject plan.Subject) error {
	waiting, cancel := context.WithTimeout(ctx, refreshWait)
	defer cancel()
	return s.exclusively(waiting, ctx, func(ctx context.Context) error { return s.refreshOne(ctx, subject) })
}

func (s *Refresher) refreshOne(ctx context.Context, subject plan.Subject) error {
	if err := s.index.Poll(ctx); err != nil {
		return err
	}
	if s.sweptAt.IsZero() { // reports do not wait for later sweeps
		if err := s.sweepIfDue(ctx); err != nil {
			return err
		}
	}
	through, err := s.through(ctx)
	if err != nil {
		return err
	}
	s.index.await(subject)
	for _, d := range s.index.backlogs() {
		if d.subject != subject {
			continue
		}
		if err := s.confirm(ctx, &d); err != nil {
			return err
		}
		if !d.mustRebuild() && d.size() <= stepEvents {
			return s.recordOutcome(ctx, &d, s.step(ctx, &d, through))
		}
	}
	return nil
}

// Rebuild rebuilds the rollups of all subjects, and calls done for each.
func (s *Refresher) Rebuild(ctx context.Context, done func(plan.Subject, time.Duration, error)) error {
	return s.insist(ctx, func(ctx context.Context) error { return s.rebuildAll(ctx, done) })
}

func (s *Refresher) rebuildAll(ctx context.Context, done func(plan.Subject, time.Duration, error)) error {
	if err := s.sweepIfDue(ctx); err != nil {
		return err
	}
	through, err := s.through(ctx)
	if err != nil {
		return err
	}
	all := s.index.candidates()
	for i := range all {
		began := time.Now()
		err := s.recordOutcome(ctx, &all[i], s.rebuild(ctx, &all[i], through))
		done(all[i].subject, time.Since(began), err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// recordOutcome updates the index after a refresh. It marks a subject that cannot
// have a rollup.
func (s *Refresher) recordOutcome(ctx context.Context, d *backlog, err error) error {
	var exception *clickhouse.Exception
	const throwIf = 395 // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	switch {
	case errors.Is(err, errLost):
		s.index.unsure.Store(true) // the states are read again
		s.index.lost.Add(1)
		return nil
	case errors.Is(err, errMoved):
		s.index.unsure.Store(true)
		s.index.refused.Add(1)
		return nil
	case errors.Is(err, errTooLarge), errors.As(err, &exception) && exception.Code == throwIf:
		s.index.markWithout(d.subject)
		slog.WarnContext(ctx, "subject cannot have a rollup; its reports are counted from the events", "subject", d.subject,
			"reason", "the squares of a visitor's amounts overflow, or an attribute contains a NUL byte")
		return nil
	case err != nil:
		s.index.unsure.Store(true)
		return fmt.Errorf("refresh the rollup of %s: %w", d.subject, err)
	}
	s.writer.UpdateRollupManifest(ctx)
	if d.state != nil {
		s.index.set(d.subject, d.state)
	}
	return nil
}

// ready returns the backlogs that are not deferred: those of more than fewEvents
// that one step can process, smaller ones of subjects that are watched at every second
// look, those that have waited for maxDeferral, and all large ones if no import runs.
func (s *Refresher) ready(all []backlog) []backlog {
	now := time.Now()
	var came uint64
	for i := range all {
		if last, known := s.observed[all[i].subject]; known {
			came += all[i].stored - min(all[i].stored, last.stored)
		} else {
			came += all[i].size()
		}
	}
	bulk := !s.lastLook.IsZero() && float64(came) > bulkRate*now.Sub(s.lastLook).Seconds()
	short := now.Sub(s.lastLook) <= maxPause+maxPause/8
	s.lastLook = now
	return slices.DeleteFunc(all, func(d backlog) bool {
		next := observation{stored: d.stored}
		next.waitsOnce = short && d.isSmall() && !s.observed[d.subject].waitsOnce || s.index.waitsUnwatched(&d)
		if bulk && d.size() > stepEvents {
			next.deferredSince = cmp.Or(s.observed[d.subject].deferredSince, now)
		}
		s.observed[d.subject] = next
		return next.waitsOnce || !next.deferredSince.IsZero() && now.Sub(next.deferredSince) < maxDeferral
	})
}
