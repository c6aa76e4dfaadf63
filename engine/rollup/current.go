package rollup

import (
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visitors"
	"lifthouse/schema"
)

// Current is the current rollup of a subject, one generation on each shard.
type Current struct {
	Shards          []Shard
	Lacks           bool      // it lacks events that are stored
	Through, Newest time.Time // the last acceptance time and the latest event time of all shards
}

// Shard is the current generation of the visitors of a shard.
type Shard struct {
	State
	index *Index
}

// NewCurrent returns the rollup with the given generations, which lacks no events.
func NewCurrent(shards ...Shard) *Current {
	c := &Current{Shards: shards}
	for i := range shards {
		c.Through, c.Newest = schema.Later(c.Through, shards[i].Through), schema.Later(c.Newest, shards[i].Newest)
	}
	return c
}

// Version returns a text that changes whenever the rollup does. Rollups of different replicas
// with the same events have the same one.
func (c *Current) Version() string {
	if !c.OfReplicas() {
		s := &c.Shards[0]
		return fmt.Sprint(s.Generation, s.Through.UnixMilli(), s.Block)
	}
	var of strings.Builder
	for i := range c.Shards {
		s := &c.Shards[i]
		fmt.Fprint(&of, s.Events, " ", s.Through.UnixMilli(), " ", s.Mutation, " ", s.SharesSince, " ")
	}
	return of.String()
}

// OfReplicas reports whether the rollup is that of replicas of a cluster.
func (c *Current) OfReplicas() bool { return c.Shards[0].index != nil && c.Shards[0].index.isReplica() }

// CubeNames returns the cubes that have the report, or nil if there are none.
func (c *Current) CubeNames(p *plan.Plan) []string {
	q, expressible := newReading(p, c.Shards)
	if !expressible {
		return nil
	}
	return q.cubes.names()
}

// Visitors returns the rows of visitors of each shard, or nil if one has none.
func (c *Current) Visitors(from *source.Store) []visitors.Shard {
	all := make([]visitors.Shard, len(c.Shards))
	for i := range c.Shards {
		shard := &c.Shards[i]
		if shard.Visitors.Number == 0 {
			return nil
		}
		all[i] = visitors.Shard{Store: shard.store(from), Generation: &shard.Visitors}
	}
	return all
}

// store returns the store that has the rollup: that of the report, or a replica.
func (s *Shard) store(of *source.Store) *source.Store {
	if s.index == nil || !s.index.isReplica() {
		return of
	}
	return &source.Store{Conn: s.index.conn, Limits: of.Limits, Scans: of.Scans, Observe: of.Observe}
}

// Query compiles the statement that reads a report on the first shard. With a dimension of very many
// values, the statement reads those of top. It returns nil if no cubes have the
// report.
func (c *Current) Query(p *plan.Plan, top []string) (*source.Query, error) {
	q, expressible := newReading(p, c.Shards)
	if !expressible {
		return nil, nil
	}
	if q.cubes.cells != nil && q.cubes.cells.ranked() != nil {
		q.top = top
	}
	return q.portions[0].compile()
}
