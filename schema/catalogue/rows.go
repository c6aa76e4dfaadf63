package catalogue

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

type kind string

const (
	kindAccount  kind = "account"
	kindToken    kind = "token"
	kindWebsite  kind = "website"
	kindGoal     kind = "goal"
	kindTarget   kind = "target"
	kindCampaign kind = "campaign"
	kindWidget   kind = "widget"
	kindWebhook  kind = "webhook"
)

type part string

const (
	partDefinition part = "definition"
	partState      part = "state"
	partSalt       part = "salt" // of an account, see salt
)

type key struct {
	AccountID int64 `ch:"account_id"`
	Kind      kind  `ch:"kind"`
	ID        int64 `ch:"id"`
	Part      part  `ch:"facet"`
}

type row struct {
	key
	Writer   string `ch:"writer"` // the process that wrote the row
	Version  uint64 `ch:"version"`
	Body     string `ch:"body"`
	Archived bool   `ch:"archived"`
	By       string `ch:"changed_by"` // author of the change; only set in rows to be written

	ChangedAt time.Time `ch:"changed_at"` // set only in stored rows
}

// hasSameKey reports whether two rows have the same key.
func (r row) hasSameKey(other row) bool { return r.key == other.key }

// sameContent reports whether two rows of the same key have the same content.
func (r row) sameContent(other row) bool { return r.Body == other.Body && r.Archived == other.Archived }

// compareVersion orders the rows of a key, the current one first. The current row has the highest version and, among
// equal versions, the latest time.
func (r row) compareVersion(other row) int {
	return cmp.Or(cmp.Compare(other.Version, r.Version), other.ChangedAt.Compare(r.ChangedAt),
		cmp.Compare(r.Writer, other.Writer))
}

// archivedVersion returns the next version of the row, archived.
func (r row) archivedVersion() row {
	r.Archived = true
	r.Version++
	return r
}

//go:embed position.sql
var positionQuery string

// A query of rows begins with selectRows.
const (
	insertCatalogue = `
INSERT INTO catalogue (account_id, kind, id, facet, writer, version, body, archived, changed_by)`
	selectRows = `
SELECT account_id, kind, id, facet, writer, version, body, archived, changed_at
`
	fromAll = `FROM catalogue
`
	sinceTime = `WHERE changed_at >= {since:DateTime64(3, 'UTC')}`

	// fromResource selects the rows of a resource. It reads one granule of a part; a second thread and PREWHERE would
	// cost more than they save.
	fromResource = fromAll + `WHERE account_id = {account:Int64} AND kind = {kind:String} AND id = {id:Int64}
SETTINGS max_threads = 1, optimize_move_to_prewhere = 0`
)

func readRows(ctx context.Context, conn driver.Conn) ([]row, error) {
	all, err := versionsByKey(queryRows(ctx, conn, selectRows+fromAll))
	return all.latestRows(), err
}

func queryRows(ctx context.Context, conn driver.Conn, query string, args ...any) ([]row, error) {
	rows, err := schema.QueryRows(ctx, conn, query, func(found driver.Rows, r *row) error {
		return found.Scan(&r.AccountID, (*string)(&r.Kind), &r.ID, (*string)(&r.Part), &r.Writer, &r.Version, &r.Body,
			&r.Archived, &r.ChangedAt)
	}, args...)
	return rows, schema.WrapError(err, "read catalogue")
}

func encodeJSON(body any) (string, error) {
	text, err := json.Marshal(body)
	return string(text), err
}

// Several servers may change the catalogue of a store without a shared lock. A change reads the current rows, inserts
// its rows with the next version, and reads the rows again. If another writer has inserted a row of the same or a
// higher version, neither writer may have seen the other's row. The change is then repeated on top of that row. A new
// change waits while two different rows share the highest version. The table keeps the last row of each writer for a
// key, so a merge hides no conflict. So no change is lost, and the result of a change was current when changeRows
// returned.

// maxRaces is the maximum number of attempts of a change. The waits between attempts are random, which keeps two
// writers from conflicting repeatedly.
const maxRaces = 24

// changeTimeout is the timeout of a change after its first insert. Canceling the request does not end the change,
// because that would leave a conflict.
const changeTimeout = 10 * time.Second

// ErrContested means that every attempt of a change conflicted with another server.
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
	if only == nil {
		return versionsByKey(queryRows(ctx, c.conn, selectRows+fromAll))
	}
	return versionsByKey(queryRows(ctx, c.conn, selectRows+fromResource,
		clickhouse.Named("account", only.account), clickhouse.Named("kind", string(only.kind)),
		clickhouse.Named("id", only.id)))
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
	slices.SortFunc(rows, func(a, b row) int { // as the table does
		return cmp.Or(
			cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Part, b.Part),
		)
	})
	return rows
}

// isTied reports whether different rows of two writers have the highest version.
func (v versions) isTied(k key) bool {
	of := v[k]
	return len(of) > 1 && of[1].Version == of[0].Version && !of[1].sameContent(of[0])
}

// conflictingRows returns the rows of other writers that have the same or a higher version than one of the written
// rows.
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

// changeRows calls compute with the current rows of a resource, or of all resources if only is nil, and with a snapshot
// of them. It inserts the rows that compute returns, and returns the current rows once they include the inserted ones.
// Other changes of this process wait. compute is called again after a conflict and must make the same change to
// whatever rows it gets.
func (c *Catalogue) changeRows(ctx context.Context, only *resource,
	compute func(current []row, known *Snapshot) ([]row, error),
) ([]row, error) {
	select {
	case c.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.changing }()

	all, err := c.readUntied(ctx, only)
	if err != nil {
		return nil, err
	}
	var conflicts []row
	for attempt := range maxRaces {
		// Compute the change on top of the rows of other writers.
		current := all.latestRows()
		for _, conflict := range conflicts {
			current[slices.IndexFunc(current, conflict.hasSameKey)] = conflict
		}
		known, err := newSnapshot(current)
		if err != nil {
			return nil, err
		}
		rows, err := compute(current, known)
		if err != nil {
			return nil, err
		}
		rows = all.resolveTies(rows, conflicts)
		if len(rows) == 0 {
			return all.latestRows(), c.updateSnapshot(all.latestRows())
		}

		// Insert the rows, and look for rows that other writers have inserted.
		if attempt == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
			defer cancel()
		}
		if err := c.insertRows(ctx, rows); err != nil {
			return nil, err
		}
		all, err = c.readVersions(ctx, only)
		if err != nil {
			return nil, err
		}
		if len(all.conflictingRows(rows)) == 0 {
			return all.latestRows(), c.updateSnapshot(all.latestRows())
		}
		all, err = c.readLater(ctx, only, attempt)
		if err != nil {
			return nil, err
		}
		conflicts = all.conflictingRows(rows)
	}
	return nil, ErrContested
}

// readUntied reads the rows once no key is tied. If a tie remains, its writer has died, and the first row is the
// current one.
func (c *Catalogue) readUntied(ctx context.Context, only *resource) (versions, error) {
	all, err := c.readVersions(ctx, only)
	tied := func() bool { return slices.ContainsFunc(slices.Collect(maps.Keys(all)), all.isTied) }
	for attempt := 0; err == nil && attempt < maxRaces && tied(); attempt++ {
		all, err = c.readLater(ctx, only, attempt)
	}
	return all, err
}

// resolveTies adds, to the rows of a change, the next versions of conflicting rows that are tied and that the change
// does not write.
func (v versions) resolveTies(rows, conflicts []row) []row {
	for _, conflict := range conflicts {
		if v.isTied(conflict.key) && !slices.ContainsFunc(rows, conflict.hasSameKey) {
			conflict.Version++
			rows = append(rows, conflict)
		}
	}
	return rows
}

// insertRows inserts rows of this writer in one block, which is atomic.
func (c *Catalogue) insertRows(ctx context.Context, rows []row) error {
	for i := range rows {
		rows[i].Writer = c.writer
		rows[i].By = cmp.Or(rows[i].By, AuthorOf(ctx))
	}
	err := schema.InsertRows(ctx, c.conn, insertCatalogue, rows, func(r *row) []any {
		return []any{
			r.AccountID, string(r.Kind), r.ID, string(r.Part), r.Writer, r.Version, r.Body, r.Archived, r.By,
		}
	})
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	return nil
}

// readLater reads the rows after a random wait of up to 2 ms, or up to 64 ms for later attempts.
func (c *Catalogue) readLater(ctx context.Context, only *resource, attempt int) (versions, error) {
	maxWait := 2 * time.Millisecond << min(attempt, 5)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(rand.N(maxWait)):
		return c.readVersions(ctx, only)
	}
}

// copiedBy is the prefix of the author of rows that CopyFrom wrote.
const copiedBy = "lifthouse copy"

// copiedQuery selects the keys whose current row was written by CopyFrom.
const copiedQuery = `
SELECT account_id, kind, id, facet
FROM catalogue
GROUP BY account_id, kind, id, facet
HAVING startsWith(argMax(changed_by, (version, changed_at)), '` + copiedBy + `')`

// CopyFrom adds the catalogue of another store, including states and token digests, in one atomic insert. It returns
// the number of rows that it wrote. Rows that an earlier CopyFrom wrote are updated from the other store. If other rows
// differ, CopyFrom changes nothing and returns an error that names them.
func (c *Catalogue) CopyFrom(ctx context.Context, source driver.Conn) (written int, err error) {
	others, err := readRows(ctx, source)
	if err != nil {
		return 0, err
	}
	copied := map[key]bool{}
	err = schema.EachRow(ctx, c.conn, copiedQuery, func(row driver.Rows) error {
		var k key
		err := row.Scan(&k.AccountID, (*string)(&k.Kind), &k.ID, (*string)(&k.Part))
		copied[k] = true
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read catalogue: %w", err)
	}
	if !strings.HasPrefix(AuthorOf(ctx), copiedBy) {
		ctx = WithAuthor(ctx, copiedBy)
	}
	_, err = c.changeRows(ctx, nil, func(current []row, _ *Snapshot) ([]row, error) {
		// The rows that must be written for the current rows to include the others.
		stored := make(map[key]row, len(current))
		for _, r := range current {
			stored[r.key] = r
		}
		var rows []row
		var differ []string
		for _, other := range others {
			before, exists := stored[other.key]
			switch {
			case exists && before.sameContent(other):
			case exists && !copied[other.key]:
				name := fmt.Sprintf("%s of %s %d", other.Part, other.Kind, other.ID)
				if other.Kind != kindAccount {
					name += fmt.Sprintf(" of account %d", other.AccountID)
				}
				differ = append(differ, name)
			default:
				other.Version = before.Version + 1
				rows = append(rows, other)
				stored[other.key] = other
			}
		}
		const shown = 10
		if more := len(differ) - shown; more > 0 {
			differ = append(differ[:shown], fmt.Sprint(more, " more"))
		}
		if len(differ) > 0 {
			return nil, errors.New("the catalogues differ, nothing was copied: " + strings.Join(differ, ", ") +
				"; copy into a new store")
		}
		written = max(written, len(rows)) // on a retry after a conflict, some rows are already stored
		together, err := newSnapshot(slices.Collect(maps.Values(stored)))
		if err == nil {
			err = together.Validate()
		}
		return rows, schema.WrapError(err, "the catalogues do not go together, nothing was copied")
	})
	return written, err
}
