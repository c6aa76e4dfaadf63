package facts

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
		for _, s := range x.newCountings(nil) {
			query := s.newQuery()
			query.addParam("before_ms", before.UnixMilli())
			query.addParam("most", uint32(mostAppearances))
			query.write = func() string { return query.appearances(of) }
			if err := s.runQuery(ctx, "", query, func(row driver.Rows) error {
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

// appearances returns the statement of ReadAppearances.
func (q *reportQuery) appearances(of Appearing) string {
	c := compiler{query: q, name: "appearing"}
	section := "{goals:UInt64}"
	at := "toUnixTimestamp64Milli(first_time) + toInt64(since_ms)"
	value := "toString(goal_id)"
	switch of.Text.Source {
	case metric.OfAttribute:
		section = "{visitors:UInt64}"
		at = "toUnixTimestamp64Milli(first_time)"
		value = c.text(of.Text)
	case metric.OfLine:
		value = "arrayJoin(" + lineColumnOf(of.Text).column + ")"
	case metric.OfProperty:
		value = c.text(of.Text)
	case metric.OfEvent: // no text is of an event
	}
	return strings.Join([]string{
		"-- one row per value, in the order of its first appearance",
		"SELECT toString(" + value + ") AS appeared, min(" + at + ") AS first_ms",
		"FROM " + string(q.Facts),
		"WHERE section = " + section,
		"    AND " + at + " < {before_ms:Int64}",
		"GROUP BY appeared",
		"HAVING sum(toInt64(sign)) > 0",
		"ORDER BY first_ms, appeared",
		"LIMIT {most:UInt32}",
		q.render("settings.sql"),
	}, "\n")
}
