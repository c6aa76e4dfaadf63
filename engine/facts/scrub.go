package facts

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// Scrubbed is the result of a comparison of facts with events.
type Scrubbed struct {
	Visitors int              // number that was compared
	Wrong    int              // visitors whose facts do not match their events
	Lost     []schema.Visitor // visitors whose facts were made of more events than are stored: events are lost
}

func (s *Scrubbed) addResult(o Scrubbed) {
	s.Visitors, s.Wrong, s.Lost = s.Visitors+o.Visitors, s.Wrong+o.Wrong, append(s.Lost, o.Lost...)
}

// ScrubFacts compares the events of which facts were made with the stored events, for the visitors with ids from first
// to last, and corrects the facts. The facts of visitors who lost events keep what they counted. While events are
// deleted, it does nothing.
func (r *Refresher) ScrubFacts(ctx context.Context, first, last uint64) (found Scrubbed, err error) {
	if !r.deleting.TryRLock() {
		return found, nil
	}
	defer r.deleting.RUnlock()
	return r.scrubRange(ctx, first, last, true)
}

// VerifyFacts compares the facts of all visitors with the folded events, and changes nothing. It calls progress with
// the share of the visitors compared so far.
func (r *Refresher) VerifyFacts(ctx context.Context, progress func(share float64)) (found Scrubbed, err error) {
	var events uint64
	if err := r.currentServer().QueryRow(ctx, "SELECT count() FROM "+r.currentServer().Sent).Scan(&events); err != nil {
		return found, fmt.Errorf("count the events: %w", err)
	}
	parts := min(1+events/500_000, 64) // between which refreshes run; the ids of a part must fit into memory
	for part := range parts {
		first, last := visitorRange(part, parts)
		r.deleting.RLock()
		some, err := r.scrubRange(ctx, first, last, false)
		r.deleting.RUnlock()
		if err != nil {
			return found, err
		}
		found.addResult(some)
		progress(float64(part+1) / float64(parts))
	}
	return found, nil
}

// scrubRange compares facts with events, for the visitors with ids from first to last. To correct facts, it compares
// the numbers and the digests of events, as a refresh does. Otherwise, it compares whole rows: nearly all facts.
func (r *Refresher) scrubRange(ctx context.Context, first, last uint64, correct bool) (found Scrubbed, err error) {
	_, err = r.runExclusively(ctx, func(ctx context.Context) error {
		found = Scrubbed{}
		visitors, err := schema.QueryRows(ctx, r.on, r.on.render("stored_visitors.sql", ""), scanVisitor,
			clickhouse.Named("first", first), clickhouse.Named("last", last),
			clickhouse.Named("through", r.position.Through))
		if err != nil {
			return fmt.Errorf("read the visitors: %w", err)
		}
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			of := setOf(some)
			events, want, err := r.foldAll(ctx, some)
			if err != nil {
				return err
			}
			had := slices.Clone(want)
			var lost map[schema.Visitor]bool
			if correct {
				had, want, lost, err = r.checkRows(ctx, some, maps.Keys(r.cells.all), events, had, want)
			} else {
				had, want, lost, err = r.correctRows(ctx, of, events, had, want)
			}
			if err != nil {
				return err
			}
			r.noteLost(ctx, of, lost) // also that none of the others has lost events any more
			wrong := map[schema.Visitor]bool{}
			for _, c := range fold.AppendChanges(nil, had, want) {
				if v := visitorOfRow(c.Row); !lost[v] {
					wrong[v] = true
				}
			}
			if correct {
				if len(wrong) > 0 {
					const text = "facts were not those of the events, and are corrected"
					slog.WarnContext(ctx, text, "visitors", len(wrong))
				}
				err = r.replaceRows(ctx, had, want, r.position.nextRefresh())
			} else if len(wrong) > 0 {
				err = r.confirmPosition(ctx)
			}
			if err != nil {
				return err
			}
			found.addResult(Scrubbed{len(some), len(wrong), slices.Collect(maps.Keys(lost))})
		}
		return nil
	})
	return found, err
}

// checkRows compares the events of which the rows in had were computed with those of which the stored rows of some
// subjects were made. Of visitors who differ, it corrects the rows, and returns those who lost events.
func (r *Refresher) checkRows(
	ctx context.Context, visitors []schema.Visitor, subjects iter.Seq[schema.Subject], events []fold.Event,
	had, want []fold.Row,
) (_, _ []fold.Row, lost map[schema.Visitor]bool, err error) {
	expected, stored := madeOfRows(had), map[visitorOf]made{}
	err = schema.EachRow(ctx, r.on, r.on.render("made_of.sql", ""), func(row driver.Rows) error {
		var of visitorOf
		var m made
		s := &of.Subject
		err := row.Scan(&s.WebsiteID, &of.Visitor, (*scannedKind)(&s.Kind), &s.ID, &s.ExperimentID, &m.seen, &m.digest)
		stored[of] = m
		return err
	}, append(visitorParams(visitors), clickhouse.Named("sections", sectionsOf(subjects, fold.OfVisitor)))...)
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
	ctx context.Context, wrong map[schema.Visitor]bool, events []fold.Event, had, want []fold.Row,
) (_, _ []fold.Row, lost map[schema.Visitor]bool, err error) {
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
	var kept []fold.Row // of the visitors in lost
	isSame := func(a, b *fold.Row) bool { return visitorOfRow(a) == visitorOfRow(b) }
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
			lost[v], kept = true, fold.AppendVisitorRows(append(gone, own...), r.MaxVisitorEvents, kept)
		}
	}
	if len(lost) > 0 {
		if err := r.confirmPosition(ctx); err != nil { // another process may have folded newer events
			return nil, nil, nil, err
		}
	}
	r.noteLost(ctx, wrong, lost)
	without := func(rows []fold.Row, of map[schema.Visitor]bool) []fold.Row {
		return slices.DeleteFunc(rows, func(row fold.Row) bool { return of[visitorOfRow(&row)] })
	}
	return append(without(had, wrong), stored...), append(without(want, lost), kept...), lost, nil
}

// noteLost updates the set of visitors who lost events, for the visitors in of.
func (r *Refresher) noteLost(ctx context.Context, of, lost map[schema.Visitor]bool) {
	r.read.Lock()
	defer r.read.Unlock()
	var found []schema.Visitor // that were not known
	for v := range of {
		switch {
		case !lost[v]:
			delete(r.lost, v)
		case !r.lost[v]:
			r.lost[v], found = true, append(found, v)
		}
	}
	if len(found) > 0 {
		const text = "stored events of visitors are lost; reports keep what they counted: " +
			"restore a backup, or send the events again"
		slog.ErrorContext(ctx, text, "visitors", len(found), "one", found[0])
	}
}

// readStored returns the stored rows of the visitors, by visitor.
func (r *Refresher) readStored(ctx context.Context, of map[schema.Visitor]bool) (stored []fold.Row, err error) {
	const ofSome = ofVisitors + " AND website_id IN {websites:Array(Int64)} AND visitor_id IN {visitors:Array(UInt64)}"
	err = r.on.readRows(ctx, ofSome, func(row *fold.Row) error {
		if of[visitorOfRow(row)] {
			stored = append(stored, *row)
		}
		return nil
	}, visitorParams(slices.Collect(maps.Keys(of)))...)
	if err != nil {
		return nil, fmt.Errorf("read the facts of visitors: %w", err)
	}
	return stored, nil
}
