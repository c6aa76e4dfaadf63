package rollup

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"lifthouse/engine/generation"
)

// The rows of merged parts keep the numbers of their blocks in a column. ClickHouse gives a
// part that is restored or attached a name with another number, and leaves the column as it
// is. Then the name of a part does not say which numbers its rows have, and later blocks have
// the same numbers as restored ones. Refreshes would skip some events and add others twice.
// So rollups of such a table are neither read nor refreshed, until its parts are written
// again without the column; see RestoredError.
//
// Only merged parts have the column. A look checks those whose first block comes after the
// last look: usually there are none, and after a start or in another table, all of them.

// RestoredError says that the numbers of the blocks of events cannot be used, and what to do.
type RestoredError struct {
	Unnumbered bool // the rows of merged parts do not keep the numbers of their blocks
	Replica    bool // of a cluster
}

// Error returns the cause and the remedy.
func (e *RestoredError) Error() string {
	alter, table := "ALTER TABLE events", "events"
	if e.Replica {
		alter, table = "ALTER TABLE events_local ON CLUSTER …", "events_local ON CLUSTER …"
	}
	if e.Unnumbered {
		return "the setting enable_block_number_column of events is off; reports are counted from the events: execute " +
			alter + " MODIFY SETTING enable_block_number_column = 1, then lifthouse rollup --rebuild"
	}
	return "rows of events have block numbers of another table, because they were restored or attached; reports are counted from the events: execute " +
		alter + " MODIFY SETTING enable_block_number_column = 0; OPTIMIZE TABLE " + table + " FINAL; " +
		alter + " MODIFY SETTING enable_block_number_column = 1; then lifthouse rollup --rebuild"
}

// recheckInterval is the interval at which a restored table is checked again.
const recheckInterval = time.Minute

// checkNumbers checks the block numbers of the parts that were not checked before, unless an
// error was found less than recheckInterval ago. The caller holds looking.
func (s *shared) checkNumbers(ctx context.Context, before, now *events) (*RestoredError, error) {
	if !now.Numbered {
		return &RestoredError{Unnumbered: true, Replica: s.order == generation.BySet}, nil
	}
	after, last := before.Last, s.restored
	switch {
	case last != nil && !last.Unnumbered && now.follows(before) && time.Since(s.checkedAt) < recheckInterval:
		return last, nil
	case last != nil, !now.follows(before):
		after = position{}
	}
	s.checkedAt = time.Now()
	if after.includes(now.Merged) {
		return nil, nil
	}
	var is bool
	if err := s.conn.QueryRow(ctx, statementsBy[s.order].restored, after.named(s.order, "since")).Scan(&is); err != nil {
		return nil, fmt.Errorf("check the block numbers of the events: %w", err)
	}
	if is {
		return &RestoredError{Replica: s.order == generation.BySet}, nil
	}
	return nil, nil
}

// setRestored records the result of checkNumbers. The caller holds looking and the lock of the
// index.
func (s *shared) setRestored(ctx context.Context, now *RestoredError) {
	switch {
	case now != nil && (s.restored == nil || *s.restored != *now):
		slog.WarnContext(ctx, "rollups are not used", "reason", now)
		s.retired.Store(false)
	case now == nil && s.restored != nil:
		slog.InfoContext(ctx, "rollups are used again")
	}
	s.restored = now
}

// Restored says why rollups are impossible, or returns nil. The states must have been read.
func (x *Index) Restored() *RestoredError {
	if x.shared == nil {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.shared.restored
}

// refuseRestored returns a RestoredError if rollups are impossible. Then it retires all
// rollups, so that every process builds them again when they are possible: the events may be
// others, and are about to get other numbers.
func (x *Index) refuseRestored(ctx context.Context) error {
	impossible := x.Restored()
	switch {
	case impossible == nil:
		return nil
	case x.shared.retired.Load():
		return impossible
	}
	end, err := x.BeginRemoval(ctx)
	if err != nil {
		return err
	}
	var all []string
	x.mu.RLock()
	for subject := range x.of {
		all = append(all, subject.String())
	}
	x.mu.RUnlock()
	x.shared.retire(all)
	if err := end(ctx); err != nil {
		return err
	}
	x.shared.retired.Store(true)
	return impossible
}
