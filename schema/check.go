package schema

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// CheckData verifies the checksums of every part of the events and the facts on the connected server. It returns a
// sentence for each part that cannot be read.
func CheckData(ctx context.Context, conn driver.Conn) (faults []string, err error) {
	for _, table := range []string{"events", "facts"} {
		if cluster, _ := ClusterOf(conn); cluster != "" {
			table = LocalTable(table)
		}
		err := EachRow(ctx, conn, "CHECK TABLE "+quoteIdentifier(table)+" SETTINGS check_query_single_value_result = 0", func(row driver.Rows) error {
			var part, message string
			var passed bool
			err := row.Scan(&part, &passed, &message)
			if !passed {
				faults = append(faults, fmt.Sprintf("part %s of %s: %s", part, table, message))
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("check the data of %s: %w", table, err)
		}
	}
	return faults, nil
}

// DetachedPart is a part of a table that ClickHouse has set aside, for example because it cannot read it. No query
// reads its rows.
type DetachedPart struct{ Table, Reason, Path string }

// ReadDetachedParts returns the parts that ClickHouse has set aside on the connected server, or in the embedded engine.
func ReadDetachedParts(ctx context.Context, conn driver.Conn) ([]DetachedPart, error) {
	const query = `SELECT table, ifNull(reason, ''), path
		FROM system.detached_parts
		WHERE database = currentDatabase()
		ORDER BY table, name`
	parts, err := QueryRows(ctx, conn, query, func(row driver.Rows, p *DetachedPart) error {
		return row.Scan(&p.Table, &p.Reason, &p.Path)
	})
	if err != nil {
		return nil, fmt.Errorf("read the parts that are set aside: %w", err)
	}
	return parts, nil
}

// DiskSpace is the free and total space of a disk of the store, in bytes.
type DiskSpace struct {
	Disk        string
	Free, Total uint64
}

// ReadDisks returns the space of each disk on which the server, or the embedded
// engine, stores tables.
func ReadDisks(ctx context.Context, conn driver.Conn) ([]DiskSpace, error) {
	disks, err := QueryRows(ctx, conn, "SELECT name, free_space, total_space FROM system.disks ORDER BY name", func(row driver.Rows, d *DiskSpace) error {
		return row.Scan(&d.Disk, &d.Free, &d.Total)
	})
	if err != nil {
		return nil, fmt.Errorf("read the disks: %w", err)
	}
	return disks, nil
}
