package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// engine is the only engine of the test process.
var engine *Engine

// childVariable is an environment variable. If it is set, the test binary runs the child with this name instead of the
// tests.
const childVariable = "LIFTHOUSE_EMBEDDED_CHILD"

func TestMain(m *testing.M) {
	if child := os.Getenv(childVariable); child != "" {
		children[child](os.Args[1:])
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "embedded")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	engine, err = Open(context.Background(), dir, Options{})
	if err != nil {
		return 1, err
	}
	code = m.Run()
	return code, engine.Close()
}

// connect opens a connection of the driver to the engine.
func connect(tb testing.TB, change ...func(*clickhouse.Options)) driver.Conn {
	tb.Helper()
	options := engine.ClientOptions()
	for _, c := range change {
		c(options)
	}
	conn := must.Get(clickhouse.Open(options))(tb)
	tb.Cleanup(func() {
		err := conn.Close()
		check.That(tb, err == nil, "close the driver: %v", err)
	})
	return conn
}

// database creates a database for the test and opens a connection to it. If the test fails, the database is not
// dropped.
func database(tb testing.TB, change ...func(*clickhouse.Options)) driver.Conn {
	tb.Helper()
	name := fmt.Sprintf("test_%d", time.Now().UnixNano())
	admin := connect(tb)
	exec(tb, admin, "CREATE DATABASE "+name)
	tb.Cleanup(func() {
		if !tb.Failed() {
			check.OK(tb, admin.Exec(context.Background(), "DROP DATABASE "+name))
		}
	})
	use := func(o *clickhouse.Options) { o.Auth.Database = name }
	return connect(tb, append(change, use)...)
}

// created is database with the tables of statements.
func created(tb testing.TB, statements ...string) driver.Conn {
	tb.Helper()
	conn := database(tb)
	for _, statement := range statements {
		exec(tb, conn, statement)
	}
	return conn
}

func exec(tb testing.TB, conn driver.Conn, sql string, args ...any) {
	tb.Helper()
	must.OK(tb, conn.Exec(tb.Context(), sql, args...), "%.200s", sql)
}

// one returns the only value of a query's only row.
func one[T any](tb testing.TB, conn driver.Conn, sql string, args ...any) T {
	tb.Helper()
	var v T
	must.OK(tb, conn.QueryRow(tb.Context(), sql, args...).Scan(&v), "%.200s", sql)
	return v
}

// eventually asks until a condition holds.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for until := time.Now().Add(time.Minute); !condition(); {
		must.That(tb, !time.Now().After(until), "not within a minute: %s", what)
	}
}

// running returns the number of running statements whose text contains part, without its own query.
func running(tb testing.TB, conn driver.Conn, part string) uint64 {
	tb.Helper()
	return one[uint64](tb, conn, "SELECT count() FROM system.processes WHERE position(query, {part:String}) > 0 AND position(query, 'system.processes') = 0", clickhouse.Named("part", part))
}

// code returns the ClickHouse code of an error, or 0 if it has none.
func code(err error) int32 {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func with(ctx context.Context, settings clickhouse.Settings) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(settings))
}
