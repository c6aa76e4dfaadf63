package engine

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const shardsOfTest = 2

// partOfShard is the table of events on each shard, in a statement.
const partOfShard = "shard.events_local"

// testShards uses databases instead of servers. All events of a visitor are in
// one database, like with a Distributed table, and the table of events of conn
// covers all of them.
func testShards(t *testing.T, events []schema.Event, shardOf func(*schema.Event) uint64) (conn driver.Conn, s *source.Shards) {
	t.Helper()
	conn = schematest.Empty(t)
	var databases []string
	for shard := range uint64(shardsOfTest) {
		part := schematest.Open(t)
		var database string
		if err := part.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database); err != nil {
			t.Fatal(err)
		}
		databases = append(databases, database)
		var own []schema.Event
		for _, e := range events {
			if shardOf(&e)%shardsOfTest == shard {
				own = append(own, e)
			}
		}
		insert(t, part, own)
	}
	if err := conn.Exec(t.Context(), fmt.Sprintf("CREATE TABLE events AS %s.events ENGINE = Merge(REGEXP('^(%s)$'), '^events$')", databases[0], strings.Join(databases, "|"))); err != nil {
		t.Fatal(err)
	}
	return conn, &source.Shards{Events: partOfShard, Each: func(statement string) source.Expr {
		parts := make([]string, len(databases))
		for i, database := range databases {
			parts[i] = "SELECT * FROM remote('127.0.0.1', view(\n" + strings.ReplaceAll(statement, partOfShard, database+".events") + "\n))"
		}
		return source.Expr("(" + strings.Join(parts, " UNION ALL ") + ")")
	}}
}

// TestShardsAnswerAsOneServer compares reports of shards, with every filter,
// breakdown and series, with the plain fold over all events.
func TestShardsAnswerAsOneServer(t *testing.T) {
	w := world{rand.New(rand.NewPCG(31, 7))}
	size, requests := tier.Of(300, 300, 3_000), tier.Of(4, 4, 60)
	var events []schema.Event
	for range size {
		events = append(events, w.event(1))
	}
	conn, shards := testShards(t, events, func(e *schema.Event) uint64 { return e.VisitorID })
	s := &source.Store{Conn: conn, Limits: source.DefaultLimits, Shards: shards}
	owned := w.owned(1)
	for i := range requests {
		compareWithFold(t, stored{Store: s, events: events}, owned, w.request(1))
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}

// TestAVisitorOnTwoShardsCountsTwice shows why events are sharded by visitor,
// and that visitors are counted on their shards.
func TestAVisitorOnTwoShardsCountsTwice(t *testing.T) {
	view := schema.Event{EventID: 1, Time: start, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 1, Kind: schema.KindView}
	again := view
	again.EventID = 2
	for want, shardOf := range map[int64]func(*schema.Event) uint64{
		1: func(e *schema.Event) uint64 { return e.VisitorID },
		2: func(e *schema.Event) uint64 { return e.EventID },
	} {
		conn, shards := testShards(t, []schema.Event{view, again}, shardOf)
		w := world{rand.New(rand.NewPCG(1, 1))}
		plan, err := plan.New(query.Request{AccountID: 1, Operation: query.CampaignResults, SubjectID: 1}, w.owned(1))
		if err != nil {
			t.Fatal(err)
		}
		x := &source.Execution{Plan: plan, Store: &source.Store{Conn: conn, Limits: source.DefaultLimits, Shards: shards}, Stored: source.Stored{Ingested: start.AddDate(0, 0, 1)}}
		rows, err := source.Reference{Execution: x}.Rows(t.Context())
		if err != nil {
			fatal(t, err)
		}
		if len(rows) != 1 || rows[0].Visitors != want {
			t.Errorf("rows = %+v, want one of %d visitors", rows, want)
		}
	}
}

// TestStatementsToShards compares the statements with golden files, and runs
// them.
func TestStatementsToShards(t *testing.T) {
	conn := schematest.Empty(t)
	w := world{rand.New(rand.NewPCG(1, 1))}
	for _, test := range []struct {
		name, query string
		compile     func(*source.Execution) (*source.Query, error)
	}{
		{"moments", "dimension=device", (*source.Execution).MomentsQuery},
		{"single_pass", "", func(x *source.Execution) (*source.Query, error) { return source.SinglePass{Execution: x}.Query() }},
		{"series", "interval=day", (*source.Execution).SeriesQuery},
		{"outliers", "filters[zScore]=2", (*source.Execution).OutliersQuery},
	} {
		r, err := query.ParseReport(query.CampaignResults, test.query)
		if err != nil {
			t.Fatal(err)
		}
		r.AccountID, r.SubjectID = 1, 1
		plan, err := plan.New(r, w.owned(1))
		if err != nil {
			t.Fatal(err)
		}
		x := &source.Execution{Plan: plan, Store: &source.Store{Shards: source.ClusterShards("lift", "lifthouse")}, Stored: source.Stored{Ingested: start}}
		query, err := test.compile(x)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", "shards"), test.name+".sql", query.SQL)
		if err := conn.Exec(t.Context(), "EXPLAIN AST "+query.SQL, query.Args()...); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
