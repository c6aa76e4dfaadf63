package schema

import (
	"context"
	_ "embed" // the statement
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed wrong_counters.sql
var wrongCounters string

// repairStats adds to the counters what makes them right.
var repairStats = "INSERT INTO subject_stats\n    (website_id, subject, subject_id, experiment_id, event, goal_id, rows, value, extra_value, last_ingested, newest_event)\n" + wrongCounters

const statsDigest = `
SELECT toUInt64(sum(cityHash64(*)))
FROM
(
    SELECT website_id, subject, subject_id, experiment_id, event, goal_id,
           sum(rows), sum(value), sum(extra_value), max(last_ingested), max(newest_event)
    FROM subject_counters
    GROUP BY website_id, subject, subject_id, experiment_id, event, goal_id
)`

// RepairStats makes subject_stats agree with events, of which it reads all,
// and says whether it did not. A process that was killed between the two
// leaves them apart; nothing may write meanwhile.
func RepairStats(ctx context.Context, conn driver.Conn) (changed bool, err error) {
	var before, after uint64
	if err := conn.QueryRow(ctx, statsDigest).Scan(&before); err != nil {
		return false, fmt.Errorf("read subject_stats: %w", err)
	}
	if err := conn.Exec(ctx, repairStats); err != nil {
		return false, fmt.Errorf("repair subject_stats: %w", err)
	}
	if err := conn.QueryRow(ctx, statsDigest).Scan(&after); err != nil {
		return false, fmt.Errorf("read subject_stats: %w", err)
	}
	return before != after, nil
}
