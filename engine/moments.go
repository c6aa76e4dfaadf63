package engine

import (
	"context"
	"fmt"
	"math/big"

	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Moments are sums over a set of visitors, exact, from which every number of
// a report is computed. Money is in 1/schema.MoneyScale.
type Moments struct {
	Visitors    int64
	SinceShares int64 // visitors first exposed since the variations' shares hold
	Recent      int64 // visitors first exposed in the full days before the report's now
	Views       int64
	Converted   int64 // visitors with at least one counted goal
	Goals       stats.Sums
	Value       Amounts
	Profit      Amounts
	ExtraValue  Amounts
	ValueGoals  *big.Int // sum over visitors of value times goals
}

// Amounts are sums over visitors of each one's total of a money column.
type Amounts struct {
	stats.Sums
	Nonzero  int64 // visitors whose total is not zero
	Negative int64 // visitors whose total is below zero
}

// Merge returns the moments of both sets of visitors together.
func (m Moments) Merge(o Moments) Moments {
	return Moments{
		Visitors:    m.Visitors + o.Visitors,
		SinceShares: m.SinceShares + o.SinceShares,
		Recent:      m.Recent + o.Recent,
		Views:       m.Views + o.Views,
		Converted:   m.Converted + o.Converted,
		Goals:       m.Goals.Merge(o.Goals),
		Value:       m.Value.merge(o.Value),
		Profit:      m.Profit.merge(o.Profit),
		ExtraValue:  m.ExtraValue.merge(o.ExtraValue),
		ValueGoals:  stats.Sums{Sum: m.ValueGoals}.Merge(stats.Sums{Sum: o.ValueGoals}).Sum,
	}
}

func (a Amounts) merge(o Amounts) Amounts {
	return Amounts{Sums: a.Merge(o.Sums), Nonzero: a.Nonzero + o.Nonzero, Negative: a.Negative + o.Negative}
}

// row is one line of sql/moments.sql's answer.
type row struct {
	variationID int64
	dimension   string
	earlier     bool // seen in the window, first exposed before it
	crossover   bool // saw more than one variation
	Moments
}

func scanRows(ctx context.Context, conn driver.Conn, q *Query) ([]row, error) {
	found, err := conn.Query(ctx, q.SQL, q.args()...)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	defer func() { _ = found.Close() }()
	var rows []row
	for found.Next() {
		r, err := scanRow(found)
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return rows, nil
}

func scanRow(found driver.Rows) (row, error) {
	var (
		r                             row
		earlier, crossover            uint8
		visitors, sinceShares, recent uint64
		views, converted              uint64
		goals, goalSquares            uint64
		value, profit, extra          scannedAmounts
		valueGoals                    big.Int
	)
	if err := found.Scan(&r.variationID, &r.dimension, &earlier, &crossover,
		&visitors, &sinceShares, &recent, &views, &converted, &goals, &goalSquares,
		&value.sum, &value.squares, &value.nonzero, &value.negative, &valueGoals,
		&profit.sum, &profit.squares, &profit.nonzero, &profit.negative,
		&extra.sum, &extra.squares, &extra.nonzero, &extra.negative); err != nil {
		return row{}, err
	}
	r.earlier, r.crossover = earlier == 1, crossover == 1
	r.Moments = Moments{
		Visitors:    int64(visitors),
		SinceShares: int64(sinceShares),
		Recent:      int64(recent),
		Views:       int64(views),
		Converted:   int64(converted),
		Goals:       stats.Sums{Sum: new(big.Int).SetUint64(goals), Squares: new(big.Int).SetUint64(goalSquares)},
		Value:       value.amounts(),
		Profit:      profit.amounts(),
		ExtraValue:  extra.amounts(),
		ValueGoals:  &valueGoals,
	}
	return r, nil
}

type scannedAmounts struct {
	sum, squares      big.Int
	nonzero, negative uint64
}

func (a *scannedAmounts) amounts() Amounts {
	return Amounts{
		Sums:     stats.Sums{Sum: &a.sum, Squares: &a.squares},
		Nonzero:  int64(a.nonzero),
		Negative: int64(a.negative),
	}
}

// sample returns what the metric is compared by. AverageValue has none: it is
// a ratio, estimated but not compared.
func (m *Moments) sample(metric Metric) stats.Sample {
	switch metric {
	case GoalConversionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Converted}
	case GoalsPerVisitor:
		mean := m.Goals.Mean(m.Visitors, 1)
		mean.Nonzero = m.Converted
		return mean
	case ValuePerVisitor:
		return m.Value.mean(m.Visitors)
	case ProfitPerVisitor:
		return m.Profit.mean(m.Visitors)
	case ExtraValuePerVisitor:
		return m.ExtraValue.mean(m.Visitors)
	case AverageValue:
	}
	return nil
}

func (a *Amounts) mean(visitors int64) stats.Mean {
	mean := a.Mean(visitors, schema.MoneyScale)
	mean.Nonzero = a.Nonzero
	return mean
}

// neverNegative says whether no visitor's value of the metric is below zero.
func (m *Moments) neverNegative(metric Metric) bool {
	switch metric {
	case ValuePerVisitor:
		return m.Value.Negative == 0
	case ProfitPerVisitor:
		return m.Profit.Negative == 0
	case ExtraValuePerVisitor:
		return m.ExtraValue.Negative == 0
	case GoalConversionRate, GoalsPerVisitor, AverageValue:
	}
	return true
}

// average is AverageValue: a ratio of two sums over visitors.
func (m *Moments) average() stats.Ratio {
	return stats.Ratio{
		Visitors: m.Visitors,
		Value:    m.Value.Sums,
		Goals:    m.Goals,
		Products: m.ValueGoals,
		Scale:    schema.MoneyScale,
	}
}

// goalsReached counts the goal events.
func (m *Moments) goalsReached() int64 {
	if m.Goals.Sum == nil {
		return 0
	}
	return m.Goals.Sum.Int64()
}
