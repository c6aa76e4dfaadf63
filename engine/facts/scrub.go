package facts

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// Scrubbed is the result of a comparison of facts with events.
type Scrubbed struct {
	Visitors int              // number that was compared
	Wrong    int              // visitors whose facts do not match their events
	Lost     []schema.Visitor // visitors whose facts were made of more events than are stored: events are lost
	Cells    []schema.Subject // subjects whose cells are not the sums of their visitors
}

func (s *Scrubbed) addResult(o Scrubbed) {
	s.Visitors += o.Visitors
	s.Wrong += o.Wrong
	s.Lost = append(s.Lost, o.Lost...)
}

// ScrubFacts compares the events of which facts were made with the stored events, for the visitors with ids from first
// to last, and corrects the facts. The facts of visitors who lost events keep what they counted. While events are
// deleted, it does nothing.
func (r *Refresher) ScrubFacts(ctx context.Context, first, last uint64) (found Scrubbed, err error) {
	if !r.deleting.TryRLock() {
		return found, nil
	}
	defer r.deleting.RUnlock()
	return r.scrubRange(ctx, first, last)
}

// scrubRange compares facts with events, for the visitors with ids from first to last, and corrects the
// facts.
func (r *Refresher) scrubRange(ctx context.Context, first, last uint64) (found Scrubbed, err error) {
	_, err = r.changeFacts(ctx, func(ctx context.Context) error {
		found = Scrubbed{} // of an earlier try
		visitors, err := schema.QueryRows(ctx, r.turn.on, r.turn.on.render("stored_visitors.sql", ""), scanVisitor,
			append(r.turn.on.sectionsOfGrain(fold.OfVisitor), clickhouse.Named("first", first),
				clickhouse.Named("last", last), clickhouse.Named("through", r.turn.position.Through))...)
		if err != nil {
			return fmt.Errorf("read the visitors: %w", err)
		}
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			scrubbed, err := r.scrubVisitors(ctx, some, true)
			if err != nil {
				return err
			}
			found.addResult(scrubbed)
		}
		return nil
	})
	return found, err
}

// scrubVisitors compares the facts of some visitors with their events. To correct facts, it compares the numbers and
// the digests of events, as a refresh does. Otherwise, it compares whole rows: nearly all facts.
func (r *Refresher) scrubVisitors(
	ctx context.Context, some []schema.Visitor, correct bool,
) (found Scrubbed, err error) {
	events, some, err := r.readReadable(ctx, some, r.turn.position.Through)
	if err != nil {
		return found, err
	}
	want := foldEvents(events, r.MaxVisitorEvents)
	of := setOf(some)
	had := slices.Clone(want)
	var lost map[schema.Visitor]bool
	if correct {
		had, want, lost, err = r.checkRows(ctx, some, maps.Keys(r.turn.cells.all), events, had, want)
	} else {
		had, want, lost, err = r.correctRows(ctx, of, events, had, want)
	}
	if err != nil {
		return found, err
	}
	r.noteLost(ctx, of, lost) // also that none of the others has lost events any more
	wrong := map[schema.Visitor]bool{}
	for _, c := range fold.AppendChanges(nil, had, want) {
		if v := visitorOfRow(c.FactRow); !lost[v] {
			wrong[v] = true
		}
	}
	found = Scrubbed{Visitors: len(some), Wrong: len(wrong), Lost: slices.Collect(maps.Keys(lost))}
	if !correct {
		if len(wrong) > 0 { // unless another process has corrected them
			return found, r.confirmPosition(ctx)
		}
		return found, nil
	}
	if len(wrong) > 0 {
		slog.WarnContext(ctx, "facts were not those of the events, and are corrected", "visitors", len(wrong))
	}
	return found, r.replaceRows(ctx, had, want, r.turn.position.nextRefresh())
}
