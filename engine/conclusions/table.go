package conclusions

import (
	"context"
	_ "embed" // statements
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/recorded.sql
var recordedSQL string

//go:embed sql/record.sql
var recordSQL string

// Question is a declared question: a subject, and a hash of all that its answer
// depends on besides the events.
type Question struct {
	Subject plan.Subject
	Hash    uint64
}

// maxAge is how long the rows are used that were read from the table, and the pause
// after a failed read. Other servers write a few rows a week.
const maxAge = time.Minute

// Table is the table conclusions.
type Table struct {
	conn    driver.Conn
	reading chan struct{} // holds a token while the table is read

	mu     sync.RWMutex                   // protects the following
	readAt time.Time                      // of the last attempt; zero: none
	of     map[Question][]result.Recorded // in the order in which they were recorded; nil: not read
}

// NewTable returns the table of a store.
func NewTable(conn driver.Conn) *Table { return &Table{conn: conn, reading: make(chan struct{}, 1)} }

// Last returns the last recorded conclusion of a question, or nil if there is none. Once
// a minute, a call reads the table; others do not wait for it, except for the first one.
func (t *Table) Last(ctx context.Context, q Question) (*result.Recorded, error) {
	if err := t.refreshIfOld(ctx); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if of := t.of[q]; len(of) > 0 {
		return &of[len(of)-1], nil
	}
	return nil, nil
}

func (t *Table) refreshIfOld(ctx context.Context) error {
	old, never := t.age()
	if !old {
		return nil
	}
	if !never {
		select {
		case t.reading <- struct{}{}:
		default:
			return nil // another call reads it
		}
	} else {
		select {
		case t.reading <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-t.reading }()
	if old, _ := t.age(); !old {
		return nil
	}
	return t.refresh(ctx)
}

// age reports whether the rows are too old, and whether no attempt was made to read them.
func (t *Table) age() (old, never bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return time.Since(t.readAt) >= maxAge, t.readAt.IsZero()
}

// refresh reads the rows. The caller holds the token.
func (t *Table) refresh(ctx context.Context) error {
	of, err := t.read(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() == nil {
		t.readAt = time.Now()
	}
	if err == nil {
		t.of = of
	}
	return err
}

func (t *Table) read(ctx context.Context) (map[Question][]result.Recorded, error) {
	rows, err := t.conn.Query(ctx, recordedSQL)
	if err != nil {
		return nil, fmt.Errorf("read the recorded conclusions: %w", err)
	}
	of := map[Question][]result.Recorded{}
	for rows.Next() {
		var q Question
		var kind string
		var r result.Recorded
		if err := rows.Scan(&q.Subject.WebsiteID, &kind, &q.Subject.ID, &q.Subject.ExperimentID, &q.Hash,
			(*string)(&r.Status), &r.VariationID, &r.DecidedAt, &r.Visitors, &r.RecordedAt); err != nil {
			return nil, fmt.Errorf("scan a recorded conclusion: %w", err)
		}
		q.Subject.Kind = schema.Subject(kind)
		if !slices.ContainsFunc(of[q], r.SameAs) { // of another server at the same time
			of[q] = append(of[q], r)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the recorded conclusions: %w", err)
	}
	return of, nil
}

// Record writes a conclusion unless it is recorded. It reports whether it wrote.
func (t *Table) Record(ctx context.Context, q Question, c *result.Named) (bool, error) {
	comparison, err := json.Marshal(c.Comparison)
	if err != nil {
		return false, fmt.Errorf("encode the comparison of a conclusion: %w", err)
	}
	select {
	case t.reading <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	defer func() { <-t.reading }()
	if err := t.refresh(ctx); err != nil {
		return false, err
	}
	t.mu.RLock()
	recorded := slices.ContainsFunc(t.of[q], c.SameAs)
	t.mu.RUnlock()
	if recorded {
		return false, nil
	}
	batch, err := t.conn.PrepareBatch(ctx, recordSQL)
	if err != nil {
		return false, fmt.Errorf("record a conclusion: %w", err)
	}
	defer func() { _ = batch.Close() }()
	s := q.Subject
	if err := batch.Append(s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, q.Hash, c.GoalID, c.Metric, uint32(c.Segment), //nolint:gosec // few
		string(c.Status), c.VariationID, string(c.Basis), c.DecidedAt, c.Visitors, string(comparison), c.RecordedAt); err != nil {
		return false, fmt.Errorf("record a conclusion: %w", err)
	}
	if err := batch.Send(); err != nil {
		return false, fmt.Errorf("record a conclusion: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[q] = append(t.of[q], c.Recorded)
	return true, nil
}
