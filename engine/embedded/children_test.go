package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// children are the bodies of the processes that tests start. They write their results to standard output.
var children = map[string]func(args []string){
	"open":    openChild,
	"hold":    holdChild,
	"insert":  insertChild,
	"count":   countChild,
	"signals": signalsChild,
	"close":   closeChild,
	"options": optionsChild,
	"fsync":   fsyncChild,
	"end":     endChild,
}

const batchRows = 1000

func say(words ...any) { _, _ = fmt.Fprintln(os.Stdout, words...) }

func demand(err error) {
	if err != nil {
		say("failed:", err)
		os.Exit(1)
	}
}

func mustOpen(dir string) (*Engine, driver.Conn) {
	e, err := Open(context.Background(), dir, Options{})
	demand(err)
	conn, err := clickhouse.Open(e.ClientOptions())
	demand(err)
	return e, conn
}

func openChild(args []string) {
	e, err := Open(context.Background(), args[0], Options{})
	demand(err)
	demand(e.Close())
	say("opened")
}

// holdChild keeps a folder open until its standard input ends.
func holdChild(args []string) {
	e, _ := mustOpen(args[0])
	say("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	demand(err)
	demand(e.Close())
}

// insertChild inserts batches until it is killed, and reports each acknowledgement.
func insertChild(args []string) {
	_, conn := mustOpen(args[0])
	ctx := context.Background()
	demand(conn.Exec(ctx, "CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id"))
	for n := uint64(0); ; n += batchRows {
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO t (id, name)")
		demand(err)
		for i := range uint64(batchRows) {
			demand(batch.Append(n+i, "x"))
		}
		demand(batch.Send())
		say("acknowledged", n+batchRows)
	}
}

func countChild(args []string) {
	e, conn := mustOpen(args[0])
	var n, distinct uint64
	demand(conn.QueryRow(context.Background(), "SELECT count(), uniqExact(id) FROM t").Scan(&n, &distinct))
	demand(e.Close())
	say(n, distinct)
}

// signalsChild checks that the Go runtime receives its signals.
func signalsChild(args []string) {
	e, conn := mustOpen(args[0])
	ctx := context.Background()
	demand(conn.Exec(ctx, "SELECT count() FROM numbers(1000000) WHERE NOT ignore(sipHash64(number))"))
	for range 3 {
		demand(dereferenceNil())
	}
	preempt()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	say("ready")
	<-interrupted
	demand(conn.Exec(ctx, "SELECT 1"))
	demand(e.Close())
	say("interrupted and closed")
	signal.Reset(os.Interrupt)
	say("waiting")
	select {}
}

func dereferenceNil() (err error) {
	defer func() {
		var fault runtime.Error
		if v, ok := recover().(error); !ok || !errors.As(v, &fault) {
			err = errors.New("no runtime error")
		}
	}()
	var p *int
	*p = 1
	return nil
}

// preempt collects garbage while a goroutine runs a loop that only a signal can interrupt.
func preempt() {
	var stop atomic.Bool
	var spun uint64
	go func() {
		for !stop.Load() {
			for i := range uint64(1 << 40) {
				spun ^= i
			}
		}
	}()
	runtime.Gosched()
	for range 10 {
		runtime.GC()
	}
	stop.Store(true)
}

// closeChild closes an engine while statements run, and opens others.
func closeChild(args []string) {
	e, conn := mustOpen(args[0])
	ctx := context.Background()
	_, err := Open(ctx, args[1], Options{})
	say("second:", err)

	ended := make(chan error, 2)
	go func() { ended <- conn.Exec(ctx, endless("closing")) }()
	go func() {
		r, _ := io.Pipe()
		ended <- conn.InsertFormat(ctx, "CSV", "INSERT INTO FUNCTION null('n UInt8')", r)
	}()
	for n := uint64(0); n < 3; {
		demand(conn.QueryRow(ctx, "SELECT count() FROM system.processes").Scan(&n))
	}
	demand(e.Close()) // the statements alone would run for ever
	say("closed")
	say("statements ended by it:", errors.Is(<-ended, ErrClosed), errors.Is(<-ended, ErrClosed))
	say("later statement:", errors.Is(conn.Exec(ctx, "SELECT 1"), ErrClosed))
	demand(e.Close())
	for _, dir := range []string{args[1], args[0], args[0]} {
		e, conn := mustOpen(dir)
		demand(conn.Ping(ctx))
		demand(e.Close())
	}
	say("opened again")
}

// optionsChild reports the settings of an engine with a number of connections.
func optionsChild(args []string) {
	connections, err := strconv.Atoi(args[1])
	demand(err)
	e, err := Open(context.Background(), args[0], Options{Connections: connections})
	demand(err)
	options := e.ClientOptions()
	conn, err := clickhouse.Open(options)
	demand(err)
	var memory string
	demand(conn.QueryRow(context.Background(), "SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage'").Scan(&memory))
	say("memory", memory)
	say("connections", options.MaxOpenConns)
	demand(e.Close())
}

// fsyncChild reports the fsync settings of tables, with or without Options.Fsync, and the number of fsyncs.
func fsyncChild(args []string) {
	e, err := Open(context.Background(), args[0], Options{Fsync: args[1] == "true"})
	demand(err)
	conn, err := clickhouse.Open(e.ClientOptions())
	demand(err)
	ctx := context.Background()
	demand(conn.Exec(ctx, "CREATE DATABASE d"))
	demand(conn.Exec(ctx, "CREATE TABLE d.t (n UInt64) ENGINE = MergeTree ORDER BY n"))
	const syncs = "SELECT sum(value) FROM system.events WHERE event IN ('FileSync', 'DirectorySync')"
	var before, after uint64
	demand(conn.QueryRow(ctx, syncs).Scan(&before))
	demand(conn.Exec(ctx, "INSERT INTO d.t SELECT number FROM numbers(10)"))
	demand(conn.QueryRow(ctx, syncs).Scan(&after))
	say("synced", after > before+1)
	demand(e.Close())
}

// endChild shuts the library down. The library cannot be started again.
func endChild(args []string) {
	e, _ := mustOpen(args[0])
	if err := Shutdown(); err == nil {
		say("failed: shut down under an open engine")
	}
	demand(e.Close())
	demand(Shutdown())
	demand(Shutdown())
	if _, err := Open(context.Background(), args[0], Options{}); !errors.Is(err, ErrShutDown) {
		say("failed: Open after Shutdown:", err)
	}
	say("ended")
}
