package schema

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A cluster has the same tables as a single server, in another form. The large tables are sharded:
// each shard has a local table, NAME_local, and NAME is a Distributed table over the local tables.
// All events of a visitor are on one shard, which computes all per-visitor aggregates. The other
// tables are small, and every server has a full replica.
//
// The SQL is the same for both forms: clustered.Exec rewrites statements that create or change
// tables.

// LocalTable returns the name of the local table of a sharded table.
func LocalTable(table string) string { return table + "_local" }

// shardedTables lists the tables that are sharded by visitor, with their settings on a cluster. The servers remember
// the deduplication token of a refresh of facts for a week.
var shardedTables = map[string]string{
	"events": "replicated_deduplication_window = 1000",
	"facts":  "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800",
}

// clustered is a connection to a cluster.
type clustered struct {
	driver.Conn
	cluster, database string
}

// Exec implements driver.Conn. It rewrites the statement with OnCluster. After a deletion that must wait for the
// replicas, it waits for the active ones.
func (c clustered) Exec(ctx context.Context, query string, args ...any) error {
	for _, statement := range OnCluster(c.cluster, query) {
		if err := c.Conn.Exec(ctx, statement, args...); err != nil {
			return err
		}
	}
	if sync := c.syncAfter(query); sync != "" {
		return c.Conn.Exec(ctx, sync)
	}
	return nil
}

// inReplicatedDatabase reports whether the connection leads to a single server whose
// database has the engine Replicated. Such a database replicates its table
// definitions and sets the Keeper paths of its tables.
func inReplicatedDatabase(ctx context.Context, conn driver.Conn) (replicated bool, err error) {
	if cluster, _ := ClusterOf(conn); cluster != "" {
		return false, nil
	}
	const query = "SELECT countIf(engine = 'Replicated') > 0 FROM system.databases WHERE name = currentDatabase()"
	if err := conn.QueryRow(ctx, query).Scan(&replicated); err != nil {
		return false, fmt.Errorf("read the engine of the database: %w", err)
	}
	return replicated, nil
}

// replicatedEngine returns a CREATE TABLE statement with the Replicated variant
// of its engine, and any other statement unchanged.
func replicatedEngine(statement string) string {
	comment, text := splitComments(statement)
	if m := createTable.FindStringSubmatchIndex(text); m != nil {
		engine := m[6]
		return comment + text[:engine] + "Replicated" + text[engine:]
	}
	return statement
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

var (
	createTable = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\w+)\s*(\(.*\n\))\s*ENGINE = (\w+)(?:\(([^)]*)\))?(.*)$`)
	createView  = regexp.MustCompile(`(?s)^CREATE MATERIALIZED VIEW IF NOT EXISTS (\w+) (.*)$`)
	alterTable  = regexp.MustCompile(`(?s)^ALTER TABLE (\w+)\s+(.*)$`)
)

// OnCluster returns the equivalent statements for a cluster. A statement that
// creates or changes tables becomes one or more ON CLUSTER statements. Any other
// statement is returned unchanged.
func OnCluster(cluster, statement string) []string {
	comment, text := splitComments(statement)
	on := " ON CLUSTER " + quoteIdentifier(cluster)
	var statements []string
	if m := createTable.FindStringSubmatch(text); m != nil {
		statements = createStatements(cluster, on, m)
	} else if m := createView.FindStringSubmatch(text); m != nil {
		statements = []string{"CREATE MATERIALIZED VIEW IF NOT EXISTS " + m[1] + on + " " + m[2]}
	} else if m := alterTable.FindStringSubmatch(text); m != nil && isSharded(m[1]) {
		statements = []string{alterStatement(on, m[1], m[2])}
	} else {
		return []string{statement}
	}
	statements[0] = comment + statements[0]
	return statements
}

// waitsForReplicas is the setting of a deletion that waits for all replicas of the shard.
const waitsForReplicas = "SETTINGS mutations_sync = 2"

// alterStatement returns the statement that changes a sharded table or deletes rows. One replica of each shard executes
// it. That replica must not wait for the others. If one were inactive, the statement would fail, and ClickHouse would
// retry it forever and block all later ON CLUSTER statements. Exec waits instead.
func alterStatement(on, table, change string) string {
	return "ALTER TABLE " + LocalTable(table) + on + " " + strings.Replace(change, waitsForReplicas, "SETTINGS mutations_sync = 1", 1)
}

// syncAfter returns the statement that waits for the active replicas, or "" unless the statement is a deletion that
// must wait for replicas.
func (c clustered) syncAfter(statement string) string {
	_, text := splitComments(statement)
	m := alterTable.FindStringSubmatch(text)
	if m == nil || !isSharded(m[1]) || !strings.Contains(m[2], waitsForReplicas) {
		return ""
	}
	return "SYSTEM SYNC REPLICA ON CLUSTER " + quoteIdentifier(c.cluster) + " " + quoteIdentifier(c.database) + "." + LocalTable(m[1])
}

func isSharded(table string) bool { return shardedTables[table] != "" }

// splitComments splits a statement into its leading comment lines and the rest.
func splitComments(statement string) (comment, text string) {
	text = strings.TrimLeft(statement, "\n")
	for strings.HasPrefix(text, "--") {
		line, rest, _ := strings.Cut(text, "\n")
		comment, text = comment+line+"\n", rest
	}
	return comment, text
}

// replicasPath is the Keeper path of a table's replicas. The server replaces
// {uuid}, {shard} and {replica}. ON CLUSTER gives the tables of all servers the
// same UUID, which no earlier table had.
const replicasPath = "/clickhouse/lifthouse/{uuid}/"

// createStatements returns the statements for a match of createTable.
func createStatements(cluster, on string, match []string) []string {
	table, columns, engine, arguments, rest := match[1], match[2], match[3], match[4], strings.TrimSpace(match[5])
	name, path, replica := table, replicasPath+"all", "{shard}-{replica}"
	settings, sharded := shardedTables[table]
	if sharded {
		name, path, replica = LocalTable(table), replicasPath+"{shard}", "{replica}"
		rest = withSetting(rest, settings)
	}
	if arguments != "" {
		arguments = ", " + arguments
	}
	statements := []string{fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s\n%s\nENGINE = Replicated%s(%s, %s%s)\n%s\n",
		name, on, columns, engine, quoteString(path), quoteString(replica), arguments, rest)}
	if sharded {
		statements = append(statements, distributedStatement(cluster, on, table))
	}
	return statements
}

func distributedStatement(cluster, on, table string) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, currentDatabase(), %s, %s)\n",
		table, on, LocalTable(table), quoteString(cluster), quoteString(LocalTable(table)), "visitor_id")
}

func withSetting(rest, setting string) string {
	if strings.Contains(rest, "\nSETTINGS ") {
		return rest + ", " + setting
	}
	return rest + "\nSETTINGS " + setting
}
