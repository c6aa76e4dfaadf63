package settle

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
type frequents struct {
	generation uint64
	values     map[string]bool
}

// apart is the facet of which they do.
var apart = &schema.Facets[slices.IndexFunc(schema.Facets, func(f schema.Facet) bool { return f.Frequent })]

// choose returns the values that will lie apart in a generation to be made.
func (s *Settler) choose(ctx context.Context, d *due, through time.Time) ([]string, error) {
	values, err := schema.Names(ctx, s.conn, frequentQuery, append(d.until(through), clickhouse.Named("most", uint32(s.mostFrequent)))...) //nolint:gosec // few
	if err != nil {
		return nil, fmt.Errorf("choose frequent values: %w", err)
	}
	return values, nil
}

// chosen returns the values that lie apart in the subject's generation. Those of
// the chosen that no visitor came with first do not.
func (s *Settler) chosen(ctx context.Context, d *due) (map[string]bool, error) {
	if known := s.frequent[d.subject]; known.generation == d.settled.Generation {
		return known.values, nil
	}
	values, err := schema.FrequentValues(ctx, s.conn, d.settled, apart)
	if err == nil {
		s.frequent[d.subject] = frequents{d.settled.Generation, values}
	}
	return values, err
}
