package check

import (
	"context"
	"fmt"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// checkServers lists the servers of the store, and checks that they answer and run the verified
// ClickHouse release.
func (r *Report) checkServers(ctx context.Context, conn driver.Conn) {
	servers, err := schema.ReadServers(ctx, conn)
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
			r.OK("store", "ClickHouse %s on %s: %s", s.Version, s, storedSize(s))
		default:
			r.Note("store", "ClickHouse %s on %s is not verified, the tests of Lifthouse run on %s: %s", s.Version, s, schema.VerifiedRelease, storedSize(s))
		}
	}
}

// storedSize returns how much a server stores.
func storedSize(s *schema.Server) string {
	return fmt.Sprintf("%d rows of events, %d of facts, %d MB in all", s.Events, s.Facts, s.Bytes>>20)
}
