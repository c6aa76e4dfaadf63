package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
)

// EraseVisitors deletes all facts of the visitors, whose events are deleted already. It cancels them, and returns when
// a merge has removed them from the disks of all active replicas.
func (r *Refresher) EraseVisitors(ctx context.Context, visitors []Visitor) error {
	_, err := r.exclusively(ctx, func(ctx context.Context) error {
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			stored, err := r.readStored(ctx, setOf(some))
			if err != nil {
				return err
			}
			if err := r.insert(ctx, stored, nil, r.position.next(r.position.Through)); err != nil {
				return err
			}
		}
		r.noteLost(setOf(visitors), nil)
		return r.moveOn(ctx)
	})
	if err != nil {
		return err
	}
	return r.removeCancelled(ctx, visitors)
}

// moveOn stores another position of the same facts: a refresh of another process that has read what is deleted
// meanwhile is overtaken, and others read again what they know.
func (r *Refresher) moveOn(ctx context.Context) error {
	return r.store(ctx, nil, nil, r.position.next(r.position.Through))
}

// removeCancelled merges all facts, which removes those that are cancelled. A merge does not change the sums that reports read; a
// deletion would, because it changes one part after the other.
func (r *Refresher) removeCancelled(ctx context.Context, visitors []Visitor) error {
	server := r.server()
	if err := server.Exec(ctx, "OPTIMIZE TABLE "+server.Facts+" FINAL SETTINGS optimize_throw_if_noop = 1, alter_sync = 2"); err != nil {
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

// DropSubjects deletes all facts of the subjects, whose events are deleted already.
func (r *Refresher) DropSubjects(ctx context.Context, subjects []plan.Subject) error {
	var sections []uint64
	for _, subject := range subjects {
		for grain := fold.OfVisitor; grain < fold.OfPosition; grain++ {
			sections = append(sections, SectionOf(subject, grain))
		}
	}
	_, err := r.exclusively(ctx, func(ctx context.Context) error {
		err := r.on.Exec(ctx, "ALTER TABLE "+r.on.Facts+" DELETE WHERE section IN {sections:Array(UInt64)} SETTINGS mutations_sync = 2", clickhouse.Named("sections", sections))
		if err != nil {
			return fmt.Errorf("delete facts: %w", err)
		}
		r.known = false
		if err := r.open(ctx); err != nil {
			return err
		}
		return r.moveOn(ctx)
	})
	return err
}
