package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"lifthouse/schema"

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
)

type part string

const (
	partDefinition part = "definition"
	partState      part = "state"
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
}

// equal reports whether two rows of the same key have the same content.
func (r row) equal(other row) bool { return r.Body == other.Body && r.Archived == other.Archived }

// archive returns the next version of the row, archived.
func (r row) archive() row {
	r.Archived = true
	r.Version++
	return r
}

// compare orders rows by key, like the table.
func (r row) compare(other key) int {
	return cmp.Or(
		cmp.Compare(r.AccountID, other.AccountID), cmp.Compare(r.Kind, other.Kind),
		cmp.Compare(r.ID, other.ID), cmp.Compare(r.Part, other.Part),
	)
}

// digestQuery selects a digest that changes whenever a current row changes. It
// also changes when the engine drops an outdated row, which causes one
// unnecessary refresh.
const digestQuery = `
SELECT sum(cityHash64(account_id, kind, id, facet, version, body, archived))
FROM catalogue`

// allRows and rowsOf select the versions of each key, the current one first. If
// several rows have the same version, after concurrent changes, the latest one is
// the current one.
const (
	allRows = selectRows + inOrder
	rowsOf  = selectRows + `WHERE account_id = {account:Int64} AND kind = {kind:String} AND id = {id:Int64}` + inOrder

	selectRows = `
SELECT account_id, kind, id, facet, writer, version, body, archived
FROM catalogue
`
	inOrder = `
ORDER BY account_id, kind, id, facet, version DESC, changed_at DESC, writer`
)

const currentRows = allRows + `
LIMIT 1 BY account_id, kind, id, facet`

func readRows(ctx context.Context, conn driver.Conn) ([]row, error) {
	return queryRows(ctx, conn, currentRows)
}

func queryRows(ctx context.Context, conn driver.Conn, query string, args ...any) ([]row, error) {
	rows, err := schema.QueryRows(ctx, conn, query, func(found driver.Rows, r *row) error {
		return found.Scan(&r.AccountID, (*string)(&r.Kind), &r.ID, (*string)(&r.Part), &r.Writer, &r.Version, &r.Body, &r.Archived)
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	return rows, nil
}

// insertRows inserts the rows in one block, which is atomic.
func insertRows(ctx context.Context, conn driver.Conn, rows []row) error {
	err := schema.InsertRows(ctx, conn, "INSERT INTO catalogue (account_id, kind, id, facet, writer, version, body, archived, changed_by)", rows, func(r *row) []any {
		return []any{r.AccountID, string(r.Kind), r.ID, string(r.Part), r.Writer, r.Version, r.Body, r.Archived, r.By}
	})
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	return nil
}

func encode(body any) (string, error) {
	text, err := json.Marshal(body)
	return string(text), err
}
