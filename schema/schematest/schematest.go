// Package schematest provides migrated stores for tests, on the real engine.
package schematest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lifthouse/engine/embedded"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	folder    string              // folder of the stores
	options   *clickhouse.Options // of the embedded engine
	databases atomic.Int64
)

// Main runs the tests of a package whose tests call OpenMigrated. It opens the embedded engine, one per process, in a
// temporary directory. If the engine's library is missing, Main fails; the tests are not skipped. Each function in
// setup runs before the tests, with a directory that is deleted after them.
//
// If SharedServer has started the test binary as a ClickHouse server, Main runs the server.
func Main(m *testing.M, setup ...func(dir string) error) {
	if configuration := os.Getenv(serverVariable); configuration != "" {
		os.Exit(runServer(configuration))
	}
	os.Exit(runTests(m, setup))
}

func runTests(m *testing.M, setup []func(dir string) error) int {
	dir, err := os.MkdirTemp("", "lifthouse-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, prepare := range setup {
		if err := prepare(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	stores := filepath.Join(dir, "stores")
	engine, err := embedded.Open(context.Background(), stores, embedded.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	folder, options = stores, engine.ClientOptions()
	code := m.Run()
	if sharedServer.ClickHouse != nil {
		sharedServer.stopProcess()
	}
	if err := engine.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// OpenEmpty returns a connection to a new database without tables. The database is dropped when the test ends, unless
// the test failed.
func OpenEmpty(tb testing.TB) driver.Conn {
	tb.Helper()
	return openDatabase(tb, newDatabase(tb, openDatabase(tb, "default")))
}

func newDatabase(tb testing.TB, admin driver.Conn) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := admin.Exec(tb.Context(), "CREATE DATABASE "+name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("database %s is kept", name)
			return
		}
		if err := admin.Exec(context.Background(), "DROP DATABASE "+name+" SYNC"); err != nil {
			tb.Error(err)
		}
	})
	return name
}

// OpenMigrated returns a connection to a new database with all tables. The tables are those of a migrated database;
// they are created without the history of the migrations, which takes a quarter of the time.
func OpenMigrated(tb testing.TB) driver.Conn {
	tb.Helper()
	conn := OpenEmpty(tb)
	for _, statement := range migratedStatements(tb) {
		if err := conn.Exec(tb.Context(), statement); err != nil {
			tb.Fatalf("%v\n%s", err, statement)
		}
	}
	return conn
}

// templateDatabase is a migrated database, from which the schema is read once.
const templateDatabase = "schematest_template"

var script struct {
	sync.Mutex
	statements []string
}

// migratedStatements returns the statements that create the tables and views of a migrated database, and copy the
// record of its migrations.
func migratedStatements(tb testing.TB) []string {
	tb.Helper()
	script.Lock()
	defer script.Unlock()
	if script.statements != nil {
		return script.statements
	}
	ctx := context.Background() // the template outlives the test
	if err := openDatabase(tb, "default").Exec(ctx, "CREATE DATABASE "+templateDatabase); err != nil {
		tb.Fatal(err)
	}
	conn := openDatabase(tb, templateDatabase)
	if _, err := schema.Migrate(ctx, conn); err != nil {
		tb.Fatal(err)
	}
	var tables []struct {
		Statement string `ch:"create_table_query"`
	}
	const query = "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY engine " +
		"LIKE '%View', name"
	if err := conn.Select(ctx, &tables, query); err != nil {
		tb.Fatal(err)
	}
	for _, table := range tables {
		script.statements = append(script.statements, strings.ReplaceAll(table.Statement, templateDatabase+".", ""))
	}
	script.statements = append(script.statements,
		"INSERT INTO migrations SELECT * FROM "+templateDatabase+".migrations")
	return script.statements
}

func openDatabase(tb testing.TB, database string) driver.Conn {
	tb.Helper()
	if options == nil {
		tb.Fatal("schematest.Main was not called: call it in TestMain")
	}
	with := *options
	with.Auth.Database = database
	conn, err := clickhouse.Open(&with)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}
