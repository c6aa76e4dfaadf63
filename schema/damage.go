package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DamagedPart is a part of a table that the store could not read when it
// opened, and set aside.
type DamagedPart struct {
	Table, Name string
	Bytes       uint64
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

const damagedParts = `
SELECT table, name, bytes_on_disk
FROM system.detached_parts
WHERE database = currentDatabase() AND startsWith(reason, 'broken')
ORDER BY table, name`

// Undamaged returns a *DamagedError where the store has set parts aside.
func Undamaged(ctx context.Context, conn driver.Conn) error {
	var parts []DamagedPart
	rows, err := conn.Query(ctx, damagedParts)
	if err != nil {
		return fmt.Errorf("look for damaged parts: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p DamagedPart
		if err := rows.Scan(&p.Table, &p.Name, &p.Bytes); err != nil {
			return fmt.Errorf("look for damaged parts: %w", err)
		}
		parts = append(parts, p)
	}
	if err := rows.Err(); err != nil {
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
		statement := "ALTER TABLE `" + p.Table + "` DROP DETACHED PART " + quoted(p.Name) + " SETTINGS allow_drop_detached = 1"
		if err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("drop part %s of %s: %w", p.Name, p.Table, err)
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
	tables, err := namesOf(ctx, conn, tablesWithParts)
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

// namesOf returns the names that a query gives, one a row.
func namesOf(ctx context.Context, conn driver.Conn, query string, args ...any) (names []string, err error) {
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
