package outbox

import (
	"context"
	_ "embed" // statements
	"fmt"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	//go:embed sql/lease.sql
	leaseSQL string
	//go:embed sql/take_lease.sql
	takeLeaseSQL string
)

// LeaseTime is how long a lease lasts. When the process that holds it ends, the job waits for at most this time.
const LeaseTime = 30 * time.Second

// Lease lets one process of a store at a time do a job.
type Lease struct {
	conn   driver.Conn
	name   string
	holder string
	held   bool // result of the last TakeLease
}

// NewLease returns a lease by its name. The holder identifies this process.
func NewLease(conn driver.Conn, name, holder string) *Lease {
	return &Lease{conn: conn, name: name, holder: holder}
}

// leaseRow is a row of the table.
type leaseRow struct {
	holder    string
	version   uint64
	unexpired bool
}

// TakeLease takes the lease, or renews it, and reports whether this process holds it for LeaseTime. A process writes the
// next version and reads it back. If two processes write the same version at the same time, at least one of them sees
// both rows and gives up. It must not be called concurrently.
func (l *Lease) TakeLease(ctx context.Context) (bool, error) {
	held := l.held
	l.held = false
	rows, err := l.readLatest(ctx)
	if err != nil {
		return false, err
	}
	next := uint64(1)
	if len(rows) > 0 {
		tied := len(rows) > 1
		if rows[0].unexpired && (tied && !held || !tied && rows[0].holder != l.holder) {
			return false, nil
		}
		next = rows[0].version + 1
	}
	err = l.conn.Exec(ctx, takeLeaseSQL, clickhouse.Named("name", l.name), clickhouse.Named("holder", l.holder),
		clickhouse.Named("version", next), clickhouse.Named("seconds", uint32(LeaseTime/time.Second)))
	if err != nil {
		return false, fmt.Errorf("take the lease %s: %w", l.name, err)
	}
	if rows, err = l.readLatest(ctx); err != nil {
		return false, err
	}
	l.held = len(rows) == 1 && rows[0].holder == l.holder && rows[0].version == next
	return l.held, nil
}

// readLatest returns the rows with the highest version: one, or several if processes wrote it at the same time.
func (l *Lease) readLatest(ctx context.Context) ([]leaseRow, error) {
	rows, err := schema.QueryRows(ctx, l.conn, leaseSQL, func(row driver.Rows, r *leaseRow) error {
		return row.Scan(&r.holder, &r.version, &r.unexpired)
	}, clickhouse.Named("name", l.name))
	if err != nil {
		return nil, fmt.Errorf("read the lease %s: %w", l.name, err)
	}
	return rows, nil
}
