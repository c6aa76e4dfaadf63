package schematest

import (
	"context"
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrKilled is what a dying connection says when it is dead.
var ErrKilled = errors.New("killed")

// Dying does so many things with the store and then nothing more, as a process
// that is killed. What it is asked last is done, but it is not told. It does not
// count single rows that are looked up.
type Dying struct {
	driver.Conn
	Left *int
}

// Query is driver.Conn's.
func (c Dying) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if *c.Left--; *c.Left < 0 {
		return nil, ErrKilled
	}
	return c.Conn.Query(ctx, query, args...)
}

// Exec is driver.Conn's.
func (c Dying) Exec(ctx context.Context, query string, args ...any) error {
	if *c.Left--; *c.Left < 0 {
		return ErrKilled
	}
	return errors.Join(c.Conn.Exec(ctx, query, args...), c.dead())
}

// PrepareBatch is driver.Conn's.
func (c Dying) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if *c.Left--; *c.Left < 0 {
		return nil, ErrKilled
	}
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	return dyingBatch{batch, c}, err
}

func (c Dying) dead() error {
	if *c.Left <= 0 {
		return ErrKilled
	}
	return nil
}

type dyingBatch struct {
	driver.Batch
	conn Dying
}

// Send is driver.Batch's.
func (b dyingBatch) Send() error { return errors.Join(b.Batch.Send(), b.conn.dead()) }
