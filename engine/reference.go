package engine

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// referenceSource counts the events in the store, by lists of the events of each
// visitor. It serves every report.
type referenceSource struct{ *execution }

func (x referenceSource) name() string { return SourceReference }

func (x referenceSource) read(ctx context.Context) (*answer, string, error) {
	rows, err := x.rows(ctx)
	if err != nil {
		return nil, "", err
	}
	steps, err := x.steps(ctx)
	return x.answer(rows, steps), "", err
}

// rows returns one row per variation, dimension value and segment.
func (x referenceSource) rows(ctx context.Context) ([]row, error) {
	query, err := x.momentsQuery()
	if err != nil {
		return nil, err
	}
	return scanRows(ctx, x.store, query)
}

func scanSteps(ctx context.Context, from *store, query *Query) ([]step, error) {
	var steps []step
	err := from.each(ctx, query, func(found driver.Rows) error {
		var s step
		var err error
		s.row, err = scanRow(found, &s.bucket)
		steps = append(steps, s)
		return err
	})
	return steps, err
}
