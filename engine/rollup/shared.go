package rollup

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Several processes may refresh the rollups of a server. Nothing prevents two of them from
// refreshing the same subject at the same time; it is only useless:
//
//   - The insert with the n-th state of a generation has the deduplication token of the
//     generation and of n. The server stores the first of several, so a process that computed
//     the n-th state later, or was paused meanwhile, changes nothing. It finds another state
//     than its own, and ends its epoch, so that nobody reads its rows of visitors.
//   - If the server has forgotten the token, the generation has more inserts than its state
//     says. Nobody reads it, and the next refresh builds another.
//   - Numbers of generations and epochs are claimed, so that no two processes have the same.
//   - A deletion of events claims a number when it begins, and another with the subjects that
//     lost events when it has ended. States have the last of these numbers that was claimed
//     before their events were read. Reports read no state of a subject that has lost events
//     since, and none of before a deletion that has not ended.
//   - The position of a state in the order of the events is the number of a block. The server
//     may use numbers again after it was started, and tables have other numbers after they
//     were restored. So states have the table and the start of the server. After a start, a
//     state is compared with the number of the events; in another table, it is not read.
//     See RestoredError for tables that ClickHouse restored.
//
// A later copy of an event, which its writer is about to remove, is not in a rollup.

// A replica of a cluster has rollups of its own events, in tables of its own. The same applies,
// except that its blocks become visible in any order, and that its events also change without
// a removal of a process that knows its rollups; see replica.go.

// shared is what an index knows of a server that several processes write to.
type shared struct {
	conn     driver.Conn
	order    generation.Order
	claimant string // identifies this process in rollup_claims

	claiming sync.Mutex // guards open
	open     []removal  // of this process, that have not ended

	looking  sync.Mutex // held while the events are looked at
	lookedAt time.Time  // when the last look began; guarded by looking

	checkedAt time.Time   // when the block numbers were last checked; guarded by looking
	retired   atomic.Bool // this process has retired the rollups since restored was set

	// guarded by Index.mu:
	seen     events                    // at the last look
	restored *RestoredError            // rollups are impossible; nil: they are possible
	removed  map[string]uint64         // by subject: the last removal of its events
	from     position                  // events after it are in newest
	newest   map[plan.Subject]position // by subject: a position that includes all its events
	written  map[plan.Subject]uint64   // the last write of this process that no look has seen, by number
	writes   uint64                    // number of the last write of this process
}

// events are the events of a server at a time.
type events struct {
	Last     position
	Merged   position  // the first blocks of merged parts
	Numbered bool      // the rows of merged parts keep the numbers of their blocks
	Table    string    // id of the table
	Started  int64     // when the server was started, in Unix seconds; 0: a replica, which keeps the numbers of blocks
	Mutation mutations // of a replica
	Mutating bool      // a replica has not executed all mutations
	Removal  uint64    // number of the last removal that has begun or ended
	Left     uint64    // number of the last removal that has not ended
	Removing bool      // a removal may still run
}

// removal is a deletion of events.
type removal struct {
	claimant string
	subjects []string // that lose events
}

//go:embed sql/look.sql
var lookQuery string

//go:embed sql/affected.sql
var affectedQuery string

// Share declares that other processes write to the store and refresh its rollups. It reports
// whether rollups are possible: on a single server that numbers blocks in order. It must be
// called before the first use.
func (x *Index) Share(ctx context.Context) (possible bool, err error) {
	engine, err := schema.ReadEventsEngine(ctx, x.conn)
	if engine.BlocksOrdered {
		x.shared = newShared(x.conn, generation.ByBlock)
	}
	return engine.BlocksOrdered, err
}

func newShared(conn driver.Conn, order generation.Order) *shared {
	return &shared{conn: conn, order: order, claimant: newClaimant(), newest: map[plan.Subject]position{}, written: map[plan.Subject]uint64{}}
}

// look reads how far the events have come, and which subjects have new ones, unless another
// goroutine has begun to do so since it was asked. States must have been read.
func (x *Index) look(ctx context.Context) error {
	s, asked := x.shared, time.Now()
	s.looking.Lock()
	defer s.looking.Unlock()
	if s.lookedAt.After(asked) {
		return nil
	}
	began := time.Now()
	x.mu.RLock()
	before, writes, least := s.seen, s.writes, x.leastPosition()
	x.mu.RUnlock()
	now, after, newest, err := s.read(ctx, before, least)
	if err != nil {
		return err
	}
	restored, err := s.checkNumbers(ctx, &before, &now)
	if err != nil {
		return err
	}
	removed := s.removed
	if now.Removal != before.Removal {
		if removed, err = s.readRemoved(ctx); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s.removed = removed
	if !now.follows(&before) {
		s.from = after
		clear(s.newest)
	}
	changed := (restored == nil) != (s.restored == nil)
	s.setRestored(ctx, restored)
	s.seen, s.lookedAt = now, began
	maps.DeleteFunc(s.written, func(_ plan.Subject, number uint64) bool { return number <= writes })
	for subject, last := range newest {
		s.newest[subject] = last
		if state, has := x.of[subject]; !has || x.lacks(subject, &state.State, time.Time{}) {
			x.wait(subject)
		}
	}
	if !now.follows(&before) || now.Removal != before.Removal || changed {
		x.lookDue.Store(true)
		x.readAt = time.Time{}
	}
	return nil
}

// leastPosition returns the position up to which every rollup has the events; nil: there are no
// rollups. The caller holds the lock.
func (x *Index) leastPosition() *position {
	var least *position
	for _, state := range x.of {
		at := state.position()
		if least != nil {
			at = least.common(at)
		}
		least = &at
	}
	return least
}

// read reads the events, and for each subject with events after a position, one that includes
// them: after that of before, or the least one of all rollups if that of before means nothing
// now.
func (s *shared) read(ctx context.Context, before events, least *position) (now events, after position, newest map[plan.Subject]position, err error) {
	if now, err = s.readEvents(ctx); err != nil {
		return now, position{}, nil, fmt.Errorf("look at the events: %w", err)
	}
	switch {
	case now.follows(&before):
		after = before.Last
	case least != nil:
		after = now.Last.common(*least)
	default:
		after = now.Last
	}
	if after.includes(now.Last) {
		return now, after, nil, nil
	}
	newest = map[plan.Subject]position{}
	err = schema.EachRow(ctx, s.conn, statementsBy[s.order].newest, func(row driver.Rows) error {
		var of plan.Subject
		var kind string
		last := now.Last
		err := row.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID, &last.block)
		if s.order == generation.BySet {
			last = now.Last
		}
		of.Kind = schema.Subject(kind)
		newest[of] = last
		return err
	}, after.named(s.order, "since"), now.Last.named(s.order, "through"))
	if err != nil {
		err = fmt.Errorf("look for new events: %w", err)
	}
	return now, after, newest, err
}

// readEvents reads how far the events have come.
func (s *shared) readEvents(ctx context.Context) (now events, err error) {
	if s.order == generation.BySet {
		return s.readReplica(ctx)
	}
	err = s.conn.QueryRow(ctx, lookQuery).Scan(&now.Last.block, &now.Merged.block, &now.Table, &now.Numbered, &now.Started, &now.Removal, &now.Left, &now.Removing)
	return now, err
}

// key identifies a table and the start of its server, or a time some seconds later.
func (e *events) key(later int64) string { return fmt.Sprint(e.Table, " ", e.Started+later) }

// startTolerance is the difference of two readings of the same start of a server, in seconds.
const startTolerance = 1

// follows reports whether block numbers have the same meaning as before.
func (e *events) follows(before *events) bool {
	return e.Table == before.Table && e.Started-before.Started <= startTolerance && before.Started-e.Started <= startTolerance &&
		e.Mutation == before.Mutation && e.Last.includes(before.Last)
}

// isValid reports whether a state is one of the current events: none were removed since, and
// block numbers can be used and have the same meaning. The caller holds the lock of the index.
func (s *shared) isValid(subject plan.Subject, state *State) bool {
	return s.restored == nil && s.lostNone(subject, state) && s.seen.knows(state)
}

// lostNone reports whether the subject has lost no events since a state.
func (s *shared) lostNone(subject plan.Subject, state *State) bool {
	return state.Removal >= max(s.seen.Left, s.removed[subject.String()])
}

// knows reports whether a state is of the same table and start of the server, and of the same
// mutations and among the blocks of a replica.
func (e *events) knows(s *State) bool {
	if s.Mutation != e.Mutation || !e.Last.blocks.Include(s.Blocks) {
		return false
	}
	return s.Seen[e.key(-startTolerance)] || s.Seen[e.key(0)] || s.Seen[e.key(startTolerance)]
}

// mayKnow reports whether a state is of the same table, although the server was started since.
func (e *events) mayKnow(s *State) bool {
	for key := range s.Seen {
		if strings.HasPrefix(key, e.Table) {
			return s.Block <= e.Last.block
		}
	}
	return false
}

// isValid reports whether a state is one of the current events. The caller holds the lock.
func (x *Index) isValid(subject plan.Subject, s *State) bool {
	return x.shared == nil || x.shared.isValid(subject, s)
}

// lacks reports whether a rollup lacks events of its subject, the last of which was accepted
// at a time. The caller holds the lock.
func (x *Index) lacks(subject plan.Subject, s *State, ingested time.Time) bool {
	if x.shared == nil {
		return s.Through.Before(ingested)
	}
	at := s.position()
	return x.shared.written[subject] > 0 || !at.includes(x.shared.newest[subject]) || !at.includes(x.shared.from)
}

// Poll reads the states, and again if other processes may have changed them.
func (x *Index) Poll(ctx context.Context) error {
	if err := x.Load(ctx); err != nil || x.shared == nil {
		return err
	}
	if err := x.look(ctx); err != nil {
		return source.StoreFailure(ctx, err)
	}
	x.mu.RLock()
	due := len(x.waiting) > 0 || time.Since(x.readAt) > maxStateAge
	x.mu.RUnlock()
	if !due {
		return nil
	}
	return x.readStates(ctx)
}

// maxStateAge is the maximum age of the states if other processes change them. It is below
// replacedAge, for which the rows of replaced generations are kept.
const maxStateAge = replacedAge / 3

// lastSeen returns the events of the server at the last look.
func (x *Index) lastSeen() events {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.shared.seen
}
