package embedded

import (
	"context"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func setting(t *testing.T, ctx context.Context, conn driver.Conn, name string) string {
	t.Helper()
	var value string
	must.OK(t,
		conn.QueryRow(ctx, "SELECT toString(getSetting({name:String}))", clickhouse.Named("name", name)).Scan(&value))
	return value
}

func TestSettingsAreOfOneStatement(t *testing.T) {
	conn := connect(t, func(o *clickhouse.Options) {
		o.Settings["max_block_size"] = 4242
		o.MaxOpenConns = 1
	})
	plain := connect(t)
	initial := setting(t, t.Context(), plain, "max_result_rows")
	for range 3 {
		ctx := with(t.Context(), clickhouse.Settings{"max_result_rows": 77, "log_comment": "it's \\ a\tcomment"})
		check.Equal(t, setting(t, ctx, conn, "max_result_rows"), "77", "max_result_rows with the setting 77")
		check.Equal(t, setting(t, ctx, conn, "log_comment"), "it's \\ a\tcomment", "log_comment")
		check.Equal(t, setting(t, t.Context(), conn, "max_result_rows"), initial,
			"max_result_rows in the next statement")
		check.Equal(t, setting(t, t.Context(), conn, "max_block_size"), "4242", "max_block_size with the option 4242")
		got := setting(t, t.Context(), plain, "max_block_size")
		check.That(t, got != "4242", "a setting of one driver affects another")
	}
}

func TestSettingsClauseIsOfOneStatement(t *testing.T) {
	conn := database(t)
	initial := setting(t, t.Context(), conn, "max_block_size")
	exec(t, conn, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
	exec(t, conn, "INSERT INTO t SETTINGS max_block_size = 11 SELECT number FROM numbers(100)")
	check.Equal(t, one[uint64](t, conn, "SELECT max(blockSize()) FROM numbers(100) SETTINGS max_block_size = 11"), 11, "rows of the largest block")
	batch := must.Get(conn.PrepareBatch(t.Context(), "INSERT INTO t (n) SETTINGS max_block_size = 11"))(t)
	must.OK(t, batch.Append(uint64(1)))
	must.OK(t, batch.Send())
	check.Equal(t, setting(t, t.Context(), conn, "max_block_size"), initial,
		"max_block_size after statements with a SETTINGS clause")
}

func TestBadSettings(t *testing.T) {
	conn := connect(t)
	for _, tt := range []struct {
		settings clickhouse.Settings
		code     int32
	}{
		{clickhouse.Settings{"no_such_setting": 1}, 115},
		{clickhouse.Settings{"max_threads = 1, max_block_size": 1}, 115},
		{clickhouse.Settings{"max_block_size": 7, "max_threads": "many"}, 27},
		{clickhouse.Settings{"session_id": "a"}, 115},
		{clickhouse.Settings{"compress": 1}, 115},
	} {
		check.Equal(t, code(conn.Exec(with(t.Context(), tt.settings), "SELECT 1")), tt.code, "%v", tt.settings)
		got := setting(t, t.Context(), conn, "max_block_size")
		check.That(t, got != "7", "%v: some of the settings remain", tt.settings)
	}
}

func TestDatabases(t *testing.T) {
	a, b := database(t), database(t)
	for conn, value := range map[driver.Conn]uint64{a: 1, b: 2} {
		exec(t, conn, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
		exec(t, conn, "INSERT INTO t SELECT {n:UInt64}", clickhouse.Named("n", value))
	}
	for range 10 {
		x, y := one[uint64](t, a, "SELECT n FROM t"), one[uint64](t, b, "SELECT n FROM t")
		must.Equal(t, x, 1, "got %d and %d, want 1 and 2", x, y)
		must.Equal(t, y, 2, "got %d and %d, want 1 and 2", x, y)
	}
	for _, name := range []string{"no such", "no`such", `no\such`} {
		conn := connect(t, func(o *clickhouse.Options) { o.Auth.Database = name })
		check.Equal(t, code(conn.Exec(t.Context(), "SELECT 1")), 81, "database %q", name)
	}
}
