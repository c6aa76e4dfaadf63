package facts

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// Scrubbed is what a scrub found.
type Scrubbed struct {
	Visitors int       // number that was compared
	Healed   int       // visitors whose facts were not those of their events, and are now
	Lost     []Visitor // visitors whose facts were made of more events than there are: stored events are lost
}

// Scrub compares the facts of the visitors with ids from first to last with their events, and
// inserts what is missing. It does not touch the facts of visitors who lost events.
func (r *Refresher) Scrub(ctx context.Context, first, last uint64) (found Scrubbed, err error) {
	_, err = r.exclusively(ctx, func(ctx context.Context) error {
		found = Scrubbed{}
		visitors, err := schema.QueryRows(ctx, r.server(), r.server().stored, scanVisitor,
			clickhouse.Named("first", first), clickhouse.Named("last", last), clickhouse.Named("through", r.position.Through))
		if err != nil {
			return fmt.Errorf("read the visitors: %w", err)
		}
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			if err := r.scrub(ctx, some, &found); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// scrub compares the facts of some visitors with their events.
func (r *Refresher) scrub(ctx context.Context, visitors []Visitor, found *Scrubbed) error {
	events, err := r.server().readEvents(ctx, visitors, r.position.Through)
	if err != nil {
		return err
	}
	var want []fold.Row
	eachVisitor(events, func(own []fold.Event) { want = fold.Rows(own, want) })
	had, want, lost, err := r.mend(ctx, setOf(visitors), nil, want)
	if err != nil {
		return err
	}
	healed := map[Visitor]bool{}
	for _, c := range fold.Changes(nil, had, want) {
		healed[Visitor{c.Subject.WebsiteID, c.Visitor}] = true
	}
	found.Visitors += len(visitors)
	found.Healed += len(healed)
	found.Lost = append(found.Lost, lost...)
	if len(healed) > 0 {
		slog.WarnContext(ctx, "facts were not those of the events, and are now", "visitors", len(healed))
	}
	return r.insert(ctx, had, want, r.position.next(r.position.Through))
}

// Erase cancels the facts of the visitors, whose events are about to be deleted. Until they
// are, no refresh and no scrub may run.
func (r *Refresher) Erase(ctx context.Context, visitors []Visitor) error {
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
		return nil
	})
	return err
}

// differing returns the visitors whose stored rows are made of other events than expected.
func differing(expected, stored map[visitorOf]made) map[Visitor]bool {
	wrong := map[Visitor]bool{}
	for of, m := range expected {
		if stored[of] != m {
			wrong[Visitor{of.Subject.WebsiteID, of.Visitor}] = true
		}
	}
	for of, m := range stored {
		if expected[of] != m {
			wrong[Visitor{of.Subject.WebsiteID, of.Visitor}] = true
		}
	}
	return wrong
}

// mend replaces the rows that some visitors had by those that are stored. A visitor
// whose rows are made of more events than there are has lost events: the visitor is reported, and
// keeps the rows.
func (r *Refresher) mend(ctx context.Context, wrong map[Visitor]bool, had, want []fold.Row) (_, _ []fold.Row, lost []Visitor, err error) {
	stored, err := r.readStored(ctx, wrong)
	if err != nil {
		return nil, nil, nil, err
	}
	wanted, found := map[visitorOf]made{}, map[visitorOf]made{}
	madeOfRows(want, wanted)
	madeOfRows(stored, found)
	isLost := map[Visitor]bool{}
	for of, m := range found {
		v := Visitor{of.Subject.WebsiteID, of.Visitor}
		if m.seen > wanted[of].seen && !isLost[v] {
			isLost[v], lost = true, append(lost, v)
			slog.ErrorContext(ctx, "events of a visitor are lost; reports keep what they counted: restore a backup", "visitor", of.Visitor, "subject", of.Subject, "events", wanted[of].seen, "counted", m.seen)
		}
	}
	without := func(rows []fold.Row, of map[Visitor]bool) []fold.Row {
		return slices.DeleteFunc(rows, func(row fold.Row) bool { return of[Visitor{row.Subject.WebsiteID, row.Visitor}] })
	}
	return append(without(had, wrong), without(stored, isLost)...), without(want, isLost), lost, nil
}

// readStored returns the stored rows of the visitors, by visitor.
func (r *Refresher) readStored(ctx context.Context, of map[Visitor]bool) (stored []fold.Row, err error) {
	visitors := make([]Visitor, 0, len(of))
	for v := range of {
		visitors = append(visitors, v)
	}
	err = r.server().readRows(ctx, r.server().visitorRows, func(row *fold.Row) error {
		if of[Visitor{row.Subject.WebsiteID, row.Visitor}] {
			stored = append(stored, *row)
		}
		return nil
	}, visitorParams(visitors)...)
	if err != nil {
		return nil, fmt.Errorf("read the facts of visitors: %w", err)
	}
	return stored, nil
}
