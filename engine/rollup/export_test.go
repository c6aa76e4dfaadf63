package rollup

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MostFrequent sets the number of values in the frequent cubes of new
// generations.
func (s *Refresher) MostFrequent(values int) { s.maxFrequent = values }

// FoldEvents sets the number of events up to which rebuilds add up the events in
// this process.
func (s *Refresher) FoldEvents(most uint64) { s.foldEvents = most }

// CubeCount is the number of cubes.
var CubeCount = len(cubes)

// CubeAt returns the columns of attributes of a cube, and whether it groups by
// the day of the event.
func CubeAt(i int) (by []string, day bool) { return cubes[i].by, cubes[i].day }

// ReadStates returns the states of the complete generations.
var ReadStates = readStates

// Compact writes the rows of visitors of all subjects again.
func (s *Refresher) Compact(ctx context.Context) error {
	return s.insist(ctx, func(ctx context.Context) error {
		var err error
		for _, d := range s.index.candidates() {
			if err == nil && !d.mustRebuild() {
				err = s.recordOutcome(ctx, &d, s.compact(ctx, &d))
			}
		}
		return err
	})
}

// Swept makes all replaced generations due for deletion.
func (s *Refresher) Swept(ctx context.Context) error {
	s.replaced, s.sweptAt = nil, time.Time{}
	return s.exclusively(ctx, ctx, s.sweepIfDue)
}

// Look refreshes what waits, as Follow does at every interval.
func (s *Refresher) Look(ctx context.Context) error { return s.refreshChosen(ctx, s.ready) }

// Reach sets the connection of what is read on a store that other processes write to.
func (x *Index) Reach(conn driver.Conn) { x.conn, x.shared.conn = conn, conn }

// Only restricts reports to one replica of each shard, until the function is called that it
// returns.
func (s *Set) Only(replica int) (all func()) {
	shards := s.shards
	s.shards = make([][]*Index, len(shards))
	for i, replicas := range shards {
		s.shards[i] = replicas[replica : replica+1]
	}
	return func() { s.shards = shards }
}

// CheckNumbers makes the next look check the block numbers of a restored table.
func (x *Index) CheckNumbers() { x.shared.checkedAt = time.Time{} }

// Serve makes few events of subjects that nobody watches wait, as in a server.
func (x *Index) Serve() { x.refreshes.Store(true) }

// Age moves what the index knows of the past back by a time.
func (x *Index) Age(by time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for subject, is := range x.of {
		is.at = is.at.Add(-by)
		x.of[subject] = is
	}
	for subject, since := range x.waiting {
		x.waiting[subject] = since.Add(-by)
	}
	for subject, at := range x.watched.at {
		x.watched.at[subject] = at.Add(-by)
	}
}
