package schema

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MigrateFrom is Migrate with other files.
var MigrateFrom = migrate

// Statements returns the statement that creates the migrations table, and the
// migrations in order.
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

// Guarded returns a connection that is guarded like a connection to servers.
func Guarded(conn driver.Conn) driver.Conn { return guard(conn, 1) }

// Clustered returns a connection that rewrites statements like a connection to a
// cluster.
func Clustered(conn driver.Conn, cluster string) driver.Conn {
	return clustered{conn, cluster, "default"}
}

// ReplicatedEngine returns the statement for a database with the engine
// Replicated.
var ReplicatedEngine = replicatedEngine

// PartsOf returns a text per active part of the tables, read from their folders, as a manifest
// that has listed other parts reads them.
func (m *Manifest) PartsOf(ctx context.Context, tables ...string) ([]string, error) {
	parts, err := m.parts(ctx, tables)
	m.tables = map[string][]listedPart{}
	var texts []string
	for _, p := range parts {
		m.tables[p.Table] = append(m.tables[p.Table], p)
		texts = append(texts, fmt.Sprint(p.Table, " ", p.Name, " ", p.Rows))
	}
	return texts, err
}
