package schema

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// removalTables are the tables from which a deletion of visitors or subjects
// removes rows.
var removalTables = []string{"events", "subject_stats"}

// BeginRemoval creates a file that marks a deletion of events as running. If the
// file exists when the store opens, FinishRemoval finishes the deletion.
func (m *Manifest) BeginRemoval() error {
	if m == nil {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(m.dir, removalFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("begin a deletion: %w", err)
	}
	if m.sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// EndRemoval updates the manifest and removes the file of BeginRemoval.
func (m *Manifest) EndRemoval(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if err := m.update(ctx, nil); err != nil {
		return fmt.Errorf("list the parts after a deletion: %w", err)
	}
	if err := os.Remove(filepath.Join(m.dir, removalFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("end a deletion: %w", err)
	}
	return nil
}

// removalPending reports whether a deletion began and did not end.
func (m *Manifest) removalPending() bool {
	_, err := os.Stat(filepath.Join(m.dir, removalFile))
	return err == nil
}

// Deletion is the state of the unfinished deletions of a store.
type Deletion struct {
	Statements uint64 // number of unfinished deletions
	Parts      int64  // number of parts that remain to be rewritten
	Failure    string // reason of the latest failure; empty if none failed
}

const unfinishedDeletions = `
SELECT count(), sum(parts_to_do), anyIf(latest_fail_reason, latest_fail_reason != '')
FROM %s
WHERE database = currentDatabase() AND NOT is_done`

// UnfinishedDeletions returns the state of the unfinished deletions. ClickHouse
// resumes them after a restart.
func UnfinishedDeletions(ctx context.Context, conn driver.Conn) (d Deletion, err error) {
	of := "system.mutations"
	if cluster, _ := Cluster(conn); cluster != "" { // of the active replicas
		of = "clusterAllReplicas(" + quoted(cluster) + ", system.mutations)"
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"skip_unavailable_shards": 1}))
	}
	if err := conn.QueryRow(ctx, fmt.Sprintf(unfinishedDeletions, of)).Scan(&d.Statements, &d.Parts, &d.Failure); err != nil {
		return d, fmt.Errorf("read unfinished deletions: %w", err)
	}
	return d, nil
}

const (
	deletionPoll   = 20 * time.Millisecond
	deletionReport = 5 * time.Second
	// deletionStuck is the time without progress after which a failing deletion
	// is an error.
	deletionStuck = 15 * time.Second
)

// AwaitDeletions waits until the active replicas of a cluster have executed all
// deletions. An inactive replica executes them when it is active again. On a
// single server it does nothing, because the statements themselves wait.
func AwaitDeletions(ctx context.Context, conn driver.Conn) error {
	if cluster, _ := Cluster(conn); cluster == "" {
		return nil
	}
	if err := awaitDeletions(ctx, conn, func(Deletion) {}); err != nil {
		return fmt.Errorf("a deletion on a replica failed: %w", err)
	}
	return nil
}

// awaitDeletions waits until no deletion is unfinished, and calls report every
// few seconds. It returns an error if a deletion fails without progress.
func awaitDeletions(ctx context.Context, conn driver.Conn, report func(Deletion)) error {
	tick := time.NewTicker(deletionPoll)
	defer tick.Stop()
	moved, reported := time.Now(), time.Now()
	for last := (Deletion{}); ; {
		d, err := UnfinishedDeletions(ctx, conn)
		if err != nil || d.Statements == 0 {
			return err
		}
		if d.Parts != last.Parts || d.Failure == "" {
			last, moved = d, time.Now()
		}
		if time.Since(moved) > deletionStuck {
			return fmt.Errorf("%d parts remain: %s", d.Parts, d.Failure)
		}
		if time.Since(reported) > deletionReport {
			report(d)
			reported = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// FinishRemoval waits for the deletions that a killed process left unfinished,
// then corrects the counters and the manifest. It passes progress messages to
// report, and reports whether there was an unfinished deletion. The store must
// have no other writer.
func FinishRemoval(ctx context.Context, conn driver.Conn, m *Manifest, report func(format string, args ...any)) (finished bool, err error) {
	d, err := UnfinishedDeletions(ctx, conn)
	if err != nil || d.Statements == 0 && !m.removalPending() {
		return false, err
	}
	report("finishing an interrupted deletion of events")
	err = awaitDeletions(ctx, conn, func(d Deletion) { report("finishing an interrupted deletion of events: %d parts remain", d.Parts) })
	if err != nil {
		return false, fmt.Errorf("an interrupted deletion of events cannot be finished: %w; remove the cause, for example a full disk, and restart", err)
	}
	if _, err := RepairStats(ctx, conn); err != nil {
		return false, err
	}
	return true, m.EndRemoval(ctx)
}
