package facts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"lifthouse/engine/metric"
	"lifthouse/engine/plan"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Appearing is what first appears in the events of a subject: the values of a text, or if it has none the goals.
type Appearing struct{ Text metric.Field }

// mostAppearances is the maximum number of values whose order is read: that of the products of a website.
const mostAppearances = 100_000

// ReadAppearances returns the values of a text, or the ids of the goals, in the order in which the events of the
// subject first had them before a time. The events of all variations count alike, also those of visitors that no report
// counts.
func (r Reader) ReadAppearances(
	ctx context.Context, q plan.Question, of Appearing, before time.Time,
) (values []string, err error) {
	q.Dimension = ""
	q.Interval = ""
	first := map[string]int64{}
	err = r.atOnePosition(ctx, q, func(x answer) error {
		clear(first)
		for _, c := range x.newCountings(nil) {
			sql, params := c.selection.appearances(of)
			params.add("before_ms", before.UnixMilli())
			params.add("most", uint32(mostAppearances))
			if err := c.store.EachRow(ctx, sql, params, func(row driver.Rows) error {
				var value string
				var at int64
				err := row.Scan(&value, &at)
				if earlier, has := first[value]; !has || at < earlier {
					first[value] = at
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for value := range first {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a, b)) })
	return values, nil
}

// appearances returns the statement of ReadAppearances, and its parameters.
func (s *selection) appearances(of Appearing) (string, parameters) {
	params := slices.Clone(s.params)
	c := compiler{params: &params, name: "appearing"}
	section := "section = {goals:UInt64}"
	at := factTime
	value := "goal_id"
	switch of.Text.Source {
	case metric.OfAttribute:
		section = "section = {visitors:UInt64}"
		at = firstTime
		value = c.text(of.Text)
	case metric.OfLine:
		value = "arrayJoin(" + lineColumnOf(of.Text).column + ")"
	case metric.OfProperty:
		value = c.text(of.Text)
	case metric.OfEvent: // no text is of an event
	}
	found := clauses{
		about:   "one row per value, in the order of its first appearance",
		columns: []column{{"appeared", "toString(" + value + ")"}, {"first_ms", "min(" + at + ")"}},
		from:    s.Facts,
		where:   []string{section, at + " < {before_ms:Int64}"},
		groups:  []string{"appeared"},
		having:  "sum(toInt64(sign)) > 0",
		order:   "first_ms, appeared\nLIMIT {most:UInt32}",
	}
	return found.withSettings(s.few), params
}
