package schema

import (
	"context"
	_ "embed" // the query
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DamagedPart is a part of a table that the store could not read when it
// opened, and set aside.
type DamagedPart struct {
	Table, Name, Path string
	Bytes             uint64
	Inserted          bool // by one insert; else it was merged
	Continued         bool // the ends of what it was made of are there
}

// DamagedError says that a store lacks rows that it once had.
type DamagedError struct{ Parts []DamagedPart }

// Error names the parts, and what can be done.
func (e *DamagedError) Error() string {
	var parts []string
	for _, p := range e.Parts {
		parts = append(parts, fmt.Sprintf("%s of %s (%d bytes)", p.Name, p.Table, p.Bytes))
	}
	return "the store has damaged parts and set them aside, so its reports would lack what was in them: " + strings.Join(parts, ", ") +
		"; restore a backup (lifthouse restore), or go on without these rows: lifthouse check --drop-damaged, and send again what you have"
}

//go:embed damaged_parts.sql
var damagedParts string

// Heal drops those of the damaged parts of which nothing is lost, makes the
// counters agree, and returns what it dropped; damaged keeps the others. A disk
// that is full may leave parts of which the files are empty:
//
//   - A merged one. What it was made of is kept for some minutes
//     (old_parts_lifetime), and is loaded in its place when the store opens. It
//     is dropped where both ends of that are there and, unless sameBoot, the
//     counters know of no event that is missing.
//   - One of an insert that failed, and was not acknowledged. It is dropped if
//     the list of its files, which is written last, is empty. After a loss of
//     power an acknowledged one may look the same: so only if sameBoot, which
//     says that there was none since it was written.
//
// Its store is in this process, and nothing may write meanwhile.
func Heal(ctx context.Context, conn driver.Conn, damaged *DamagedError, sameBoot bool) (healed []string, err error) {
	var missing uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM (\n"+wrongCounters+"\n) WHERE reinterpretAsInt64(missing_rows) < 0").Scan(&missing); err != nil {
		return nil, fmt.Errorf("look for missing events: %w", err)
	}
	var lost []DamagedPart
	for _, p := range damaged.Parts {
		isLost := !p.Continued || !sameBoot && missing > 0
		if p.Inserted {
			isLost = !sameBoot || !p.isUnfinished()
		}
		if isLost {
			lost = append(lost, p)
			continue
		}
		if err := p.drop(ctx, conn); err != nil {
			return healed, err
		}
		healed = append(healed, p.Name+" of "+p.Table)
	}
	damaged.Parts = lost
	if len(healed) > 0 {
		_, err = RepairStats(ctx, conn)
	}
	return healed, err
}

// isUnfinished says whether the list of the part's files is empty.
func (p *DamagedPart) isUnfinished() bool {
	list, err := os.Stat(filepath.Join(p.Path, "checksums.txt"))
	return err == nil && list.Size() == 0 || errors.Is(err, os.ErrNotExist)
}

func (p *DamagedPart) drop(ctx context.Context, conn driver.Conn) error {
	statement := "ALTER TABLE " + identifier(p.Table) + " DROP DETACHED PART " + quoted(p.Name) + " SETTINGS allow_drop_detached = 1"
	if err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("drop part %s of %s: %w", p.Name, p.Table, err)
	}
	return nil
}

// Undamaged returns a *DamagedError where the store has set parts aside.
func Undamaged(ctx context.Context, conn driver.Conn) error {
	var parts []DamagedPart
	if err := conn.Select(ctx, &parts, damagedParts); err != nil {
		return fmt.Errorf("look for damaged parts: %w", err)
	}
	if len(parts) > 0 {
		return &DamagedError{parts}
	}
	return nil
}

// DropDamaged gives up the rows of the parts that were set aside, and makes the
// counters agree with what is left. Nothing may write meanwhile.
func DropDamaged(ctx context.Context, conn driver.Conn, damaged *DamagedError) error {
	for _, p := range damaged.Parts {
		if err := p.drop(ctx, conn); err != nil {
			return err
		}
	}
	_, err := RepairStats(ctx, conn)
	return err
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
