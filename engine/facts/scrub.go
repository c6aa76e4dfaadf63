package facts

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
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

// ScrubFacts compares the events of which facts were made with the stored events, for the
// visitors with ids from first to last, and corrects the facts. It leaves the facts of visitors
// who lost events unchanged.
func (r *Refresher) ScrubFacts(ctx context.Context, first, last uint64) (found Scrubbed, err error) {
	return r.scrubRange(ctx, first, last, true)
}

// VerifyFacts compares the facts of all visitors with the folded events, and changes nothing. It calls progress
// with the share of the visitors compared so far.
func (r *Refresher) VerifyFacts(ctx context.Context, progress func(share float64)) (found Scrubbed, err error) {
	var events uint64
	if err := r.currentServer().QueryRow(ctx, "SELECT count() FROM "+r.currentServer().Sent).Scan(&events); err != nil {
		return found, fmt.Errorf("count the events: %w", err)
	}
	parts := min(1+events/eventsOfPart, mostParts)
	for part := range parts {
		first, last := visitorRange(part, parts)
		some, err := r.scrubRange(ctx, first, last, false)
		if err != nil {
			return found, err
		}
		found.addResult(some)
		progress(float64(part+1) / float64(parts))
	}
	return found, nil
}

// Verify reads the visitors in parts, between which refreshes run. The ids of a part must fit into memory.
const (
	eventsOfPart = 500_000
	mostParts    = 64
)

// scrubRange compares facts with events, for the visitors with ids from first to last.
func (r *Refresher) scrubRange(ctx context.Context, first, last uint64, correct bool) (found Scrubbed, err error) {
	_, err = r.runExclusively(ctx, func(ctx context.Context) error {
		found = Scrubbed{}
		visitors, err := schema.QueryRows(ctx, r.on, r.on.stored, scanVisitor,
			clickhouse.Named("first", first), clickhouse.Named("last", last), clickhouse.Named("through", r.position.Through))
		if err != nil {
			return fmt.Errorf("read the visitors: %w", err)
		}
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			if err := r.scrubVisitors(ctx, some, correct, &found); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// scrubVisitors compares the facts of some visitors with their events. To correct facts, it compares the numbers and
// the digests of events, as a refresh does. Otherwise, it compares whole rows, which reads nearly all facts.
func (r *Refresher) scrubVisitors(ctx context.Context, visitors []schema.Visitor, correct bool, found *Scrubbed) error {
	of := setOf(visitors)
	events, err := r.on.readEvents(ctx, visitors, r.position.Through)
	if err != nil {
		return err
	}
	var had, want []fold.Row
	eachVisitor(events, func(own []fold.Event) {
		if of[visitorOfEvent(&own[0])] { // else a visitor of another website with the same id
			want = fold.AppendVisitorRows(own, want)
		}
	})
	var lost []schema.Visitor
	if correct {
		had, want, lost, err = r.checkRows(ctx, visitors, maps.Keys(r.cells.all), slices.Clone(want), want)
	} else {
		had, want, lost, err = r.correctRows(ctx, of, nil, want)
	}
	if err != nil {
		return err
	}
	r.noteLost(of, setOf(lost)) // also that none of the others has lost events any more
	wrong := map[schema.Visitor]bool{}
	for _, c := range fold.AppendChanges(nil, had, want) {
		wrong[schema.Visitor{WebsiteID: c.Subject.WebsiteID, ID: c.Visitor}] = true
	}
	switch {
	case len(wrong) == 0:
	case correct:
		slog.WarnContext(ctx, "facts were not those of the events, and are corrected", "visitors", len(wrong))
		err = r.replaceRows(ctx, had, want, r.position.nextRefresh(r.position.Through))
	default:
		err = r.confirmPosition(ctx)
	}
	if err == nil {
		found.addResult(Scrubbed{len(visitors), len(wrong), lost})
	}
	return err
}

// checkRows compares the events of which the rows in had were computed with those of which the stored rows of some
// subjects were made. Of visitors who differ, it corrects the rows, and returns those who lost events.
func (r *Refresher) checkRows(ctx context.Context, visitors []schema.Visitor, subjects iter.Seq[plan.Subject], had, want []fold.Row) (_, _ []fold.Row, lost []schema.Visitor, err error) {
	expected := map[visitorOf]made{}
	madeOfRows(had, expected)
	stored, err := r.on.readMade(ctx, visitors, subjects)
	if err != nil {
		return nil, nil, nil, err
	}
	if wrong := differingVisitors(expected, stored); len(wrong) > 0 {
		return r.correctRows(ctx, wrong, had, want)
	}
	return had, want, nil, nil
}

// differingVisitors returns the visitors whose stored rows were not made of the expected events.
func differingVisitors(expected, stored map[visitorOf]made) map[schema.Visitor]bool {
	wrong := map[schema.Visitor]bool{}
	for of, m := range expected {
		if stored[of] != m {
			wrong[schema.Visitor{WebsiteID: of.Subject.WebsiteID, ID: of.Visitor}] = true
		}
	}
	for of, m := range stored {
		if expected[of] != m {
			wrong[schema.Visitor{WebsiteID: of.Subject.WebsiteID, ID: of.Visitor}] = true
		}
	}
	return wrong
}

// correctRows replaces rows in had by the stored rows, for the visitors in wrong. A visitor whose
// rows were made of more events than are stored has lost events. Such visitors are reported and
// keep their rows.
func (r *Refresher) correctRows(ctx context.Context, wrong map[schema.Visitor]bool, had, want []fold.Row) (_, _ []fold.Row, lost []schema.Visitor, err error) {
	stored, err := r.readStored(ctx, wrong)
	if err != nil {
		return nil, nil, nil, err
	}
	wanted, found := map[visitorOf]made{}, map[visitorOf]made{}
	madeOfRows(want, wanted)
	madeOfRows(stored, found)
	isLost := map[schema.Visitor]bool{}
	for of, m := range found {
		if v := (schema.Visitor{WebsiteID: of.Subject.WebsiteID, ID: of.Visitor}); m.seen > wanted[of].seen && !isLost[v] {
			isLost[v], lost = true, append(lost, v)
		}
	}
	if len(lost) > 0 {
		if err := r.confirmPosition(ctx); err != nil { // another process may have folded newer events
			return nil, nil, nil, err
		}
		slog.ErrorContext(ctx, "events of visitors are lost; reports keep what they counted: restore a backup", "visitors", len(lost), "one", lost[0])
	}
	r.noteLost(wrong, isLost)
	without := func(rows []fold.Row, of map[schema.Visitor]bool) []fold.Row {
		return slices.DeleteFunc(rows, func(row fold.Row) bool { return of[schema.Visitor{WebsiteID: row.Subject.WebsiteID, ID: row.Visitor}] })
	}
	return append(without(had, wrong), without(stored, isLost)...), without(want, isLost), lost, nil
}

// noteLost updates the set of visitors who lost events, for the visitors in of.
func (r *Refresher) noteLost(of, lost map[schema.Visitor]bool) {
	r.read.Lock()
	defer r.read.Unlock()
	for v := range of {
		if lost[v] {
			r.lost[v] = true
		} else {
			delete(r.lost, v)
		}
	}
}

// readStored returns the stored rows of the visitors, by visitor.
func (r *Refresher) readStored(ctx context.Context, of map[schema.Visitor]bool) (stored []fold.Row, err error) {
	err = r.on.readRows(ctx, r.on.visitorRows, func(row *fold.Row) error {
		if of[schema.Visitor{WebsiteID: row.Subject.WebsiteID, ID: row.Visitor}] {
			stored = append(stored, *row)
		}
		return nil
	}, visitorParams(slices.Collect(maps.Keys(of)))...)
	if err != nil {
		return nil, fmt.Errorf("read the facts of visitors: %w", err)
	}
	return stored, nil
}
