package schema

import (
	"cmp"
	"context"
	_ "embed" // the statements
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A cluster has the same tables as a single server, in another form. The large tables are sharded: each shard has a
// local table, NAME_local, and NAME is a Distributed table over the local tables. All events of a visitor are on one
// shard, which computes all per-visitor aggregates. The other tables are small, and every server has a full replica.
//
// Statements that create or change tables are templates, whose slots tableForm fills.

// LocalTable returns the name of the local table of a sharded table.
func LocalTable(table string) string { return table + "_local" }

// clustered is a connection to a cluster.
type clustered struct {
	driver.Conn
	cluster, database string
}

// tableForm has the values of the slots. Without values, tables are those of a single server.
type tableForm struct {
	Cluster    string // the name as text of SQL; empty: no cluster
	On         string // follows the name of a table that all servers create or change
	Local      string // ends the name of a table that has the rows of a shard
	Replicated string // begins the name of an engine
	All, Shard string // arguments of the engine of a table that has all rows, or the rows of a shard
}

// formOf returns the form for a cluster, or for a single server whose database may be replicated. The servers replace
// {uuid}, {shard} and {replica} in Keeper paths. ON CLUSTER gives the tables of all servers the same UUID, which no
// earlier table had. A replicated database sets the Keeper paths of its tables.
func formOf(cluster string, replicated bool) tableForm {
	switch {
	case cluster != "":
		return tableForm{
			Cluster: quoteString(cluster), On: " ON CLUSTER " + quoteIdentifier(cluster), Local: LocalTable(""),
			Replicated: "Replicated", All: "'/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}'",
			Shard: "'/clickhouse/lifthouse/{uuid}/{shard}', '{replica}'",
		}
	case replicated:
		return tableForm{Replicated: "Replicated"}
	}
	return tableForm{}
}

// fillSlots returns a template with values in its slots.
func fillSlots(text string, slots any) (string, error) {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		return "", err
	}
	var filled strings.Builder
	err = parsed.Execute(&filled, slots)
	return filled.String(), err
}

// splitStatements returns the statements of a text, which semicolons and empty lines separate.
func splitStatements(text string) []string { return strings.Split(text, ";\n\n") }

// DeleteEvents executes a deletion from the table events, a template, and waits for the active replicas. One replica of
// each shard executes it. That replica must not wait for the others. If one were inactive, the statement would fail,
// and ClickHouse would retry it forever and block all later ON CLUSTER statements.
func DeleteEvents(ctx context.Context, conn driver.Conn, deletion string, args ...any) error {
	cluster, database := ClusterOf(conn)
	statement, err := fillSlots(deletion, formOf(cluster, false))
	if err == nil {
		err = conn.Exec(ctx, statement, args...)
	}
	if err != nil || cluster == "" {
		return err
	}
	return conn.Exec(ctx, "SYSTEM SYNC REPLICA ON CLUSTER "+quoteIdentifier(cluster)+" "+quoteIdentifier(database)+"."+
		LocalTable("events"))
}

// ClusterOf returns the cluster and the database of a connection that OpenConnection opened, or empty strings if the
// connection does not lead to a cluster.
func ClusterOf(conn driver.Conn) (cluster, database string) {
	c, _ := conn.(clustered)
	return c.cluster, c.database
}

// SyncReplica waits until the connected server has fetched the rows of an unsharded table that are known to be on other
// replicas. It does nothing on a single server.
func SyncReplica(ctx context.Context, conn driver.Conn, table string) error {
	if cluster, _ := ClusterOf(conn); cluster == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ServerTimeout)
	defer cancel()
	if err := conn.Exec(ctx, "SYSTEM SYNC REPLICA "+quoteIdentifier(table)+" LIGHTWEIGHT"); err != nil {
		return fmt.Errorf("synchronize replicas of %s: %w", table, err)
	}
	return nil
}

// Server is a ClickHouse server of a store.
type Server struct {
	Machine        string // name of the machine; empty if the server does not answer
	Host           string // as the cluster configuration names it; empty: unknown, or not in a cluster
	Port           uint32
	Shard, Replica uint32 // from 1; 0: unknown, or not in a cluster
	Answers        bool

	// Only set if the server answers:
	Version       string
	Events, Facts uint64 // rows
	Bytes         uint64 // of all tables
}

// Name identifies a server of a store.
func (s *Server) Name() string {
	if s.Host == "" {
		return s.Machine
	}
	return fmt.Sprintf("%s:%d", s.Host, s.Port)
}

// String returns the name and the place of the server in the cluster.
func (s *Server) String() string {
	if s.Shard == 0 {
		return s.Name()
	}
	return fmt.Sprintf("%s (shard %d, replica %d)", s.Name(), s.Shard, s.Replica)
}

var (
	//go:embed servers.sql
	serversText string
	//go:embed places.sql
	placesQuery string
)

// ReadServers returns the servers of the store, by shard and replica. Every server reads its own system tables, because
// functions for the version and the host name may return those of the connected server.
func ReadServers(ctx context.Context, conn driver.Conn) ([]Server, error) {
	cluster, database := ClusterOf(conn)
	slots := struct{ Cluster, Database string }{Database: "currentDatabase()"}
	if cluster != "" {
		slots.Cluster, slots.Database = quoteString(cluster), quoteString(database)
	}
	statement, err := fillSlots(serversText, slots)
	if err != nil {
		return nil, err
	}
	if cluster != "" {
		statement = "SELECT * FROM clusterAllReplicas(" + quoteString(cluster) + ", view(\n" + statement +
			"))\nSETTINGS skip_unavailable_shards = 1"
	}
	var servers []Server
	err = EachRow(ctx, conn, statement, func(row driver.Rows) error {
		s := Server{Answers: true}
		err := row.Scan(&s.Machine, &s.Version, &s.Host, &s.Port, &s.Shard, &s.Replica, &s.Events, &s.Facts, &s.Bytes)
		servers = append(servers, s)
		return err
	})
	if err != nil || cluster == "" {
		return servers, WrapError(err, "list the servers of the store")
	}
	// Add the servers of the cluster that do not answer. One that answers without knowing its place may be any of them.
	unknown := 0
	answers := map[[2]uint32]bool{}
	for _, s := range servers {
		answers[[2]uint32{s.Shard, s.Replica}] = true
		if s.Shard == 0 {
			unknown++
		}
	}
	var silent []Server
	err = EachRow(ctx, conn, placesQuery, func(row driver.Rows) error {
		var s Server
		err := row.Scan(&s.Shard, &s.Replica, &s.Host, &s.Port)
		if !answers[[2]uint32{s.Shard, s.Replica}] {
			silent = append(silent, s)
		}
		return err
	}, clickhouse.Named("cluster", cluster))
	if len(silent) > unknown {
		servers = append(servers, silent...)
	}
	slices.SortFunc(servers, func(a, b Server) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Replica, b.Replica),
			strings.Compare(a.Machine, b.Machine))
	})
	return servers, WrapError(err, "list the servers of the store")
}

// OpenReplicas returns connections to the servers of each shard of a cluster, by their names in remote_servers. The
// servers need not be available: a connection is opened with its first statement. OpenReplicas returns nil for the HTTP
// protocol, because a cluster does not name the HTTP ports.
func OpenReplicas(ctx context.Context, conn driver.Conn, address Address) (shards [][]driver.Conn, err error) {
	if address.Options.Protocol == clickhouse.HTTP {
		return nil, nil
	}
	const query = "SELECT toInt64(shard_num), host_name, port FROM system.clusters WHERE cluster = {cluster:String} " +
		"ORDER BY shard_num, replica_num"
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
		with := *address.Options
		with.Addr = []string{net.JoinHostPort(host, strconv.Itoa(int(port)))}
		with.Settings = writeSettings()
		maps.Copy(with.Settings, serverSettings())
		maps.Copy(with.Settings, address.Options.Settings)
		setDialing(&with)
		opened, err := clickhouse.Open(&with)
		if err == nil {
			shards[len(shards)-1] = append(shards[len(shards)-1], newGuarded(opened, 1))
		}
		return err
	}, clickhouse.Named("cluster", address.Cluster))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the replicas of the cluster: %w", err), CloseReplicas(shards))
	}
	return shards, nil
}

// CloseReplicas closes connections to replicas.
func CloseReplicas(shards [][]driver.Conn) error {
	var errs []error
	for _, conn := range slices.Concat(shards...) {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
