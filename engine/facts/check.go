package facts

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"lifthouse/engine/fold"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// checkRows compares the events of which the rows in had were computed with those of which the stored rows of some
// subjects were made. Of visitors who differ, it corrects the rows, and returns those who lost events.
func (r *Refresher) checkRows(
	ctx context.Context, visitors []schema.Visitor, subjects iter.Seq[schema.Subject], events []fold.Event,
	had, want []fold.FactRow,
) (_, _ []fold.FactRow, lost map[schema.Visitor]bool, err error) {
	expected := madeOfRows(had)
	stored := map[visitorOf]made{}
	isAsked := setOf(visitors)
	err = schema.EachRow(ctx, r.turn.on, r.turn.on.render("made_of.sql", ""), func(row driver.Rows) error {
		var of visitorOf
		var m made
		s := &of.Subject
		err := row.Scan(&s.WebsiteID, &of.Visitor, (*scannedKind)(&s.Kind), &s.ID, &s.ExperimentID, &m.seen, &m.digest)
		if isAsked[of.visitor()] {
			stored[of] = m
		}
		return err
	}, append(visitorParams(visitors), clickhouse.Named("sections", r.turn.on.sectionsOf(subjects, fold.OfVisitor)))...)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read what the facts are made of: %w", err)
	}
	wrong := map[schema.Visitor]bool{} // whose stored rows were not made of the expected events
	for _, all := range []map[visitorOf]made{expected, stored} {
		for of := range all {
			if expected[of] != stored[of] {
				wrong[of.visitor()] = true
			}
		}
	}
	if len(wrong) > 0 {
		return r.correctRows(ctx, wrong, events, had, want)
	}
	return had, want, nil, nil
}

// correctRows replaces the rows in had, which are those of the events up to the position, by the stored rows, for the
// visitors in wrong. A visitor whose stored rows were made of more events than that has lost events, unless they were
// sent again. It returns these visitors. Their rows in want keep the lost events.
func (r *Refresher) correctRows(
	ctx context.Context, wrong map[schema.Visitor]bool, events []fold.Event, had, want []fold.FactRow,
) (_, _ []fold.FactRow, lost map[schema.Visitor]bool, err error) {
	stored, err := r.readStored(ctx, wrong)
	if err != nil {
		return nil, nil, nil, err
	}
	expected, found := madeOfRows(had), madeOfRows(stored)
	short := map[schema.Visitor][]fold.Event{}
	for of, m := range found {
		if m.seen > expected[of].seen {
			short[of.visitor()] = nil
		}
	}
	for own := range splitVisitors(events) {
		if _, isShort := short[visitorOfEvent(&own[0])]; isShort {
			short[visitorOfEvent(&own[0])] = own
		}
	}
	lost = map[schema.Visitor]bool{}
	var kept []fold.FactRow // of the visitors in lost
	isSame := func(a, b *fold.FactRow) bool { return visitorOfRow(a) == visitorOfRow(b) }
	for rows := range fold.SplitRuns(stored, isSame) {
		v := visitorOfRow(&rows[0])
		own, isShort := short[v]
		if !isShort {
			continue
		}
		gone := fold.LostEvents(rows, own, func(s schema.Subject) bool {
			of := visitorOf{s, v.ID}
			return found[of].seen > expected[of].seen
		})
		if len(gone) > 0 {
			lost[v] = true
			kept = fold.AppendVisitorRows(append(gone, own...), r.MaxVisitorEvents, kept)
		}
	}
	if len(lost) > 0 {
		if err := r.confirmPosition(ctx); err != nil { // another process may have folded newer events
			return nil, nil, nil, err
		}
	}
	r.noteLost(ctx, wrong, lost)
	without := func(rows []fold.FactRow, of map[schema.Visitor]bool) []fold.FactRow {
		return slices.DeleteFunc(rows, func(row fold.FactRow) bool { return of[visitorOfRow(&row)] })
	}
	return append(without(had, wrong), stored...), append(without(want, lost), kept...), lost, nil
}

// noteLost updates the set of visitors who lost events, for the visitors in of.
func (r *Refresher) noteLost(ctx context.Context, of, lost map[schema.Visitor]bool) {
	if found := r.published.setLost(of, lost); len(found) > 0 {
		const text = "stored events of visitors are lost; reports keep what they counted: " +
			"restore a backup, or send the events again"
		slog.ErrorContext(ctx, text, "visitors", len(found), "one", found[0])
	}
}

// readStored returns the stored rows of the visitors, by visitor.
func (r *Refresher) readStored(ctx context.Context, of map[schema.Visitor]bool) (stored []fold.FactRow, err error) {
	err = r.turn.on.readRows(ctx, ofVisitors+" AND "+ofSomeVisitors, func(row *fold.FactRow) error {
		if of[visitorOfRow(row)] {
			stored = append(stored, *row)
		}
		return nil
	}, append(visitorParams(slices.Collect(maps.Keys(of))), r.turn.on.sectionsOfVisitors()...)...)
	if err != nil {
		return nil, fmt.Errorf("read the facts of visitors: %w", err)
	}
	return stored, nil
}
