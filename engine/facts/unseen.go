package facts

import (
	"context"
	"fmt"
	"slices"

	"lifthouse/engine/fold"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Unseen are goal events without exposures since the first view of a website, and those whose visitor has no view of
// anything. If nearly all are, views and goals do not carry the same ids of visitors.
type Unseen struct{ Goals, WithoutView int64 }

// leastUnseen is the number of goal events below which nothing is said.
const leastUnseen = 20

// IsSuspicious reports whether at least 99 of 100 goal events are of visitors without a view. A test of a part of the
// traffic has fewer.
func (u Unseen) IsSuspicious() bool {
	return u.Goals >= leastUnseen && 100*u.WithoutView >= 99*u.Goals
}

// ReadUnseen reads the goal events of a website whose visitor has no view. goal 0 means all goals. It is zero without a
// statement if a campaign or widget counts some of them; that of the report is asked first.
func (s Shards) ReadUnseen(ctx context.Context, of schema.Subject, goal int64) (all Unseen, err error) {
	bare := schema.Subject{WebsiteID: of.WebsiteID, Kind: schema.SubjectNone}
	sent := int64(0)
	for id, g := range s.SubjectCounters(bare).Goals {
		if goal == 0 || id == goal {
			sent += g.Events
		}
	}
	if sent < leastUnseen || 100*s.countedGoals(of, goal) > sent {
		return Unseen{}, nil
	}
	var counting []schema.Subject
	var first int64
	for subject := range s.StoredSubjects() {
		if subject.WebsiteID != of.WebsiteID || subject.Kind == schema.SubjectNone {
			continue
		}
		if 100*s.countedGoals(subject, goal) > sent {
			return Unseen{}, nil
		}
		first = earlierOf(first, s.SubjectCounters(subject).FirstView)
		counting = append(counting, subject)
	}
	if first == 0 {
		return Unseen{}, nil
	}
	for _, shard := range s {
		on, err := shard.shownServer(ctx)
		if err != nil {
			return Unseen{}, err
		}
		err = schema.EachRow(ctx, on, on.render("unseen.sql", ""), func(row driver.Rows) error {
			var goals, without int64
			err := row.Scan(&goals, &without)
			all.Goals, all.WithoutView = all.Goals+goals, all.WithoutView+without
			return err
		}, clickhouse.Named("sections", on.sectionsOf(slices.Values(counting), fold.OfVisitor)),
			clickhouse.Named("goals", on.sectionOf(bare, fold.OfGoal)),
			clickhouse.Named("goal_id", goal), clickhouse.Named("from_ms", first))
		if err != nil {
			return Unseen{}, fmt.Errorf("count goals of visitors without a view: %w", err)
		}
	}
	return all, nil
}

// countedGoals returns the number of goal events that a subject counts.
func (s Shards) countedGoals(of schema.Subject, goal int64) (n int64) {
	for _, shard := range s {
		for key, cell := range shard.SubjectCounters(of).all {
			isAsked := key.Goal != 0 && (goal == 0 || key.Goal == goal)
			if isAsked && fold.IsCounted(key.Variation) {
				n += cell.CountAt(fold.Goals)
			}
		}
	}
	return n
}

// earlierOf returns the earlier of two times in milliseconds; 0 is none.
func earlierOf(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
