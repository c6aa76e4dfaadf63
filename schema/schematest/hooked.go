package schematest

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// HookedConn is a connection that calls Before before each statement, which fails if Before returns an error.
type HookedConn struct {
	driver.Conn
	Before func(ctx context.Context, statement string) error
}

// Query implements driver.Conn.
func (c HookedConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if err := c.Before(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.Query(ctx, query, args...)
}

// QueryRow implements driver.Conn.
func (c HookedConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if c.Before(ctx, query) != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// Select implements driver.Conn.
func (c HookedConn) Select(ctx context.Context, to any, query string, args ...any) error {
	if err := c.Before(ctx, query); err != nil {
		return err
	}
	return c.Conn.Select(ctx, to, query, args...)
}

// Exec implements driver.Conn.
func (c HookedConn) Exec(ctx context.Context, query string, args ...any) error {
	if err := c.Before(ctx, query); err != nil {
		return err
	}
	return c.Conn.Exec(ctx, query, args...)
}

// PrepareBatch implements driver.Conn.
func (c HookedConn) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if err := c.Before(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}
