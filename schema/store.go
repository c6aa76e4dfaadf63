package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// writeSettings hold for every statement of ours. ClickHouse 26 buffers
// inserts by default, which would acknowledge rows that are not yet stored; and
// a file may span more months than the 100 partitions a block may have. Where
// a table knows its last inserts, an equal one would be dropped: only what
// carries a token of its own may be.
func writeSettings() clickhouse.Settings {
	return clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0, "max_partitions_per_insert_block": 0}
}

// serverSettings hold for every statement to servers. A look-up that other
// replicas help with, or are asked instead where one is slow, may miss rows that
// have just been stored.
func serverSettings() clickhouse.Settings {
	return clickhouse.Settings{"use_hedged_requests": 0, "enable_parallel_replicas": 0}
}

// clusterSettings hold for every statement to a cluster. Its tables are asked
// through Distributed ones: an insert is acknowledged by the shards and not by
// a queue, a look-up of visitors goes to their shards only, and all processes
// prefer the same replica of a shard, so that they see each other's rows.
// Statements that change tables wait for the replicas that are there.
func clusterSettings() clickhouse.Settings {
	return clickhouse.Settings{
		"distributed_foreground_insert":              1,
		"optimize_skip_unused_shards":                1,
		"optimize_distributed_group_by_sharding_key": 1,
		"prefer_localhost_replica":                   0,
		"load_balancing":                             "in_order",
		"alter_sync":                                 1,
		"distributed_ddl_output_mode":                "throw_only_active",
	}
}

// Connect opens the store, checks that it answers and brings its tables up to
// date.
func Connect(ctx context.Context, address Address) (driver.Conn, error) {
	conn, err := Reach(ctx, address)
	if err != nil {
		return nil, err
	}
	if err := CheckTableForm(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if _, err := Migrate(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// SameForm refuses a store whose tables are in the other form than its address
// says.
func CheckTableForm(ctx context.Context, conn driver.Conn) error {
	var of []struct {
		Engine string `ch:"engine"`
	}
	if err := conn.Select(ctx, &of, "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'events'"); err != nil {
		return fmt.Errorf("look at the tables: %w", err)
	}
	cluster, _ := Cluster(conn)
	switch {
	case len(of) == 0:
		return nil
	case of[0].Engine == "Distributed" && cluster == "":
		return errors.New("the store has the tables of a cluster: write its name into the address, ?cluster=NAME")
	case of[0].Engine != "Distributed" && cluster != "":
		return fmt.Errorf("the store has the tables of one server: leave cluster=%s out of the address, or name a new database", cluster)
	}
	return nil
}

// Reach opens the store and checks that it answers.
func Reach(ctx context.Context, address Address) (driver.Conn, error) {
	settings := writeSettings()
	if address.Dir == "" {
		maps.Copy(settings, serverSettings())
	}
	if address.Cluster != "" {
		maps.Copy(settings, clusterSettings())
	}
	maps.Copy(settings, address.Options.Settings)
	with := *address.Options
	with.Settings = settings
	if address.Dir == "" {
		with.DialStrategy = newHosts(&with).dial
	}
	conn, err := clickhouse.Open(&with)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if address.Dir == "" {
		conn = guard(conn, len(with.Addr))
	}
	if address.Cluster != "" {
		conn = clustered{conn, address.Cluster, cmp.Or(address.Options.Auth.Database, "default")}
	}
	switch err := ping(ctx, conn); {
	case ctx.Err() == nil && isTimeout(err):
		return nil, errors.Join(fmt.Errorf("reach store: no answer from %s (%w)", strings.Join(with.Addr, ", "), err), conn.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("reach store: %w", err), conn.Close())
	}
	return conn, nil
}

// ping waits for an answer for ServerMayTake. The driver itself shakes hands for
// as long as its dial timeout, whatever the context says.
func ping(ctx context.Context, conn driver.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, ServerTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(ctx) }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isTimeout says whether a server was waited for in vain.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, clickhouse.ErrAcquireConnTimeout)
}

// MostOf is the most that the user's profile on servers allows a setting to be;
// 0: it has no bound. A setting that is beyond has statements refused.
func SettingLimit(ctx context.Context, conn driver.Conn, setting string) (most int64, err error) {
	const query = `SELECT toInt64OrZero(ifNull(if(readonly != 0, value, max), ''))
		FROM system.settings
		WHERE name = {name:String}`
	if err := conn.QueryRow(ctx, query, clickhouse.Named("name", setting)).Scan(&most); err != nil {
		return 0, fmt.Errorf("look at the bounds of settings: %w", err)
	}
	return most, nil
}

// ServerMayTake is how long a server may take to answer at all.
const ServerTimeout = 10 * time.Second
