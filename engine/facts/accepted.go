package facts

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// SyncedThrough returns the time up to which the facts of all servers with events have all events; zero: there are
// none.
func (s Shards) SyncedThrough() (first time.Time) {
	for _, shard := range s {
		at := shard.ShownPosition()
		if at.Through > 0 && (first.IsZero() || at.FoldedThrough().Before(first)) {
			first = at.FoldedThrough()
		}
	}
	return first
}

// Acceptances are the times at which the newest folded events of the visitors of each subject were accepted. They are
// the same in all processes. The zero value has read nothing.
type Acceptances struct {
	mu      sync.Mutex // guards the following
	through time.Time  // what was read
	of      map[schema.Subject]time.Time
}

// ReadNewest reads the times of all subjects with events. After the first call, it reads the visitors with newer events
// only.
func (a *Acceptances) ReadNewest(ctx context.Context, s Shards) (map[schema.Subject]time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	through := s.FoldedThrough()
	if through.Equal(a.through) && a.of != nil {
		return maps.Clone(a.of), nil
	}
	isAny := func(*server) string { return "true" }
	hasNewer := func(on *server) string { return on.render("has_newer.sql", "") }
	condition := isAny
	after := int64(0)
	if a.of != nil {
		condition = hasNewer
		after = max(a.through.Add(-overlap).UnixMilli(), 0)
	}
	params := []any{clickhouse.Named("through", through.UnixMilli()), clickhouse.Named("after", after)}
	statement := func(on *server) string { return on.render("accepted.sql", condition(on)) }
	found := map[schema.Subject]time.Time{}
	maps.Copy(found, a.of)
	err := s.eachServer(ctx, statement, func(row driver.Rows) error {
		var of schema.Subject
		var kind string
		var newest int64
		err := row.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID, &newest)
		of.Kind = schema.SubjectKind(kind)
		found[of] = schema.LaterTime(found[of], time.UnixMilli(newest).UTC())
		return err
	}, params...)
	if err != nil {
		return nil, fmt.Errorf("read when events were accepted: %w", err)
	}
	a.of, a.through = found, through
	return maps.Clone(found), nil
}
