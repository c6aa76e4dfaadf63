package catalogue

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Several servers may change the catalogue of a store without a shared lock. A
// change reads the current rows, inserts its rows with the next version, and reads
// the rows again. If another writer has inserted a row of the same or a higher
// version, neither writer may have seen the other's row. The change is then repeated
// on top of that row. A new change waits while two different rows share the highest
// version. The table keeps the last row of each writer for a key, so a merge hides
// no conflict. So no change is lost, and the result of a change was current when
// changeRows returned.

// maxRaces is the maximum number of attempts of a change. The waits between attempts
// are random, which keeps two writers from conflicting repeatedly.
const maxRaces = 24

// changeTimeout is the timeout of a change after its first insert. Canceling the
// request does not end the change, because that would leave a conflict.
const changeTimeout = 10 * time.Second

// ErrContested means that every attempt of a change conflicted with another
// server.
var ErrContested = errors.New("the catalogue is being changed by other servers: try again")

// resource identifies the resource that a change is limited to.
type resource struct {
	account int64
	kind    kind
	id      int64
}

// versions are the stored rows by key, the current one first.
type versions map[key][]row

// readVersions reads the rows of a resource, or of all resources if only is nil.
func (c *Catalogue) readVersions(ctx context.Context, only *resource) (versions, error) {
	return c.queryVersions(ctx, selectRows, only)
}

func (c *Catalogue) queryVersions(ctx context.Context, columns string, only *resource) (versions, error) {
	if only == nil {
		return versionsByKey(queryRows(ctx, c.conn, columns+fromAll))
	}
	return versionsByKey(queryRows(ctx, c.conn, columns+fromResource,
		clickhouse.Named("account", only.account), clickhouse.Named("kind", string(only.kind)), clickhouse.Named("id", only.id)))
}

func versionsByKey(rows []row, err error) (versions, error) {
	all := versions{}
	for _, r := range rows {
		all[r.key] = append(all[r.key], r)
	}
	for _, of := range all {
		slices.SortFunc(of, row.compareVersion)
	}
	return all, err
}

// latestRows returns the current rows, ordered by key.
func (v versions) latestRows() []row {
	rows := make([]row, 0, len(v))
	for _, of := range v {
		rows = append(rows, of[0])
	}
	slices.SortFunc(rows, func(a, b row) int { return a.compareKey(b.key) })
	return rows
}

// isTied reports whether different rows of two writers have the highest version.
func (v versions) isTied(k key) bool {
	of := v[k]
	return len(of) > 1 && of[1].Version == of[0].Version && !of[1].sameContent(of[0])
}

// areLatest reports whether no other writer has rows with the same or a higher version.
func (v versions) areLatest(written []row) bool {
	for _, mine := range written {
		of := v[mine.key]
		if len(of) == 0 || of[0].Writer != mine.Writer || len(of) > 1 && of[1].Version == of[0].Version {
			return false
		}
	}
	return true
}

// withTimes returns the current rows, updated with the written rows. The written rows
// get the times that the store assigned.
func (v versions) withTimes(written, current []row) []row {
	rows := make(map[key]row, len(current))
	for _, r := range current {
		rows[r.key] = r
	}
	for _, mine := range written {
		mine.ChangedAt = v[mine.key][0].ChangedAt
		rows[mine.key] = mine
	}
	return slices.Collect(maps.Values(rows))
}

// conflictingRows returns the rows of other writers that have the same or a higher
// version than one of the written rows.
func (v versions) conflictingRows(written []row) []row {
	var found []row
	for _, mine := range written {
		of := v[mine.key]
		if len(of) == 0 {
			continue // a replica was read that does not have the row yet
		}
		conflict := of[0]
		if conflict.Writer == mine.Writer && v.isTied(mine.key) {
			conflict = of[1]
		}
		if conflict.Writer != mine.Writer && (conflict.Version != mine.Version || !conflict.sameContent(mine)) {
			found = append(found, conflict)
		}
	}
	return found
}

// changeRows calls compute with the current rows of all resources and inserts the rows that
// it returns. It returns once the inserted rows are the current ones. Other changes of this
// process wait.
func (c *Catalogue) changeRows(ctx context.Context, compute func(current []row) ([]row, error)) error {
	select {
	case c.changing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.changing }()
	_, err := c.changeAlone(ctx, nil, compute)
	return err
}

// changeAlone is like changeRows for a caller that holds c.changing. It returns the
// current rows of the resource, or of all resources if only is nil. compute is called
// again after a conflict and must make the same change to whatever rows it gets.
func (c *Catalogue) changeAlone(ctx context.Context, only *resource, compute func(current []row) ([]row, error)) ([]row, error) {
	all, err := c.readResolved(ctx, only)
	if err != nil {
		return nil, err
	}
	var conflicts []row
	for attempt := range maxRaces {
		rows, err := compute(replaceConflicts(all.latestRows(), conflicts))
		if err != nil {
			return nil, err
		}
		rows = all.resolveTies(rows, conflicts)
		if len(rows) == 0 {
			return all.latestRows(), c.updateSnapshot(all.latestRows())
		}
		for i := range rows {
			rows[i].Writer = c.writer
			if rows[i].By == "" {
				rows[i].By = authorOf(ctx)
			}
		}
		if attempt == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
			defer cancel()
		}
		if err := insertRows(ctx, c.conn, rows); err != nil {
			return nil, err
		}
		back, err := c.queryVersions(ctx, selectVersions, only)
		if err != nil {
			return nil, err
		}
		if back.areLatest(rows) {
			current := back.withTimes(rows, all.latestRows())
			return current, c.updateSnapshot(current)
		}
		if all, err = c.readVersions(ctx, only); err != nil {
			return nil, err
		}
		if len(all.conflictingRows(rows)) == 0 {
			return all.latestRows(), c.updateSnapshot(all.latestRows())
		}
		if all, err = c.readLater(ctx, only, attempt); err != nil {
			return nil, err
		}
		conflicts = all.conflictingRows(rows)
	}
	return nil, ErrContested
}

// readResolved reads the rows and waits until no key is tied. If a tie remains, the
// writer that caused it has died, and the first row is the current one.
func (c *Catalogue) readResolved(ctx context.Context, only *resource) (versions, error) {
	all, err := c.readVersions(ctx, only)
	for attempt := 0; err == nil && attempt < maxRaces && all.anyTied(); attempt++ {
		all, err = c.readLater(ctx, only, attempt)
	}
	return all, err
}

func (v versions) anyTied() bool {
	for at := range v {
		if v.isTied(at) {
			return true
		}
	}
	return false
}

// readLater reads the rows after a random wait of up to 2 ms, or up to 64 ms for
// later attempts.
func (c *Catalogue) readLater(ctx context.Context, only *resource, attempt int) (versions, error) {
	maxWait := 2 * time.Millisecond << min(attempt, 5)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(rand.N(maxWait)):
		return c.readVersions(ctx, only)
	}
}

// replaceConflicts replaces each current row that has a conflict with the conflicting
// row.
func replaceConflicts(current, conflicts []row) []row {
	for _, conflict := range conflicts {
		at := slices.IndexFunc(current, func(r row) bool { return r.key == conflict.key })
		current[at] = conflict
	}
	return current
}

// resolveTies resolves the ties of keys that the change does not write. For each of
// them it adds the conflicting row with the next version.
func (v versions) resolveTies(rows, conflicts []row) []row {
	for _, conflict := range conflicts {
		if v.isTied(conflict.key) && !slices.ContainsFunc(rows, func(r row) bool { return r.key == conflict.key }) {
			conflict.Version++
			rows = append(rows, conflict)
		}
	}
	return rows
}
