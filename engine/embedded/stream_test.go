package embedded

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func TestDriver(t *testing.T) {
	conn := database(t)
	must.OK(t, conn.Ping(t.Context()))
	v := must.Get(conn.ServerVersion())(t)
	want := one[string](t, conn, "SELECT version()")
	check.That(t, strings.HasPrefix(want, v.Version.String()), "the version is %v, want %s", v.Version, want)
	exec(t, conn, "CREATE TABLE t (id UInt64, name String, note Nullable(String) DEFAULT 'none') ENGINE = MergeTree ORDER BY id")
	batch := must.Get(conn.PrepareBatch(t.Context(), "INSERT INTO t (id, name)"))(t)
	type row struct {
		ID   uint64  `ch:"id"`
		Name string  `ch:"name"`
		Note *string `ch:"note"`
	}
	must.OK(t, batch.AppendStruct(&row{ID: 7, Name: "seven"}))
	must.OK(t, batch.Send())
	var rows []row
	must.OK(t, conn.Select(t.Context(), &rows, "SELECT * FROM t"))
	must.Equal(t, len(rows), 1, "got %+v", rows)
	check.Equal(t, rows[0].ID, 7, "got %+v", rows)
	check.Equal(t, rows[0].Name, "seven", "got %+v", rows)
	must.That(t, rows[0].Note != nil, "got %+v", rows)
	check.Equal(t, *rows[0].Note, "none", "got %+v", rows)
	if err := conn.Select(t.Context(), &rows, "SELECT * FROM t WHERE id = 8"); err != nil || len(rows) != 0 {
		t.Errorf("an empty result: %v, %v", rows, err)
	}
	for _, sql := range []string{
		"SHOW TABLES", "DESCRIBE t", "EXPLAIN SELECT 1", "EXISTS t", "WITH 1 AS x SELECT x",
		"(SELECT 1) UNION ALL (SELECT 2)",
		"SELECT 1 FORMAT Native", "-- c\n/* c */ SELECT 1", "SELECT 1 -- c", "OPTIMIZE TABLE t FINAL",
	} {
		result, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for result.Next() {
		}
		must.OK(t, result.Err(), "%v", sql)
	}
}

func TestFormats(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
	data := "1,\"a,b\"\n2,\"c\"\n"
	must.OK(t, conn.InsertFormat(t.Context(), "CSV", "INSERT INTO t (id, name)", strings.NewReader(data)))
	r := must.Get(conn.QueryFormat(t.Context(), "CSV", "SELECT * FROM t ORDER BY id"))(t)
	defer func() { _ = r.Close() }()
	check.Equal(t, string(must.Get(io.ReadAll(r))(t)), data)
	err := conn.InsertFormat(t.Context(), "CSV", "INSERT INTO t (id, name)", strings.NewReader("1,a\nx,b\n"))
	check.That(t, code(err) == 27 || code(err) == 117 || code(err) == 72, "rows that do not parse: %v", err)
}

// fill inserts rows with ids in [from, from+n) in one batch.
func fill(tb testing.TB, conn driver.Conn, from, n uint64) {
	tb.Helper()
	batch, err := conn.PrepareBatch(tb.Context(), "INSERT INTO t (id, name)")
	if !check.OK(tb, err) {
		return
	}
	for i := range n {
		if !check.OK(tb, batch.Append(from+i, fmt.Sprint("visitor ", from+i))) {
			return
		}
	}
	must.OK(tb, batch.Send())
}

func TestLargeBatchAndStream(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
	const n = 100_000
	for i := range uint64(3) {
		fill(t, conn, i*n, n)
	}
	rows := must.Get(conn.Query(t.Context(), "SELECT id, name FROM t ORDER BY id"))(t)
	defer func() { _ = rows.Close() }()
	var id, want uint64
	var name string
	for ; rows.Next(); want++ {
		must.OK(t, rows.Scan(&id, &name))
		must.Equal(t, id, want, "row %d is %d, %q", want, id, name)
		must.Equal(t, name, fmt.Sprint("visitor ", want), "row %d is %d, %q", want, id, name)
	}
	err := rows.Err()
	must.That(t, err == nil, "%d rows, %v, want %d", want, err, 3*n)
	check.Equal(t, want, 3*n, "%d rows, %v, want %d", want, err, 3*n)
}

// TestLongValues runs an INSERT with its rows in the text, more than the parser reads at once.
func TestLongValues(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
	exec(t, conn, "INSERT INTO t VALUES (0)"+strings.Repeat(", (1)", 200_000))
	check.Equal(t, one[uint64](t, conn, "SELECT count() FROM t"), 200_001, "rows")
}

// TestConcurrency runs queries and inserts concurrently, while the garbage collector moves and frees memory.
func TestConcurrency(t *testing.T) {
	rounds := tier.Of(2, 30)
	conn := created(t, "CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	const writers, readers, size = 4, 8, 2000
	for w := range uint64(writers) {
		workers.Go(func() {
			for i := range uint64(rounds) {
				fill(t, conn, (w*uint64(rounds)+i)*size, size)
			}
		})
	}
	for range readers {
		workers.Go(func() {
			for i := range uint64(rounds) {
				ctx := with(t.Context(), clickhouse.Settings{"max_block_size": 100 + i})
				var n, wrong uint64
				err := conn.QueryRow(ctx, "SELECT count(), countIf(name != concat('visitor ', toString(id))) FROM t WHERE id >= {from:UInt64}",
					clickhouse.Named("from", i)).Scan(&n, &wrong)
				must.That(t, err == nil, "%d of %d rows are wrong, %v", wrong, n, err)
				check.Equal(t, wrong, 0, "%d of %d rows are wrong, %v", wrong, n, err)
			}
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
	const want = writers * size
	n, distinct := one[uint64](t, conn, "SELECT count() FROM t"), one[uint64](t, conn, "SELECT uniqExact(id) FROM t")
	check.Equal(t, n, want*uint64(rounds), "%d rows, %d of them different, want %d", n, distinct, want*rounds)
	check.Equal(t, distinct, n, "%d rows, %d of them different, want %d", n, distinct, want*rounds)
}
