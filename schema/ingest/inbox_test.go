package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func exec(t *testing.T, conn driver.Conn, statement string) {
	t.Helper()
	must.OK(t, conn.Exec(t.Context(), statement), "%v", statement)
}

func number(t *testing.T, conn driver.Conn, query string) (n int64) {
	t.Helper()
	must.OK(t, conn.QueryRow(t.Context(), "SELECT toInt64(("+query+"))").Scan(&n), "%v", query)
	return n
}

func move(t *testing.T, i *ingest.Inbox, want ingest.Moved) {
	t.Helper()
	check.Equal(t, must.Get(i.MoveRows(t.Context()))(t), want, "moved")
}

const inboxView = `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, campaign_id, variation_id) VALUES `

// TestInboxRowsEqualLines stores the same events from rows and from lines.
func TestInboxRowsEqualLines(t *testing.T) {
	byRow, byLine := schematest.OpenMigrated(t), schematest.OpenMigrated(t)
	exec(t, byRow, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, campaign_id, variation_id, device,
		browser, os, country, region, city, channel, referrer, utm_source, utm_medium, utm_campaign, utm_content,
		utm_term, first_visit_page, visitor_type)
		VALUES ('e1', '2026-05-01 12:00:00.123', 1, 'ü', 'view', 12, 0, 'Mobile',
			'Firefox', 'Linux', 'fr', 'r', 'Lyon', 'mail', 'x.org', 's', 'm', 'c', 'n', 't',
			'/', 'new')`)
	exec(t, byRow, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, widget_id, experiment_id, variation_id)
		VALUES ('e2', '2026-05-01 12:00:00', 1, 'ü', 'view', 7, 2, 1), ('e3', '2026-05-01 12:00:00', 1, 'ü', 'click', 7, NULL, 1)`)
	exec(t, byRow, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, goal_id, value, profit, extra_value)
		VALUES ('g', '2026-05-01 13:00:00', 1, 'ü', 'goal', 3, 19.9, '-0.0001', toDecimal64(7.5, 4))`)
	exec(t, byRow, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, goal_id, value, revision, cancelled)
		VALUES ('g', '2026-05-01 13:00:00', 1, 'ü', 'goal', 3, 15, 1777640400000, false), ('g2', '2026-05-01 13:00:00', 1, 'ü', 'goal', 3, 15, 1, true)`)
	const lines = `{"eventId":"e1","time":"2026-05-01T12:00:00.123Z","websiteId":1,"visitor":"ü","event":"view","campaignId":12,"variationId":0,"device":"Mobile","browser":"Firefox","os":"Linux","country":"fr","region":"r","city":"Lyon","channel":"mail","referrer":"x.org","utmSource":"s","utmMedium":"m","utmCampaign":"c","utmContent":"n","utmTerm":"t","firstVisitPage":"/","visitorType":"new"}
{"eventId":"e2","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"ü","event":"view","widgetId":7,"experimentId":2,"variationId":1}
{"eventId":"e3","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"ü","event":"click","widgetId":7,"variationId":1}
{"eventId":"g","time":"2026-05-01T13:00:00Z","websiteId":1,"visitor":"ü","event":"goal","goalId":3,"value":19.9,"profit":-0.0001,"extraValue":7.5}
{"eventId":"g","time":"2026-05-01T13:00:00Z","websiteId":1,"visitor":"ü","event":"goal","goalId":3,"value":15,"revision":1777640400000,"cancelled":false}
{"eventId":"g2","time":"2026-05-01T13:00:00Z","websiteId":1,"visitor":"ü","event":"goal","goalId":3,"value":15,"revision":1,"cancelled":true}
`
	move(t, ingest.NewInbox(byRow, ingest.NewWriter(byRow, nil)), ingest.Moved{Accepted: 6})
	must.Get(ingest.ImportFile(t.Context(), ingest.NewWriter(byLine, nil), "-",
		ingest.Options{Input: strings.NewReader(lines)}))(t)
	wantEvents, wantFacts := digests(t, byLine, facts.NewRefresher(byLine, false))
	events, folded := digests(t, byRow, facts.NewRefresher(byRow, false))
	check.Equal(t, events, wantEvents, "events %d, facts %d; want %d, %d", events, folded, wantEvents, wantFacts)
	check.Equal(t, folded, wantFacts, "events %d, facts %d; want %d, %d", events, folded, wantEvents, wantFacts)
	check.Equal(t, number(t, byRow, "SELECT count() FROM events_inbox"), 0, "rows left")
}

// recipe returns the statements of docs/data-in.md that feed events_inbox from a table engine of ClickHouse.
func recipe(t *testing.T) []string {
	t.Helper()
	document := must.Get(os.ReadFile("../../docs/data-in.md"))(t)
	_, rest, found := strings.Cut(string(document), "```sql\nCREATE TABLE incoming")
	statements, _, ends := strings.Cut(rest, "```")
	must.That(t, found, "docs/data-in.md has no recipe for events_inbox")
	must.That(t, ends, "docs/data-in.md has no recipe for events_inbox")
	return strings.Split(strings.TrimSuffix(strings.TrimSpace("CREATE TABLE incoming"+statements), ";"), ";\n")
}

// TestATableEngineFeedsTheInbox runs the recipe of docs/data-in.md with the engine Null in place of S3Queue: both pass
// rows on to materialized views. It sends what Segment writes into a bucket.
func TestATableEngineFeedsTheInbox(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	for _, statement := range recipe(t) {
		exec(t, conn, s3Queue.ReplaceAllString(statement, "ENGINE = Null"))
	}
	exec(t, conn, `INSERT INTO incoming VALUES
		('{"messageId":"m1","anonymousId":"v1","event":"Experiment Viewed","timestamp":"2026-05-01T12:00:00.250Z",
			"properties":{"experiment_id":"checkout-layout","variation_id":"b"}}'),
		('{"messageId":"m2","anonymousId":"v1","event":"Order Completed","timestamp":"2026-05-01T12:05:00Z",
			"properties":{"order_id":"1001","revenue":19.9}}'),
		('{"messageId":"m3","anonymousId":"v1","event":"Page","timestamp":"2026-05-01T12:05:00Z"}')`)
	move(t, ingest.NewInbox(conn, ingest.NewWriter(conn, nil)), ingest.Moved{Accepted: 2})
	campaign, _, err := schema.IDOf(1, schema.NameCampaign, "checkout-layout")
	must.OK(t, err)
	variation, _, err := schema.IDOf(1, schema.NameVariation, "b")
	must.OK(t, err)
	goal, _, err := schema.IDOf(1, schema.NameGoal, "purchase")
	must.OK(t, err)
	check.Equal(t,
		number(t, conn,
			fmt.Sprintf("SELECT count() FROM events WHERE event = 'view' AND subject_id = %d AND variation_id = %d "+
				"AND time = '2026-05-01 12:00:00.250'", campaign, variation)), 1, "views")
	check.Equal(t,
		number(t, conn,
			fmt.Sprintf("SELECT count() FROM events WHERE event = 'goal' AND goal_id = %d AND value = 199000 AND "+
				"event_id = %d", goal, schema.HashID("1001"))), 1, "purchases")
}

// TestMappingsOfTheDocumentation reads the mappings in docs/data-in.md.
func TestMappingsOfTheDocumentation(t *testing.T) {
	document := must.Get(os.ReadFile("../../docs/data-in.md"))(t)
	blocks := strings.Split(string(document), "```yaml\n")[1:]
	for _, block := range blocks {
		mapping, _, _ := strings.Cut(block, "```")
		_, err := ingest.ReadMapping(strings.NewReader(mapping))
		must.OK(t, err, "%s", mapping)
	}
	check.Equal(t, len(blocks), 2, "mappings")
}

// s3Queue matches the engine of the recipe.
var s3Queue = regexp.MustCompile(`ENGINE = S3Queue\((?s:.*)$`)

func TestInboxRejectsInvalidRows(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	for _, row := range []string{
		`('', '2026-05-01 12:00:00', 1, 'right', 'view', 12, 0)`,
		`('late', '2026-05-02 12:00:00', 1, 'v', 'view', 12, 0)`,
		`('foreign', '2026-05-01 12:00:00', 9, 'v', 'view', 12, 0)`,
		`('several', DEFAULT, 1, '', 'looked', NULL, NULL)`,
		`('unvaried', '2026-05-01 12:00:00', 1, 'v', 'view', 12, NULL)`,
	} {
		exec(t, conn, inboxView+row)
	}
	exec(t, conn, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, goal_id, value) VALUES ('large', '2026-05-01 12:00:00', 1, 'v', 'goal', 3, 2e9)`)
	reasons := map[string]string{}
	inbox := ingest.NewInbox(conn, ingest.NewWriter(conn, nil))
	inbox.Times = ingest.Times{Now: func() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }}
	inbox.Owns = func(context.Context) (func(int64) bool, error) { return func(id int64) bool { return id == 1 }, nil }
	inbox.Reject = func(rejects ...ingest.Reject) {
		for _, r := range rejects {
			id, _, _ := strings.Cut(strings.TrimPrefix(r.Text, "event_id="), " row_id=")
			reasons[id] = fmt.Sprint(r.WebsiteID, " ", r.Reason)
		}
	}
	var moved ingest.Moved
	inbox.Moved = func(m ingest.Moved) { moved = m }
	want := ingest.Moved{Accepted: 1, Rejected: 5}
	move(t, inbox, want)
	check.Equal(t, moved, want, "Moved")
	for id, wants := range map[string][]string{
		"late":     {`1 time: "2026-05-02T12:00:00.000Z": must be at most 0s after now`},
		"foreign":  {"9 unknown_website: websiteId 9 is not in the catalogue"},
		"several":  {"visitor: missing", "time: missing", `event: "looked": must be view`, "campaignId: missing"},
		"unvaried": {"variationId: missing: must be an integer from 0"},
		"large":    {`value: "2000000000": must be a decimal number`},
	} {
		for _, want := range wants {
			check.Contains(t, reasons[id], want, "%v", id)
		}
	}
	stored, left := number(t, conn, "SELECT count() FROM events FINAL"), number(t, conn,
		"SELECT count() FROM events_inbox")
	check.Equal(t, stored, 1, "%d stored, %d left; want 1 and 0", stored, left)
	check.Equal(t, left, 0, "%d stored, %d left; want 1 and 0", stored, left)
}

// TestInboxKilled kills a process after each of its statements, and moves the rows with another one.
func TestInboxKilled(t *testing.T) {
	const rows = 5
	for statements := range 100 {
		conn := schematest.OpenMigrated(t)
		for n := range rows { // without ids, so equal rows are different events
			exec(t, conn, inboxView+fmt.Sprintf("('', '2026-05-01 12:00:00', 1, 'v', 'view', %d, 0)", 1+n/2))
		}
		left := statements
		mortal := schematest.KilledConn{Conn: conn, Left: &left}
		_, err := ingest.NewInbox(mortal, ingest.NewWriter(mortal, nil)).MoveRows(t.Context())
		if err == nil {
			if statements < 4 { // the queries for parts and rows, the insert and the drop
				t.Errorf("a move has only %d statements", statements)
			}
			return
		}
		if !errors.Is(err, schematest.ErrKilled) {
			t.Fatal(err)
		}
		must.Get(ingest.NewInbox(conn, ingest.NewWriter(conn, nil)).MoveRows(t.Context()))(t)
		stored, left2 := number(t, conn, "SELECT count() FROM events FINAL"), number(t, conn,
			"SELECT count() FROM events_inbox")
		check.Equal(t, stored, rows, "killed after %d statements: %d stored, %d left; want %d, 0", statements, stored,
			left2, rows)
		check.Equal(t, left2, 0, "killed after %d statements: %d stored, %d left; want %d, 0", statements, stored,
			left2, rows)
	}
	t.Error("no move was completed")
}

// merging is a connection that merges events_inbox while its rows are written.
type merging struct{ driver.Conn }

func (c merging) PrepareBatch(ctx context.Context, query string,
	opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if err := c.Exec(ctx, "OPTIMIZE TABLE events_inbox FINAL"); err != nil {
		return nil, err
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

// TestInboxDropsOnlyMovedParts inserts rows and merges parts while rows are moved.
func TestInboxDropsOnlyMovedParts(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(merging{Conn: conn}, nil)
	inbox := ingest.NewInbox(conn, w)
	w.AfterInsert(func(time.Time) {
		exec(t, conn, inboxView+`('later', '2026-05-01 12:00:00', 1, 'v', 'view', 12, 0)`)
	})
	exec(t, conn, inboxView+`('a', '2026-05-01 12:00:00', 1, 'v', 'view', 12, 0)`)
	exec(t, conn, inboxView+`('b', '2026-05-01 12:00:00', 1, 'v', 'view', 12, 0)`)
	move(t, inbox, ingest.Moved{Accepted: 2})
	if left := number(t, conn, "SELECT count() FROM events_inbox"); left != 3 { // in the merged part
		t.Errorf("%d rows are left, want 3", left)
	}
	move(t, inbox, ingest.Moved{Accepted: 3})
	must.Get(ingest.NewInbox(conn, ingest.NewWriter(conn, nil)).MoveRows(t.Context()))(t)
	stored, left := number(t, conn, "SELECT count() FROM events FINAL"), number(t, conn,
		"SELECT count() FROM events_inbox")
	check.Equal(t, stored, 3, "%d stored, %d left; want 3 and 0", stored, left)
	check.Equal(t, left, 0, "%d stored, %d left; want 3 and 0", stored, left)
}

// TestInboxPages also checks that the first row of an identity is kept, because rows are moved in order.
func TestInboxPages(t *testing.T) {
	const rows = 120_000
	conn := schematest.OpenMigrated(t)
	exec(t, conn, fmt.Sprintf(`INSERT INTO events_inbox (event_id, time, website_id, visitor, event, campaign_id, variation_id)
		SELECT toString(number %% 100000), '2026-05-01 12:00:00', 1, toString(number %% 100000), 'view', 12, number >= 100000 FROM numbers(%d)`, rows))
	inbox := ingest.NewInbox(conn, ingest.NewWriter(conn, nil))
	var pages []ingest.Moved
	inbox.Moved = func(m ingest.Moved) { pages = append(pages, m) }
	move(t, inbox, ingest.Moved{Accepted: 120_000})
	want := []ingest.Moved{{Accepted: 50_000}, {Accepted: 50_000}, {Accepted: 20_000}}
	check.That(t, slices.Equal(pages, want), "pages %+v, want %+v", pages, want)
	check.Equal(t, number(t, conn, "SELECT sum(variation_id) FROM events FINAL"), 0, "variations of the first rows")
}

// TestInboxIsRarelyMerged checks that parts are only merged if there are very many of them, so that moved parts can
// usually be dropped.
func TestInboxIsRarelyMerged(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	const inserts = 40
	for n := range inserts {
		exec(t, conn, inboxView+fmt.Sprintf("('%d', '2026-05-01 12:00:00', 1, 'v', 'view', 12, 0)", n))
	}
	parts := number(t, conn, "SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'events_inbox' AND active")
	check.That(t, parts == inserts, "%d parts of %d inserts", parts, inserts)
	move(t, ingest.NewInbox(conn, ingest.NewWriter(conn, nil)), ingest.Moved{Accepted: inserts})
}

func TestForgetDeletesInboxRows(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	for _, visitor := range []string{"a", "forgotten"} {
		exec(t, conn, inboxView+fmt.Sprintf("('e', '2026-05-01 12:00:00', 1, '%s', 'view', 12, 0)", visitor))
	}
	w, _ := newEraser(conn)
	must.Get(w.ForgetVisitors(t.Context(), []string{"forgotten"}, nil))(t)
	move(t, ingest.NewInbox(conn, w), ingest.Moved{Accepted: 1})
	known := number(t, conn,
		fmt.Sprintf("SELECT count() FROM events WHERE visitor_id = %d", schema.HashID("forgotten")))
	check.That(t, known == 0, "a forgotten visitor was moved from the inbox")
}
