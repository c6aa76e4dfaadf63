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

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DamagedPart is a part of a table that the store could not read when it
// opened and set aside, or that the manifest lists and the store lacks.
type DamagedPart struct {
	Table, Name, Path string
	Partition         string
	First, Last       int64 // numbers of the inserts whose rows it has
	Bytes             uint64
	Inserted          bool   // by one insert; else it was merged
	Continued         bool   // the ends of what it was made of are there
	Missing           bool   `ch:"-"` // its folder is not there
	Rows              uint64 `ch:"-"` // of a missing part
}

// DamagedError says that a store lacks rows that it once had, or may lack some.
type DamagedError struct {
	Parts    []DamagedPart
	Manifest error // the manifest cannot be read
}

// Error names the parts, and what can be done.
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
	list("damaged parts, which were set aside", func(p *DamagedPart) bool { return !p.Missing }, func(p *DamagedPart) string { return fmt.Sprintf("%d bytes", p.Bytes) })
	list("missing parts, whose folders disappeared", func(p *DamagedPart) bool { return p.Missing }, func(p *DamagedPart) string { return fmt.Sprintf("%d rows", p.Rows) })
	if e.Manifest != nil {
		found = append(found, e.Manifest.Error())
	}
	return "the store is not whole, so reports would lack rows; " + strings.Join(found, "; ") +
		"; restore a backup (lifthouse restore), or accept the loss with lifthouse check --drop-damaged and send the lost events again"
}

//go:embed damaged_parts.sql
var damagedParts string

// CheckDamage returns a *DamagedError where the store has set parts aside,
// lacks parts that the manifest lists, or has no readable manifest.
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
		if !damaged.hasSetAside(&p) {
			damaged.Parts = append(damaged.Parts, p)
		}
	}
	if len(damaged.Parts) == 0 && damaged.Manifest == nil {
		return nil
	}
	return &damaged
}

// hasSetAside says whether what a missing part had is in a part that was set
// aside, which is reported already.
func (e *DamagedError) hasSetAside(missing *DamagedPart) bool {
	return slices.ContainsFunc(e.Parts, func(p DamagedPart) bool {
		return !p.Missing && p.Table == missing.Table && p.Partition == missing.Partition && p.First <= missing.First && missing.Last <= p.Last
	})
}

// isRebuilt says whether the rows of the part's table are computed from the
// events, so that no loss of them is final.
func (p *DamagedPart) isRebuilt() bool {
	switch p.Table {
	case "rollups", "subject_stats", "settled": // settled: a table of earlier releases, which a migration drops
		return true
	}
	return false
}

// RepairDamage repairs what can be repaired without a loss, makes the counters
// agree, and returns the parts that it gave up; damaged keeps the others.
//
//   - Parts of tables that are computed from the events: what was computed is
//     removed and computed again.
//   - A merged part whose files are empty, as a full disk leaves them. What it
//     was made of is kept for some minutes (old_parts_lifetime), and is loaded
//     in its place when the store opens. It is dropped where both ends of that
//     are there and, unless sameBoot, the counters know of no event that is
//     missing.
//   - One of an insert that failed, and was not acknowledged. It is dropped if
//     the list of its files, which is written last, is empty. After a loss of
//     power an acknowledged one may look the same: so only if sameBoot, which
//     says that there was none since it was written.
//
// The store must be in this process, and nothing may write meanwhile.
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
		retired := true
		if isLost {
			retired, err = p.retire(ctx, conn)
		}
		if err = errors.Join(err, p.drop(ctx, conn)); err != nil {
			return repaired, err
		}
		if retired || !p.Missing { // else it was removed on purpose, by a process that was killed before it listed what was left
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

// retire removes the settled sums that a part was one of, and says whether
// there were any; counters are repaired by the caller.
func (p *DamagedPart) retire(ctx context.Context, conn driver.Conn) (bool, error) {
	switch p.Table {
	case "subject_stats":
		return true, nil
	case "settled":
		return false, nil
	}
	return DropRollups(ctx, conn, func(s *RollupState) bool { return s.Partition() == p.Partition })
}

// isUnfinished says whether the list of the part's files is empty.
func (p *DamagedPart) isUnfinished() bool {
	list, err := os.Stat(filepath.Join(p.Path, "checksums.txt"))
	return err == nil && list.Size() == 0 || errors.Is(err, os.ErrNotExist)
}

// drop removes a part that was set aside.
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

// DropDamaged accepts the loss of the damaged parts' rows. What was computed
// from them goes too: settled sums, so that they are computed again, and what
// the counters have too much. Nothing may write meanwhile.
func DropDamaged(ctx context.Context, conn driver.Conn, m *Manifest, damaged *DamagedError) error {
	if _, err := DropRollups(ctx, conn, func(*RollupState) bool { return true }); err != nil {
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

// CheckData reads every part of every table and names those whose content is
// not what was once written. It takes about a second for a gigabyte.
func CheckData(ctx context.Context, conn driver.Conn) (faults []string, err error) {
	tables, err := Names(ctx, conn, tablesWithParts)
	if err != nil {
		return nil, fmt.Errorf("check the data: %w", err)
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

// Names returns the names that a query gives, one a row.
func Names(ctx context.Context, conn driver.Conn, query string, args ...any) (names []string, err error) {
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
