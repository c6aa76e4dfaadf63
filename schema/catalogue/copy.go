package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

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
	if !strings.HasPrefix(authorOf(ctx), copiedBy) {
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
