package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// EventsEngine says what the table of events allows.
type EventsEngine struct {
	// OneServer: the table is of a single server, so mutations may read other tables.
	OneServer bool
	// BlocksOrdered: the server numbers the blocks of the table in the order in which they
	// become visible. Its release commits a part under the lock under which it numbers the
	// part's block (MergeTreeSink::commitPart), which is known of the verified release only.
	// Replicas number blocks before they are visible.
	BlocksOrdered bool
}

// ReadEventsEngine returns what the table of events allows.
func ReadEventsEngine(ctx context.Context, conn driver.Conn) (EventsEngine, error) {
	if cluster, _ := Cluster(conn); cluster != "" {
		return EventsEngine{}, nil
	}
	var engine, version string
	const query = "SELECT engine, version() FROM system.tables WHERE database = currentDatabase() AND name = 'events'"
	if err := conn.QueryRow(ctx, query).Scan(&engine, &version); err != nil {
		return EventsEngine{}, fmt.Errorf("read the engine of events: %w", err)
	}
	one := !strings.HasPrefix(engine, "Replicated") && !strings.HasPrefix(engine, "Shared")
	return EventsEngine{OneServer: one, BlocksOrdered: one && IsVerified(version)}, nil
}
