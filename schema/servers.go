package schema

import (
	"cmp"
	"context"
	_ "embed" // the statements
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

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

//go:embed servers.sql
var serversText string

//go:embed places.sql
var placesQuery string

// ReadServers returns the servers of the store, by shard and replica. Every server reads its own
// system tables, because functions for the version and the host name may return those of the
// connected server.
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
		statement = "SELECT * FROM clusterAllReplicas(" + quoteString(cluster) + ", view(\n" + statement + "))\nSETTINGS skip_unavailable_shards = 1"
	}
	var servers []Server
	err = EachRow(ctx, conn, statement, func(row driver.Rows) error {
		s := Server{Answers: true}
		err := row.Scan(&s.Machine, &s.Version, &s.Host, &s.Port, &s.Shard, &s.Replica, &s.Events, &s.Facts, &s.Bytes)
		servers = append(servers, s)
		return err
	})
	if err == nil && cluster != "" {
		servers, err = withSilent(ctx, conn, cluster, servers)
	}
	if err != nil {
		return nil, fmt.Errorf("list the servers of the store: %w", err)
	}
	return servers, nil
}

// withSilent adds the servers of a cluster that do not answer. A server that answers but does
// not know its place may be any of them.
func withSilent(ctx context.Context, conn driver.Conn, cluster string, servers []Server) ([]Server, error) {
	unknown := 0
	answers := map[[2]uint32]bool{}
	for _, s := range servers {
		answers[[2]uint32{s.Shard, s.Replica}] = true
		if s.Shard == 0 {
			unknown++
		}
	}
	var silent []Server
	err := EachRow(ctx, conn, placesQuery, func(row driver.Rows) error {
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
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Replica, b.Replica), strings.Compare(a.Machine, b.Machine))
	})
	return servers, err
}
