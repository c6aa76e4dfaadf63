package check

import (
	"context"
	"fmt"
	"time"

	"lifthouse/engine"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// servers lists the servers of the store, and checks that they answer and have the release of
// ClickHouse that is verified.
func (r *Report) servers(ctx context.Context, conn driver.Conn) {
	servers, err := schema.Servers(ctx, conn)
	if err != nil {
		r.Note("store", "%v", err)
		return
	}
	for i := range servers {
		s := &servers[i]
		switch {
		case !s.Answers:
			r.Fault("store", fmt.Errorf("%s does not answer; reports use the other replicas of its shard", s))
		case schema.IsVerified(s.Version):
			r.OK("store", "ClickHouse %s on %s: %s", s.Version, s, size(s))
		default:
			r.Note("store", "ClickHouse %s on %s is not verified, the tests of Lifthouse run on %s: %s", s.Version, s, schema.VerifiedRelease, size(s))
		}
	}
}

// size returns how much a server stores.
func size(s *schema.Server) string {
	return fmt.Sprintf("%d rows of events, %d of rollups, %d MB in all", s.Events, s.Rollups, s.Bytes>>20)
}

// activity prints which process last began to refresh the rollups of a server, and whether a
// removal of events has not ended.
func (r *Report) activity(ctx context.Context, e *engine.Engine, rollups int) {
	a, err := e.Rollups.Activity(ctx)
	switch {
	case err != nil:
		r.Fault("rollups", err)
		return
	case a == nil:
		return
	case a.RefreshedBy == "":
		r.OK("rollups", "of %d campaigns and widgets", rollups)
	default:
		r.OK("rollups", "of %d campaigns and widgets; the process %s last began to refresh some, at %s", rollups, a.RefreshedBy, a.Refreshed.Format(time.RFC3339))
	}
	if a.Removals > 0 {
		r.Note("rollups", "a removal of events by the process %s has not ended since %s; if that process does not run any more, repeat its command (forget, retain)",
			a.BegunBy, a.Began.Format(time.RFC3339))
	}
}
