package engine

import (
	"strings"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// shards describes the shards of a cluster. All events of a visitor are on one
// shard. The per-visitor part of a report runs on the shards, with the
// statement for one server, and only sums are transferred.
type shards struct {
	events expr                        // name of the table of events on a shard
	each   func(statement string) expr // the rows of a statement on each shard
}

// shardsOf returns the shards of a connection, or nil for one server.
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

// shardSlots are the slots of sql/shards.sql, which adds up the rows of the
// shards.
type shardSlots struct {
	Of       string   // meaning of a row
	Keys     []string // columns to group by
	Recount  bool     // with the columns of the single pass
	Outliers bool
	Widget   bool
	Shards   expr
}

// List returns the keys for GROUP BY.
func (s shardSlots) List() string { return strings.Join(s.Keys, ", ") }

// eventsTable returns the table of events for statements that may run on
// shards.
func (s *store) eventsTable() expr {
	if s.shards == nil {
		return "events"
	}
	return s.shards.events
}

// overShards changes a query so that it runs on all shards and adds up their
// rows. On one server it changes nothing.
func (x *execution) overShards(q *Query, s shardSlots) error {
	if x.store.shards == nil {
		return nil
	}
	s.Shards = x.store.shards.each(strings.TrimSpace(q.SQL))
	s.Widget = x.Subject.Kind == schema.SubjectWidget
	return q.render("shards.sql", s)
}

var (
	momentsOfShards = shardSlots{Of: "one row per variation, dimension value, and segment", Keys: []string{"variation_id", "dimension", "exposed_before", "multi_exposed"}}
	seriesOfShards  = shardSlots{Of: "one row per bucket, variation and segment", Keys: []string{"bucket", "variation_id", "dimension", "exposed_before", "multi_exposed"}}
)
