package engine

import (
	"strings"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// shards are those of a store on a cluster. What a report computes per visitor
// is computed on the shard that has the visitor, by the statement that one
// server would be given, and only sums travel.
type shards struct {
	events expr                        // what a shard's part of the events is called there
	each   func(statement string) expr // the rows that a statement has on each of them
}

// shardsOf are the shards behind a connection; nil: there is one server.
func shardsOf(conn driver.Conn) *shards {
	cluster, database := schema.Cluster(conn)
	if cluster == "" {
		return nil
	}
	return clusterShards(cluster, database)
}

func clusterShards(cluster, database string) *shards {
	return &shards{
		events: expr("`" + database + "`." + schema.LocalTable("events")),
		each: func(statement string) expr {
			return expr("cluster(" + literal(cluster) + ", view(\n" + statement + "\n))")
		},
	}
}

// shardSlots are what differs between the statements that add up what shards
// found, in sql/shards.sql.
type shardSlots struct {
	Of       string   // what a row is of
	Keys     []string // columns that rows are added up by
	Recount  bool     // of the quick form
	Outliers bool
	Widget   bool
	Shards   expr
}

// List is the keys as they stand in GROUP BY.
func (s shardSlots) List() string { return strings.Join(s.Keys, ", ") }

// eventsTable is what a statement that may go to the shards reads.
func (p *Plan) eventsTable() expr {
	if p.shards == nil {
		return "events"
	}
	return p.shards.events
}

// overShards has a statement about visitors answered by all shards, and adds
// up. Where there are none it leaves the statement.
func (p *Plan) overShards(q *Query, s shardSlots) error {
	if p.shards == nil {
		return nil
	}
	s.Shards = p.shards.each(strings.TrimSpace(q.SQL))
	s.Widget = p.Subject.Kind == schema.SubjectWidget
	return q.render("shards.sql", s)
}

var (
	momentsOfShards = shardSlots{Of: "one row per variation, dimension value, and segment", Keys: []string{"variation_id", "dimension", "exposed_before", "multi_exposed"}}
	seriesOfShards  = shardSlots{Of: "one row per bucket, variation and segment", Keys: []string{"bucket", "variation_id", "dimension", "exposed_before", "multi_exposed"}}
)
