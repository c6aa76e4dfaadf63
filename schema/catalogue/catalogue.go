// Package catalogue stores the configuration of a store: accounts, API tokens, and for each website its goals, targets,
// campaigns and widgets.
//
// A catalogue file declares the definition of a resource. Its state changes at run time: active, dates and the history
// of shares. Definition and state are separate rows, so neither overwrites the other. Servers read a Snapshot from
// memory, which Catalogue refreshes from the store.
package catalogue

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Catalogue changes the stored catalogue and keeps a Snapshot of it in memory.
type Catalogue struct {
	conn     driver.Conn
	writer   string // identifies the rows of this process
	snapshot atomic.Pointer[Snapshot]

	changing chan struct{} // holds an element while rows are read and changed

	refreshing sync.Mutex
	rows       map[key]row // of the snapshot
	position   position    // of rows
}

// Open reads the catalogue of a store.
func Open(ctx context.Context, conn driver.Conn) (*Catalogue, error) {
	c := &Catalogue{conn: conn, writer: rand.Text(), changing: make(chan struct{}, 1)}
	// for example if Keeper is unavailable; the local rows are used then
	if err := schema.SyncReplica(ctx, conn, "catalogue"); err != nil {
		slog.WarnContext(ctx, "synchronize catalogue failed", "err", err)
	}
	return c, c.RefreshSnapshot(ctx)
}

// Snapshot returns the catalogue that was last read.
func (c *Catalogue) Snapshot() *Snapshot { return c.snapshot.Load() }

// RefreshPeriodically calls RefreshSnapshot at the given interval until the context ends. If RefreshSnapshot fails, the
// last snapshot remains in use.
func (c *Catalogue) RefreshPeriodically(ctx context.Context, every time.Duration) {
	schema.Repeat(ctx, every, "refresh catalogue", c.RefreshSnapshot)
}
