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

// maxAge is how long the rows are used that were read from the table. Other servers
// write a few rows a week.
const maxAge = time.Minute

// Table is the table conclusions.
type Table struct {
	conn   driver.Conn
	mu     sync.Mutex
	readAt time.Time
	of     map[Question][]result.Recorded // in the order in which they were recorded
}

// NewTable returns the table of a store.
func NewTable(conn driver.Conn) *Table { return &Table{conn: conn} }

// Last returns the last recorded conclusion of a question, or nil if there is none.
func (t *Table) Last(ctx context.Context, q Question) (*result.Recorded, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	if of := t.of[q]; len(of) > 0 {
		return &of[len(of)-1], nil
	}
	return nil, nil
}

// refresh reads the rows if they are too old. The caller holds the lock.
func (t *Table) refresh(ctx context.Context) error {
	if time.Since(t.readAt) < maxAge {
		return nil
	}
	began := time.Now()
	rows, err := t.conn.Query(ctx, recordedSQL)
	if err != nil {
		return fmt.Errorf("read the recorded conclusions: %w", err)
	}
	of := map[Question][]result.Recorded{}
	for rows.Next() {
		var q Question
		var kind string
		var r result.Recorded
		if err := rows.Scan(&q.Subject.WebsiteID, &kind, &q.Subject.ID, &q.Subject.ExperimentID, &q.Hash,
			(*string)(&r.Status), &r.VariationID, &r.DecidedAt, &r.Visitors, &r.RecordedAt); err != nil {
			return fmt.Errorf("scan a recorded conclusion: %w", err)
		}
		q.Subject.Kind = schema.Subject(kind)
		if !slices.ContainsFunc(of[q], r.SameAs) { // of another server at the same time
			of[q] = append(of[q], r)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the recorded conclusions: %w", err)
	}
	t.of, t.readAt = of, began
	return nil
}

// Record writes a conclusion unless it is recorded. It reports whether it wrote.
func (t *Table) Record(ctx context.Context, q Question, c *result.Named) (bool, error) {
	comparison, err := json.Marshal(c.Comparison)
	if err != nil {
		return false, fmt.Errorf("encode the comparison of a conclusion: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readAt = time.Time{}
	if err := t.refresh(ctx); err != nil {
		return false, err
	}
	if slices.ContainsFunc(t.of[q], c.SameAs) {
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
	t.of[q] = append(t.of[q], c.Recorded)
	return true, nil
}
