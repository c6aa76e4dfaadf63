package rollup

import (
	"context"
	"crypto/rand"
	_ "embed" // the statements
	"errors"
	"fmt"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// errLost says that another process refreshed the subject at the same time.
var errLost = errors.New("another process refreshed the rollup")

// errBusy says that another process rebuilds the rollup of the subject.
var errBusy = errors.New("another process rebuilds the rollup")

//go:embed sql/first_claim.sql
var firstClaim string

//go:embed sql/last_claim.sql
var lastClaim string

// claim returns a number that no other process has.
func (s *shared) claim(ctx context.Context, kind, subject string) (uint64, error) {
	for {
		number, first, err := s.try(ctx, kind, subject, s.newClaimant(), removal{})
		if err != nil || first {
			return number, err
		}
	}
}

// newClaimant returns the name of a try of this process to claim a number.
func (s *shared) newClaimant() string { return s.claimant + " " + rand.Text() }

// try inserts a claim of the next number, and reports whether it was the first of this number.
func (s *shared) try(ctx context.Context, kind, subject, claimant string, ended removal) (number uint64, first bool, err error) {
	var last uint64
	if err := s.conn.QueryRow(ctx, lastClaim).Scan(&last); err != nil {
		return 0, false, fmt.Errorf("claim a number: %w", err)
	}
	number = max(last+1, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	const insert = "INSERT INTO rollup_claims (number, kind, claimant, subject, removal, subjects)"
	err = schema.InsertRows(ctx, s.conn, insert, []removal{ended}, func(ended *removal) []any {
		return []any{number, kind, claimant, subject, ended.claimant, ended.subjects}
	})
	if err != nil {
		return 0, false, fmt.Errorf("claim a number: %w", err)
	}
	var by string
	if err := s.conn.QueryRow(ctx, firstClaim, clickhouse.Named("number", number)).Scan(&by); err != nil {
		return 0, false, fmt.Errorf("claim a number: %w", err)
	}
	return number, by == claimant, nil
}

//go:embed sql/recent_claims.sql
var recentClaims string

// claimed returns the generations that a process may be writing, except those of some
// subjects. It is empty for a store with one writer.
func (s *shared) claimed(ctx context.Context, except []string) (ids []generation.ID, err error) {
	if s == nil {
		return nil, nil
	}
	err = schema.EachRow(ctx, s.conn, recentClaims, func(row driver.Rows) error {
		var number uint64
		err := row.Scan(&number)
		ids = append(ids, generation.NewShared(number, false), generation.NewShared(number, true))
		return err
	}, clickhouse.Named("except", except))
	if err != nil {
		return nil, fmt.Errorf("list claimed generations: %w", err)
	}
	return ids, nil
}

//go:embed sql/rebuilds.sql
var rebuildsQuery string

// A rebuild is expected to take at most leastRebuild and a second for each eventsPerSecond
// events. After that, another process begins one.
const (
	leastRebuild    = 10 // seconds
	eventsPerSecond = 100_000
)

// isRebuilt reports whether another process has begun to rebuild the rollup of a subject
// after its current generation.
func (s *shared) isRebuilt(ctx context.Context, d *backlog) (is bool, err error) {
	var current uint64
	if d.state != nil {
		current = d.state.Generation.Number
	}
	err = s.conn.QueryRow(ctx, rebuildsQuery, clickhouse.Named("subject", d.subject.String()), clickhouse.Named("current", current),
		clickhouse.Named("claimant", s.claimant), clickhouse.Named("seconds", leastRebuild+d.stored/eventsPerSecond)).Scan(&is)
	if err != nil {
		err = fmt.Errorf("look for a rebuild: %w", err)
	}
	return is, err
}

// retire adds the subjects that lose events to the current removal of this process.
func (s *shared) retire(subjects []string) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if len(s.open) > 0 {
		last := &s.open[len(s.open)-1]
		last.subjects = append(last.subjects, subjects...)
	}
}

// readRemoved returns the last removal of each subject that lost events.
func (s *shared) readRemoved(ctx context.Context) (map[string]uint64, error) {
	removed := map[string]uint64{}
	err := schema.EachRow(ctx, s.conn, affectedQuery, func(row driver.Rows) error {
		var subject string
		var number uint64
		err := row.Scan(&subject, &number)
		removed[subject] = number
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for removals: %w", err)
	}
	return removed, nil
}

// BeginRemoval records that events are about to be deleted. Until end is called, no process
// reads rollups or refreshes them; afterwards, those of subjects that lost events are not
// read. It does nothing on a store with one writer, which drops the rollups that include the
// events. A removal that has not ended after ten minutes no longer prevents refreshes; when it
// ends, rollups are built again.
func (x *Index) BeginRemoval(ctx context.Context) (end func(context.Context) error, err error) {
	s := x.shared
	if s == nil {
		return func(context.Context) error { return nil }, nil
	}
	s.claiming.Lock()
	defer s.claiming.Unlock()
	for {
		claimant := s.newClaimant()
		s.open = append(s.open, removal{claimant: claimant}) // a try that is not the first must end too
		if _, first, err := s.try(ctx, "removal", "", claimant, removal{}); err != nil || first {
			return s.endRemovals, err
		}
	}
}

// endRemovals records that the removals of this process have ended.
func (s *shared) endRemovals(ctx context.Context) error {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	for len(s.open) > 0 {
		_, first, err := s.try(ctx, "removed", "", s.newClaimant(), s.open[0])
		if err != nil {
			return err
		}
		if first {
			s.open = s.open[1:]
		}
	}
	return nil
}

// retireShared records which subjects lose events, for other processes. It returns the
// generations that they may be writing for other subjects.
func (x *Index) retireShared(ctx context.Context, of func(ingest.Subject) bool) ([]generation.ID, error) {
	if x.shared == nil {
		return nil, nil
	}
	if err := x.totals.Refresh(ctx); err != nil {
		return nil, err
	}
	var lose []string
	for subject := range x.totals.All() {
		if of(ingest.Subject(subject)) {
			lose = append(lose, subject.String())
		}
	}
	x.shared.retire(lose)
	return x.shared.claimed(ctx, lose)
}
