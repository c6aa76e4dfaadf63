package schematest

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// PausedConn is the connection of a process that pauses before one of its statements and continues when Resume is
// closed.
type PausedConn struct {
	driver.Conn
	Left   *int          // statements before the pause
	Paused chan struct{} // closed when the process is paused
	Resume chan struct{}
}

// Query implements driver.Conn.
func (c PausedConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	c.pauseIfDue()
	return c.Conn.Query(ctx, query, args...)
}

// QueryRow implements driver.Conn.
func (c PausedConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	c.pauseIfDue()
	return c.Conn.QueryRow(ctx, query, args...)
}

// Exec implements driver.Conn.
func (c PausedConn) Exec(ctx context.Context, query string, args ...any) error {
	c.pauseIfDue()
	return c.Conn.Exec(ctx, query, args...)
}

// PrepareBatch implements driver.Conn.
func (c PausedConn) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	c.pauseIfDue()
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	return pausedBatch{batch, c}, err
}

func (c PausedConn) pauseIfDue() {
	*c.Left--
	if *c.Left == 0 {
		close(c.Paused)
		<-c.Resume
	}
}

type pausedBatch struct {
	driver.Batch
	conn PausedConn
}

// Send implements driver.Batch.
func (b pausedBatch) Send() error {
	b.conn.pauseIfDue()
	return b.Batch.Send()
}
