package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// OpenReplicas returns connections to the servers of each shard of a cluster, by their names in
// remote_servers. The servers need not be available: a connection is opened with its first
// statement. OpenReplicas returns nil for the HTTP protocol, because a cluster does not name
// the HTTP ports.
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
	with.DialStrategy = newHosts(&with).dialHosts
	conn, err := clickhouse.Open(&with)
	if err != nil {
		return nil, err
	}
	return newGuarded(conn, 1), nil
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
