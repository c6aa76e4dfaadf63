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
	amounts    bool       // whether a sum is not known if there is no rate for amounts of an event
	split      string     // values by which the metric is split, of a row; empty: it is not
	// bucket is the bucket of the series in which a row counts first; empty: there is no series, and all rows count
	bucket string
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
		compile := compiler{params: params, name: name, endsEarly: c.cutsLateEvents(), split: split}
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
	for _, of := range q.sums() {
		s.sums = append(s.sums, of.sumOf("sum("+of.add("")+")"))
	}
	return s
}

// pairSteps returns the statement of what each bucket of the series adds to the sums of the quantities of the metric. A
// visitor's quantities at the end of a bucket are those of the events until then, whatever the metric computes. So the
// bucket adds the sums with them, less the sums with those at the end of the visitor's bucket before.
func (c *counting) pairSteps() *statement {
	s := c.newStatement("one row per key: what its bucket adds to the sums of the quantities", c.selection.divisions...)
	q := c.newPairQuery(nil, &s.params)
	var keys []column
	keys, s.keys = keysOfVisitor(s.keys)
	bucket := c.goalBucket()[0]
	q.bucket = bucket.sql
	bucket.sql = "through"
	s.keys = append(s.keys, bucket)
	steps := clauses{
		about:   "one row per visitor and bucket with such rows: the quantities at its end and before it",
		columns: []column{{"", "*"}},
		from:    subquery(q.sumVisitors(counted, keys)),
		window: "earlier AS (PARTITION BY visitor_id ORDER BY through " +
			"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
	}
	for _, quantity := range q.names() {
		before := column{quantity + "_before", "lagInFrame(" + quantity + ", 1, toInt64(0)) OVER earlier"}
		steps.columns = append(steps.columns, before)
	}
	s.from = subquery(steps.text())
	for _, of := range q.sums() {
		s.sums = append(s.sums, of.sumOf("sum("+of.add("")+" - "+of.add("_before")+")"))
	}
	return s
}

// pairSum is a sum over visitors of their quantities x and y.
type pairSum struct {
	name string
	// add returns what a visitor adds, whose quantities are columns with an end of their names.
	add func(end string) string
	to  func(*moments.Moments) any
}

func (p *pairSum) sumOf(sql string) sum { return sum{column{p.name, sql}, p.to} }

var pairSums = []pairSum{
	ofPair("sum_x", "toInt128({x})", func(p *moments.Pair) any { return p.X.Sum }),
	ofPair("squares_x", "toInt128({x}) * {x}", func(p *moments.Pair) any { return p.X.Squares }),
	ofPair("nonzero_x", "toInt64({x} != 0)", func(p *moments.Pair) any { return &p.Nonzero }),
	ofPair("negative_x", "toInt64({x} < 0)", func(p *moments.Pair) any { return &p.Negative }),
	ofPair("sum_y", "toInt128({y})", func(p *moments.Pair) any { return p.Y.Sum }),
	ofPair("squares_y", "toInt128({y}) * {y}", func(p *moments.Pair) any { return p.Y.Squares }),
	ofPair("products", "toInt128({x}) * {y}", func(p *moments.Pair) any { return p.Products }),
	ofPair("nonzero_y", "toInt64({y} != 0)", func(p *moments.Pair) any { return &p.OfY }),
	ofPair("nonzero_both", "toInt64({x} != 0 AND {y} != 0)", func(p *moments.Pair) any { return &p.Both }),
	{
		"unknown_values",
		func(end string) string { return "unknown" + end },
		func(m *moments.Moments) any { return &m.Unknown },
	},
}

// cappedPairSums are the sums of what the cap removes from x. uncapped_x is x without it.
var cappedPairSums = []pairSum{
	ofPair("capped_visitors", "toInt64({uncapped_x} > {x})", func(p *moments.Pair) any { return &p.Capped }),
	ofPair("removed_x", "(toInt128({uncapped_x}) - {x})", func(p *moments.Pair) any { return p.Removed }),
}

// sums returns the sums over visitors that a report has.
func (q *pairQuery) sums() []pairSum {
	if q.limit == "" {
		return pairSums
	}
	return slices.Concat(pairSums, cappedPairSums)
}

// names returns the columns of a visitor that the sums read.
func (q *pairQuery) names() []string {
	names := []string{"x", "y", "unknown"}
	if q.limit != "" {
		names = append(names, "uncapped_x")
	}
	return names
}

// ofPair returns a sum of moments.Pair, of an expression of {x}, {y} and {uncapped_x}.
func ofPair(name, sql string, field func(*moments.Pair) any) pairSum {
	add := func(end string) string {
		return strings.NewReplacer("{x}", "x"+end, "{y}", "y"+end, "{uncapped_x}", "uncapped_x"+end).Replace(sql)
	}
	to := func(m *moments.Moments) any {
		if m.Pair.X.Sum == nil {
			m.Pair = moments.NoPair()
		}
		return field(&m.Pair)
	}
	return pairSum{name, add, to}
}

// cutsLateEvents reports whether events at the end of the window of times do not count.
func (c *counting) cutsLateEvents() bool {
	return c.selection.endsEarly && !countsAtFirstView(&c.of.Question)
}

// sumVisitors returns the statement with a row for each visitor of some variations with rows that the metric reads: its
// keys, and its quantities x and y. In a series, it has a row for each bucket of such rows of the visitor, with the
// quantities of the rows through this bucket.
func (q *pairQuery) sumVisitors(variations string, keys []column) string {
	s := clauses{
		about:   "one row per visitor with rows that the metric reads: its quantities",
		columns: append([]column{{"n", "sum(toInt64(sign))"}}, keys...),
		from:    q.Facts,
		groups:  []string{"visitor_id"},
		having:  "n != 0",
	}
	x, y := q.values()
	if q.limit != "" {
		s.columns = append(s.columns, column{"uncapped_x", q.quantities[0].value})
	}
	unknown := "toInt64(0)"
	if q.amounts {
		unknown = "sum(toInt64(sign * " + ofUnknown + "))"
	}
	s.columns = append(s.columns, column{"x", x}, column{"y", y}, column{"unknown", unknown})

	if slices.ContainsFunc(q.quantities, func(of compiled) bool { return of.isFinal }) {
		s.from = q.Facts + " FINAL"
	}
	conditions := slices.Concat(
		[]string{"section IN ({visitors:UInt64}, {goals:UInt64})", variations}, q.filters, q.firstView)
	ofMetric := q.rows()
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
	if q.bucket != "" {
		s.about = "one row per visitor and bucket with rows that the metric reads: its quantities at the bucket's end"
		s.readThroughBuckets(q.bucket)
	}
	return s.text()
}

// values returns x of a visitor, with its limit, and y; 0 if the metric is no ratio.
func (q *pairQuery) values() (x, y string) {
	x = q.quantities[0].value
	if q.limit != "" {
		x = "least(" + x + ", " + q.limit + ")"
	}
	if len(q.quantities) > 1 {
		return x, q.quantities[1].value
	}
	return x, "toInt64(0)"
}

// rows returns the condition of the rows that the metric reads.
func (q *pairQuery) rows() string {
	rows := make([]string, len(q.quantities))
	for i, of := range q.quantities {
		rows[i] = of.rows
	}
	return "(" + strings.Join(rows, " OR ") + ")"
}

// readThroughBuckets makes a statement that groups rows by visitor one that groups them by visitor and bucket, in which
// each row counts in its own bucket and in all later ones of the visitor.
func (s *clauses) readThroughBuckets(bucket string) {
	numbered := clauses{
		columns: []column{
			{"", "*"},
			{"row_bucket", bucket},
			{"buckets", "groupUniqArray(row_bucket) OVER (PARTITION BY visitor_id)"},
		},
		from: s.from, where: s.where,
	}
	repeated := clauses{
		columns: []column{{"", "*"}, {"through", "arrayJoin(arrayFilter(bucket -> bucket >= row_bucket, buckets))"}},
		from:    subquery(numbered.text()),
	}
	s.from = subquery(repeated.text())
	s.where = nil
	s.columns = append(s.columns, column{"", "visitor_id"}, column{"", "through"})
	s.groups = append(s.groups, "through")
}

// readPairTotals reads the quantity of each visitor that the report compares and that has one, in 1/metric.Scale, for
// the percentile of a cap.
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
			for _, total := range some {
				totals = append(totals, total*(metric.Scale/one.Numerator.Scale()))
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return totals, nil
}
