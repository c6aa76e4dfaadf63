package embedded

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// endless returns a query that runs until it is stopped and contains the text mark.
func endless(mark string) string {
	return "SELECT '" + mark + "', count() FROM system.numbers WHERE NOT ignore(sipHash64(number))"
}

func TestCancelQuery(t *testing.T) {
	conn := connect(t, func(o *clickhouse.Options) { o.MaxOpenConns = 1 })
	watch := connect(t)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- conn.Exec(ctx, endless("cancelled")) }()
		eventually(t, "the query runs", func() bool { return running(t, watch, "cancelled") == 1 })
		cancel()
		err := <-ended
		check.That(t, errors.Is(err, context.Canceled), "a cancelled query: %v", err)
		check.Equal(t, running(t, watch, "cancelled"), 0, "queries that run")
		check.Equal(t, one[uint8](t, conn, "SELECT 7"), 7, "the next statement")
	}
}

func TestDeadline(t *testing.T) {
	conn := connect(t)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := conn.Exec(ctx, endless("deadline"))
		cancel()
		check.That(t, errors.Is(err, context.DeadlineExceeded), "got %v", err)
	}
	eventually(t, "nothing runs", func() bool { return running(t, conn, "deadline") == 0 })
}

// TestCancelStream cancels a stream between two chunks, while the reader is idle.
func TestCancelStream(t *testing.T) {
	conn := connect(t, func(o *clickhouse.Options) { o.MaxOpenConns = 1 })
	watch := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows := must.Get(conn.Query(ctx, "SELECT number AS streamed FROM system.numbers"))(t)
	for range 1000 {
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
	}
	cancel()
	for rows.Next() {
	}
	err := rows.Err()
	check.That(t, errors.Is(err, context.Canceled), "rows.Err() = %v", err)
	if err := rows.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	eventually(t, "the query has stopped", func() bool { return running(t, watch, "streamed") == 0 })
	one[uint8](t, conn, "SELECT 7")
}

func TestCancelWhileWaitingForAConnection(t *testing.T) {
	var busy sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range defaultConnections {
		busy.Go(func() {
			if err := connect(t).Exec(ctx, endless("busy")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	eventually(t, "all connections are taken",
		func() bool { return len(engine.pool.opened)-len(engine.pool.idle) == defaultConnections })
	late, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	err := connect(t).Exec(late, "SELECT 1")
	check.That(t, errors.Is(err, context.DeadlineExceeded), "a statement without a connection: %v", err)
	cancel()
	busy.Wait()
}

func TestCancelInsert(t *testing.T) {
	conn := database(t, func(o *clickhouse.Options) { o.MaxOpenConns = 1 })
	watch := connect(t)
	exec(t, conn, "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
	exec(t, conn, "CREATE MATERIALIZED VIEW slow ENGINE = MergeTree ORDER BY id AS SELECT id, sleepEachRow(0.01) AS s FROM t")
	ctx, cancel := context.WithCancel(t.Context())
	settings := clickhouse.Settings{
		"max_insert_block_size": 5, "min_insert_block_size_rows": 5,
		"min_insert_block_size_bytes": 0,
	}
	ended := make(chan error, 1)
	go func() {
		ended <- conn.InsertFormat(with(ctx, settings), "CSV", "INSERT INTO t",
			strings.NewReader(strings.Repeat("1\n", 10_000)))
	}()
	eventually(t, "the insert has begun", func() bool {
		return one[uint64](t, watch, "SELECT sum(total_rows) FROM system.tables WHERE name = 't'") > 10
	})
	cancel()
	err := <-ended
	check.That(t, errors.Is(err, context.Canceled), "a cancelled insert: %v", err)
	check.Equal(t, running(t, watch, "INSERT INTO t"), 0, "inserts that run")
	check.Equal(t, one[uint8](t, conn, "SELECT 7"), 7, "the next statement")
}

// TestCancelWhatDoesNotStop checks that a statement that ignores its cancellation does not block its caller.
func TestCancelWhatDoesNotStop(t *testing.T) {
	conn := connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := conn.Exec(ctx, "SELECT sleepEachRow(3)")
	check.That(t, errors.Is(err, context.DeadlineExceeded), "got %v", err)
	took := time.Since(start)
	check.That(t, took <= 2*killGrace, "returned after %v", took)
	one[uint8](t, conn, "SELECT 7")
	eventually(t, "the statement has ended", func() bool { return len(engine.pool.opened)-len(engine.pool.idle) == 0 })
}

// TestCancelInsertThatWaitsForRows cancels an insert whose reader returns no more rows.
func TestCancelInsertThatWaitsForRows(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- conn.InsertFormat(ctx, "CSV", "INSERT INTO t", r) }()
		must.Get(w.Write([]byte("1\n2\n")))(t)
		eventually(t, "the insert runs", func() bool { return running(t, conn, "INSERT INTO t") == 1 })
		cancel()
		err := <-ended
		check.That(t, errors.Is(err, context.Canceled), "a cancelled insert: %v", err)
		eventually(t, "the insert has stopped", func() bool { return running(t, conn, "INSERT INTO t") == 0 })
		must.Equal(t, one[uint64](t, conn, "SELECT count() FROM t"), 0, "rows of a cancelled insert")
	}
}

// TestInsertWhoseRowsFail checks that a reader's error does not commit the rows before it.
func TestInsertWhoseRowsFail(t *testing.T) {
	conn := created(t, "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF} {
		for _, rows := range []string{"", "1\n2\n", strings.Repeat("1\n", appendSize)} {
			r := io.MultiReader(strings.NewReader(rows), failing{broken})
			err := conn.InsertFormat(t.Context(), "CSV", "INSERT INTO t", r)
			check.That(t, errors.Is(err, broken), "got %v", err)
		}
	}
	check.Equal(t, one[uint64](t, conn, "SELECT count() FROM t"), 0, "rows")
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// TestCancelAnywhere checks that cancelling statements at any moment does not damage the engine.
func TestCancelAnywhere(t *testing.T) {
	rounds := tier.Of(10, 200)
	conn := created(t, "CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id")
	fill(t, conn, 0, 50_000)
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*37%4000)*time.Microsecond)
				var err error
				switch w {
				case 0:
					err = conn.Exec(ctx, "SELECT * FROM t ORDER BY name LIMIT 10000")
				case 1:
					err = conn.Exec(ctx, "INSERT INTO t SELECT number, 'x' FROM numbers(1000)")
				case 2:
					err = conn.InsertFormat(ctx, "CSV", "INSERT INTO t",
						strings.NewReader(strings.Repeat("1,y\n", 20_000)))
				default:
					var rows []struct {
						ID uint64 `ch:"id"`
					}
					err = conn.Select(ctx, &rows, "SELECT id FROM t")
				}
				cancel()
				check.That(t, err == nil || errors.Is(err, context.DeadlineExceeded), "statement %d: %v", w, err)
			}
		})
	}
	workers.Wait()
	eventually(t, "all connections are free", func() bool { return len(engine.pool.opened)-len(engine.pool.idle) == 0 })
	check.Equal(t, one[uint64](t, conn, "SELECT count() FROM system.processes"), 1, "statements that run")
	// An insert of one block is stored completely or not at all.
	check.Equal(t, one[uint64](t, conn, "SELECT toUInt64(countIf(name = 'x') % 1000 + countIf(name = 'y') % 20000) FROM t"), 0, "rows of a cancelled insert")
}

func TestNoGoroutineLeak(t *testing.T) {
	conn := connect(t)
	one[uint8](t, conn, "SELECT 1")
	before := runtime.NumGoroutine()
	for range 50 {
		one[uint8](t, conn, "SELECT 1")
		must.Equal(t, code(conn.Exec(t.Context(), "SELEC 1")), 62)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := conn.Exec(ctx, endless("leak")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	eventually(t, "no goroutine is left behind", func() bool { return runtime.NumGoroutine() <= before })
}
