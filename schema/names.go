package schema

import (
	"context"
	_ "embed" // the statement
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed names.sql
var namesStored string

// Name is what an id is called in events.
type Name struct {
	NamedID
	Key     string // empty: only the id was sent
	Source  string // that sent it first: name of a token or of a file
	FirstAt time.Time
}

// ReadNames returns the campaigns, variations and goals in the events of a store.
func ReadNames(ctx context.Context, conn driver.Conn) (map[NamedID]Name, error) {
	names := map[NamedID]Name{}
	err := EachRow(ctx, conn, namesStored, func(row driver.Rows) error {
		var n Name
		err := row.Scan(&n.WebsiteID, (*string)(&n.Kind), &n.CampaignID, &n.ID, &n.Key, &n.Source, &n.FirstAt)
		names[n.NamedID] = n
		return err
	})
	return names, WrapError(err, "read the names in events")
}
