package schematest

import (
	"context"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// HeldConn is a connection on which each insert of facts waits until it receives an error, with which it fails, or nil.
type HeldConn struct {
	driver.Conn
	Held chan error
}

// PrepareBatch implements driver.Conn.
func (c HeldConn) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if strings.HasPrefix(query, "INSERT INTO facts ") {
		if err := <-c.Held; err != nil {
			return nil, err
		}
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

// ErrFull is the error of ClickHouse for a full disk.
var ErrFull = &clickhouse.Exception{Code: 243, Message: "Cannot reserve 1.00 MiB, not enough space"}
