package facts

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// visitorsInOrder is the number of visitors that are folded at once if all visitors are: with more of them, the cells
// that change are stored less often, and with fewer, less memory is needed (100 MB for visitors with six events each).
const visitorsInOrder = 65_536

// logInterval is the time between lines of the log about a fold of all visitors.
const logInterval = 10 * time.Second

// log writes how far a fold is to the log.
func (p Progress) log(ctx context.Context, isRebuild bool) {
	text := "folding all events"
	if isRebuild {
		text = "rebuilding the facts; reports show the present ones"
	}
	left, _ := p.Left()
	slog.InfoContext(ctx, text, "events", p.Done, "of", p.All, "left", left.Round(time.Second).String())
}

// foldFirst folds the events of all visitors into facts that have none of them yet. A server then knows the
// fingerprints of the last events, which it would otherwise look at again, see foldLatest.
func (r *Refresher) foldFirst(ctx context.Context) error {
	began := time.Now()
	until, events, err := r.turn.on.readExtent(ctx)
	if err != nil || events == 0 {
		return err
	}
	if r.turn.position.isFolding() {
		until = r.turn.position.Until
	}
	fingerprints := map[int64]uint64{}
	if !r.alone {
		for _, overlap := range []time.Duration{overlap, longOverlap} {
			after := until - overlap.Milliseconds()
			fingerprints[after], err = r.readFingerprint(ctx, after, until)
			if err != nil {
				return err
			}
		}
	}
	if err := r.foldInOrder(ctx, until, events); err != nil {
		return err
	}
	for after, fingerprint := range fingerprints {
		r.turn.unchanged[foldedEvents{after, r.turn.position}] = fingerprint
	}
	r.turn.lookedBack = began
	return nil
}

// foldInOrder folds the events of all visitors that were accepted up to a time, in order, into facts that have none of
// them yet. It goes on after the last visitor that is folded. events is the number of stored events.
func (r *Refresher) foldInOrder(ctx context.Context, until, events int64) error {
	folded, err := r.turn.on.countEventsUpTo(ctx, r.turn.position.After)
	if err != nil {
		return err
	}
	defer r.backlog.endProgress()
	logged := time.Now()
	for {
		r.backlog.setProgress(folded, events)
		if time.Since(logged) >= logInterval {
			logged = time.Now()
			r.backlog.progress().log(ctx, r.building > 0)
		}
		if err := r.confirmPosition(ctx); err != nil {
			return err
		}
		after := r.turn.position.After
		visitors, err := r.turn.on.readVisitorsAfter(ctx, after, r.VisitorsInOrder)
		if err != nil {
			return err
		}
		if len(visitors) == 0 {
			return r.replaceRows(ctx, nil, nil, r.turn.position.foldedThrough(until))
		}
		isLast := len(visitors) < r.VisitorsInOrder
		last := visitors[len(visitors)-1]
		found, err := r.turn.on.readEventsBetween(ctx, after, last, until)
		if source.IsDamaged(err) {
			found, _, err = r.readReadable(ctx, visitors, until)
		}
		if err != nil {
			return err
		}
		folded += int64(len(found))
		next := r.turn.position.foldedUpTo(last, until)
		if isLast {
			next = r.turn.position.foldedThrough(until)
		}
		want := foldEvents(found, r.MaxVisitorEvents)
		if err := r.replaceRows(ctx, nil, want, next); err != nil || !next.isFolding() {
			return err
		}
	}
}

// readExtent returns the last acceptance time of the stored events, in milliseconds since 1970, and their number,
// copies included.
func (s *server) readExtent(ctx context.Context) (last, events int64, err error) {
	if err := s.QueryRow(ctx, s.render("extent.sql", "")).Scan(&last, &events); err != nil {
		return 0, 0, fmt.Errorf("count the events: %w", err)
	}
	return last, events, nil
}

// The conditions of events in the order of the key.
const (
	afterVisitor = "website_id >= {after_website:Int64} " +
		"AND (website_id > {after_website:Int64} OR visitor_id > {after_visitor:UInt64})"
	upToVisitor = "website_id <= {last_website:Int64} " +
		"AND (website_id < {last_website:Int64} OR visitor_id <= {last_visitor:UInt64})"
	betweenVisitors = afterVisitor + " AND " + upToVisitor
)

func afterParams(v schema.Visitor) []any {
	return []any{clickhouse.Named("after_website", v.WebsiteID), clickhouse.Named("after_visitor", v.ID)}
}

func upToParams(v schema.Visitor) []any {
	return []any{clickhouse.Named("last_website", v.WebsiteID), clickhouse.Named("last_visitor", v.ID)}
}

// countEventsUpTo returns the number of stored events, copies included, of the visitors up to one, in order.
func (s *server) countEventsUpTo(ctx context.Context, last schema.Visitor) (events int64, err error) {
	count := "SELECT toInt64(count()) FROM " + s.Sent + " WHERE " + upToVisitor
	if err := s.QueryRow(ctx, count, upToParams(last)...).Scan(&events); err != nil {
		return 0, fmt.Errorf("count the folded events: %w", err)
	}
	return events, nil
}

// readVisitorsAfter returns the next visitors with events after one, in order, and at most a number of them.
func (s *server) readVisitorsAfter(ctx context.Context, after schema.Visitor, most int) ([]schema.Visitor, error) {
	visitors, err := schema.QueryRows(ctx, s, s.render("next_visitors.sql", afterVisitor),
		scanVisitor,
		append(afterParams(after), clickhouse.Named("most", most))...)
	if err != nil {
		return nil, fmt.Errorf("read the next visitors: %w", err)
	}
	return visitors, nil
}

// readEventsBetween returns all events that were accepted until a time, of the visitors after one up to another, in
// order.
func (s *server) readEventsBetween(
	ctx context.Context, after, last schema.Visitor, through int64,
) ([]fold.Event, error) {
	return s.readEventsWhere(ctx, betweenVisitors, through, append(afterParams(after), upToParams(last)...)...)
}
