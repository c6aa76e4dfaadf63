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

// tablesOfRemovals are those that lose rows when visitors or subjects are
// removed.
var tablesOfRemovals = []string{"events", "subject_stats"}

// BeginRemoval notes that events are about to be removed: whoever finds the
// note when the store opens finishes the removal first.
func (m *Manifest) BeginRemoval() error {
	if m == nil {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(m.dir, removalFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("note a removal: %w", err)
	}
	if m.sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// EndRemoval lists the parts that are left and takes the note away.
func (m *Manifest) EndRemoval(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if err := m.update(ctx, nil); err != nil {
		return fmt.Errorf("list the parts after a removal: %w", err)
	}
	if err := os.Remove(filepath.Join(m.dir, removalFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("end a removal: %w", err)
	}
	return nil
}

// removing says whether a removal began and did not end.
func (m *Manifest) removing() bool {
	_, err := os.Stat(filepath.Join(m.dir, removalFile))
	return err == nil
}

// Deletion is the state of the deletions that the store has yet to carry out.
type Deletion struct {
	Statements uint64 // deletions that are unfinished
	Parts      int64  // parts of tables that they have yet to rewrite
	Failure    string // why the last attempt at one failed; empty: none did
}

const unfinishedDeletions = `
SELECT count(), sum(parts_to_do), anyIf(latest_fail_reason, latest_fail_reason != '')
FROM %s
WHERE database = currentDatabase() AND NOT is_done`

// UnfinishedDeletions returns what the store has yet to delete. Deletions
// outlive a killed process: the store resumes them by itself.
func UnfinishedDeletions(ctx context.Context, conn driver.Conn) (d Deletion, err error) {
	of := "system.mutations"
	if cluster, _ := Cluster(conn); cluster != "" { // of the replicas that are there
		of = "clusterAllReplicas(" + quoted(cluster) + ", system.mutations)"
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"skip_unavailable_shards": 1}))
	}
	if err := conn.QueryRow(ctx, fmt.Sprintf(unfinishedDeletions, of)).Scan(&d.Statements, &d.Parts, &d.Failure); err != nil {
		return d, fmt.Errorf("look for unfinished deletions: %w", err)
	}
	return d, nil
}

const (
	deletionPoll   = 20 * time.Millisecond
	deletionReport = 5 * time.Second
	// deletionStuck is how long a deletion may fail without progress before
	// the store is refused.
	deletionStuck = 15 * time.Second
)

// AwaitDeletions returns when the replicas of a cluster that are there have
// carried out the deletions that one of them took on. One that is away carries
// them out when it is back. One server is waited for by the statements
// themselves.
func AwaitDeletions(ctx context.Context, conn driver.Conn) error {
	if cluster, _ := Cluster(conn); cluster == "" {
		return nil
	}
	if err := awaitDeletions(ctx, conn, func(Deletion) {}); err != nil {
		return fmt.Errorf("a replica cannot delete: %w", err)
	}
	return nil
}

// awaitDeletions returns when no deletion is left, and reports from time to
// time what is. One that fails without progress is an error.
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
			return fmt.Errorf("%d parts are left: %s", d.Parts, d.Failure)
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

// FinishRemoval waits for deletions that a killed process left unfinished,
// and then makes the counters and the manifest agree with the events that are
// left. It reports what it waits for, and says whether there was anything to
// finish. The store must have no other writer.
func FinishRemoval(ctx context.Context, conn driver.Conn, m *Manifest, report func(format string, args ...any)) (finished bool, err error) {
	d, err := UnfinishedDeletions(ctx, conn)
	if err != nil || d.Statements == 0 && !m.removing() {
		return false, err
	}
	report("finishing a deletion of events that was interrupted")
	err = awaitDeletions(ctx, conn, func(d Deletion) { report("the deletion goes on: %d parts are left", d.Parts) })
	if err != nil {
		return false, fmt.Errorf("a deletion of events was interrupted and cannot be finished: %w; remove the cause (a full disk?) and start again", err)
	}
	if _, err := RepairStats(ctx, conn); err != nil {
		return false, err
	}
	return true, m.EndRemoval(ctx)
}
