package facts

import (
	"context"
	"slices"
	"strings"

	"lifthouse/engine/metric"
	"lifthouse/engine/moments"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// pairQuery has the parts of the statements of the quantities of a metric.
type pairQuery struct {
	*selection
	params     *parameters
	quantities []compiled // x, and y of a ratio
	limit      string     // of x of each visitor; empty: none
	amounts    bool       // whether a sum is not known if amounts of an event are in another currency
	split      string     // values by which the metric is split, of a row; empty: it is not
}

// newPairQuery compiles the metric of the question, split by a text unless it is nil.
func (c *counting) newPairQuery(split *metric.Field, params *parameters) *pairQuery {
	q := &pairQuery{selection: c.selection, params: params}
	if split != nil {
		of := compiler{params: params, name: "split"}
		q.split = of.text(*split)
		if split.Source == metric.OfLine {
			q.split = "arrayJoin(arrayDistinct(" + lineColumnOf(*split).column + "))"
		}
	}
	for i, of := range c.of.Expression.Quantities() {
		name := []string{"x", "y"}[i]
		compile := compiler{params: params, name: name, endsEarly: c.selection.endsEarly, split: split}
		q.quantities = append(q.quantities, compile.quantity(of))
		q.amounts = q.amounts || of.ReadsAmounts()
	}
	if c.of.limit != nil && c.of.limit.Limit > 0 {
		q.limit = "{pair_cap:Int64}"
		params.add("pair_cap", c.of.limit.Limit/(metric.Scale/c.of.Expression.Numerator.Scale()))
	}
	return q
}

// pairStatement returns the statement of the sums of the quantities of the metric from the rows of goal events and, for
// actions, of visitors; unless split is nil, for each of its values.
func (c *counting) pairStatement(split *metric.Field) *statement {
	s := c.newStatement("one row per key: sums of the quantities of its visitors", c.selection.divisions...)
	q := c.newPairQuery(split, &s.params)
	var keys []column
	keys, s.keys = keysOfVisitor(s.keys)
	s.from = subquery(q.sumVisitors(counted, keys))
	if split != nil {
		s.keys = append(s.keys, keyColumn{
			column{"split", "toString(split_value)"}, "String", func(at *rowKey) any { return &at.split },
		})
	}
	s.sums = pairSums()
	return s
}

// pairSums are the sums over visitors of their quantities x and y.
func pairSums() []sum {
	to := func(field func(*moments.Pair) any) func(*moments.Moments) any {
		return func(m *moments.Moments) any {
			if m.Pair.X.Sum == nil {
				m.Pair = moments.NoPair()
			}
			return field(&m.Pair)
		}
	}
	return []sum{
		{column{"sum_x", "sum(toInt128(x))"}, to(func(p *moments.Pair) any { return p.X.Sum })},
		{column{"squares_x", "sum(toInt128(x) * x)"}, to(func(p *moments.Pair) any { return p.X.Squares })},
		{column{"nonzero_x", "toInt64(countIf(x != 0))"}, to(func(p *moments.Pair) any { return &p.Nonzero })},
		{column{"negative_x", "toInt64(countIf(x < 0))"}, to(func(p *moments.Pair) any { return &p.Negative })},
		{column{"sum_y", "sum(toInt128(y))"}, to(func(p *moments.Pair) any { return p.Y.Sum })},
		{column{"squares_y", "sum(toInt128(y) * y)"}, to(func(p *moments.Pair) any { return p.Y.Squares })},
		{column{"products", "sum(toInt128(x) * y)"}, to(func(p *moments.Pair) any { return p.Products })},
		{column{"nonzero_y", "toInt64(countIf(y != 0))"}, to(func(p *moments.Pair) any { return &p.OfY })},
		{column{"nonzero_both", "toInt64(countIf(x != 0 AND y != 0))"}, to(func(p *moments.Pair) any {
			return &p.Both
		})},
		{column{"unknown_values", "sum(unknown)"}, func(m *moments.Moments) any { return &m.Unknown }},
	}
}

// sumVisitors returns the statement with a row for each visitor of some variations with rows that the metric reads: its
// keys, and its quantities x and y.
func (q *pairQuery) sumVisitors(variations string, keys []column) string {
	s := clauses{
		about:   "one row per visitor with rows that the metric reads: its quantities",
		columns: append([]column{{"n", "sum(toInt64(sign))"}}, keys...),
		from:    q.Facts,
		groups:  []string{"visitor_id"},
		having:  "n != 0",
	}
	x := q.quantities[0].value
	if q.limit != "" {
		x = "least(" + x + ", " + q.limit + ")"
	}
	y := "toInt64(0)"
	if len(q.quantities) > 1 {
		y = q.quantities[1].value
	}
	unknown := "toInt64(0)"
	if q.amounts {
		unknown = "sum(toInt64(sign * " + ofUnknown + "))"
	}
	s.columns = append(s.columns, column{"x", x}, column{"y", y}, column{"unknown", unknown})

	rows := make([]string, len(q.quantities))
	for i, of := range q.quantities {
		rows[i] = of.rows
		if of.isFinal {
			s.from = q.Facts + " FINAL"
		}
	}
	conditions := slices.Concat(
		[]string{"section IN ({visitors:UInt64}, {goals:UInt64})", variations}, q.filters, q.firstView)
	ofMetric := "(" + strings.Join(rows, " OR ") + ")"
	switch last := q.quantities[len(q.quantities)-1].last; {
	case q.split != "":
		split := clauses{
			columns: []column{{"", "*"}, {"split_value", q.split}}, from: s.from, where: conditions,
		}
		s.from = subquery(split.text())
		s.where = []string{ofMetric}
		s.columns = append(s.columns, column{"", "split_value"})
		s.groups = append(s.groups, "split_value")
	case last != "" && len(q.quantities) == 1: // the other visitors have not completed the funnel
		completed := "visitor_id IN (SELECT visitor_id FROM " + q.Facts + " WHERE " + last + ")"
		s.where = slices.Concat(conditions, []string{ofMetric, completed})
	default:
		s.where = slices.Concat(conditions, []string{ofMetric})
	}
	return s.text()
}

// readPairTotals reads the quantity of each visitor that the report compares and that has one, for the percentile of a
// cap.
func (x answer) readPairTotals(ctx context.Context) (totals []int64, err error) {
	all := x
	all.Filters = x.Filters.OfAllVisitors()
	all.Dimension = ""
	all.limit = nil
	one := *x.Expression
	one.Denominator = nil
	all.Expression = &one
	for _, c := range all.newCountings(nil) {
		params := slices.Clone(c.selection.params)
		params.add("compared", x.comparedVariations())
		q := c.newPairQuery(nil, &params)
		quantities := clauses{
			about:   "one row: the quantities of the visitors of some variations that have one",
			columns: []column{{"", "groupArray(x)"}},
			from:    subquery(q.sumVisitors("variation IN {compared:Array(String)}", nil)),
			where:   []string{"x != 0"},
		}
		if err := c.store.EachRow(ctx, quantities.withSettings(c.selection.few), params, func(row driver.Rows) error {
			var some []int64
			err := row.Scan(&some)
			totals = append(totals, some...)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return totals, nil
}
