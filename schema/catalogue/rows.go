package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

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
	kindWebhook  kind = "webhook"
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

	ChangedAt time.Time `ch:"changed_at"` // set only in stored rows
}

// sameContent reports whether two rows of the same key have the same content.
func (r row) sameContent(other row) bool { return r.Body == other.Body && r.Archived == other.Archived }

// compareVersion orders the rows of a key, the current one first. The current row has the
// highest version and, among equal versions, the latest time.
func (r row) compareVersion(other row) int {
	return cmp.Or(cmp.Compare(other.Version, r.Version), other.ChangedAt.Compare(r.ChangedAt), cmp.Compare(r.Writer, other.Writer))
}

// archivedVersion returns the next version of the row, archived.
func (r row) archivedVersion() row {
	r.Archived = true
	r.Version++
	return r
}

// compareKey orders rows by key, like the table.
func (r row) compareKey(other key) int {
	return cmp.Or(
		cmp.Compare(r.AccountID, other.AccountID), cmp.Compare(r.Kind, other.Kind),
		cmp.Compare(r.ID, other.ID), cmp.Compare(r.Part, other.Part),
	)
}

// positionQuery selects the position of the stored rows. It reads no bodies.
const positionQuery = `
SELECT count(), sum(version), max(changed_at)
FROM
(
    SELECT max(version) AS version, max(changed_at) AS changed_at
    FROM catalogue
    GROUP BY account_id, kind, id, facet
)`

// A query of versions begins with selectRows, or with selectVersions, which omits the
// bodies.
const (
	selectRows = `
SELECT account_id, kind, id, facet, writer, version, body, archived, changed_at
`
	selectVersions = `
SELECT account_id, kind, id, facet, writer, version, '' AS body, archived, changed_at
`
	fromAll = `FROM catalogue
`
	sinceTime = `WHERE changed_at >= {since:DateTime64(3, 'UTC')}`

	// fromResource selects the rows of a resource. It reads one granule of a part; a second thread and PREWHERE would
	// cost more than they save.
	fromResource = fromAll + `WHERE account_id = {account:Int64} AND kind = {kind:String} AND id = {id:Int64}
SETTINGS max_threads = 1, optimize_move_to_prewhere = 0`
)

const currentRows = selectRows + fromAll + `
ORDER BY account_id, kind, id, facet, version DESC, changed_at DESC, writer
LIMIT 1 BY account_id, kind, id, facet`

func readRows(ctx context.Context, conn driver.Conn) ([]row, error) {
	return queryRows(ctx, conn, currentRows)
}

func queryRows(ctx context.Context, conn driver.Conn, query string, args ...any) ([]row, error) {
	rows, err := schema.QueryRows(ctx, conn, query, func(found driver.Rows, r *row) error {
		return found.Scan(&r.AccountID, (*string)(&r.Kind), &r.ID, (*string)(&r.Part), &r.Writer, &r.Version, &r.Body, &r.Archived, &r.ChangedAt)
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

func encodeJSON(body any) (string, error) {
	text, err := json.Marshal(body)
	return string(text), err
}
