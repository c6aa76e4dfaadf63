package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/received_stored.sql
var receivedStored string

// Windows are counts for the last hour, day and week. Each window includes the shorter
// ones.
type Windows struct {
	Hour uint64 `json:"hour"`
	Day  uint64 `json:"day"`
	Week uint64 `json:"week"`
}

// AddCounts adds the other counts.
func (w *Windows) AddCounts(o Windows) {
	w.Hour, w.Day, w.Week = w.Hour+o.Hour, w.Day+o.Day, w.Week+o.Week
}

// StoredRows counts the accepted rows of the same website, subject, experiment, variation
// and goal.
type StoredRows struct {
	schema.Event // the website, subject, experiment, variation and goal
	Accepted     Windows
	Late         Windows // accepted more than an hour after they happened
}

// CountReceived counts the arrivals of the week before now, on one website, or on all websites
// if website is 0.
func CountReceived(ctx context.Context, conn driver.Conn, website int64, now time.Time) (stored []StoredRows, err error) {
	ago := func(name string, hours int) driver.NamedDateValue {
		return clickhouse.DateNamed(name, now.Add(-time.Duration(hours)*time.Hour), clickhouse.MilliSeconds)
	}
	params := []any{clickhouse.Named("website_id", website), ago("hour", 1), ago("day", 24), ago("week", 7*24)}
	if stored, err = schema.QueryRows(ctx, conn, receivedStored, scanStored, params...); err != nil {
		return nil, fmt.Errorf("count received events: %w", err)
	}
	return stored, nil
}

func scanStored(rows driver.Rows, s *StoredRows) error {
	return rows.Scan(&s.WebsiteID, (*string)(&s.Subject), &s.SubjectID, &s.ExperimentID, &s.VariationID, &s.GoalID,
		&s.Accepted.Hour, &s.Accepted.Day, &s.Accepted.Week, &s.Late.Hour, &s.Late.Day, &s.Late.Week)
}
