package schematest

import (
	"context"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// RecordingConn is a connection that records the queries that read rows.
type RecordingConn struct {
	driver.Conn
	mu      sync.Mutex
	queries []string
}

// Query records the query, and runs it.
func (c *RecordingConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	c.mu.Lock()
	c.queries = append(c.queries, query)
	c.mu.Unlock()
	return c.Conn.Query(ctx, query, args...)
}

// TakeQueries returns the queries since the last call, or since the start.
func (c *RecordingConn) TakeQueries() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.queries
	c.queries = nil
	return taken
}
