package catalogue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Several servers may change the catalogue of a store, without a shared lock. A
// change reads the current rows, inserts its rows with the next version, and
// reads the rows again. If another writer has inserted a row of the same or a
// higher version, neither may have seen the other: the change is repeated on top
// of that row. A new change waits while two different rows have the same highest
// version. The table keeps the last row of each writer for a key, so that a merge
// hides no conflict. So no change is lost, and the result of a change was current
// when change returned.

// maxRaces is the maximum number of attempts of a change. The waits between
// attempts are random, so that two writers do not conflict repeatedly.
const maxRaces = 24

// changeTimeout is the timeout of a change after its first insert. A canceled
// request does not end the change, because that would leave a conflict.
const changeTimeout = 10 * time.Second

// ErrContested means that every attempt of a change conflicted with another
// server.
var ErrContested = errors.New("the catalogue is being changed by other servers: try again")

// resource identifies the resource to which a change is confined.
type resource struct {
	account int64
	kind    kind
	id      int64
}

// versions are the stored rows by key, the current one first.
type versions map[key][]row

// readVersions reads the rows of a resource, or of all resources if of is nil.
func readVersions(ctx context.Context, conn driver.Conn, of *resource) (versions, error) {
	var rows []row
	var err error
	if of == nil {
		rows, err = queryRows(ctx, conn, allRows)
	} else {
		rows, err = queryRows(ctx, conn, rowsOf, clickhouse.Named("account", of.account), clickhouse.Named("kind", string(of.kind)), clickhouse.Named("id", of.id))
	}
	if err != nil {
		return nil, err
	}
	all := versions{}
	for _, r := range rows {
		all[r.key] = append(all[r.key], r)
	}
	return all, nil
}

// current returns the current rows, ordered by key.
func (v versions) current() []row {
	rows := make([]row, 0, len(v))
	for _, of := range v {
		rows = append(rows, of[0])
	}
	slices.SortFunc(rows, func(a, b row) int { return a.compare(b.key) })
	return rows
}

// tied reports whether different rows of two writers have the highest version.
func (v versions) tied(at key) bool {
	of := v[at]
	return len(of) > 1 && of[1].Version == of[0].Version && !of[1].equal(of[0])
}

// conflicts returns the rows of other writers that have the same or a higher
// version than one of the written rows.
func (v versions) conflicts(written []row) []row {
	var found []row
	for _, mine := range written {
		of := v[mine.key]
		conflict := of[0]
		if conflict.Writer == mine.Writer && v.tied(mine.key) {
			conflict = of[1]
		}
		if conflict.Writer != mine.Writer && (conflict.Version != mine.Version || !conflict.equal(mine)) {
			found = append(found, conflict)
		}
	}
	return found
}

// change inserts the rows that compute returns for the current rows, and returns
// when they are the current ones. compute is called again after a conflict, and
// must make the same change to any given rows: those of a resource, or all if of
// is nil.
func (c *Catalogue) change(ctx context.Context, of *resource, compute func(current []row) ([]row, error)) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	all, err := c.readResolved(ctx, of)
	if err != nil {
		return err
	}
	var conflicts []row
	for attempt := range maxRaces {
		rows, err := compute(replaced(all.current(), conflicts))
		if err != nil {
			return err
		}
		rows = all.resolve(rows, conflicts)
		if len(rows) == 0 {
			return c.Refresh(ctx)
		}
		for i := range rows {
			rows[i].Writer, rows[i].By = c.writer, authorOf(ctx)
		}
		if attempt == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
			defer cancel()
		}
		if err := insertRows(ctx, c.conn, rows); err != nil {
			return err
		}
		c.afterWrite(ctx)
		if all, err = readVersions(ctx, c.conn, of); err != nil {
			return err
		}
		if len(all.conflicts(rows)) == 0 {
			return c.Refresh(ctx)
		}
		if all, err = c.readLater(ctx, of, attempt); err != nil {
			return err
		}
		conflicts = all.conflicts(rows)
	}
	return ErrContested
}

// readResolved reads the rows and waits until no key is tied. A tie that remains
// was left by a writer that died, and the first row is the current one.
func (c *Catalogue) readResolved(ctx context.Context, of *resource) (versions, error) {
	all, err := readVersions(ctx, c.conn, of)
	for attempt := 0; err == nil && attempt < maxRaces && all.anyTied(); attempt++ {
		all, err = c.readLater(ctx, of, attempt)
	}
	return all, err
}

func (v versions) anyTied() bool {
	for at := range v {
		if v.tied(at) {
			return true
		}
	}
	return false
}

// readLater reads the rows after a random wait of up to 2 ms, or up to 64 ms for
// later attempts.
func (c *Catalogue) readLater(ctx context.Context, of *resource, attempt int) (versions, error) {
	maxWait := 2 * time.Millisecond << min(attempt, 5)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(rand.N(maxWait)):
		return readVersions(ctx, c.conn, of)
	}
}

// replaced replaces the rows of the conflicts' keys by the conflicts.
func replaced(current, conflicts []row) []row {
	for _, conflict := range conflicts {
		at := slices.IndexFunc(current, func(r row) bool { return r.key == conflict.key })
		current[at] = conflict
	}
	return current
}

// resolve adds rows that resolve ties of keys that the change does not write: the
// conflicting row with the next version.
func (v versions) resolve(rows, conflicts []row) []row {
	for _, conflict := range conflicts {
		if v.tied(conflict.key) && !slices.ContainsFunc(rows, func(r row) bool { return r.key == conflict.key }) {
			conflict.Version++
			rows = append(rows, conflict)
		}
	}
	return rows
}
