package catalogue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// position identifies the changes that a catalogue has read: the number of keys, the sum
// of their highest versions, and the time of the latest change. Versions only grow. So if
// the number and the sum equal those of the store, every change is known.
type position struct {
	keys, versions uint64
	latest         time.Time
}

// maxDelay is the longest expected delay between the time of a change and its storage. It
// exceeds the duration of an insert and the clock difference between servers. Changes that
// arrive even later are detected by their versions, and all rows are read again.
const maxDelay = 10 * time.Second

// RefreshSnapshot reads the changes that were stored since the last refresh.
func (c *Catalogue) RefreshSnapshot(ctx context.Context) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	var stored position
	if err := c.conn.QueryRow(ctx, positionQuery).Scan(&stored.keys, &stored.versions, &stored.latest); err != nil {
		return fmt.Errorf("read catalogue: %w", err)
	}
	known := c.position
	defer func() { c.position.latest = schema.LaterTime(c.position.latest, stored.latest) }()
	if c.snapshot.Load() != nil && stored.keys == known.keys && stored.versions == known.versions && !stored.latest.After(known.latest) {
		return nil
	}
	if known.keys > 0 && stored.keys >= known.keys && stored.versions >= known.versions {
		recent, err := queryRows(ctx, c.conn, selectRows+fromAll+sinceTime, clickhouse.DateNamed("since", known.latest.Add(-maxDelay), clickhouse.MilliSeconds))
		if err != nil {
			return err
		}
		if err := c.adoptRows(recent); err != nil {
			return err
		}
		if c.position.keys >= stored.keys && c.position.versions >= stored.versions {
			return nil
		}
	}
	rows, err := readRows(ctx, c.conn)
	if err != nil {
		return err
	}
	return c.replaceRows(rows)
}

// updateSnapshot brings the snapshot up to date with stored rows.
func (c *Catalogue) updateSnapshot(rows []row) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	return c.adoptRows(rows)
}

// adoptRows adds the rows that are newer than the known ones. If only states of campaigns and
// widgets changed, it copies only the accounts that they belong to. Otherwise it builds the
// whole snapshot again.
func (c *Catalogue) adoptRows(rows []row) error {
	newer := map[key]row{}
	onlyStates := true
	for _, r := range rows {
		known, exists := newer[r.key]
		if !exists {
			known, exists = c.rows[r.key]
		}
		if exists && r.compareVersion(known) >= 0 {
			continue
		}
		newer[r.key] = r
		onlyStates = onlyStates && exists && r.Part == partState && (r.Kind == kindCampaign || r.Kind == kindWidget) && !r.Archived && !known.Archived
	}
	switch {
	case len(newer) == 0:
		return nil
	case !onlyStates:
		all := maps.Clone(c.rows)
		maps.Copy(all, newer)
		return c.replaceRows(slices.Collect(maps.Values(all)))
	}
	next, err := c.snapshot.Load().withStates(c.rows, newer)
	if err != nil {
		return err
	}
	for at, r := range newer {
		c.position.versions += r.Version - c.rows[at].Version
		c.position.latest = schema.LaterTime(c.position.latest, r.ChangedAt)
		c.rows[at] = r
	}
	c.snapshot.Store(next)
	return nil
}

// replaceRows sets the current rows.
func (c *Catalogue) replaceRows(rows []row) error {
	next, err := newSnapshot(rows)
	if err != nil {
		return err
	}
	c.rows, c.position = make(map[key]row, len(rows)), position{keys: uint64(len(rows))}
	for _, r := range rows {
		c.rows[r.key] = r
		c.position.versions += r.Version
		c.position.latest = schema.LaterTime(c.position.latest, r.ChangedAt)
	}
	c.snapshot.Store(next)
	return nil
}
