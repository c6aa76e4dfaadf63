// Package schema defines the tables of a store: migrations, connections to embedded stores and to ClickHouse servers,
// and the event row.
package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// writeSettings returns the settings of every statement. ClickHouse 26 buffers inserts by default (async_insert), which
// acknowledges rows before they are stored. insert_deduplicate is off because it drops an insert that equals a recent
// one. Only inserts with their own deduplication token enable it. An import may span more months than the default
// maximum of 100 partitions per block.
func writeSettings() clickhouse.Settings {
	return clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0, "max_partitions_per_insert_block": 0}
}

// serverSettings returns the additional settings of every statement to a server. Hedged requests and parallel replicas
// are off: a replica may lack rows that were just stored.
func serverSettings() clickhouse.Settings {
	return clickhouse.Settings{"use_hedged_requests": 0, "enable_parallel_replicas": 0}
}

// OpenMigrated opens a store, checks that it responds, and runs pending migrations.
func OpenMigrated(ctx context.Context, address Address) (driver.Conn, error) {
	conn, err := OpenConnection(ctx, address)
	if err != nil {
		return nil, err
	}
	err = CheckTableForm(ctx, conn)
	if err == nil {
		_, err = Migrate(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// CheckTableForm returns an error if the store has the tables of a cluster and the address has no cluster, or vice
// versa.
func CheckTableForm(ctx context.Context, conn driver.Conn) error {
	const query = "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'events'"
	of, err := QueryRows(ctx, conn, query, func(row driver.Rows, engine *string) error { return row.Scan(engine) })
	if err != nil {
		return fmt.Errorf("read the tables: %w", err)
	}
	cluster, _ := ClusterOf(conn)
	switch {
	case len(of) == 0:
		return nil
	case of[0] == "Distributed" && cluster == "":
		return errors.New("the store has the tables of a cluster: add the cluster to the address, ?cluster=NAME")
	case of[0] != "Distributed" && cluster != "":
		return fmt.Errorf("the store has the tables of one server: remove cluster=%s from the address, or use a new "+
			"database", cluster)
	}
	return nil
}

// OpenConnection opens a store and checks that it responds. It does not run migrations.
func OpenConnection(ctx context.Context, address Address) (driver.Conn, error) {
	settings := writeSettings()
	if address.Dir == "" {
		maps.Copy(settings, serverSettings())
	}
	if address.Cluster != "" {
		// The tables are read and written through Distributed tables. The shards acknowledge an insert, not a queue. A
		// query by visitor goes only to the shards of these visitors. All processes prefer the same replica of a shard,
		// so they read each other's rows. ALTER and ON CLUSTER statements wait for the active replicas.
		maps.Copy(settings, clickhouse.Settings{
			"distributed_foreground_insert": 1, "optimize_skip_unused_shards": 1,
			"optimize_distributed_group_by_sharding_key": 1, "prefer_localhost_replica": 0,
			"load_balancing": "in_order", "alter_sync": 1, "distributed_ddl_output_mode": "throw_only_active",
		})
	}
	maps.Copy(settings, address.Options.Settings)
	with := *address.Options
	with.Settings = settings
	if address.Dir == "" {
		setDialing(&with)
	}
	conn, err := clickhouse.Open(&with)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if address.Dir == "" {
		conn = newGuarded(conn, len(with.Addr))
	}
	if address.Cluster != "" {
		conn = clustered{conn, address.Cluster, cmp.Or(address.Options.Auth.Database, "default")}
	}
	err = pingStore(ctx, conn)
	network, isNetwork := errors.AsType[net.Error](err)
	isTimeout := isNetwork && network.Timeout() || errors.Is(err, clickhouse.ErrAcquireConnTimeout)
	switch {
	case isTimeout && ctx.Err() == nil:
		return nil, errors.Join(fmt.Errorf("connect to the store: no answer from %s (%w)",
			strings.Join(with.Addr, ", "), err), conn.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("connect to the store: %w", err), conn.Close())
	}
	return conn, nil
}

// pingStore waits up to ServerTimeout for a response. The driver's handshake ignores the context and may take the whole
// dial timeout.
func pingStore(ctx context.Context, conn driver.Conn) error {
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

// SettingLimit returns the maximum that the user's profile allows for a setting, or 0 if there is no maximum. The
// server rejects statements that exceed the maximum.
func SettingLimit(ctx context.Context, conn driver.Conn, setting string) (most int64, err error) {
	const query = `SELECT toInt64OrZero(ifNull(if(readonly != 0, value, max), ''))
		FROM system.settings
		WHERE name = {name:String}`
	err = conn.QueryRow(ctx, query, clickhouse.Named("name", setting)).Scan(&most)
	return most, WrapError(err, "read the limits of settings")
}

// ServerTimeout is the maximum time for a server to respond to a simple request.
const ServerTimeout = 10 * time.Second

// VerifiedRelease is the ClickHouse release that the tests run on: embedded, as a server and as a cluster. The embedded
// engine has the same release.
const VerifiedRelease = "26.7"

// IsVerified reports whether a version of ClickHouse belongs to VerifiedRelease.
func IsVerified(version string) bool {
	return version == VerifiedRelease || strings.HasPrefix(version, VerifiedRelease+".")
}

// backupDatabase is the name of the database within a backup, whatever its name in the store.
const backupDatabase = "lifthouse"

// WriteBackup writes all tables of the store to a new folder dir, an absolute path. It copies the tables one after the
// other, so nothing may write to the store until it returns.
func WriteBackup(ctx context.Context, conn driver.Conn, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("back up: %s exists already; use a new folder", dir)
	}
	database, err := currentDatabase(ctx, conn)
	if err != nil {
		return err
	}
	err = conn.Exec(ctx, fmt.Sprintf("BACKUP DATABASE %s AS %s TO File(%s)", quoteIdentifier(database), backupDatabase,
		quoteString(dir)))
	return WrapError(err, "back up")
}

// RestoreBackup restores the tables of a backup into a store without tables.
func RestoreBackup(ctx context.Context, conn driver.Conn, dir string) error {
	database, err := currentDatabase(ctx, conn)
	if err != nil {
		return err
	}
	err = conn.Exec(ctx, fmt.Sprintf("RESTORE DATABASE %s AS %s FROM File(%s)", backupDatabase,
		quoteIdentifier(database), quoteString(dir)))
	return WrapError(err, "restore")
}

func currentDatabase(ctx context.Context, conn driver.Conn) (string, error) {
	var name string
	err := conn.QueryRow(ctx, "SELECT currentDatabase()").Scan(&name)
	return name, WrapError(err, "read the store's database")
}

var escaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "`", "\\`")

func quoteIdentifier(name string) string { return "`" + escaper.Replace(name) + "`" }

func quoteString(text string) string { return "'" + escaper.Replace(text) + "'" }
