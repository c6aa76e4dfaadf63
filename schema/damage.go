package schema

import (
	"context"
	_ "embed" // the query
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DamagedPart is a part of a table that ClickHouse detached as broken when the
// store opened, or that the manifest lists and the store lacks.
type DamagedPart struct {
	Table, Name, Path string
	Partition         string
	First, Last       int64 // first and last block number
	Bytes             uint64
	Inserted          bool   // the part was written by one insert, not by a merge
	Continued         bool   // active parts contain the first and the last block
	Missing           bool   `ch:"-"` // the folder of the part does not exist
	Rows              uint64 `ch:"-"` // number of rows of a missing part
}

// RestartFirst is the first remedy of damaged parts, before another one.
const RestartFirst = "restart the server, which repairs damage from a full disk; if that fails"

// DamagedError means that a store lacks rows, or may lack rows.
type DamagedError struct {
	Parts    []DamagedPart
	Manifest error // error of a manifest that cannot be read, or nil
}

// Error names the damaged and missing parts and the possible remedies.
func (e *DamagedError) Error() string {
	var found []string
	list := func(what string, is func(*DamagedPart) bool, size func(*DamagedPart) string) {
		var parts []string
		for i := range e.Parts {
			if p := &e.Parts[i]; is(p) {
				parts = append(parts, fmt.Sprintf("%s of %s (%s)", p.Name, p.Table, size(p)))
			}
		}
		if len(parts) > 0 {
			found = append(found, what+": "+strings.Join(parts, ", "))
		}
	}
	list("damaged parts, which are detached", func(p *DamagedPart) bool { return !p.Missing }, func(p *DamagedPart) string { return fmt.Sprintf("%d bytes", p.Bytes) })
	list("missing parts, whose folders do not exist", func(p *DamagedPart) bool { return p.Missing }, func(p *DamagedPart) string { return fmt.Sprintf("%d rows", p.Rows) })
	if e.Manifest != nil {
		found = append(found, e.Manifest.Error())
	}
	return "the store is damaged, so reports would lack rows; " + strings.Join(found, "; ") +
		"; restore a backup (lifthouse restore), or accept the loss with lifthouse check --drop-damaged and send the lost events again"
}

//go:embed damaged_parts.sql
var damagedParts string

// CheckDamage returns a *DamagedError if the store has broken detached parts,
// lacks parts that the manifest lists, or has an unreadable manifest.
func CheckDamage(ctx context.Context, conn driver.Conn, m *Manifest) error {
	var damaged DamagedError
	if err := conn.Select(ctx, &damaged.Parts, damagedParts); err != nil {
		return fmt.Errorf("look for damaged parts: %w", err)
	}
	missing, err := m.missing(ctx)
	switch {
	case errors.Is(err, errManifest):
		damaged.Manifest = err
	case err != nil:
		return err
	}
	for _, p := range missing {
		if !damaged.isDetached(&p) {
			damaged.Parts = append(damaged.Parts, p)
		}
	}
	if len(damaged.Parts) == 0 && damaged.Manifest == nil {
		return nil
	}
	return &damaged
}

// isDetached reports whether the blocks of a missing part are in a detached part,
// which is reported already.
func (e *DamagedError) isDetached(missing *DamagedPart) bool {
	return slices.ContainsFunc(e.Parts, func(p DamagedPart) bool {
		return !p.Missing && p.Table == missing.Table && p.Partition == missing.Partition && p.First <= missing.First && missing.Last <= p.Last
	})
}

// isRebuilt reports whether the rows of the part's table are computed from the
// events, so that they can be rebuilt.
func (p *DamagedPart) isRebuilt() bool {
	switch p.Table {
	case "subject_stats", "settled": // earlier releases have the table settled, which a migration drops
		return true
	}
	return slices.Contains(RollupTables, p.Table)
}

// RollupTables are the tables that the rollup refresh keeps, first the one with the
// states, which the others depend on. Their partitions are buckets.
var RollupTables = []string{"rollups", "exposures", "conversions"}

// RepairDamage repairs the damage that loses no rows and corrects the counters.
// It returns the parts that it repaired, as "NAME of TABLE"; damaged keeps the
// other parts. It repairs:
//
//   - Parts of tables that are computed from the events. The computed rows are
//     dropped, to be rebuilt.
//   - Merged parts with empty files, which a full disk leaves. ClickHouse keeps
//     the source parts of a merge for some minutes (old_parts_lifetime) and
//     loads them when the store opens. The merged part is dropped if active
//     parts contain its first and last block. Unless sameBoot, the counters must
//     also show that no event is missing.
//   - Parts of inserts that failed and were not acknowledged. Such a part is
//     dropped if its list of files, which is written last, is empty. After a
//     power failure an acknowledged part may look the same, so these parts are
//     only dropped if sameBoot.
//
// sameBoot means that the machine has not restarted since the store was last
// open. The store must be embedded, and nothing may write to it meanwhile.
func RepairDamage(ctx context.Context, conn driver.Conn, m *Manifest, damaged *DamagedError, sameBoot bool) (repaired []string, err error) {
	var missing uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM (\n"+wrongCounters+"\n) WHERE reinterpretAsInt64(missing_rows) < 0").Scan(&missing); err != nil {
		return nil, fmt.Errorf("look for missing events: %w", err)
	}
	var lost []DamagedPart
	for _, p := range damaged.Parts {
		isLost := p.Missing || !p.Continued || !sameBoot && missing > 0
		if p.Inserted {
			isLost = !sameBoot || !p.isUnfinished()
		}
		if isLost && !p.isRebuilt() {
			lost = append(lost, p)
			continue
		}
		dropped := true
		if isLost {
			dropped, err = p.dropRebuilt(ctx, conn)
		}
		if err = errors.Join(err, p.drop(ctx, conn)); err != nil {
			return repaired, err
		}
		if dropped || !p.Missing { // otherwise a process dropped the part and was killed before it updated the manifest
			repaired = append(repaired, p.Name+" of "+p.Table)
		}
	}
	damaged.Parts = lost
	if len(repaired) == 0 {
		return nil, nil
	}
	if _, err = RepairStats(ctx, conn); err == nil && len(lost) == 0 && damaged.Manifest == nil {
		m.Update(ctx)
	}
	return repaired, err
}

// dropRebuilt drops the rows computed from the events that are useless without the
// part: the states and cells of a bucket, or everything that the rollup refresh
// keeps, because a state refers to the rows of visitors. It reports whether there
// were any. The caller repairs the counters.
func (p *DamagedPart) dropRebuilt(ctx context.Context, conn driver.Conn) (bool, error) {
	switch p.Table {
	case "subject_stats":
		return true, nil
	case "settled":
		return false, nil
	case "exposures", "conversions":
		var states uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM rollups WHERE is_cell = 0").Scan(&states); err != nil {
			return false, fmt.Errorf("look for rollups: %w", err)
		}
		if states == 0 { // a migration has just created the tables
			return false, nil
		}
		return true, dropAllRollups(ctx, conn)
	}
	var parts uint64
	if err := conn.QueryRow(ctx, countParts, clickhouse.Named("table", p.Table), clickhouse.Named("partition", p.Partition)).Scan(&parts); err != nil {
		return false, fmt.Errorf("look for the other parts of %s of %s: %w", p.Partition, p.Table, err)
	}
	if parts == 0 {
		return false, nil
	}
	if err := conn.Exec(ctx, "ALTER TABLE "+identifier(p.Table)+" DROP PARTITION ID {id:String}", clickhouse.Named("id", p.Partition)); err != nil {
		return false, fmt.Errorf("drop %s of %s: %w", p.Partition, p.Table, err)
	}
	return true, nil
}

// dropAllRollups drops everything that the rollup refresh keeps. The states are
// dropped first.
func dropAllRollups(ctx context.Context, conn driver.Conn) error {
	for _, table := range RollupTables {
		if err := conn.Exec(ctx, "TRUNCATE TABLE IF EXISTS "+table); err != nil {
			return fmt.Errorf("drop all rollups: %w", err)
		}
	}
	return nil
}

const countParts = `
SELECT count()
FROM system.parts
WHERE database = currentDatabase() AND table = {table:String} AND partition_id = {partition:String} AND active AND rows > 0`

// isUnfinished reports whether the part's list of files is empty or missing.
func (p *DamagedPart) isUnfinished() bool {
	list, err := os.Stat(filepath.Join(p.Path, "checksums.txt"))
	return err == nil && list.Size() == 0 || errors.Is(err, os.ErrNotExist)
}

// drop removes a detached part. It does nothing if the part is missing.
func (p *DamagedPart) drop(ctx context.Context, conn driver.Conn) error {
	if p.Missing {
		return nil
	}
	statement := "ALTER TABLE " + identifier(p.Table) + " DROP DETACHED PART " + quoted(p.Name) + " SETTINGS allow_drop_detached = 1"
	if err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("drop part %s of %s: %w", p.Name, p.Table, err)
	}
	return nil
}

// DropDamaged drops the damaged parts and accepts the loss of their rows. It also
// drops all rollups, which are rebuilt, and corrects the counters. Nothing may
// write to the store meanwhile.
func DropDamaged(ctx context.Context, conn driver.Conn, m *Manifest, damaged *DamagedError) error {
	if err := dropAllRollups(ctx, conn); err != nil {
		return err
	}
	for _, p := range damaged.Parts {
		if err := p.drop(ctx, conn); err != nil {
			return err
		}
	}
	if _, err := RepairStats(ctx, conn); err != nil {
		return err
	}
	m.Update(ctx)
	return nil
}

const tablesWithParts = `
SELECT name
FROM system.tables
WHERE database = currentDatabase() AND engine LIKE '%MergeTree'
ORDER BY name`

// CheckData verifies the checksums of all parts of all tables and returns a
// message per damaged part. It takes about a second per gigabyte.
func CheckData(ctx context.Context, conn driver.Conn) (faults []string, err error) {
	tables, err := QueryNames(ctx, conn, tablesWithParts)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	for _, table := range tables {
		var parts []struct {
			Part    string `ch:"part_path"`
			Passed  bool   `ch:"is_passed"`
			Message string `ch:"message"`
		}
		if err := conn.Select(ctx, &parts, "CHECK TABLE `"+table+"` SETTINGS check_query_single_value_result = 0"); err != nil {
			return nil, fmt.Errorf("check the data of %s: %w", table, err)
		}
		for _, p := range parts {
			if !p.Passed {
				faults = append(faults, fmt.Sprintf("part %s of %s: %s", p.Part, table, p.Message))
			}
		}
	}
	return faults, nil
}

// QueryNames returns the values of a query with one string column.
func QueryNames(ctx context.Context, conn driver.Conn, query string, args ...any) (names []string, err error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
