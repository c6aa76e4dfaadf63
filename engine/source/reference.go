package source

import (
	"context"

	"lifthouse/engine/visit"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Reference counts the events in the store, by lists of the events of each
// visitor. It serves every report.
type Reference struct{ *Execution }

// Name returns NameReference.
func (x Reference) Name() string { return NameReference }

// Read never declines.
func (x Reference) Read(ctx context.Context) (*visit.Rows, string, error) {
	rows, err := x.Rows(ctx)
	if err != nil {
		return nil, "", err
	}
	steps, err := x.steps(ctx)
	return x.Answer(rows, steps), "", err
}

// Rows returns one row per variation, dimension value and segment.
func (x Reference) Rows(ctx context.Context) ([]visit.Row, error) {
	query, err := x.MomentsQuery()
	if err != nil {
		return nil, err
	}
	return ScanRows(ctx, x.Store, query)
}

func scanSteps(ctx context.Context, from *Store, query *Query) ([]visit.Step, error) {
	var steps []visit.Step
	err := from.Each(ctx, query, func(found driver.Rows) error {
		var s visit.Step
		var err error
		s.Row, err = scanRow(found, &s.Bucket)
		steps = append(steps, s)
		return err
	})
	return steps, err
}
