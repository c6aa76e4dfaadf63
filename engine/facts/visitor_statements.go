package facts

import (
	"context"
	"fmt"
	"slices"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
)

// newStatement returns a statement of the report whose rows are grouped by place, and by some keys.
func (c *counting) newStatement(about string, keys ...keyColumn) *statement {
	s := &statement{
		about: about, from: c.selection.Facts, places: c.places, few: c.selection.few,
		params: slices.Clone(c.selection.params),
	}
	s.keys = append([]keyColumn{c.placeKey(s)}, keys...)
	return s
}

// placeKey returns the key of the place of a row.
func (c *counting) placeKey(s *statement) keyColumn {
	sql := "toUInt32(" + s.places.writePlace(&s.params) + ")"
	return keyColumn{column{"place", sql}, "UInt32", func(at *rowKey) any { return &at.place }}
}

// actionColumns are the numbers of events of a visitor other than goals, by kind.
var actionColumns = []struct {
	kind moments.Kind
	name string
	to   func(*moments.Moments) any
}{
	{moments.View, "views", func(m *moments.Moments) any { return &m.Views }},
	{moments.Click, "clicks", func(m *moments.Moments) any { return &m.Clicks }},
	{moments.Submit, "submits", func(m *moments.Moments) any { return &m.Submits }},
	{moments.Completion, "completions", func(m *moments.Moments) any { return &m.Completions }},
	{moments.Conversion, "conversions", func(m *moments.Moments) any { return &m.Conversions }},
	{moments.Contact, "contacts", func(m *moments.Moments) any { return &m.Contacts }},
}

func toVisitors(m *moments.Moments) any   { return &m.Visitors }
func toRecent(m *moments.Moments) any     { return &m.Recent }
func toCompleted(m *moments.Moments) any  { return &m.Completed }
func toConversion(m *moments.Moments) any { return &m.Conversion }

// visitorSums returns the sums over rows of visitors. With recent, they include the visitors of the recent days.
func (c *counting) visitorSums(recent bool) []sum {
	sums := []sum{{column{"visitors", "sum(sign)"}, toVisitors}}
	if recent {
		const isRecent = "first_day >= {recent_from:Date} AND first_day < {recent_to:Date}"
		sums = append(sums, sum{column{"visitors_recent", "sumIf(sign, " + isRecent + ")"}, toRecent})
	}
	for _, action := range actionColumns {
		number := c.numberOf(action.kind, action.name)
		sums = append(sums, sum{column{"all_" + action.name, "sum(sign * " + number + ")"}, action.to})
		if !isOfWidget(c.of.Subject) {
			return sums // views
		}
	}
	completions := c.numberOf(moments.Completion, "completions")
	conversions := c.numberOf(moments.Conversion, "conversions")
	return append(sums,
		sum{column{"completed_visitors", "sum(sign * (" + completions + " > 0))"}, toCompleted},
		sum{column{"conversion_visitors", "sum(sign * (" + conversions + " > 0))"}, toConversion})
}

// visitorKeys returns the keys of rows of visitors.
func (c *counting) visitorKeys() (keys []keyColumn) {
	if !c.of.Filters.From.IsZero() {
		keys = append(keys, keyColumn{
			column{"exposed_before", firstTime + " < {from_ms:Int64}"},
			"UInt8",
			func(at *rowKey) any { return &at.ExposedBefore },
		})
	}
	return slices.Concat(keys, c.selection.maturity, c.selection.divisions)
}

// visitorStatement returns the statement of the sums of visitors from their rows. With recent, they include the
// visitors of the recent days.
func (c *counting) visitorStatement(recent bool, keys ...keyColumn) *statement {
	s := c.newStatement("one row per key: sums over its visitors", append(c.visitorKeys(), keys...)...)
	s.sums = c.visitorSums(recent)
	s.where = slices.Clone(c.selection.visitors)
	if c.selection.endsEarly {
		s.where = append(s.where, firstTime+" < {to_ms:Int64}")
	}
	if !c.of.Filters.From.IsZero() {
		s.where = append(s.where, lastTime+" >= {from_ms:Int64}")
		if c.selection.endsEarly {
			const isInside = firstTime + " + ms BETWEEN {from_ms:Int64} AND {to_ms:Int64} - 1"
			s.where = append(s.where, "("+firstTime+" >= {from_ms:Int64} OR "+lastTime+" < {to_ms:Int64} OR "+
				"arrayExists(ms -> "+isInside+", later_ms))")
		}
	}
	return s
}

// lastTime is the time of the last event of the row of a visitor.
const lastTime = factTime

// numberOf returns the number of events of a kind of a visitor that count: until the end of the window of times, or for
// completions and conversions in the conversion window. Only the few visitors with later events are counted again.
func (c *counting) numberOf(kind moments.Kind, name string) string {
	hasWindow := c.of.ConversionWindow.IsSet()
	switch {
	case hasWindow && kind == moments.Completion:
		return c.selection.completions
	case hasWindow && kind == moments.Conversion:
		return c.selection.conversions
	case !c.selection.endsEarly:
		return name
	}
	const isBefore = firstTime + " + ms < {to_ms:Int64}"
	number := fmt.Sprintf("arrayCount((ms, kind) -> kind = %d AND %s, later_ms, later_kinds)", kind, isBefore)
	if kind == moments.View {
		number = "1 + " + number // the first view is no later event
	}
	return "if(" + lastTime + " < {to_ms:Int64}, " + name + ", toUInt32(" + number + "))"
}

// immatureStatement returns the statement of the sums of the visitors whose conversion window has not ended.
func (c *counting) immatureStatement() *statement {
	s := c.visitorStatement(true)
	s.where = append(s.where, isImmature)
	return s
}

// countRecent counts the visitors of the recent days, of all values of a dimension together, whether or not their
// conversion window has ended. Without a window of times, they are kept for other reports.
func (c *counting) countRecent(ctx context.Context) (counts, error) {
	isKept := !c.asked.hasTimes()
	if isKept && c.on.recent.counts != nil {
		return c.on.recent.counts, nil
	}
	whole := *c
	whole.places.tops = nil
	s := whole.newStatement("one row per key: visitors first exposed in the recent days")
	s.where = append(s.where, "first_day >= {recent_from:Date}", "first_day < {recent_to:Date}")
	s.sums = []sum{{column{"visitors_recent", "sum(toInt64(sign))"}, toRecent}}
	if c.on.days {
		s.where = slices.Concat([]string{"section = {days:UInt64}", "goal_id = 0"}, s.where, c.selection.times)
		s.sums[0].sql = "toInt64(sum(sign * sums[1]))"
	} else {
		s.where = append([]string{"section = {visitors:UInt64}"}, s.where...)
	}
	found, err := c.run(ctx, s)
	if isKept && err == nil {
		c.on.recent.counts = found
	}
	return found, err
}

// countEarlier counts the visitors who were active in the window, but first exposed before it, from cells by day.
func (c *counting) countEarlier(ctx context.Context) (counts, error) {
	s := c.newStatement("one row per key: visitors who were active in the window, but first exposed before it")
	s.sums = []sum{{column{"visitors", "toInt64(sum(sign * sums[1]))"}, toVisitors}}
	s.where = []string{
		"section = {days:UInt64}", "goal_id = -1", // fold.Returns
		firstTime + " < {from_ms:Int64}", factTime + " >= {from_ms:Int64}",
	}
	if c.selection.endsEarly {
		s.where = append(s.where, factTime+" < {to_ms:Int64}")
	}
	found, err := c.run(ctx, s)
	earlier := counts{}
	for at, m := range found {
		at.ExposedBefore = true
		earlier.addMoments(at, &m)
	}
	return earlier, err
}

// actionStatement returns the statement of the series of the events other than goals, of the visitors who meet some
// conditions.
func (c *counting) actionStatement(conditions ...string) *statement {
	s := c.newStatement("one row per key: the sums that its bucket adds", c.selection.divisions...)
	inner := clauses{
		about: "one row per event other than goals: its time, its kind, and its number among the visitor's events of " +
			"this kind that count; 0: it does not count",
		from:    c.selection.Facts,
		where:   slices.Concat(c.selection.visitors, conditions, c.selection.firstView),
		columns: []column{{"of_sign", "sign"}, {"e", c.eachAction()}},
	}
	for i, key := range s.keys {
		inner.columns = append(inner.columns, column{"of_" + key.name, key.sql})
		s.keys[i].sql = "of_" + key.name
	}
	s.keys = append(s.keys, bucketKey("e.1"))
	s.from = subquery(inner.text())
	s.where = []string{"e.2 <= 6"}
	if c.selection.endsEarly {
		s.where = append(s.where, "e.1 < {to_ms:Int64}")
	}
	first := func(kind moments.Kind) string {
		return fmt.Sprintf("sum(of_sign * toInt64(e.2 = %d AND e.3 = 1))", kind)
	}
	s.sums = []sum{{column{"visitors", first(moments.View)}, toVisitors}}
	for _, action := range actionColumns {
		counts := fmt.Sprintf("sum(of_sign * toInt64(e.2 = %d AND e.3 > 0))", action.kind)
		s.sums = append(s.sums, sum{column{"all_" + action.name, counts}, action.to})
		if !isOfWidget(c.of.Subject) {
			return s // views
		}
	}
	s.sums = append(s.sums, sum{column{"completed_visitors", first(moments.Completion)}, toCompleted},
		sum{column{"conversion_visitors", first(moments.Conversion)}, toConversion})
	return s
}

// eachAction returns the events of a visitor, the first view included: time, kind and number. Of a campaign, these are
// views.
func (c *counting) eachAction() string {
	if !isOfWidget(c.of.Subject) {
		return "arrayJoin(arrayMap((ms, number) -> (" + c.actionTime() + ", 1, number), " +
			"arrayPushFront(arrayFilter((ms, kind) -> kind = 1, later_ms, later_kinds), 0) AS times, " +
			"arrayEnumerate(times)))"
	}
	counts := "1"
	if c.of.ConversionWindow.IsSet() {
		counts = "toUInt8(kind NOT IN (4, 5) OR ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64})"
	}
	return "arrayJoin(arrayMap((ms, kind, counts, number) -> (" + c.actionTime() + ", kind, counts * number), " +
		"arrayPushFront(later_ms, 0) AS times, arrayPushFront(later_kinds, 1) AS kinds, " +
		"arrayMap((ms, kind) -> " + counts + ", times, kinds) AS all_count, arrayEnumerateUniq(kinds, all_count)))"
}

// actionTime returns when an event other than a goal changes a series.
func (c *counting) actionTime() string {
	if !c.of.ConversionWindow.IsSet() {
		return firstTime + " + ms"
	}
	switch c.of.Timing {
	case plan.WhenMature:
		return firstTime + " + greatest(toInt64(ms), {maturity_ms:Int64} - 1)"
	case plan.ByAge:
		return "toInt64(ms)"
	case plan.OnFirstView:
		if isOfWidget(c.of.Subject) {
			return firstTime + " + if(kind IN (4, 5), 0, ms)"
		}
	case plan.OnEvent:
	}
	return firstTime + " + ms"
}
