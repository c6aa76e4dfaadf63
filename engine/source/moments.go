package source

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"lifthouse/engine/visit"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ScanRows runs a query whose rows are those of sql/moments.sql.
func ScanRows(ctx context.Context, from *Store, q *Query) ([]visit.Row, error) {
	var rows []visit.Row
	err := from.Each(ctx, q, func(found driver.Rows) error {
		r, err := scanRow(found)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// scanRow scans a row of sql/moments.sql or sql/series.sql. Its first columns
// are scanned into first.
func scanRow(found driver.Rows, first ...any) (visit.Row, error) {
	var r visit.Row
	var exposedBefore, multiExposed uint8
	var err error
	r.Moments, err = scanMoments(found, slices.Concat(first, []any{&r.VariationID, &r.Dimension, &exposedBefore, &multiExposed})...)
	r.ExposedBefore, r.MultiExposed = exposedBefore == 1, multiExposed == 1
	return r, err
}

// widgetCounts is the number of additional columns of widgets.
const widgetCounts = 7

// scanMoments scans the columns of sql/sums.sql after the first columns.
func scanMoments(found driver.Rows, first ...any) (visit.Moments, error) {
	var (
		visitors, sinceShares, recent, views, converted, goals, goalsSquares Count
		widget                                                               [widgetCounts]Count
		value, profit, extra                                                 scannedAmounts
		valueGoals                                                           big.Int
	)
	to := slices.Concat(first,
		[]any{&visitors, &sinceShares, &recent, &views, &converted, &goals, &goalsSquares},
		value.targets(), []any{&valueGoals}, profit.targets(), extra.targets())
	var excess ScannedExcess
	removed := excess.Targets(found)
	if len(to)+len(removed) < len(found.Columns()) {
		for i := range widget {
			to = append(to, &widget[i])
		}
	}
	to = append(to, removed...)
	if err := found.Scan(to...); err != nil {
		return visit.Moments{}, err
	}
	return visit.Moments{
		Visitors: int64(visitors), SinceShares: int64(sinceShares), Recent: int64(recent), Views: int64(views),
		Actions: visit.Actions{
			Clicks: int64(widget[0]), Submits: int64(widget[1]), Completions: int64(widget[2]),
			Conversions: int64(widget[4]), Contacts: int64(widget[6]),
		},
		Completed: int64(widget[3]), Conversion: int64(widget[5]), Converted: int64(converted),
		Goals:      stats.Sums{Sum: big.NewInt(int64(goals)), Squares: big.NewInt(int64(goalsSquares))},
		Value:      value.amounts(),
		Profit:     profit.amounts(),
		ExtraValue: extra.amounts(),
		ValueGoals: &valueGoals,
		Excess:     excess.Excess(),
	}, nil
}

// ScannedExcess scans the columns of sql/excess.sql, which are the last ones of a
// capped report.
type ScannedExcess struct {
	capped                             bool
	visitors, nonzero, negative        Count
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
		Visitors: int64(e.visitors), ProfitNonzero: int64(e.nonzero), ProfitNegative: int64(e.negative),
		Value: &e.value, ValueSquares: &e.valueSquares, ProfitSquares: &e.profitSquares,
	}
}

// Count scans a signed or unsigned integer column.
type Count int64

// Scan implements sql.Scanner.
func (c *Count) Scan(value any) error {
	switch n := value.(type) {
	case uint64:
		*c = Count(n) //nolint:gosec // of events
	case int64:
		*c = Count(n)
	default:
		return fmt.Errorf("%T is not a count", value)
	}
	return nil
}

type scannedAmounts struct {
	sum, squares      big.Int
	nonzero, negative Count
}

func (a *scannedAmounts) targets() []any { return []any{&a.sum, &a.squares, &a.nonzero, &a.negative} }

func (a *scannedAmounts) amounts() visit.Amounts {
	return visit.Amounts{
		Sums:     stats.Sums{Sum: &a.sum, Squares: &a.squares},
		Nonzero:  int64(a.nonzero),
		Negative: int64(a.negative),
	}
}
