package rollup

import (
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// position is a place in the order of the events of a store.
type position struct {
	at     time.Time         // acceptance time; of a store with one writer
	block  uint64            // number of a block; of a server, see shared
	blocks generation.Blocks // visible blocks; of a replica, see shared
}

// positionAt is the position of a number in an order that has numbers.
func positionAt(by generation.Order, number int64) position {
	if by == generation.ByBlock {
		return position{block: uint64(number)} //nolint:gosec // not negative
	}
	return position{at: time.UnixMilli(number).UTC()}
}

// includes reports whether all events until the other position of the same server or
// replica are before this one.
func (p position) includes(o position) bool { return o.block <= p.block && p.blocks.Include(o.blocks) }

// common returns a position that both positions include.
func (p position) common(o position) position {
	return position{block: min(p.block, o.block), blocks: p.blocks.Intersect(o.blocks)}
}

// named returns a parameter with the position.
func (p position) named(by generation.Order, name string) any {
	switch by {
	case generation.ByBlock:
		return clickhouse.Named(name, p.block)
	case generation.BySet:
		return clickhouse.Named(name, p.blocks.Bounds())
	}
	return clickhouse.DateNamed(name, p.at, clickhouse.MilliSeconds)
}

// backlog is a subject with events that are not in its rollup.
type backlog struct {
	subject     plan.Subject
	order       generation.Order // of the events of the store
	stored      uint64           // events
	lacks       bool             // the rollup lacks events
	state       *State           // nil: no rollup
	valid       bool             // the state is one of the current events; see shared
	lostSome    bool             // events were removed since the state
	sharesSince int64
}

func (d *backlog) mustRebuild() bool {
	return d.state == nil || !d.valid || d.state.SharesSince != d.sharesSince
}

// size returns the number of events that are not in the rollup.
func (d *backlog) size() uint64 {
	if d.state == nil {
		return d.stored
	}
	return d.stored - min(d.stored, d.state.Events)
}

// isSmall reports whether one step adds all events, and they are few.
func (d *backlog) isSmall() bool { return !d.mustRebuild() && d.size() <= fewEvents }

// untilParams returns the parameters for the events of the subject accepted up
// to through. sinceParams restricts them to those accepted after since.
func (d *backlog) untilParams(through position) []any {
	return []any{
		clickhouse.Named("website_id", d.subject.WebsiteID), clickhouse.Named("subject", string(d.subject.Kind)),
		clickhouse.Named("subject_id", d.subject.ID), clickhouse.Named("experiment_id", d.subject.ExperimentID),
		through.named(d.order, "through"),
	}
}

func (d *backlog) sinceParams(since, through position) []any {
	return append(d.untilParams(through), since.named(d.order, "since"))
}

func (d *backlog) statements() statements { return statementsBy[d.order] }
