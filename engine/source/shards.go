package source

import (
	"strings"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Shards describes the shards of a cluster. All events of a visitor are on one
// shard. The per-visitor part of a report runs on the shards, with the
// statement for one server, and only sums are transferred.
type Shards struct {
	Events Expr                        // name of the table of events on a shard
	Each   func(statement string) Expr // the rows of a statement on each shard
}

// ShardsOf returns the shards of a connection, or nil for one server.
func ShardsOf(conn driver.Conn) *Shards {
	cluster, database := schema.Cluster(conn)
	if cluster == "" {
		return nil
	}
	return ClusterShards(cluster, database)
}

// ClusterShards returns the shards of a cluster with a database.
func ClusterShards(cluster, database string) *Shards {
	return &Shards{
		Events: Expr("`" + database + "`." + schema.LocalTable("events")),
		Each: func(statement string) Expr {
			return Expr("cluster(" + Literal(cluster) + ", view(\n" + statement + "\n))")
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
	Totals   bool
	Cap      bool
	Widget   bool
	Shards   Expr
}

// List returns the keys for GROUP BY.
func (s shardSlots) List() string { return strings.Join(s.Keys, ", ") }

// eventsTable returns the table of events for statements that may run on
// shards.
func (s *Store) eventsTable() Expr {
	if s.Shards == nil {
		return "events"
	}
	return s.Shards.Events
}

// overShards changes a query so that it runs on all shards and adds up their
// rows. On one server it changes nothing.
func (x *Execution) overShards(q *Query, s shardSlots) error {
	if x.Store.Shards == nil {
		return nil
	}
	s.Shards = x.Store.Shards.Each(strings.TrimSpace(q.SQL))
	s.Cap = x.limit() > 0
	s.Widget = x.Subject.Kind == schema.SubjectWidget
	return q.Render("shards.sql", s)
}

var (
	momentsOfShards = shardSlots{Of: "one row per variation, dimension value, and segment", Keys: []string{"variation_id", "dimension", "exposed_before", "multi_exposed"}}
	seriesOfShards  = shardSlots{Of: "one row per bucket, variation and segment", Keys: []string{"bucket", "variation_id", "dimension", "exposed_before", "multi_exposed"}}
)
