package ingest_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// storeForAMonth stores 300,000 events of two websites, one every nine seconds, with random visitors.
func storeForAMonth(t *testing.T, conn driver.Conn) (last time.Time) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO events (website_id, subject, subject_id, visitor_id, time, event_id, variation_id, event, ingested_at)
		SELECT 1 + number % 2, 'campaign', 12, intHash64(number), toDateTime64('2026-05-01 00:00:00', 3, 'UTC') + intDiv(number, 9), number, 1, 'view', toDateTime64('2026-05-01 00:00:00', 3, 'UTC') + number * 8 FROM numbers(300000)`,
		"OPTIMIZE TABLE events FINAL",
	} {
		must.OK(t, conn.Exec(t.Context(), statement))
	}
	return time.Date(2026, 5, 1, 0, 0, 8*299_999, 0, time.UTC)
}

func TestLastEvents(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	last := storeForAMonth(t, conn)
	for _, c := range []struct {
		website int64
		most    int
		first   uint64
		steps   time.Duration
	}{{0, 20, 299_999, 1}, {1, 20, 299_998, 2}, {2, 1, 299_999, 2}, {3, 5, 0, 0}, {0, 5000, 299_999, 1}} {
		events := must.Get(ingest.LastEvents(t.Context(), conn, c.website, c.most))(t)
		if c.first == 0 {
			check.Equal(t, len(events), 0, "%+v: events", c)
			continue
		}
		must.Equal(t, len(events), c.most, "%+v: events", c)
		for i, e := range events {
			want := c.first - uint64(i)*uint64(c.steps)
			must.Equal(t, e.EventID, want, "%+v: event %d is %d of website %d, want %d", c, i, e.EventID, e.WebsiteID,
				want)
			must.That(t, (c.website == 0 || e.WebsiteID == c.website), "%+v: event %d is %d of website %d, want %d", c,
				i, e.EventID, e.WebsiteID, want)
		}
	}
	query := ""
	for _, part := range []string{"sql/accepted_columns.sql", "sql/last_events.sql"} {
		text := must.Get(os.ReadFile(part))(t)
		query += string(text)
	}
	read, all := granules(t, conn, query, last.Add(-time.Minute))
	check.That(t, all >= 500, "%d of %d granules are read, want at most 10", read, all)
	check.That(t, read <= 10, "%d of %d granules are read, want at most 10", read, all)
}

// granules returns the number of granules that the query for the last minute reads after all indexes, and the number of
// all granules.
func granules(t *testing.T, conn driver.Conn, query string, since time.Time) (read, all int) {
	t.Helper()
	rows := must.Get(conn.Query(t.Context(), "EXPLAIN indexes = 1 "+query,
		clickhouse.Named("website_id", int64(0)), clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
		clickhouse.Named("limit", 20)))(t)
	defer func() { _ = rows.Close() }()
	pattern := regexp.MustCompile(`Granules: (\d+)/(\d+)`)
	plan := ""
	for rows.Next() {
		var line string
		must.OK(t, rows.Scan(&line))
		plan += line + "\n"
		if found := pattern.FindStringSubmatch(line); found != nil {
			read, _ = strconv.Atoi(found[1])
			all = max(all, func() int { n, _ := strconv.Atoi(found[2]); return n }())
		}
	}
	if err := rows.Err(); err != nil || all == 0 {
		t.Fatal(fmt.Errorf("%w\n%s", err, plan))
	}
	return read, all
}
