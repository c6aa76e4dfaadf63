package schema

import (
	"context"
	_ "embed" // the queries
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	//go:embed rows_twice.sql
	rowsTwice string
	//go:embed goals_uncounted.sql
	goalsUncounted string
	//go:embed derived_wrong.sql
	derivedWrong string
)

// checkRowsTries is the number of attempts of each check. While events are being
// written, an event may be visible shortly before the rows that are derived from
// it.
const checkRowsTries = 3

// CheckRows reads all events and returns the inconsistencies that it finds:
// duplicate events, unattributed goals whose rows for a subject are missing or
// have other values, and wrong live counters. It takes some seconds per ten
// million events.
func CheckRows(ctx context.Context, conn driver.Conn) (faults []string, err error) {
	if cluster, _ := Cluster(conn); cluster != "" { // all events of a visitor are on one shard
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"distributed_product_mode": "local"}))
	}
	for _, check := range []struct{ query, fault string }{
		{rowsTwice, "%d rows are duplicates and count twice; on servers, lifthouse check --remove-copies removes them"},
		{goalsUncounted, "%d unattributed goals do not count for a campaign or widget that their visitor saw before; this is a bug"},
		{derivedWrong, "%d rows of unattributed goals differ from the stored goal or precede the view they are attributed to; this is a bug"},
		{"SELECT count() FROM (\n" + wrongCounters + "\n)", "%d live counters differ from the events, for example after a process was killed; stop all writers and run lifthouse check --rebuild-counters"},
	} {
		var wrong uint64
		for range checkRowsTries {
			if err := conn.QueryRow(ctx, check.query).Scan(&wrong); err != nil {
				return nil, fmt.Errorf("check the rows: %w", err)
			}
			if wrong == 0 {
				break
			}
		}
		if wrong > 0 {
			faults = append(faults, fmt.Sprintf(check.fault, wrong))
		}
	}
	return faults, nil
}

// DiskSpace is the free and total space of a disk of the store, in bytes.
type DiskSpace struct {
	Disk        string `ch:"name"`
	Free, Total uint64
}

// Disks returns the space of each disk on which the server, or the embedded
// engine, stores tables.
func Disks(ctx context.Context, conn driver.Conn) (disks []DiskSpace, err error) {
	err = conn.Select(ctx, &disks, "SELECT name, free_space AS Free, total_space AS Total FROM system.disks ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("read the disks: %w", err)
	}
	return disks, nil
}
