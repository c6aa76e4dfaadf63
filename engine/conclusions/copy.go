package conclusions

import (
	"context"
	_ "embed" // a statement
	"fmt"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/all.sql
var allSQL string

// stored is a row of the table.
type stored struct {
	website        int64
	subject        string
	id, experiment int64
	question       uint64
	goal           int64
	metric         string
	segment        uint32
	status         string
	variation      int64
	basis          string
	decidedAt      time.Time
	visitors       int64
	comparison     string
	recordedAt     time.Time
}

// Copy adds the conclusions of another store that are not stored yet, and returns their number.
func Copy(ctx context.Context, to, from driver.Conn) (int, error) {
	known := map[stored]bool{}
	has, err := readAll(ctx, to)
	if err != nil {
		return 0, err
	}
	for _, row := range has {
		known[row] = true
	}
	all, err := readAll(ctx, from)
	if err != nil {
		return 0, err
	}
	var missing []stored
	for _, row := range all {
		if !known[row] {
			missing = append(missing, row)
			known[row] = true
		}
	}
	err = schema.InsertRows(ctx, to, recordSQL, missing, func(s *stored) []any {
		return []any{
			s.website, s.subject, s.id, s.experiment, s.question, s.goal, s.metric, s.segment,
			s.status, s.variation, s.basis, s.decidedAt, s.visitors, s.comparison, s.recordedAt,
		}
	})
	if err != nil {
		return 0, fmt.Errorf("copy the recorded conclusions: %w", err)
	}
	return len(missing), nil
}

func readAll(ctx context.Context, conn driver.Conn) ([]stored, error) {
	rows, err := schema.QueryRows(ctx, conn, allSQL, func(row driver.Rows, s *stored) error {
		err := row.Scan(&s.website, &s.subject, &s.id, &s.experiment, &s.question, &s.goal, &s.metric, &s.segment,
			&s.status, &s.variation, &s.basis, &s.decidedAt, &s.visitors, &s.comparison, &s.recordedAt)
		s.decidedAt, s.recordedAt = s.decidedAt.UTC(), s.recordedAt.UTC()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the recorded conclusions: %w", err)
	}
	return rows, nil
}
