package facts

import (
	"context"
	"maps"
	"slices"

	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ReadSplit reads the parts of the metric of a question with each value of its split. The values with most visitors
// whose part is not 0 have rows of their own, and of equally many the first ones as texts. The part of all others is
// read, too, because it is no sum for most metrics.
func (r Reader) ReadSplit(ctx context.Context, q plan.Question) (found *moments.Split, err error) {
	q.Dimension = ""
	q.Interval = ""
	err = r.atOnePosition(ctx, q, func(x answer) error {
		rows, err := x.readPairs(ctx, q.Expression, q.Split)
		if err != nil {
			return err
		}
		values, hasOthers := mostSplit(rows, q.SplitTop)
		found = &moments.Split{}
		for _, value := range values {
			found.Values = append(found.Values, moments.SplitValue{Value: value, Rows: rows[value]})
		}
		if hasOthers {
			rest := q.Expression.WithCondition(metric.Negate(metric.CompareText(*q.Split, metric.In, values...)))
			others, err := x.readPairs(ctx, rest, nil)
			if err != nil {
				return err
			}
			found.Others = others[""]
		}
		return x.readLabels(ctx, found)
	})
	return found, err
}

// readPairs reads the sums of a metric by the values of a split; nil: of no value.
func (x answer) readPairs(
	ctx context.Context, of *metric.Metric, split *metric.Field,
) (map[string][]moments.GroupMoments, error) {
	x.Expression = of
	s := x.newSums()
	if err := s.countOnServers(ctx, factSums{}, func(c *counting, ctx context.Context, _ factSums) (counts, error) {
		return c.run(ctx, c.pairStatement(split))
	}); err != nil {
		return nil, err
	}
	byValue := map[string]groups{}
	for at, m := range s.of {
		if byValue[at.split] == nil {
			byValue[at.split] = groups{}
		}
		byValue[at.split].addMoments(at.GroupKey, &m)
	}
	rows := map[string][]moments.GroupMoments{}
	for value, of := range byValue {
		for key, m := range of {
			rows[value] = append(rows[value], moments.GroupMoments{GroupKey: key, Moments: m})
		}
	}
	return rows, nil
}

// mostSplit returns the values with most visitors whose part is not 0, at most top, and whether there are others.
func mostSplit(rows map[string][]moments.GroupMoments, top int) (values []string, hasOthers bool) {
	visitors := map[string]int64{}
	for value, of := range rows {
		for i := range of {
			visitors[value] += of[i].Pair.Nonzero
		}
	}
	maps.DeleteFunc(visitors, func(_ string, n int64) bool { return n == 0 })
	values = moments.MostVisited(visitors)
	if len(values) <= top {
		return values, false
	}
	return values[:top], true
}

// readLabels reads the latest names of products that a split shows.
func (x answer) readLabels(ctx context.Context, found *moments.Split) error {
	isOfProducts := x.Split != nil && x.Split.Name == "items.product"
	if !isOfProducts || len(found.Values) == 0 {
		return nil
	}
	products := make([]string, len(found.Values))
	for i := range found.Values {
		products[i] = found.Values[i].Value
	}
	latest := map[string]int64{}
	labels := map[string]string{}
	for _, c := range x.newCountings(nil) {
		params := slices.Clone(c.selection.params)
		params.add("products", products)
		sql := c.selection.render("product_names.sql")
		if err := c.store.EachRow(ctx, sql, params, func(row driver.Rows) error {
			var product, name string
			var at int64
			err := row.Scan(&product, &name, &at)
			if before, has := latest[product]; !has || at > before {
				latest[product] = at
				labels[product] = name
			}
			return err
		}); err != nil {
			return err
		}
	}
	for i := range found.Values {
		found.Values[i].Label = labels[found.Values[i].Value]
	}
	return nil
}
