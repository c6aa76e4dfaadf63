package rollup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// frequentValues are the values in the frequent cube of a generation. Their
// rows are adjacent, so a breakdown reads few granules.
type frequentValues struct {
	generation uint64
	values     map[string]bool
}

// frequentCube is the cube that has a frequent cube.
var frequentCube = &cubes[slices.IndexFunc(cubes, func(c cube) bool { return c.frequent })]

// chooseFrequent returns the values for the frequent cube of a new generation.
func (s *Refresher) chooseFrequent(ctx context.Context, d *backlog, through time.Time) ([]string, error) {
	values, err := schema.QueryNames(ctx, s.conn, frequentQuery, append(d.untilParams(through), clickhouse.Named("most", uint32(s.maxFrequent)))...) //nolint:gosec // few
	if err != nil {
		return nil, fmt.Errorf("choose frequent values: %w", err)
	}
	return values, nil
}

// frequentOf returns the values in the frequent cube of the current generation.
// Chosen values without a first view are not in it.
func (s *Refresher) frequentOf(ctx context.Context, d *backlog) (map[string]bool, error) {
	if known := s.frequent[d.subject]; known.generation == d.state.Generation {
		return known.values, nil
	}
	values, err := readFrequentValues(ctx, s.conn, generation{d.subject, d.state.Generation}, frequentCube)
	if err == nil {
		s.frequent[d.subject] = frequentValues{d.state.Generation, values}
	}
	return values, err
}
