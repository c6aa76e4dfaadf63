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

// checkRowsTries is how often a fault is looked for again: of a store that is
// written to, an event may be there a moment before all that follows from it.
const checkRowsTries = 3

// CheckRows reads every event and returns what does not follow from them as it
// should: events that are stored twice, goals that name no exposure and do not
// count where they should or count with other content, live counters that are
// wrong. It takes some seconds for each ten million events.
func CheckRows(ctx context.Context, conn driver.Conn) (faults []string, err error) {
	if cluster, _ := Cluster(conn); cluster != "" { // a visitor's events lie on one shard
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"distributed_product_mode": "local"}))
	}
	for _, check := range []struct{ query, fault string }{
		{rowsTwice, "%d rows are copies of others, and count twice; on servers lifthouse check --remove-copies removes them"},
		{goalsUncounted, "%d goals that name no exposure do not count for a campaign or widget whose visitor saw it before; this is our fault"},
		{derivedWrong, "%d rows of goals that name no exposure differ from the stored goal or precede the views they count for; this is our fault"},
		{"SELECT count() FROM (\n" + wrongCounters + "\n)", "%d live counters differ from the events, as after a process that was killed; lifthouse check --rebuild-counters makes them right while nothing writes"},
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

// Room is how much of a disk of the store is free, in bytes.
type Room struct {
	Disk        string `ch:"name"`
	Free, Total uint64
}

// Disks returns the room on each disk that the server, or this process, keeps
// tables on.
func Disks(ctx context.Context, conn driver.Conn) (disks []Room, err error) {
	err = conn.Select(ctx, &disks, "SELECT name, free_space AS Free, total_space AS Total FROM system.disks ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("look at the disks: %w", err)
	}
	return disks, nil
}
