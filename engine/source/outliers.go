package source

import (
	"context"
	"errors"
	"math/big"

	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ReadOutliers returns the bounds of the requested z-score, or nil if there is
// none.
func (x *Execution) ReadOutliers(ctx context.Context) (*visit.Outliers, error) {
	if x.Filters.ZScore == 0 {
		return nil, nil
	}
	all := x.WithoutOutliers()
	fold, err := all.packedFold(ctx)
	if err != nil {
		return nil, err
	}
	if fold != nil {
		return all.outliers(fold), nil
	}
	query, err := x.OutliersQuery()
	if err != nil {
		return nil, err
	}
	var n uint64
	var s, ss big.Int
	if err := x.Store.Each(ctx, query, func(row driver.Rows) error { return row.Scan(&n, &s, &ss) }); err != nil {
		return nil, err
	}
	return visit.NewOutliers(int64(n), &s, &ss, x.Filters.ZScore), nil
}

// totals returns the total values of the converted visitors of all variations, by the
// events. Filters of visitors do not restrict them.
func (x *Execution) totals(ctx context.Context) ([]int64, error) {
	all := *x
	all.Plan = x.OfAll()
	q, slots := all.referenceQuery()
	q.Params = append(q.Params, x.comparedVisitors()...)
	if err := errors.Join(q.Render("totals.sql", slots), all.overShards(q, shardSlots{Of: "one row", Totals: true})); err != nil {
		return nil, err
	}
	var totals []int64
	return totals, x.Store.Each(ctx, q, func(row driver.Rows) error { return row.Scan(&totals) })
}

// comparedVisitors returns the parameters that restrict a statement to the visitors of
// the declared variations.
func (x *Execution) comparedVisitors() []Param {
	ids := make([]int64, len(x.Variations))
	for i, v := range x.Variations {
		ids[i] = v.ID
	}
	return []Param{{"with_multi_exposed", x.MultipleExposures == catalogue.FirstVariation}, {"variation_ids", ids}}
}

// OutliersQuery compiles the query of all goal values.
func (x *Execution) OutliersQuery() (*Query, error) {
	q, slots := x.WithoutOutliers().referenceQuery() // old bounds would remove values from the calculation
	q.Params = append(q.Params, x.comparedVisitors()...)
	return q, errors.Join(q.Render("outliers.sql", slots), x.overShards(q, shardSlots{Of: "one row", Outliers: true}))
}
