package facts

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
)

// EraseVisitors deletes all facts of the visitors, whose events are deleted already: it cancels them, in the cells, too, and then
// deletes the rows from disk.
func (r *Refresher) EraseVisitors(ctx context.Context, visitors []Visitor) error {
	if err := r.Erase(ctx, visitors); err != nil {
		return err
	}
	return r.deleteRows(ctx, "grain IN ('visitor', 'goal') AND website_id IN {websites:Array(Int64)} AND visitor_id IN {visitors:Array(UInt64)}", visitorParams(visitors)...)
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
		if err := r.deleteRows(ctx, "section IN {sections:Array(UInt64)}", clickhouse.Named("sections", sections)); err != nil {
			return err
		}
		r.known = false
		if err := r.open(ctx); err != nil {
			return err
		}
		return r.store(ctx, nil, nil, r.position.next(r.position.Through)) // other processes read again what they know
	})
	return err
}

// deleteRows deletes rows, and returns when they are removed from the disks of all active replicas.
func (r *Refresher) deleteRows(ctx context.Context, where string, params ...any) error {
	server := r.server()
	if err := server.Exec(ctx, "ALTER TABLE "+server.Facts+" DELETE WHERE "+where+" SETTINGS mutations_sync = 2", params...); err != nil {
		return fmt.Errorf("delete facts: %w", err)
	}
	return nil
}
