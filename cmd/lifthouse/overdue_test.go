package main

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/cmd/internal/app"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// deafStore answers when it is released and ignores the context.
type deafStore struct {
	driver.Conn
	deaf     atomic.Bool
	asked    chan struct{} // a query waits
	released chan struct{}
}

func (c *deafStore) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if c.deaf.Load() {
		select {
		case c.asked <- struct{}{}:
		default:
		}
		<-c.released
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// TestAServerThatDoesNotStopIsCutOff has a background task that ignores the end
// of its context.
func TestAServerThatDoesNotStopIsCutOff(t *testing.T) {
	conn := &deafStore{Conn: schematest.OpenMigrated(t), asked: make(chan struct{}, 1), released: make(chan struct{})}
	h := houseOn(t, conn)
	out := capture(t)
	p := &program{stdin: os.Stdin, stdout: out.write, stderr: out.write, dir: ".", getenv: func(string) string { return "" }, overdue: make(chan struct{}), stopMargin: 100 * time.Millisecond}
	p.rootCommand() // sets what the flags have by default
	p.serving.Listen, p.serving.DrainTimeout, p.serving.logLevel = "127.0.0.1:0", 50*time.Millisecond, "error"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- p.serveStore(ctx, h.store, func(*app.Store, string) {
			conn.deaf.Store(true)
			<-conn.asked // the catalogue is being read
			stop()
		})
	}()
	<-p.overdue
	select {
	case err := <-ended:
		t.Errorf("it ended by itself: %v", err)
	default:
	}
	close(conn.released)
	must.OK(t, <-ended)
	out.text()
}
