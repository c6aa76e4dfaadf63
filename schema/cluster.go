package schema

import (
	"context"
	"fmt"
	"strings"
	"text/template"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A cluster has the same tables as a single server, in another form. The large tables are sharded:
// each shard has a local table, NAME_local, and NAME is a Distributed table over the local tables.
// All events of a visitor are on one shard, which computes all per-visitor aggregates. The other
// tables are small, and every server has a full replica.
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
			Cluster: quoteString(cluster), On: " ON CLUSTER " + quoteIdentifier(cluster), Local: LocalTable(""), Replicated: "Replicated",
			All: "'/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}'", Shard: "'/clickhouse/lifthouse/{uuid}/{shard}', '{replica}'",
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
// each shard executes it. That replica must not wait for the others. If one were inactive, the statement would fail, and
// ClickHouse would retry it forever and block all later ON CLUSTER statements.
func DeleteEvents(ctx context.Context, conn driver.Conn, deletion string, args ...any) error {
	cluster, database := ClusterOf(conn)
	statement, err := fillSlots(deletion, formOf(cluster, false))
	if err == nil {
		err = conn.Exec(ctx, statement, args...)
	}
	if err != nil || cluster == "" {
		return err
	}
	return conn.Exec(ctx, "SYSTEM SYNC REPLICA ON CLUSTER "+quoteIdentifier(cluster)+" "+quoteIdentifier(database)+"."+LocalTable("events"))
}

// inReplicatedDatabase reports whether the database has the engine Replicated, and so replicates its table definitions.
func inReplicatedDatabase(ctx context.Context, conn driver.Conn) (replicated bool, err error) {
	const query = "SELECT countIf(engine = 'Replicated') > 0 FROM system.databases WHERE name = currentDatabase()"
	if err := conn.QueryRow(ctx, query).Scan(&replicated); err != nil {
		return false, fmt.Errorf("read the engine of the database: %w", err)
	}
	return replicated, nil
}

// ClusterOf returns the cluster and the database of a connection that OpenConnection opened,
// or empty strings if the connection does not lead to a cluster.
func ClusterOf(conn driver.Conn) (cluster, database string) {
	c, _ := conn.(clustered)
	return c.cluster, c.database
}

// SyncReplica waits until the connected server has fetched the rows of an unsharded
// table that are known to be on other replicas. It does nothing on a single server.
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
