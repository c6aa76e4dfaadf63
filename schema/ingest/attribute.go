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

//go:embed sql/bare_goals.sql
var bareGoals string

//go:embed sql/has_bare_goals.sql
var hasBareGoals string

// lookupSize is how many visitors are looked up with one statement: their ids
// travel as parameters, and a server's HTTP interface takes 1 MiB of them.
const lookupSize = 16_384

// A goal without exposures counts for every subject of its website that its
// visitor saw first at or before its time. It is stored as it came, and once
// more for each of those subjects, whichever of the goal and the view arrives
// first: a goal looks for earlier first views, a view that is its visitor's
// first for later goals. A repetition finds the same rows again, so that what a
// crash cut off is made good when the events are sent once more.

// firstView is the least of a visitor's views of a subject.
type firstView struct {
	time        time.Time
	variationID int64
	eventID     uint64
}

func (v firstView) compare(o firstView) int {
	return cmp.Or(v.time.Compare(o.time), cmp.Compare(v.variationID, o.variationID), cmp.Compare(v.eventID, o.eventID))
}

// sights are first views by visitor and subject.
type sights map[uint64]map[subject]firstView

func (s sights) add(visitor uint64, of subject, v firstView) {
	if s[visitor] == nil {
		s[visitor] = map[subject]firstView{}
	}
	if earlier, seen := s[visitor][of]; !seen || v.compare(earlier) < 0 {
		s[visitor][of] = v
	}
}

// part is what a batch has of one website.
type part struct {
	websiteID    int64
	goals, views []*schema.Event // goals without exposures
}

// attributed returns the rows that goals without exposures have for the
// subjects that their visitors saw: the batch's goals for all they saw, stored
// goals for what the batch shows to be seen first.
func (w *Writer) attributed(ctx context.Context, events []schema.Event, verdicts []Verdict) ([]schema.Event, error) {
	var derived []schema.Event
	for _, p := range partsOf(events, verdicts) {
		has, err := w.hasBareGoals(ctx, p)
		if err != nil {
			return nil, err
		}
		if !has && len(p.goals) == 0 {
			continue
		}
		views := p.sights()
		var stored []*schema.Event
		if has {
			if stored, err = w.storedGoals(ctx, p.websiteID, views); err != nil {
				return nil, err
			}
		}
		if len(p.goals)+len(stored) == 0 {
			continue
		}
		seen, err := w.firstViews(ctx, p.websiteID, slices.Concat(p.goals, stored))
		if err != nil {
			return nil, err
		}
		for _, goal := range stored {
			for of, view := range views[goal.VisitorID] {
				if earlier, known := seen[goal.VisitorID][of]; !known || view.compare(earlier) <= 0 {
					derived = appendGoal(derived, goal, of, view)
				}
			}
		}
		for visitor, subjects := range views {
			for of, view := range subjects {
				seen.add(visitor, of, view)
			}
		}
		for _, goal := range p.goals {
			for of, view := range seen[goal.VisitorID] {
				derived = appendGoal(derived, goal, of, view)
			}
		}
	}
	return derived, nil
}

// appendGoal appends the goal's row for a subject, if the view was not later.
func appendGoal(rows []schema.Event, goal *schema.Event, of subject, view firstView) []schema.Event {
	if view.time.After(goal.Time) {
		return rows
	}
	row := *goal
	row.Subject, row.SubjectID, row.ExperimentID, row.VariationID = of.subject, of.subjectID, of.experimentID, view.variationID
	return append(rows, row)
}

// partsOf splits what is to be stored of a batch by website, in the order of
// their ids.
func partsOf(events []schema.Event, verdicts []Verdict) []*part {
	byWebsite := map[int64]*part{}
	var p *part // of the event before
	for i := range events {
		e := &events[i]
		if verdicts[i] != Stored || e.Subject != schema.SubjectNone && e.Kind != schema.KindView {
			continue
		}
		if p == nil || p.websiteID != e.WebsiteID {
			if p = byWebsite[e.WebsiteID]; p == nil {
				p = &part{websiteID: e.WebsiteID}
				byWebsite[e.WebsiteID] = p
			}
		}
		if e.Subject == schema.SubjectNone {
			p.goals = append(p.goals, e)
		} else {
			p.views = append(p.views, e)
		}
	}
	parts := slices.Collect(maps.Values(byWebsite))
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.websiteID, b.websiteID) })
	return parts
}

// sights are the first ones of the part's views.
func (p *part) sights() sights {
	seen := sights{}
	for _, e := range p.views {
		seen.add(e.VisitorID, subjectOf(e), firstView{e.Time, e.VariationID, e.EventID})
	}
	return seen
}

// storedGoals returns the stored goals without exposures of the visitors.
func (w *Writer) storedGoals(ctx context.Context, websiteID int64, of sights) ([]*schema.Event, error) {
	visitors := slices.Sorted(maps.Keys(of)) // the order of the key
	stored := map[identity]schema.Event{}
	for some := range slices.Chunk(visitors, lookupSize) {
		if err := w.find(ctx, stored, bareGoals, clickhouse.Named("website_id", websiteID), clickhouse.Named("visitor_ids", some)); err != nil {
			return nil, err
		}
	}
	goals := make([]*schema.Event, 0, len(stored))
	for _, goal := range stored {
		goals = append(goals, &goal)
	}
	return goals, nil
}

// hasBareGoals says whether the website may have stored goals without exposures
// of visitors whose views the batch has.
func (w *Writer) hasBareGoals(ctx context.Context, p *part) (bool, error) {
	if len(p.views) == 0 {
		return false, nil
	}
	if has, known := w.bare[p.websiteID]; known {
		return has, nil
	}
	var rows uint64
	if err := w.conn.QueryRow(ctx, hasBareGoals, clickhouse.Named("website_id", p.websiteID)).Scan(&rows); err != nil {
		return false, fmt.Errorf("look up goals without exposures: %w", err)
	}
	if w.alone {
		w.bare[p.websiteID] = rows > 0
	}
	return rows > 0, nil
}

// noteBare keeps in mind which websites are about to have goals without
// exposures.
func (w *Writer) noteBare(fresh []schema.Event) {
	if !w.alone {
		return
	}
	for i := range fresh {
		if fresh[i].Subject == schema.SubjectNone {
			w.bare[fresh[i].WebsiteID] = true
		}
	}
}

// firstViews returns the stored first views of the goals' visitors.
func (w *Writer) firstViews(ctx context.Context, websiteID int64, goals []*schema.Event) (sights, error) {
	visitors := make([]uint64, len(goals))
	for i, goal := range goals {
		visitors[i] = goal.VisitorID
	}
	slices.Sort(visitors)
	seen := sights{}
	for some := range slices.Chunk(slices.Compact(visitors), lookupSize) {
		if err := w.addFirstViews(ctx, seen, websiteID, some); err != nil {
			return nil, fmt.Errorf("look up first views: %w", err)
		}
	}
	return seen, nil
}

func (w *Writer) addFirstViews(ctx context.Context, seen sights, websiteID int64, visitors []uint64) error {
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
