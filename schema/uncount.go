package schema

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// counter is a row of subject_stats.
type counter struct {
	websiteID               int64
	subject                 Subject
	subjectID, experimentID int64
	kind                    Kind
	goalID                  int64
}

type counted struct {
	rows              uint64
	value, extraValue int64 // of the few events of a batch: no sum of them overflows
}

// UncountEvents takes the events out of subject_stats, whose view sees only
// what is inserted into events, and not what is removed. A token of its own has an
// insert stored that is equal to an earlier one, another server's of the same
// numbers.
func UncountEvents(ctx context.Context, conn driver.Conn, events []Event) error {
	counts := map[counter]counted{}
	for i := range events {
		e := &events[i]
		at := counter{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID, e.Kind, e.GoalID}
		c := counts[at]
		counts[at] = counted{c.rows + 1, c.value + e.Value, c.extraValue + e.ExtraValue}
	}
	batch, err := conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplicate": 0, "insert_deduplication_token": rand.Text()})), `INSERT INTO subject_stats (website_id, subject, subject_id, experiment_id, event, goal_id,
		rows, value, extra_value, last_ingested, newest_event)`)
	if err != nil {
		return fmt.Errorf("take events out of subject_stats: %w", err)
	}
	defer func() { _ = batch.Close() }()
	none := time.UnixMilli(0).UTC() // the maxima stay
	for at, c := range counts {
		if err := batch.Append(at.websiteID, string(at.subject), at.subjectID, at.experimentID, string(at.kind), at.goalID,
			-c.rows, big.NewInt(-c.value), big.NewInt(-c.extraValue), none, none); err != nil { // rows wraps: adding 2^64 - n takes n away
			return fmt.Errorf("take events out of subject_stats: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("take events out of subject_stats: %w", err)
	}
	return nil
}
