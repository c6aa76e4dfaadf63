package schema

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A cluster has the tables of one server in another form. Those that grow with
// events lie in parts, NAME_local, on the shards, and NAME is a Distributed
// table over them; a visitor's events lie on one shard, so that what is
// computed per visitor is computed there. The others are small, and every
// server has all of them.
//
// The texts of statements are the same. What makes or changes tables is
// rewritten here, on its way to the servers.

// Local is what a part of a sharded table is called on its server.
func Local(table string) string { return table + "_local" }

// shardedBy are the tables that lie in parts, and what says which. Counters may
// lie anywhere: they are added up.
var shardingKeys = map[string]string{
	"events":        "visitor_id",
	"subject_stats": "cityHash64(website_id, subject_id)",
}

// sharedSettings are those of the parts of a table that several processes
// write to, which a single server's table is given when it is shared.
const sharedSettings = "enable_block_number_column = 1"

// clustered is a connection to a cluster.
type clustered struct {
	driver.Conn
	cluster, database string
}

// Exec is driver.Conn's.
func (c clustered) Exec(ctx context.Context, query string, args ...any) error {
	for _, statement := range OnCluster(c.cluster, query) {
		if err := c.Conn.Exec(ctx, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// inReplicatedDatabase says whether one server was named whose database
// replicates its definitions, with the engine Replicated. Its tables replicate
// their rows, and meet in Keeper where the database says.
func inReplicatedDatabase(ctx context.Context, conn driver.Conn) (replicated bool, err error) {
	if cluster, _ := Cluster(conn); cluster != "" {
		return false, nil
	}
	const query = "SELECT countIf(engine = 'Replicated') > 0 FROM system.databases WHERE name = currentDatabase()"
	if err := conn.QueryRow(ctx, query).Scan(&replicated); err != nil {
		return false, fmt.Errorf("look at the database: %w", err)
	}
	return replicated, nil
}

// replicatedEngine makes the table that a statement creates a replicated one.
func replicatedEngine(statement string) string {
	comment, text := comments(statement)
	if m := createTable.FindStringSubmatchIndex(text); m != nil {
		engine := m[6]
		return comment + text[:engine] + "Replicated" + text[engine:]
	}
	return statement
}

// Cluster is the cluster behind a connection that Reach made, and the database
// there; empty: there is none.
func Cluster(conn driver.Conn) (cluster, database string) {
	c, _ := conn.(clustered)
	return c.cluster, c.database
}

// SyncReplica has the server that a connection leads to fetch what other
// replicas of a table that every server has are known to have. One server alone
// has everything.
func SyncReplica(ctx context.Context, conn driver.Conn, table string) error {
	if cluster, _ := Cluster(conn); cluster == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ServerTimeout)
	defer cancel()
	if err := conn.Exec(ctx, "SYSTEM SYNC REPLICA "+identifier(table)+" LIGHTWEIGHT"); err != nil {
		return fmt.Errorf("fetch what other replicas have of %s: %w", table, err)
	}
	return nil
}

// SyncReplicas has all servers of a cluster that are there fetch what others
// have of the tables that lie in parts, so that they can be compared.
func SyncReplicas(ctx context.Context, conn driver.Conn) error {
	cluster, database := Cluster(conn)
	if cluster == "" {
		return nil
	}
	for table := range shardingKeys {
		if err := conn.Exec(ctx, "SYSTEM SYNC REPLICA ON CLUSTER "+identifier(cluster)+" "+identifier(database)+"."+identifier(Local(table))); err != nil {
			return fmt.Errorf("fetch what other replicas have of %s: %w", table, err)
		}
	}
	return SyncReplica(ctx, conn, "removed_copies")
}

// CountersTable is the table or view that has the live counters of a store: of
// servers, which several processes write to, the view that subtracts the copies
// that were removed. An embedded store has none, and does without the view.
func CountersTable(conn driver.Conn) string {
	switch conn.(type) {
	case *guarded, clustered:
		return "subject_counters"
	}
	return "subject_stats"
}

var (
	createTable   = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\w+)\s*(\(.*\n\))\s*ENGINE = (\w+)(?:\(([^)]*)\))?(.*)$`)
	createView    = regexp.MustCompile(`(?s)^CREATE MATERIALIZED VIEW IF NOT EXISTS (\w+) TO (\w+) AS(.*)\nFROM (\w+)(\n.*)?$`)
	plainView     = regexp.MustCompile(`(?s)^CREATE VIEW IF NOT EXISTS (\w+) AS(.*)$`)
	dropStatement = regexp.MustCompile(`^DROP TABLE IF EXISTS (\w+) SYNC$`)
	alterTable    = regexp.MustCompile(`(?s)^ALTER TABLE (\w+)\s+(.*)$`)
)

// OnCluster returns a statement as a cluster needs it: one that makes or
// changes tables as one or more statements, any other as it is.
func OnCluster(cluster, statement string) []string {
	comment, text := comments(statement)
	on := " ON CLUSTER " + identifier(cluster)
	var statements []string
	if m := createTable.FindStringSubmatch(text); m != nil {
		statements = create(cluster, on, m[1], m[2], m[3], m[4], strings.TrimSpace(m[5]))
	} else if m := createView.FindStringSubmatch(text); m != nil {
		statements = []string{"CREATE MATERIALIZED VIEW IF NOT EXISTS " + m[1] + on + " TO " + localTable(m[2]) + " AS" + m[3] + "\nFROM " + localTable(m[4]) + m[5]}
	} else if m := plainView.FindStringSubmatch(text); m != nil {
		statements = []string{"CREATE VIEW IF NOT EXISTS " + m[1] + on + " AS" + m[2]}
	} else if m := dropStatement.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		statements = []string{"DROP TABLE IF EXISTS " + m[1] + on + " SYNC"}
	} else if m := alterTable.FindStringSubmatch(text); m != nil && shardingKeys[m[1]] != "" {
		statements = alter(on, m[1], m[2])
	} else if m != nil && strings.HasPrefix(m[2], "MODIFY SETTING ") { // which replicas do not pass on
		statements = []string{"ALTER TABLE " + m[1] + on + " " + m[2]}
	} else {
		return []string{statement}
	}
	statements[0] = comment + statements[0]
	return statements
}

// part is the table that a server has of its own of one that may be sharded.
func localTable(table string) string {
	if shardingKeys[table] == "" {
		return table
	}
	return Local(table)
}

// comments are the lines before the statement proper.
func comments(statement string) (comment, text string) {
	text = strings.TrimLeft(statement, "\n")
	for strings.HasPrefix(text, "--") {
		line, rest, _ := strings.Cut(text, "\n")
		comment, text = comment+line+"\n", rest
	}
	return comment, text
}

// replicasPath is where the replicas of a table meet in Keeper. The server fills
// in {uuid}, which ON CLUSTER gives all servers' tables alike and no table that
// was dropped before, and its own {shard} and {replica}.
const replicasPath = "/clickhouse/lifthouse/{uuid}/"

func create(cluster, on, table, columns, engine, arguments, rest string) []string {
	name, path, replica := table, replicasPath+"all", "{shard}-{replica}"
	key, sharded := shardingKeys[table]
	if sharded {
		name, path, replica = Local(table), replicasPath+"{shard}", "{replica}"
		rest = withSetting(rest, sharedSettings)
	}
	if arguments != "" {
		arguments = ", " + arguments
	}
	statements := []string{fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s\n%s\nENGINE = Replicated%s(%s, %s%s)\n%s\n",
		name, on, columns, engine, quoted(path), quoted(replica), arguments, rest)}
	if sharded {
		statements = append(statements, distributed(cluster, on, table, key))
	}
	return statements
}

func distributed(cluster, on, table, key string) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, currentDatabase(), %s, %s)\n",
		table, on, Local(table), quoted(cluster), quoted(Local(table)), key)
}

func withSetting(rest, setting string) string {
	if strings.Contains(rest, "\nSETTINGS ") {
		return rest + ", " + setting
	}
	return rest + "\nSETTINGS " + setting
}

// alter changes the parts, and of the table over them the columns.
func alter(on, table, clauses string) []string {
	statements := []string{"ALTER TABLE " + Local(table) + on + " " + clauses}
	each := strings.Split(clauses, ",\n")
	each = slices.DeleteFunc(each, func(clause string) bool {
		clause = strings.TrimSpace(clause)
		return !strings.HasPrefix(clause, "ADD COLUMN ") && !strings.HasPrefix(clause, "DROP COLUMN ")
	})
	if len(each) > 0 {
		statements = append(statements, "ALTER TABLE "+table+on+" "+strings.TrimSpace(strings.Join(each, ",\n")))
	}
	return statements
}
