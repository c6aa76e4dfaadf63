package schematest

import (
	"context"
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrKilled is the error of a KilledConn after its last operation.
var ErrKilled = errors.New("killed")

// KilledConn simulates a process that is killed: it executes Left operations and no more. The last of them is executed
// but returns ErrKilled. QueryRow does not count as an operation.
type KilledConn struct {
	driver.Conn
	Left *int
}

// Query implements driver.Conn.
func (c KilledConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	*c.Left--
	if *c.Left < 0 {
		return nil, ErrKilled
	}
	return c.Conn.Query(ctx, query, args...)
}

// Exec implements driver.Conn.
func (c KilledConn) Exec(ctx context.Context, query string, args ...any) error {
	*c.Left--
	if *c.Left < 0 {
		return ErrKilled
	}
	return errors.Join(c.Conn.Exec(ctx, query, args...), c.killedError())
}

// PrepareBatch implements driver.Conn.
func (c KilledConn) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	*c.Left--
	if *c.Left < 0 {
		return nil, ErrKilled
	}
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	return killedBatch{batch, c}, err
}

func (c KilledConn) killedError() error {
	if *c.Left <= 0 {
		return ErrKilled
	}
	return nil
}

type killedBatch struct {
	driver.Batch
	conn KilledConn
}

// Send implements driver.Batch.
func (b killedBatch) Send() error { return errors.Join(b.Batch.Send(), b.conn.killedError()) }
