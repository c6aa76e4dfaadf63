package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// HoldScrubs holds off comparisons of facts with events until release is called: events that are deleted before their
// facts are not lost.
func (r *Refresher) HoldScrubs() (release func()) {
	r.deleting.Lock()
	return r.deleting.Unlock
}

// EraseVisitors deletes all facts of visitors whose events are already deleted. It cancels the facts, and returns
// when a merge has removed them from the disks of all active replicas.
func (r *Refresher) EraseVisitors(ctx context.Context, visitors []schema.Visitor) error {
	_, err := r.runExclusively(ctx, func(ctx context.Context) error {
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			stored, err := r.readStored(ctx, setOf(some))
			if err != nil {
				return err
			}
			if err := r.replaceRows(ctx, stored, nil, r.position.nextRefresh(r.position.Through)); err != nil {
				return err
			}
		}
		r.noteLost(ctx, setOf(visitors), nil)
		return r.moveOn(ctx)
	})
	if err != nil {
		return err
	}
	return r.removeCancelled(ctx, visitors)
}

// moveOn stores a new position without changing facts. Thus a refresh of another process that has read deleted
// facts is overtaken, and all processes read the facts again.
func (r *Refresher) moveOn(ctx context.Context) error {
	return r.storeChanges(ctx, nil, nil, r.position.nextRefresh(r.position.Through))
}

// removeCancelled merges all facts, which removes the cancelled rows. A merge does not change the sums that reports
// read. A deletion would, because it changes one part after another.
func (r *Refresher) removeCancelled(ctx context.Context, visitors []schema.Visitor) error {
	server := r.currentServer()
	merge := "OPTIMIZE TABLE " + server.Facts + " FINAL SETTINGS optimize_throw_if_noop = 1"
	if err := r.changeStoredParts(ctx, server, merge); err != nil {
		return fmt.Errorf("remove the facts of erased visitors: %w", err)
	}
	for some := range slices.Chunk(visitors, visitorsAtOnce) {
		var left uint64
		if err := server.QueryRow(ctx, server.countRows, visitorParams(some)...).Scan(&left); err != nil {
			return fmt.Errorf("remove the facts of erased visitors: %w", err)
		}
		if left > 0 {
			return errors.New("facts of erased visitors are still on disk: repeat the command")
		}
	}
	return nil
}

// DropSubjects deletes all facts of subjects whose events are already deleted.
func (r *Refresher) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	var sections []uint64
	for _, subject := range subjects {
		for grain := fold.OfVisitor; grain < fold.OfPosition; grain++ {
			sections = append(sections, SectionOf(subject, grain))
		}
	}
	_, err := r.runExclusively(ctx, func(ctx context.Context) error {
		del := "ALTER TABLE " + r.on.Facts + " DELETE WHERE section IN {sections:Array(UInt64)} SETTINGS mutations_sync = 1"
		if err := r.changeStoredParts(ctx, r.on, del, clickhouse.Named("sections", sections)); err != nil {
			return fmt.Errorf("delete facts: %w", err)
		}
		r.known = false
		if err := r.loadState(ctx); err != nil {
			return err
		}
		return r.moveOn(ctx)
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

// awaitDeletions waits until the deletions of an interrupted process are done.
func (s *server) awaitDeletions(ctx context.Context) error {
	var unfinished uint64
	const running = "database = currentDatabase() AND table = {table:String} AND NOT is_done"
	count := "SELECT count() FROM system.mutations WHERE " + running
	err := s.QueryRow(ctx, count, clickhouse.Named("table", s.Facts)).Scan(&unfinished)
	if err == nil && unfinished > 0 { // mutations run in order, so this one waits for the others
		err = s.Exec(ctx, "ALTER TABLE "+s.Facts+" DELETE WHERE false SETTINGS mutations_sync = 1")
	}
	if err != nil {
		return fmt.Errorf("wait for deletions of facts: %w", err)
	}
	return nil
}
