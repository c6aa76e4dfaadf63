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

// lookupSize is how many visitors are looked up with one statement: their ids
// travel as parameters, and a server's HTTP interface takes 1 MiB of them.
const lookupSize = 16_384

// A goal without exposures counts for every subject of its website that its
// visitor saw first at or before its time. It is stored as it came, and once
// more for each of those subjects, whichever of the goal and the view arrives
// first: a goal looks for earlier first views, a view that is its visitor's
// first for later goals. These derived rows are made of the stored content of
// the goal and the view, never of a rejected repeat. A repetition finds the
// same rows again, so that what a crash cut off is made good when the events
// are sent once more.

// firstView is the least of a visitor's views of a subject.
type firstView struct {
	time        time.Time
	variationID int64
	eventID     uint64
}

func (v firstView) compare(o firstView) int {
	return cmp.Or(v.time.Compare(o.time), cmp.Compare(v.variationID, o.variationID), cmp.Compare(v.eventID, o.eventID))
}

// firstViewIndex are first views by visitor and subject.
type firstViewIndex map[uint64]map[subject]firstView

func (s firstViewIndex) add(visitor uint64, of subject, v firstView) {
	if s[visitor] == nil {
		s[visitor] = map[subject]firstView{}
	}
	if earlier, seen := s[visitor][of]; !seen || v.compare(earlier) < 0 {
		s[visitor][of] = v
	}
}

// derivation is a derived row and the event of the batch that gave rise to it:
// the goal or the view, whichever arrived later.
type derivation struct {
	cause int // index of the event
	row   schema.Event
}

// arrival is a view or a goal without exposures of a batch, as it is stored.
type arrival struct {
	at    int // index in the batch
	event *schema.Event
}

// websiteBatch is what a batch has of one website, in the order of arrival.
type websiteBatch struct {
	websiteID    int64
	arrivals     []arrival
	views, goals int
}

// visitors returns the visitors with an arrival of the kind, in order.
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

// attributed returns the rows that goals without exposures have for the
// subjects that their visitors saw, in the order in which they would arise if
// the events arrived one by one. stored has the stored content of events that
// are repeats.
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

// derive appends the rows that the arrivals give rise to, one after the other.
// goals and seen hold what was stored before.
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

// appendGoal appends the goal's row for a subject, if the view was not later.
func appendGoal(derived []derivation, cause int, goal *schema.Event, of subject, view firstView) []derivation {
	if view.time.After(goal.Time) {
		return derived
	}
	row := *goal
	row.Derived = true
	row.Subject, row.SubjectID, row.ExperimentID, row.VariationID = of.subject, of.subjectID, of.experimentID, view.variationID
	return append(derived, derivation{cause, row})
}

// websiteBatches splits the views and the goals without exposures of a batch
// by website, in the order of their ids. Of a repeat it takes the stored
// content; a repeat of an event of the same batch it leaves out.
func websiteBatches(events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event) []*websiteBatch {
	byWebsite := map[int64]*websiteBatch{}
	var b *websiteBatch // of the event before
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

// unattributedGoals returns the stored goals without exposures of the visitors
// of whom the batch has views, by visitor. The map is empty where the website
// has no such goal.
func (w *Writer) unattributedGoals(ctx context.Context, batch *websiteBatch) (map[uint64][]*schema.Event, error) {
	goals := map[uint64][]*schema.Event{}
	has, err := w.hasUnattributedGoals(ctx, batch)
	if !has || err != nil {
		return goals, err
	}
	stored := map[identity]schema.Event{}
	for chunk := range slices.Chunk(batch.visitors(schema.KindView), lookupSize) {
		if err := w.find(ctx, stored, unattributedGoals, clickhouse.Named("website_id", batch.websiteID), clickhouse.Named("visitor_ids", chunk)); err != nil {
			return nil, err
		}
	}
	for _, goal := range stored {
		goals[goal.VisitorID] = append(goals[goal.VisitorID], &goal)
	}
	return goals, nil
}

// hasBareGoals says whether the website may have stored goals without exposures
// of visitors whose views the batch has.
func (w *Writer) hasUnattributedGoals(ctx context.Context, batch *websiteBatch) (bool, error) {
	if batch.views == 0 {
		return false, nil
	}
	if has, known := w.unattributed[batch.websiteID]; known {
		return has, nil
	}
	var rows uint64
	if err := w.conn.QueryRow(ctx, hasUnattributedGoals, clickhouse.Named("website_id", batch.websiteID)).Scan(&rows); err != nil {
		return false, fmt.Errorf("look up goals without exposures: %w", err)
	}
	if w.exclusive {
		w.unattributed[batch.websiteID] = rows > 0
	}
	return rows > 0, nil
}

// noteBare keeps in mind which websites are about to have goals without
// exposures.
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
	slices.Sort(visitors) // the order of the key
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
		at := subject{websiteID: websiteID}
		var of string
		var visitor uint64
		var view firstView
		if err := rows.Scan(&of, &at.subjectID, &at.experimentID, &visitor, &view.time, &view.variationID, &view.eventID); err != nil {
			return err
		}
		at.subject, view.time = schema.Subject(of), view.time.UTC()
		seen.add(visitor, at, view)
	}
	return rows.Err()
}
