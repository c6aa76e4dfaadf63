package rollup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// frequents are the values that lie apart in a generation: what a breakdown
// shows of the many values of an attribute is then side by side.
type frequentValues struct {
	generation uint64
	values     map[string]bool
}

// apart is the facet of which they do.
var frequentCube = &schema.Cubes[slices.IndexFunc(schema.Cubes, func(f schema.Cube) bool { return f.Frequent })]

// choose returns the values that will lie apart in a generation to be made.
func (s *Refresher) chooseFrequent(ctx context.Context, d *backlog, through time.Time) ([]string, error) {
	values, err := schema.QueryNames(ctx, s.conn, frequentQuery, append(d.untilParams(through), clickhouse.Named("most", uint32(s.maxFrequent)))...) //nolint:gosec // few
	if err != nil {
		return nil, fmt.Errorf("choose frequent values: %w", err)
	}
	return values, nil
}

// chosen returns the values that lie apart in the subject's generation. Those of
// the chosen that no visitor came with first do not.
func (s *Refresher) frequentOf(ctx context.Context, d *backlog) (map[string]bool, error) {
	if known := s.frequent[d.subject]; known.generation == d.state.Generation {
		return known.values, nil
	}
	values, err := schema.FrequentValues(ctx, s.conn, d.state, frequentCube)
	if err == nil {
		s.frequent[d.subject] = frequentValues{d.state.Generation, values}
	}
	return values, err
}
