package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// replica is a connection to one server of a cluster, for its own tables.
type replica struct {
	driver.Conn
	host string
}

// ReplicaOf returns host and port of a connection from OpenReplicas, or an empty text.
func ReplicaOf(conn driver.Conn) string {
	of, _ := conn.(replica)
	return of.host
}

// OpenReplicas returns connections to the servers of each shard of a cluster, under the names
// that remote_servers has for them. They need not be available: a connection is opened with the
// first statement. It returns nil for the HTTP protocol, whose ports a cluster does not name.
func OpenReplicas(ctx context.Context, conn driver.Conn, address Address) (shards [][]driver.Conn, err error) {
	if address.Options.Protocol == clickhouse.HTTP {
		return nil, nil
	}
	const query = "SELECT toInt64(shard_num), host_name, port FROM system.clusters WHERE cluster = {cluster:String} ORDER BY shard_num, replica_num"
	err = EachRow(ctx, conn, query, func(row driver.Rows) error {
		var shard int64
		var host string
		var port uint16
		if err := row.Scan(&shard, &host, &port); err != nil {
			return err
		}
		if int(shard) > len(shards) {
			shards = append(shards, nil)
		}
		opened, err := openReplica(address, net.JoinHostPort(host, strconv.Itoa(int(port))))
		shards[len(shards)-1] = append(shards[len(shards)-1], opened)
		return err
	}, clickhouse.Named("cluster", address.Cluster))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the replicas of the cluster: %w", err), CloseReplicas(shards))
	}
	return shards, nil
}

func openReplica(address Address, host string) (driver.Conn, error) {
	with := *address.Options
	with.Addr = []string{host}
	with.Settings = writeSettings()
	maps.Copy(with.Settings, serverSettings())
	maps.Copy(with.Settings, address.Options.Settings)
	with.DialStrategy = newHosts(&with).dial
	conn, err := clickhouse.Open(&with)
	if err != nil {
		return nil, err
	}
	return replica{guard(conn, 1), host}, nil
}

// CloseReplicas closes connections to replicas.
func CloseReplicas(shards [][]driver.Conn) error {
	var errs []error
	for _, conn := range slices.Concat(shards...) {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// createOwnTables creates the tables that each server of a cluster has for itself, where they do
// not exist: on a server that joined the cluster or lost its disk, and on a cluster of an earlier
// release, which had replicated ones without rows. Without the privilege to do so, it logs what
// to do: reports are counted from the events meanwhile.
func createOwnTables(ctx context.Context, conn driver.Conn, files fs.FS) error {
	cluster, database := Cluster(conn)
	if cluster == "" {
		return nil
	}
	var servers, tables, replicated uint64
	names := slices.Sorted(maps.Keys(ownTables))
	query := "SELECT (SELECT count() FROM clusterAllReplicas(" + identifier(cluster) + ", system.one)), count(), countIf(startsWith(engine, 'Replicated')) FROM clusterAllReplicas(" + identifier(cluster) +
		", system.tables) WHERE database = {database:String} AND name IN {names:Array(String)} SETTINGS skip_unavailable_shards = 1"
	if err := conn.QueryRow(ctx, query, clickhouse.Named("database", database), clickhouse.Named("names", names)).Scan(&servers, &tables, &replicated); err != nil {
		return fmt.Errorf("look for the tables of rollups: %w", err)
	}
	if replicated == 0 && tables == servers*uint64(len(names)) {
		return nil
	}
	err := makeOwnTables(ctx, conn, files, names, replicated > 0)
	var exception *clickhouse.Exception
	const accessDenied = 497
	if errors.As(err, &exception) && exception.Code == accessDenied {
		slog.WarnContext(ctx, "a server of the cluster has no tables for rollups, so that its reports are counted from the events: run lifthouse migrate", "err", err)
		return nil
	}
	return err
}

func makeOwnTables(ctx context.Context, conn driver.Conn, files fs.FS, names []string, replaced bool) error {
	for _, table := range names {
		if replaced {
			if err := dropTable(ctx, conn, table); err != nil {
				return fmt.Errorf("replace the table %s: %w", table, err)
			}
		}
		found, err := fs.Glob(files, "migrations/*_"+table+".sql")
		if err != nil || len(found) != 1 {
			return fmt.Errorf("find the statement of the table %s: %w", table, cmp.Or(err, fs.ErrNotExist))
		}
		text, err := fs.ReadFile(files, found[0])
		if err != nil {
			return err
		}
		if err := retryConcurrent(ctx, func() error { return conn.Exec(ctx, string(text)) }); err != nil {
			return fmt.Errorf("create the table %s: %w", table, err)
		}
	}
	return nil
}
