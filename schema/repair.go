package schema

import (
	"context"
	_ "embed" // the statement
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	//go:embed wrong_counters.sql
	wrongCounters string
	//go:embed late_counters.sql
	lateCounters string
	// DeleteCounters is a statement that deletes the counters of subjects with their experiments. Its
	// parameters are website_ids, subjects and subject_ids, arrays of the same length.
	//
	//go:embed delete_counters.sql
	DeleteCounters string
)

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

// RepairStats reads all events and corrects subject_stats. It reports whether a sum
// was wrong or a time too early: a process that is killed between the inserts into
// both tables leaves them inconsistent. After a deletion the counters may also have
// the time of a deleted event, which is corrected but not reported. Nothing may write
// to the store meanwhile.
func RepairStats(ctx context.Context, conn driver.Conn) (changed bool, err error) {
	var before, after uint64
	if err := conn.QueryRow(ctx, statsDigest).Scan(&before); err != nil {
		return false, fmt.Errorf("read subject_stats: %w", err)
	}
	if err := insertDifferences(ctx, conn); err != nil {
		return false, err
	}
	if err := conn.QueryRow(ctx, statsDigest).Scan(&after); err != nil {
		return false, fmt.Errorf("read subject_stats: %w", err)
	}
	if deleted, err := deleteLate(ctx, conn); err != nil || !deleted {
		return before != after, err
	}
	return before != after, insertDifferences(ctx, conn)
}

// insertDifferences inserts the differences between the events and the counters.
func insertDifferences(ctx context.Context, conn driver.Conn) error {
	if err := conn.Exec(ctx, repairStats); err != nil {
		return fmt.Errorf("repair subject_stats: %w", err)
	}
	return nil
}

// deleteLate deletes the counters of subjects whose latest events were deleted: an
// insert can only make the time of a counter later. It reports whether there were any.
func deleteLate(ctx context.Context, conn driver.Conn) (deleted bool, err error) {
	var websites, ids []int64
	var subjects []string
	err = EachRow(ctx, conn, lateCounters, func(row driver.Rows) error {
		var website, id int64
		var subject string
		err := row.Scan(&website, &subject, &id)
		websites, subjects, ids = append(websites, website), append(subjects, subject), append(ids, id)
		return err
	})
	if err != nil || len(ids) == 0 {
		return false, err
	}
	err = conn.Exec(ctx, DeleteCounters,
		clickhouse.Named("website_ids", websites), clickhouse.Named("subjects", subjects), clickhouse.Named("subject_ids", ids))
	if err != nil {
		return false, fmt.Errorf("delete counters: %w", err)
	}
	return true, AwaitDeletions(ctx, conn)
}
