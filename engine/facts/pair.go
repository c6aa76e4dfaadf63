package facts

import (
	"context"
	"fmt"
	"strings"

	"lifthouse/engine/metric"
	"lifthouse/engine/moments"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// pairQuery is the statement of the sums of the quantities of a metric.
type pairQuery struct {
	*reportQuery
	quantities []compiled // x, and y of a ratio
	limit      string     // of x of each visitor; empty: none
	amounts    bool       // whether a sum is not known if amounts of an event are in another currency
	split      string     // values by which the metric is split, of a row; empty: it is not
	variations string     // condition of the column variation
}

// newPairQuery compiles the metric of the question, split by a text unless it is nil.
func (s *counting) newPairQuery(split *metric.Field) *pairQuery {
	q := &pairQuery{reportQuery: s.newQuery(), variations: "variation != ''"}
	if split != nil {
		of := compiler{query: q.reportQuery, name: "split"}
		q.split = of.text(*split)
		if split.Source == metric.OfLine {
			q.split = "arrayJoin(arrayDistinct(" + lineColumnOf(*split).column + "))"
		}
	}
	for i, of := range s.Expression.Quantities() {
		c := compiler{query: q.reportQuery, name: []string{"x", "y"}[i], split: split}
		q.quantities = append(q.quantities, c.quantity(of))
		q.amounts = q.amounts || of.ReadsAmounts()
	}
	if s.limit != nil && s.limit.Limit > 0 {
		q.limit = "{pair_cap:Int64}"
		q.addParam("pair_cap", s.limit.Limit/(metric.Scale/s.Expression.Numerator.Scale()))
	}
	return q
}

// countPair reads the sums of the quantities of the metric from the rows of goal events and, for actions, of visitors;
// unless split is nil, for each of its values.
func (s *counting) countPair(ctx context.Context, split *metric.Field) error {
	q := s.newPairQuery(split)
	q.write = q.pairStatement
	keys := q.visitorKeys()
	if split != nil {
		keys = append(keys, keyColumn{"split", "toString(split_value)"})
	}
	return s.addRows(ctx, "", q.reportQuery, "of_place", keys, func(m *moments.Moments) []any {
		m.Pair = moments.NoPair()
		p := &m.Pair
		return []any{
			p.X.Sum, p.X.Squares, &p.Nonzero, &p.Negative, p.Y.Sum, p.Y.Squares, p.Products, &p.OfY, &p.Both,
			&m.Unknown,
		}
	})
}

// ofVisitors returns the statement with a row for each visitor with rows that the metric reads: its place, and its
// quantities x and y.
func (q *pairQuery) ofVisitors() string {
	rows := make([]string, len(q.quantities))
	facts := string(q.Facts)
	last := ""
	for i, of := range q.quantities {
		rows[i] = of.rows
		if of.isFinal {
			facts = string(q.Facts) + " FINAL"
		}
		last = of.last
	}
	columns := []string{
		"sum(toInt64(sign)) AS n",
		"intDiv(sum(sign * toInt64(" + string(q.Place) + ")), n) AS of_place",
	}
	if q.Period != "" {
		columns = append(columns, "toUInt8(intDiv(sum(sign * toInt64("+string(q.Period)+")), n)) AS of_period")
	}
	x := q.quantities[0].value
	if q.limit != "" {
		x = "least(" + x + ", " + q.limit + ")"
	}
	columns = append(columns, x+" AS x")
	y := "toInt64(0)"
	if len(q.quantities) > 1 {
		y = q.quantities[1].value
	}
	columns = append(columns, y+" AS y")
	unknown := "toInt64(0)"
	if q.amounts {
		unknown = "sum(toInt64(sign * bitAnd(marks, 1)))"
	}
	columns = append(columns, unknown+" AS unknown")

	groups := "visitor_id"
	conditions := append(q.visitorConditions(), "("+strings.Join(rows, " OR ")+")")
	if q.split != "" {
		columns = append(columns, "split_value")
		groups += ", split_value"
		facts = "(\n" + indent("SELECT *, "+q.split+" AS split_value\nFROM "+facts+"\nWHERE "+
			strings.Join(q.visitorConditions(), "\n    AND ")) + "\n)"
		conditions = conditions[len(conditions)-1:]
	}
	if isAlone := len(q.quantities) == 1 && q.split == ""; last != "" && isAlone {
		// The other visitors have not completed the funnel.
		completed := fmt.Sprintf("SELECT visitor_id FROM %s WHERE %s", q.Facts, last)
		conditions = append(conditions, "visitor_id IN ("+completed+")")
	}
	return "SELECT\n    " + strings.Join(columns, ",\n    ") +
		"\nFROM " + facts +
		"\nWHERE " + strings.Join(conditions, "\n    AND ") +
		"\nGROUP BY " + groups + "\nHAVING n != 0"
}

// visitorConditions returns the conditions of the rows of the visitors in the report.
func (q *pairQuery) visitorConditions() []string {
	conditions := []string{"section IN ({visitors:UInt64}, {goals:UInt64})", q.variations}
	if q.Filters != "true" {
		conditions = append(conditions, string(q.Filters))
	}
	const first = "toUnixTimestamp64Milli(first_time)"
	if q.From {
		conditions = append(conditions, first+" >= {from_ms:Int64}")
	}
	if q.To {
		conditions = append(conditions, first+" < {to_ms:Int64}")
	}
	if q.Mature {
		conditions = append(conditions, first+" <= {mature_ms:Int64}")
	}
	return conditions
}

// pairStatement returns the statement: a row for each key, with the sums over its visitors.
func (q *pairQuery) pairStatement() string {
	var keys []string
	for _, key := range q.Keys {
		keys = append(keys, string(key.Value)+" AS "+key.Name)
	}
	sums := []string{
		"sum(toInt128(x))", "sum(toInt128(x) * x)", "toInt64(countIf(x != 0))", "toInt64(countIf(x < 0))",
		"sum(toInt128(y))", "sum(toInt128(y) * y)", "sum(toInt128(x) * y)", "toInt64(countIf(y != 0))",
		"toInt64(countIf(x != 0 AND y != 0))", "sum(unknown)",
	}
	var groups []string
	for _, key := range q.Keys {
		groups = append(groups, key.Name)
	}
	return "-- one row per key: sums of the quantities of its visitors\nWITH of_visitors AS (\n" +
		indent(q.ofVisitors()) + "\n)\nSELECT\n    " + strings.Join(append(keys, sums...), ",\n    ") +
		"\nFROM of_visitors\nGROUP BY " + strings.Join(groups, ", ") + "\n" + q.render("settings.sql")
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

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
	for _, s := range all.newCountings(nil) {
		q := s.newPairQuery(nil)
		q.Place = "toUInt32(0)"
		q.variations = "variation IN {compared:Array(String)}"
		q.addParam("compared", x.comparedVariations())
		sql := "-- one row: the quantities of the visitors of some variations that have one\nWITH of_visitors AS (\n" +
			indent(q.ofVisitors()) + "\n)\nSELECT groupArray(x)\nFROM of_visitors\nWHERE x != 0\n" +
			q.render("settings.sql")
		err := s.store.EachRow(ctx, sql, q.params, func(row driver.Rows) error {
			var some []int64
			err := row.Scan(&some)
			totals = append(totals, some...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return totals, nil
}
