package schema

import (
	"io/fs"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MigrateFrom is Migrate with other files.
var MigrateFrom = migrate

// Statements are the migrations in their order, with the table that records
// them first.
func Statements() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	statements := []string{createMigrations}
	for _, name := range names {
		var text []byte
		if text, err = migrations.ReadFile(name); err != nil {
			return nil, err
		}
		statements = append(statements, string(text))
	}
	return statements, err
}

// Guarded is a connection as to servers.
func Guarded(conn driver.Conn) driver.Conn { return guard(conn, 1) }

// Clustered is a connection as to a cluster.
func Clustered(conn driver.Conn, cluster string) driver.Conn {
	return clustered{conn, cluster, "default"}
}

// ReplicatedEngine is the statement as a database of the engine Replicated is
// given it.
var ReplicatedEngine = replicatedEngine
