package schema

import (
	"io/fs"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MigrateFrom is Migrate with other files.
var MigrateFrom = runMigrations

// Statements returns the statement that creates the migrations table, and the
// migrations in order.
func Statements() ([]string, error) {
	names, err := fs.Glob(tables, "tables/*.sql")
	statements := []string{createMigrations}
	for _, name := range names {
		var text []byte
		if text, err = tables.ReadFile(name); err != nil {
			return nil, err
		}
		statements = append(statements, string(text))
	}
	return statements, err
}

// Guarded returns a connection that is guarded like a connection to servers.
func Guarded(conn driver.Conn) driver.Conn { return newGuarded(conn, 1) }

// Clustered returns a connection that rewrites statements like a connection to a
// cluster.
func Clustered(conn driver.Conn, cluster string) driver.Conn {
	return clustered{conn, cluster, "default"}
}

// ReplicatedEngine returns the statement for a database with the engine
// Replicated.
var ReplicatedEngine = replicatedEngine
