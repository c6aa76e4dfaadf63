package embedded

import (
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
)

func numbers(t *testing.T, name string, rows ...uint64) *ext.Table {
	t.Helper()
	table, err := ext.NewTable(name, ext.Column("n", "UInt64"), ext.Column("text", "LowCardinality(String)"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range rows {
		if err := table.Append(n, "a'`b"); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func TestExternalTablesAreOfTheirStatementAlone(t *testing.T) {
	conn := connect(t)
	var all sync.WaitGroup
	for n := range uint64(20) {
		all.Go(func() {
			ctx := clickhouse.Context(t.Context(), clickhouse.WithExternalTable(numbers(t, "sought", n, n+1), numbers(t, "query", 5)),
				clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
			var sum, other uint64
			err := conn.QueryRow(ctx, "SELECT sum(n), (SELECT n FROM query WHERE text = {text:String}) FROM sought", clickhouse.Named("text", "a'`b")).Scan(&sum, &other)
			if err != nil || sum != 2*n+1 || other != 5 {
				t.Errorf("sum %d, other %d, %v; want %d, 5", sum, other, err, 2*n+1)
			}
		})
	}
	all.Wait()
	for range 20 { // use each session of the pool
		if err := conn.Exec(t.Context(), "SELECT * FROM sought"); err == nil {
			t.Fatal("another statement sees the table")
		}
	}
}

func TestExternalTablesOfAStatementThatFails(t *testing.T) {
	conn := connect(t)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithExternalTable(numbers(t, "sought", 1)))
	if err := conn.Exec(ctx, "SELECT throwIf(n = 1) FROM sought"); err == nil {
		t.Error("no error")
	}
	if err := conn.Exec(clickhouse.Context(t.Context(), clickhouse.WithExternalTable(numbers(t, "no name", 1))), "SELECT 1"); err == nil {
		t.Error("a table with an invalid name is accepted")
	}
	var rows uint64
	empty := clickhouse.Context(t.Context(), clickhouse.WithExternalTable(numbers(t, "sought")))
	if err := conn.QueryRow(empty, "SELECT count() FROM sought").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("an empty table has %d rows, %v", rows, err)
	}
}
