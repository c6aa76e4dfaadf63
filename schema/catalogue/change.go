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

// Several servers may write one store, which has no lock that they share. A
// change reads what stands, appends its rows one version higher, and reads
// back. Where another writer's row stands beside or above its own, it may be
// that neither knew of the other: the change is made again on top of that row,
// and nobody builds on two rows that stand at once before their writers have
// settled it. The store keeps each writer's last row of a key, so that a merge
// hides no race. So no change is lost, and what a change answered stood when it
// was answered.

// mostRaces bounds how often a change starts over. Waits grow at random, so
// that two writers do not keep step.
const maxRaces = 24

// changeMayTake is for a change once it has begun to write: a client that goes
// away must not leave a race behind.
const changeTimeout = 10 * time.Second

// ErrContested says that other servers were faster each time.
var ErrContested = errors.New("the catalogue is being changed by too many at once; try again")

// resource is what a change is confined to.
type resource struct {
	account int64
	kind    kind
	id      int64
}

// versions are rows of the store by their keys, the one that stands first.
type versions map[key][]row

// readVersions reads the rows of one resource, or all where it is nil.
func readVersions(ctx context.Context, conn driver.Conn, of *resource) (versions, error) {
	var rows []row
	var err error
	if of == nil {
		rows, err = queryRows(ctx, conn, everyRow)
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

// standing are the rows that stand, in the order of their keys.
func (v versions) current() []row {
	rows := make([]row, 0, len(v))
	for _, of := range v {
		rows = append(rows, of[0])
	}
	slices.SortFunc(rows, func(a, b row) int { return a.compare(b.key) })
	return rows
}

// tied says whether rows of two writers stand at once.
func (v versions) tied(at key) bool {
	of := v[at]
	return len(of) > 1 && of[1].Version == of[0].Version && !of[1].says(of[0])
}

// rivals returns, for each of the rows written beside or above which another
// writer's stands, that row.
func (v versions) rivals(written []row) []row {
	var found []row
	for _, mine := range written {
		of := v[mine.key]
		rival := of[0]
		if rival.Writer == mine.Writer && v.tied(mine.key) {
			rival = of[1]
		}
		if rival.Writer != mine.Writer && (rival.Version != mine.Version || !rival.says(mine)) {
			found = append(found, rival)
		}
	}
	return found
}

// change stores the rows that compute makes of those that stand, and returns
// when they stood. compute is called again after a race, and has to make the
// same change of whatever it is given: the rows of one resource, or all where
// it is nil.
func (c *Catalogue) change(ctx context.Context, of *resource, compute func(current []row) ([]row, error)) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	all, err := c.settled(ctx, of)
	if err != nil {
		return err
	}
	var rivals []row
	for attempt := range maxRaces {
		rows, err := compute(replaced(all.current(), rivals))
		if err != nil {
			return err
		}
		rows = all.settle(rows, rivals)
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
		c.wrote(ctx)
		if all, err = readVersions(ctx, c.conn, of); err != nil {
			return err
		}
		if len(all.rivals(rows)) == 0 {
			return c.Refresh(ctx)
		}
		if all, err = c.later(ctx, of, attempt); err != nil {
			return err
		}
		rivals = all.rivals(rows)
	}
	return ErrContested
}

// settled reads the store when no race is open. One that stays open was left
// by a writer that died, and what stands of it holds.
func (c *Catalogue) settled(ctx context.Context, of *resource) (versions, error) {
	all, err := readVersions(ctx, c.conn, of)
	for attempt := 0; err == nil && attempt < maxRaces && all.anyTied(); attempt++ {
		all, err = c.later(ctx, of, attempt)
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

// later reads the store after up to 2 ms, at later attempts after up to 64.
func (c *Catalogue) later(ctx context.Context, of *resource, attempt int) (versions, error) {
	most := 2 * time.Millisecond << min(attempt, 5)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(rand.N(most)):
		return readVersions(ctx, c.conn, of)
	}
}

// replaced puts the rivals in the place of the rows of their keys.
func replaced(current, rivals []row) []row {
	for _, rival := range rivals {
		at := slices.IndexFunc(current, func(r row) bool { return r.key == rival.key })
		current[at] = rival
	}
	return current
}

// settle adds what ends a race about a key that the change itself leaves
// alone now: the rival's row anew, above both.
func (v versions) settle(rows, rivals []row) []row {
	for _, rival := range rivals {
		if v.tied(rival.key) && !slices.ContainsFunc(rows, func(r row) bool { return r.key == rival.key }) {
			rival.Version++
			rows = append(rows, rival)
		}
	}
	return rows
}
