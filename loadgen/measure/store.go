package measure

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Insertion is the result of inserting the standard data set into a store.
type Insertion struct {
	Scale           float64 `json:"scale"`
	Visitors        int     `json:"visitors"`
	Events          int     `json:"events"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
}

// MergeParts merges the parts of the events table, which the store otherwise
// merges in the background.
func MergeParts(ctx context.Context, conn driver.Conn) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE events FINAL SETTINGS optimize_skip_merged_partitions = 1")
}

// WaitForMerges returns once the store has run no merge for 3 seconds, so that
// background merges do not distort a measurement.
func WaitForMerges(ctx context.Context, conn driver.Conn) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for idle := 0; idle < 3; {
		var merges uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return err
		}
		if idle++; merges > 0 {
			idle = 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
