package schema

import (
	"io/fs"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MigrateFrom is Migrate with other files.
var MigrateFrom = runMigrations

// Statements returns the statements that create the tables of a cluster, or else of a database that may be replicated.
func Statements(cluster string, replicated bool) ([]string, error) {
	names, err := fs.Glob(tables, "tables/*.sql")
	texts := []string{createMigrations}
	for _, name := range names {
		var text []byte
		if text, err = tables.ReadFile(name); err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	var all []string
	for _, text := range texts {
		filled, err := fillSlots(text, formOf(cluster, replicated))
		if err != nil {
			return nil, err
		}
		all = append(all, splitStatements(filled)...)
	}
	return all, err
}

// Guarded returns a connection that is guarded like a connection to servers.
func Guarded(conn driver.Conn) driver.Conn { return newGuarded(conn, 1) }

// Clustered returns a connection like one to a cluster.
func Clustered(conn driver.Conn, cluster string) driver.Conn {
	return clustered{conn, cluster, "default"}
}
