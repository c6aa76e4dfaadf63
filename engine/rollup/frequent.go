package rollup

import (
	"context"
	_ "embed" // the statement
	"fmt"
	"maps"
	"slices"

	"lifthouse/engine/generation"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// frequent has the values that the frequent cubes of a generation store separately,
// by the name of the cube. Their rows are adjacent, so a breakdown reads few granules.
type frequent map[string]map[string]bool

// has reports whether the cube stores the value separately.
func (f frequent) has(c *cube, value string) bool { return f[c.name][value] }

// params returns the parameters of sql/rebuild.sql.
func (f frequent) params() []any {
	var params []any
	for _, c := range frequentCubes() {
		params = append(params, clickhouse.Named("frequent_"+c.name, slices.Sorted(maps.Keys(f[c.name]))))
	}
	return params
}

// frequentCubes returns the cubes that store frequent values separately.
func frequentCubes() (of []*cube) {
	for i := range cubes {
		if cubes[i].frequent {
			of = append(of, &cubes[i])
		}
	}
	return of
}

// knownFrequent are the frequent values of a generation.
type knownFrequent struct {
	generation uint64
	values     frequent
}

// chooseFrequent returns the frequent values of a new generation.
func (s *builder) chooseFrequent(ctx context.Context, d *backlog, through position) (frequent, error) {
	chosen := frequent{}
	for _, c := range frequentCubes() {
		values, err := schema.QueryNames(ctx, s.conn, d.statements().frequent[c.name], append(d.untilParams(through), clickhouse.Named("most", uint32(s.maxFrequent)))...) //nolint:gosec // few
		if err != nil {
			return nil, fmt.Errorf("choose the frequent values of the cube %s: %w", c.name, err)
		}
		chosen[c.name] = setOf(values)
	}
	return chosen, nil
}

// frequentOf returns the frequent values of the current generation. Chosen values
// without a first view are not among them.
func (s *builder) frequentOf(ctx context.Context, d *backlog) (frequent, error) {
	if known := s.frequent[d.subject]; known.generation == d.state.Generation.Number {
		return known.values, nil
	}
	read := frequent{}
	for _, c := range frequentCubes() {
		var err error
		if read[c.name], err = readFrequentValues(ctx, s.conn, d.state.Generation, c); err != nil {
			return nil, err
		}
	}
	s.frequent[d.subject] = knownFrequent{d.state.Generation.Number, read}
	return read, nil
}

//go:embed sql/frequent_values.sql
var frequentValuesQuery string

// readFrequentValues returns the frequent values of the cube in a complete
// generation.
func readFrequentValues(ctx context.Context, conn driver.Conn, of generation.ID, c *cube) (map[string]bool, error) {
	values, err := schema.QueryNames(ctx, conn, fmt.Sprintf(frequentValuesQuery, c.by[0]),
		clickhouse.Named("bucket", of.Bucket), clickhouse.Named("generation", of.Number), clickhouse.Named("cube", c.frequentName()))
	if err != nil {
		return nil, fmt.Errorf("read the frequent values of the cube %s: %w", c.name, err)
	}
	return setOf(values), nil
}

func setOf(values []string) map[string]bool {
	set := make(map[string]bool, len(values))
	for _, value := range values {
		set[value] = true
	}
	return set
}
