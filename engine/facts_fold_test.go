package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// factsOf are the facts of the events of a test.
type factsOf struct {
	at     facts.Position
	newest time.Time
}

var sentAt atomic.Int64

// insertFacts stores the events as they were sent, and folds them.
func insertFacts(t *testing.T, conn driver.Conn, events []schema.Event) factsOf {
	t.Helper()
	if err := schema.CreateFacts(t.Context(), conn); err != nil {
		fatal(t, err)
	}
	r := facts.NewRefresher(conn, true)
	var of factsOf
	for _, half := range [][]schema.Event{events[:len(events)/2], events[len(events)/2:]} {
		if len(half) == 0 {
			continue
		}
		if err := schema.InsertSent(t.Context(), conn, half, accepted.Add(time.Duration(sentAt.Add(1))*time.Millisecond)); err != nil {
			fatal(t, err)
		}
		var err error
		if of.at, err = r.Refresh(t.Context()); err != nil {
			fatal(t, err)
		}
	}
	for i := range events {
		if events[i].Time.After(of.newest) {
			of.newest = events[i].Time
		}
	}
	return of
}

// compare compares the answer from the facts with the fold, and its breakdown with
// that of another source.
func (of factsOf) compare(t *testing.T, x *source.Execution, events []schema.Event, other *result.Report) {
	t.Helper()
	unlimited := *x
	unlimited.Limited, unlimited.Outliers, unlimited.Stored.Newest = nil, nil, of.newest
	found, _, err := facts.Source{Execution: &unlimited, Position: func(context.Context) (facts.Position, error) { return of.at, nil }}.Read(t.Context())
	if err != nil {
		fatal(t, err)
	}
	if x.Cap != nil && found.Cap.Limit != x.Limited.Limit {
		t.Errorf("limit %d of the facts, want %d\n%s", found.Cap.Limit, x.Limited.Limit, x.Plan)
	}
	if got, want := written(t, result.New(x.Plan, found, nil).Breakdown), written(t, other.Breakdown); got != want {
		t.Errorf("breakdown\n got %.1500s\nwant %.1500s\n%s", got, want, x.Plan)
	}
	whole, undivided := *x, *x.Plan
	undivided.Dimension, whole.Plan = "", &undivided
	compareRows(t, &whole, found.Whole, events)
	if x.Interval == "" {
		return
	}
	got, err := series(t.Context(), x, stateOf(x), found)
	if err != nil {
		fatal(t, err)
	}
	want, err := series(t.Context(), x, stateOf(x), readFrom(t, x, 0))
	if err != nil {
		fatal(t, err)
	}
	if g, w := written(t, got), written(t, want); g != w {
		t.Errorf("%s\nfrom the facts %s\ncounted here %s", x.Plan, g, w)
	}
}
