package catalogue

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Catalogue keeps a Snapshot of the store's catalogue in memory and changes
// the store.
type Catalogue struct {
	conn     driver.Conn
	writer   string // names this process in the rows it writes
	snapshot atomic.Pointer[Snapshot]
	wrote    func(context.Context)

	changing sync.Mutex // held by whoever reads rows in order to change them

	refreshing sync.Mutex
	digest     uint64 // of the rows the snapshot was made of
}

// Open reads the catalogue.
func Open(ctx context.Context, conn driver.Conn) (*Catalogue, error) {
	c := &Catalogue{conn: conn, writer: rand.Text(), wrote: func(context.Context) {}}
	if err := schema.SyncReplica(ctx, conn, "catalogue"); err != nil { // as where Keeper is away: what is here is read
		slog.WarnContext(ctx, "the catalogue may be behind", "error", err)
	}
	return c, c.Refresh(ctx)
}

// AfterWrite has wrote called whenever a change is stored. It is set before the
// first change.
func (c *Catalogue) AfterWrite(wrote func(context.Context)) { c.wrote = wrote }

// Snapshot returns the catalogue as last read.
func (c *Catalogue) Snapshot() *Snapshot { return c.snapshot.Load() }

// Refresh reads the catalogue again if the store's has changed.
func (c *Catalogue) Refresh(ctx context.Context) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	var digest uint64
	if err := c.conn.QueryRow(ctx, digestQuery).Scan(&digest); err != nil {
		return fmt.Errorf("read catalogue: %w", err)
	}
	if c.snapshot.Load() != nil && digest == c.digest {
		return nil
	}
	rows, err := readRows(ctx, c.conn)
	if err != nil {
		return err
	}
	snapshot, err := newSnapshot(rows)
	if err != nil {
		return err
	}
	c.snapshot.Store(snapshot)
	c.digest = digest
	return nil
}

// Follow refreshes at the given interval until the context ends. A store that
// does not answer leaves the last snapshot in force.
func (c *Catalogue) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.Refresh(ctx); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "catalogue not refreshed", "error", err)
			}
		}
	}
}
