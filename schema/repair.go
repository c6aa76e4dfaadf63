package schema

import (
	"context"
	_ "embed" // the statement
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed wrong_counters.sql
var wrongCounters string

// repairStats inserts the differences between the events and the counters.
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

// RepairStats reads all events and corrects subject_stats. It reports whether
// subject_stats was wrong: a process that is killed between the inserts into both
// tables leaves them inconsistent. Nothing may write to the store meanwhile.
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
