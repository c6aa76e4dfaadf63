package ingest

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed sql/first_views.sql
var firstViews string

//go:embed sql/unattributed_goals.sql
var unattributedGoals string

//go:embed sql/has_unattributed_goals.sql
var hasUnattributedGoals string

// lookupSize is the maximum number of visitors per look-up. Their ids are query
// parameters, and the HTTP interface of a server accepts at most 1 MiB of
// parameters.
const lookupSize = 16_384

// An unattributed goal counts for every subject of its website whose first view
// by the visitor is not later than the goal. The goal is stored unchanged, and a
// derived row is stored for each of these subjects. Goal and view may arrive in
// either order: for a goal, the writer looks up earlier first views; for a
// visitor's first view, it looks up later goals. Derived rows are built from the
// stored content of the goal and the view, never from a rejected duplicate. A
// retry derives the same rows, so rows that are missing after a crash are added
// when the events are sent again.

// firstView is the minimum of a visitor's views of a subject, in the order of
// compare.
type firstView struct {
	time        time.Time
	variationID int64
	eventID     uint64
}

func (v firstView) compare(o firstView) int {
	return cmp.Or(v.time.Compare(o.time), cmp.Compare(v.variationID, o.variationID), cmp.Compare(v.eventID, o.eventID))
}

// firstViewIndex contains first views by visitor and subject.
type firstViewIndex map[uint64]map[Subject]firstView

func (s firstViewIndex) add(visitor uint64, of Subject, v firstView) {
	if s[visitor] == nil {
		s[visitor] = map[Subject]firstView{}
	}
	if earlier, seen := s[visitor][of]; !seen || v.compare(earlier) < 0 {
		s[visitor][of] = v
	}
}

// derivation is a derived row and its cause: the goal or the view of the batch,
// whichever arrived later.
type derivation struct {
	cause int // index of the cause in the batch
	row   schema.Event
}

// arrival is a view or an unattributed goal of a batch, with the content that is
// stored.
type arrival struct {
	at    int // index in the batch
	event *schema.Event
}

// websiteBatch are the arrivals of one website in a batch, in the order of
// arrival.
type websiteBatch struct {
	websiteID    int64
	arrivals     []arrival
	views, goals int
}

// visitors returns the sorted ids of the visitors with an arrival of the kind.
func (b *websiteBatch) visitors(kind schema.Kind) []uint64 {
	var visitors []uint64
	for i := range b.arrivals {
		if e := b.arrivals[i].event; e.Kind == kind {
			visitors = append(visitors, e.VisitorID)
		}
	}
	slices.Sort(visitors)
	return slices.Compact(visitors)
}

// attributed returns the derived rows of the batch, in the order in which they
// would be derived if the events arrived one by one. stored contains the stored
// content of duplicates.
func (w *Writer) attributed(ctx context.Context, events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event) ([]derivation, error) {
	var derived []derivation
	for _, batch := range websiteBatches(events, verdicts, stored) {
		goals, err := w.unattributedGoals(ctx, batch)
		if err != nil {
			return nil, err
		}
		concerned := slices.Concat(batch.visitors(schema.KindGoal), slices.Collect(maps.Keys(goals)))
		if len(concerned) == 0 {
			continue
		}
		seen, err := w.firstViews(ctx, batch.websiteID, concerned)
		if err != nil {
			return nil, err
		}
		derived = batch.derive(derived, goals, seen)
	}
	return derived, nil
}

// derive appends the derived rows of the arrivals. goals and seen contain the
// earlier unattributed goals and first views; derive updates them.
func (b *websiteBatch) derive(derived []derivation, goals map[uint64][]*schema.Event, seen firstViewIndex) []derivation {
	for i := range b.arrivals {
		a := &b.arrivals[i]
		e := a.event
		if e.Kind == schema.KindGoal {
			for of, view := range seen[e.VisitorID] {
				derived = appendGoal(derived, a.at, e, of, view)
			}
			goals[e.VisitorID] = append(goals[e.VisitorID], e)
			continue
		}
		view := firstView{e.Time, e.VariationID, e.EventID}
		if earlier, known := seen[e.VisitorID][subjectOf(e)]; known && view.compare(earlier) > 0 {
			continue
		}
		seen.add(e.VisitorID, subjectOf(e), view)
		for _, goal := range goals[e.VisitorID] {
			derived = appendGoal(derived, a.at, goal, subjectOf(e), view)
		}
	}
	return derived
}

// appendGoal appends the goal's derived row for a subject, unless the view is
// later than the goal.
func appendGoal(derived []derivation, cause int, goal *schema.Event, of Subject, view firstView) []derivation {
	if view.time.After(goal.Time) {
		return derived
	}
	row := *goal
	row.Derived = true
	row.Subject, row.SubjectID, row.ExperimentID, row.VariationID = of.Kind, of.ID, of.ExperimentID, view.variationID
	return append(derived, derivation{cause, row})
}

// websiteBatches groups the views and the unattributed goals of a batch by
// website, ordered by website id. For a duplicate of a stored event it uses the
// stored content. It omits duplicates of events of the same batch.
func websiteBatches(events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event) []*websiteBatch {
	byWebsite := map[int64]*websiteBatch{}
	var b *websiteBatch // of the preceding event
	for i := range events {
		e := &events[i]
		if e.Subject != schema.SubjectNone && e.Kind != schema.KindView && verdicts[i] == Stored {
			continue
		}
		if verdicts[i] != Stored {
			earlier, known := stored[identityOf(e)]
			if !known || earlier.Subject != schema.SubjectNone && earlier.Kind != schema.KindView {
				continue
			}
			e = &earlier
		}
		if b == nil || b.websiteID != e.WebsiteID {
			if b = byWebsite[e.WebsiteID]; b == nil {
				b = &websiteBatch{websiteID: e.WebsiteID}
				byWebsite[e.WebsiteID] = b
			}
		}
		b.arrivals = append(b.arrivals, arrival{i, e})
		if e.Kind == schema.KindGoal {
			b.goals++
		} else {
			b.views++
		}
	}
	return slices.SortedFunc(maps.Values(byWebsite), func(a, b *websiteBatch) int { return cmp.Compare(a.websiteID, b.websiteID) })
}

// unattributedGoals returns the stored unattributed goals, by visitor, of the
// visitors with views in the batch.
func (w *Writer) unattributedGoals(ctx context.Context, batch *websiteBatch) (map[uint64][]*schema.Event, error) {
	goals := map[uint64][]*schema.Event{}
	has, err := w.hasUnattributedGoals(ctx, batch)
	if !has || err != nil {
		return goals, err
	}
	visitors := w.idFilter.possiblyWith(schema.KindGoal, batch.websiteID, batch.visitors(schema.KindView))
	stored := map[identity]schema.Event{}
	for chunk := range slices.Chunk(visitors, lookupSize) {
		if err := w.find(ctx, stored, unattributedGoals, clickhouse.Named("website_id", batch.websiteID), clickhouse.Named("visitor_ids", chunk)); err != nil {
			return nil, err
		}
	}
	for _, goal := range stored {
		goals[goal.VisitorID] = append(goals[goal.VisitorID], &goal)
	}
	return goals, nil
}

// hasUnattributedGoals reports whether the batch has views and the website may
// have stored unattributed goals.
func (w *Writer) hasUnattributedGoals(ctx context.Context, batch *websiteBatch) (bool, error) {
	if batch.views == 0 {
		return false, nil
	}
	if has, known := w.unattributed[batch.websiteID]; known {
		return has, nil
	}
	var rows uint64
	if err := w.conn.QueryRow(ctx, hasUnattributedGoals, clickhouse.Named("website_id", batch.websiteID)).Scan(&rows); err != nil {
		return false, fmt.Errorf("look up unattributed goals: %w", err)
	}
	if w.exclusive {
		w.unattributed[batch.websiteID] = rows > 0
	}
	return rows > 0, nil
}

// noteUnattributed records the websites that are about to have unattributed
// goals.
func (w *Writer) noteUnattributed(fresh []schema.Event) {
	if !w.exclusive {
		return
	}
	for i := range fresh {
		if fresh[i].Subject == schema.SubjectNone {
			w.unattributed[fresh[i].WebsiteID] = true
		}
	}
}

// firstViews returns the stored first views of the visitors.
func (w *Writer) firstViews(ctx context.Context, websiteID int64, visitors []uint64) (firstViewIndex, error) {
	visitors = w.idFilter.possiblyWith(schema.KindView, websiteID, visitors)
	slices.Sort(visitors) // the order of the table's key
	seen := firstViewIndex{}
	for chunk := range slices.Chunk(slices.Compact(visitors), lookupSize) {
		if err := w.addFirstViews(ctx, seen, websiteID, chunk); err != nil {
			return nil, fmt.Errorf("look up first views: %w", err)
		}
	}
	return seen, nil
}

func (w *Writer) addFirstViews(ctx context.Context, seen firstViewIndex, websiteID int64, visitors []uint64) error {
	rows, err := w.conn.Query(ctx, firstViews, clickhouse.Named("website_id", websiteID), clickhouse.Named("visitor_ids", visitors))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		at := Subject{WebsiteID: websiteID}
		var subjectName string
		var visitor uint64
		var view firstView
		if err := rows.Scan(&subjectName, &at.ID, &at.ExperimentID, &visitor, &view.time, &view.variationID, &view.eventID); err != nil {
			return err
		}
		at.Kind, view.time = schema.Subject(subjectName), view.time.UTC()
		seen.add(visitor, at, view)
	}
	return rows.Err()
}
