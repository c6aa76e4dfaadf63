package source

import (
	"math/big"
	"slices"

	"lifthouse/engine/visit"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ScannedExcess scans the columns of sql/excess.sql, which are the last ones of a
// capped report.
type ScannedExcess struct {
	capped                             bool
	visitors, nonzero, negative        int64
	value, valueSquares, profitSquares big.Int
}

// Targets returns where to scan the columns; none if the report is not capped.
func (e *ScannedExcess) Targets(found driver.Rows) []any {
	if e.capped = slices.Contains(found.Columns(), "capped_visitors"); !e.capped {
		return nil
	}
	return []any{&e.visitors, &e.value, &e.valueSquares, &e.profitSquares, &e.nonzero, &e.negative}
}

// Excess returns the scanned sums.
func (e *ScannedExcess) Excess() visit.Excess {
	if !e.capped {
		return visit.Excess{}
	}
	return visit.Excess{
		Visitors: e.visitors, ProfitNonzero: e.nonzero, ProfitNegative: e.negative,
		Value: &e.value, ValueSquares: &e.valueSquares, ProfitSquares: &e.profitSquares,
	}
}
