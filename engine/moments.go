package engine

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Moments are exact sums over a set of visitors. Every number of a report is
// computed from them. Money is in 1/schema.MoneyScale.
type Moments struct {
	Visitors    int64
	SinceShares int64 // visitors first exposed since the current shares took effect
	Recent      int64 // visitors first exposed in the last recentDays full days
	Views       int64
	Actions
	Converted  int64 // visitors with at least one counted goal
	Completed  int64 // visitors with at least one completion
	Conversion int64 // visitors with at least one conversion
	Goals      stats.Sums
	Value      Amounts
	Profit     Amounts
	ExtraValue Amounts
	ValueGoals *big.Int // sum over visitors of value times goals
}

// Actions count the events of a widget other than views and goals.
type Actions struct {
	Clicks      int64 `json:"clicks"`
	Submits     int64 `json:"submits"`
	Completions int64 `json:"completions"`
	Conversions int64 `json:"conversions"`
	Contacts    int64 `json:"contacts"`
}

func (a Actions) merge(o Actions) Actions {
	return Actions{
		Clicks: a.Clicks + o.Clicks, Submits: a.Submits + o.Submits, Completions: a.Completions + o.Completions,
		Conversions: a.Conversions + o.Conversions, Contacts: a.Contacts + o.Contacts,
	}
}

// Amounts are sums over visitors of the visitor's total of a money column.
type Amounts struct {
	stats.Sums
	Nonzero  int64 // visitors whose total is not zero
	Negative int64 // visitors whose total is below zero
}

// Merge returns the moments of the union of two disjoint sets of visitors.
func (m Moments) Merge(o Moments) Moments {
	return Moments{
		Visitors:    m.Visitors + o.Visitors,
		SinceShares: m.SinceShares + o.SinceShares,
		Recent:      m.Recent + o.Recent,
		Views:       m.Views + o.Views,
		Actions:     m.merge(o.Actions),
		Converted:   m.Converted + o.Converted,
		Completed:   m.Completed + o.Completed,
		Conversion:  m.Conversion + o.Conversion,
		Goals:       m.Goals.Merge(o.Goals),
		Value:       m.Value.merge(o.Value),
		Profit:      m.Profit.merge(o.Profit),
		ExtraValue:  m.ExtraValue.merge(o.ExtraValue),
		ValueGoals:  stats.Sums{Sum: m.ValueGoals}.Merge(stats.Sums{Sum: o.ValueGoals}).Sum,
	}
}

// takeAway subtracts the moments of a subset of the visitors.
func (m *Moments) takeAway(o *Moments) {
	m.Visitors -= o.Visitors
	m.SinceShares -= o.SinceShares
	m.Recent -= o.Recent
	m.Views -= o.Views
	m.Clicks -= o.Clicks
	m.Submits -= o.Submits
	m.Completions -= o.Completions
	m.Conversions -= o.Conversions
	m.Contacts -= o.Contacts
	m.Converted -= o.Converted
	m.Completed -= o.Completed
	m.Conversion -= o.Conversion
	takeAway(&m.Goals, o.Goals)
	m.Value.takeAway(&o.Value)
	m.Profit.takeAway(&o.Profit)
	m.ExtraValue.takeAway(&o.ExtraValue)
	m.ValueGoals.Sub(m.ValueGoals, o.ValueGoals)
}

func (a *Amounts) takeAway(o *Amounts) {
	takeAway(&a.Sums, o.Sums)
	a.Nonzero -= o.Nonzero
	a.Negative -= o.Negative
}

func takeAway(from *stats.Sums, o stats.Sums) {
	from.Sum.Sub(from.Sum, o.Sum)
	from.Squares.Sub(from.Squares, o.Squares)
}

func (a Amounts) merge(o Amounts) Amounts {
	return Amounts{Sums: a.Merge(o.Sums), Nonzero: a.Nonzero + o.Nonzero, Negative: a.Negative + o.Negative}
}

// row holds the sums over the visitors of one segment: variation, dimension
// value, and the flags below.
type row struct {
	variationID   int64
	dimension     string
	exposedBefore bool // active in the window, but first exposed before it
	multiExposed  bool // exposed to more than one variation
	others        bool // all values of the dimension that cannot be among the most frequent
	Moments
}

func scanRows(ctx context.Context, from *store, q *Query) ([]row, error) {
	var rows []row
	err := from.each(ctx, q, func(found driver.Rows) error {
		r, err := scanRow(found)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// scanRow scans a row of sql/moments.sql or sql/series.sql. Its first columns
// are scanned into first.
func scanRow(found driver.Rows, first ...any) (row, error) {
	var r row
	var exposedBefore, multiExposed uint8
	var err error
	r.Moments, err = scanMoments(found, slices.Concat(first, []any{&r.variationID, &r.dimension, &exposedBefore, &multiExposed})...)
	r.exposedBefore, r.multiExposed = exposedBefore == 1, multiExposed == 1
	return r, err
}

// widgetCounts is the number of additional columns of widgets.
const widgetCounts = 7

// scanMoments scans the columns of sql/sums.sql after the first columns.
func scanMoments(found driver.Rows, first ...any) (Moments, error) {
	var (
		visitors, sinceShares, recent, views, converted, goals, goalsSquares count
		widget                                                               [widgetCounts]count
		value, profit, extra                                                 scannedAmounts
		valueGoals                                                           big.Int
	)
	to := slices.Concat(first,
		[]any{&visitors, &sinceShares, &recent, &views, &converted, &goals, &goalsSquares},
		value.targets(), []any{&valueGoals}, profit.targets(), extra.targets())
	if len(to) < len(found.Columns()) {
		for i := range widget {
			to = append(to, &widget[i])
		}
	}
	if err := found.Scan(to...); err != nil {
		return Moments{}, err
	}
	return Moments{
		Visitors: int64(visitors), SinceShares: int64(sinceShares), Recent: int64(recent), Views: int64(views),
		Actions: Actions{
			Clicks: int64(widget[0]), Submits: int64(widget[1]), Completions: int64(widget[2]),
			Conversions: int64(widget[4]), Contacts: int64(widget[6]),
		},
		Completed: int64(widget[3]), Conversion: int64(widget[5]), Converted: int64(converted),
		Goals:      stats.Sums{Sum: big.NewInt(int64(goals)), Squares: big.NewInt(int64(goalsSquares))},
		Value:      value.amounts(),
		Profit:     profit.amounts(),
		ExtraValue: extra.amounts(),
		ValueGoals: &valueGoals,
	}, nil
}

// count scans a signed or unsigned integer column.
type count int64

// Scan implements sql.Scanner.
func (c *count) Scan(value any) error {
	switch n := value.(type) {
	case uint64:
		*c = count(n) //nolint:gosec // of events
	case int64:
		*c = count(n)
	default:
		return fmt.Errorf("%T is no count", value)
	}
	return nil
}

type scannedAmounts struct {
	sum, squares      big.Int
	nonzero, negative count
}

func (a *scannedAmounts) targets() []any { return []any{&a.sum, &a.squares, &a.nonzero, &a.negative} }

func (a *scannedAmounts) amounts() Amounts {
	return Amounts{
		Sums:     stats.Sums{Sum: &a.sum, Squares: &a.squares},
		Nonzero:  int64(a.nonzero),
		Negative: int64(a.negative),
	}
}

// sample returns the sample of a metric for comparisons. AverageValue has none:
// it is a ratio, which is estimated but not compared.
func (m *Moments) sample(metric Metric) stats.Sample {
	switch metric {
	case GoalConversionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Converted}
	case ConversionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Conversion}
	case CompletionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Completed}
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

// neverNegative reports whether no visitor has a negative value of the metric.
func (m *Moments) neverNegative(metric Metric) bool {
	switch metric {
	case ValuePerVisitor:
		return m.Value.Negative == 0
	case ProfitPerVisitor:
		return m.Profit.Negative == 0
	case ExtraValuePerVisitor:
		return m.ExtraValue.Negative == 0
	case GoalConversionRate, ConversionRate, CompletionRate, GoalsPerVisitor, AverageValue:
	}
	return true
}

// average returns the ratio of AverageValue: value to goals reached.
func (m *Moments) average() stats.Ratio {
	return stats.Ratio{
		Visitors: m.Visitors,
		Value:    m.Value.Sums,
		Goals:    m.Goals,
		Products: m.ValueGoals,
		Scale:    schema.MoneyScale,
	}
}

// goalsReached returns the number of goal events.
func (m *Moments) goalsReached() int64 {
	if m.Goals.Sum == nil {
		return 0
	}
	return m.Goals.Sum.Int64()
}
