package engine

import (
	"context"
	"lifthouse/engine/visit"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// referenceSource counts the events in the store, by lists of the events of each
// visitor. It serves every report.
type referenceSource struct{ *execution }

func (x referenceSource) name() string { return SourceReference }

func (x referenceSource) read(ctx context.Context) (*visit.Rows, string, error) {
	rows, err := x.rows(ctx)
	if err != nil {
		return nil, "", err
	}
	steps, err := x.steps(ctx)
	return x.answer(rows, steps), "", err
}

// rows returns one row per variation, dimension value and segment.
func (x referenceSource) rows(ctx context.Context) ([]visit.Row, error) {
	query, err := x.momentsQuery()
	if err != nil {
		return nil, err
	}
	return scanRows(ctx, x.store, query)
}

func scanSteps(ctx context.Context, from *store, query *Query) ([]visit.Step, error) {
	var steps []visit.Step
	err := from.each(ctx, query, func(found driver.Rows) error {
		var s visit.Step
		var err error
		s.Row, err = scanRow(found, &s.Bucket)
		steps = append(steps, s)
		return err
	})
	return steps, err
}
