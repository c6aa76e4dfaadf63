package facts

import (
	"math/big"
	"slices"
	"strings"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// goalSum is a sum over visitors of a number that follows from the goal events of a visitor that count: from n, the
// number of these events, and from their total amounts.
type goalSum struct {
	name string
	// ofTotals is the sum over rows of visitors, each with n and the totals.
	ofTotals string
	// ofEvents is the sum over rows of events. Each event adds the number with it less the number without it: of the
	// visitor's events, number is the place, and value_before has the total of the earlier ones.
	ofEvents string
	to       func(*moments.Moments) any
}

// statementSums returns the sums over rows of visitors or of events.
func statementSums(all []goalSum, ofTotals bool) []sum {
	sums := make([]sum, len(all))
	for i, of := range all {
		sql := of.ofEvents
		if ofTotals {
			sql = of.ofTotals
		}
		sums[i] = sum{column{of.name, sql}, of.to}
	}
	return sums
}

// goalSums returns the sums of goal events.
func (c *counting) goalSums() []goalSum {
	all := []goalSum{
		{
			"converted_visitors", "toInt64(count())", "sumIf(sign, number = 1)",
			func(m *moments.Moments) any { return &m.Converted },
		},
		{
			"goals_reached", "toInt128(sum(n))", "toInt128(sum(sign))",
			func(m *moments.Moments) any { return m.Goals.Sum },
		},
		{
			"goals_reached_squares", "toInt128(sum(n * n))", "toInt128(sum(sign * (2 * number - 1)))",
			func(m *moments.Moments) any { return m.Goals.Squares },
		},
	}
	if c.selection.hasUnknown {
		all = append(all, goalSum{
			"unknown_values", "sum(unknown)", "sum(toInt64(sign * " + ofUnknown + "))",
			func(m *moments.Moments) any { return &m.Unknown },
		})
	}
	for k, of := range amountsOfGoals {
		known := c.totalsOf(k)
		if known.areZero {
			continue
		}
		all = append(all, of.sums(known)...)
		if k == 0 {
			all = append(all, goalSum{
				"value_times_goals", "sum(toInt128(total_value) * n)",
				"toInt128(sum(" + known.wideType() + "(sign * value) * number + sign * value_before))",
				func(m *moments.Moments) any { return m.ValueGoals },
			})
		}
	}
	return all
}

// amountOfGoals is a column of goal events whose total is summed for each visitor.
type amountOfGoals struct {
	column string
	of     func(*moments.Moments) *moments.Amounts
}

var amountsOfGoals = []amountOfGoals{
	{"value", func(m *moments.Moments) *moments.Amounts { return &m.Value }},
	{"profit", func(m *moments.Moments) *moments.Amounts { return &m.Profit }},
	{"extra_value", func(m *moments.Moments) *moments.Amounts { return &m.ExtraValue }},
}

// totalsOfAmount is what the cells of all visitors show of the visitors' totals of an amount: it is true of some of the
// visitors, too. Without it, reports of rows take half as much CPU time again.
type totalsOfAmount struct {
	areZero       bool // so the amount is not read
	neverZero     bool // or all are
	neverNegative bool
	fit64         bool // no sum of products of totals exceeds 64 bits
}

// totalsOf returns what is known of the totals of an amount of the counted goals.
func (c *counting) totalsOf(k int) totalsOfAmount {
	goals := c.of.countedGoals()
	known := totalsOfAmount{areZero: true, neverZero: true, neverNegative: true, fit64: true}
	for at, cell := range c.on.all {
		isAsked := at.Goal != 0 && (len(goals) == 0 || slices.Contains(goals, at.Goal))
		squares, nonzero, negative := cell.AmountTotals(k)
		hasTotals := fold.IsCounted(at.Variation) && squares != (fold.Int128{})
		if !isAsked || !hasTotals {
			continue
		}
		known.areZero = false
		known.neverZero = known.neverZero && nonzero == cell.CountAt(fold.Converted)
		known.neverNegative = known.neverNegative && negative == 0
		known.fit64 = known.fit64 && squares.IsInt64()
	}
	if !c.sumsWholeTotals() {
		known = totalsOfAmount{}
	}
	return known
}

// sumsWholeTotals reports whether the totals of the report are those of all events of the visitors.
func (c *counting) sumsWholeTotals() bool {
	isUncut := !c.selection.endsEarly && c.of.Interval == "" && !c.of.ConversionWindow.IsSet()
	return isUncut && c.asked.countsAll()
}

// sums returns the sums of an amount.
func (a *amountOfGoals) sums(known totalsOfAmount) []goalSum {
	write := strings.NewReplacer("AMOUNT", a.column, "WIDE", known.wideType()).Replace
	total := "total_" + a.column
	nonzero := "if(AMOUNT_squares = 0, 0, converted_visitors)"
	if !known.neverZero {
		nonzero = "sum(sign * ((AMOUNT_before + AMOUNT != 0) - (AMOUNT_before != 0)))"
	}
	negative := "toInt64(0)"
	if !known.neverNegative {
		negative = "sum(sign * ((AMOUNT_before + AMOUNT < 0) - (AMOUNT_before < 0)))"
	}
	return []goalSum{
		{
			a.column + "_sum", "sum(toInt128(" + total + "))", write("toInt128(sum(WIDE(sign * AMOUNT)))"),
			func(m *moments.Moments) any { return a.of(m).Sum },
		},
		{
			a.column + "_squares", "sum(toInt128(" + total + ") * " + total + ")",
			write("toInt128(sum(WIDE(sign * AMOUNT) * (2 * AMOUNT_before + AMOUNT)))"),
			func(m *moments.Moments) any { return a.of(m).Squares },
		},
		{
			a.column + "_nonzero", "toInt64(countIf(" + total + " != 0))", write(nonzero),
			func(m *moments.Moments) any { return &a.of(m).Nonzero },
		},
		{
			a.column + "_negative", "toInt64(countIf(" + total + " < 0))", write(negative),
			func(m *moments.Moments) any { return &a.of(m).Negative },
		},
	}
}

// wideType returns the function that converts to the type of sums of products.
func (t totalsOfAmount) wideType() string {
	if t.fit64 {
		return "toInt64"
	}
	return "toInt128"
}

// cappedSums returns what a cap removes from the sums.
func cappedSums() []goalSum {
	removed := func(m *moments.Moments) *moments.CappedRemainder {
		of := &m.CappedRemainder
		if of.Value.Sum == nil {
			of.Value.Sum, of.Value.Squares, of.Profit.Squares = new(big.Int), new(big.Int), new(big.Int)
			of.Profit.Sum = of.Value.Sum
		}
		return of
	}
	all := []struct {
		name, number string // of a visitor with the total value V and the total profit P above the cap C
		to           func(*moments.Moments) any
	}{
		{"capped_visitors", "toInt64(1)", func(m *moments.Moments) any { return &removed(m).Visitors }},
		{"value_removed", "toInt256(V) - C", func(m *moments.Moments) any { return removed(m).Value.Sum }},
		{
			"value_squares_removed", "toInt256(V) * V - toInt256(C) * C",
			func(m *moments.Moments) any { return removed(m).Value.Squares },
		},
		{
			"profit_squares_removed", "(toInt256(V) - C) * (2 * toInt256(P) - V + C)",
			func(m *moments.Moments) any { return removed(m).Profit.Squares },
		},
		{
			"profit_nonzero_removed", "toInt64(P != 0) - toInt64(P != V - C)",
			func(m *moments.Moments) any { return &removed(m).Profit.Nonzero },
		},
		{
			"profit_negative_removed", "toInt64(P < 0) - toInt64(P < V - C)",
			func(m *moments.Moments) any { return &removed(m).Profit.Negative },
		},
	}
	sums := make([]goalSum, len(all))
	for i, of := range all {
		zero := "toInt64(0)"
		if strings.Contains(of.number, "toInt256") {
			zero = "toInt256(0)"
		}
		number := func(value, profit string) string {
			write := strings.NewReplacer("V", value, "P", profit, "C", "{cap:Int64}")
			return write.Replace("if(V > C, " + of.number + ", " + zero + ")")
		}
		with := number("(value_before + value)", "(profit_before + profit)")
		without := number("value_before", "profit_before")
		sums[i] = goalSum{
			name: of.name, ofTotals: "sum(" + number("total_value", "total_profit") + ")",
			ofEvents: "sum(sign * (" + with + " - " + without + "))", to: of.to,
		}
	}
	return sums
}

// ageSums returns the sums of the ages of first conversions, over rows of events.
func ageSums() []goalSum {
	to := func(m *moments.Moments) *stats.Sums {
		if m.FirstAge.Sum == nil {
			m.FirstAge = stats.Sums{Sum: new(big.Int), Squares: new(big.Int)}
		}
		return &m.FirstAge
	}
	const first = "toInt128(sign * toInt64(number = 1))"
	return []goalSum{
		{"first_age", "", "sum(" + first + " * since_ms)", func(m *moments.Moments) any { return to(m).Sum }},
		{
			"first_age_squares", "", "sum(" + first + " * since_ms * since_ms)",
			func(m *moments.Moments) any { return to(m).Squares },
		},
	}
}

// sumsOfReport returns the sums of goal events of the report, with what a cap removes.
func (c *counting) sumsOfReport() []goalSum {
	all := c.goalSums()
	if c.asked.isCapped {
		all = append(all, cappedSums()...)
	}
	return all
}

// newGoalStatement returns a statement about goal events without sums. Several goals are summed apart.
func (c *counting) newGoalStatement(about string, keys []keyColumn) *statement {
	apart := *c
	apart.places.goals = c.of.goals
	s := apart.newStatement(about, slices.Concat(c.selection.divisions, keys)...)
	if c.asked.isCapped {
		s.params.add("cap", c.of.limit.Limit)
	}
	return s
}

// isOfAges reports whether the ages of first conversions are summed: a curve by age has them.
func (c *counting) isOfAges() bool { return c.of.ConversionWindow.IsSet() && c.of.Timing == plan.ByAge }

// goalStatement returns the statement of the sums of goal events from their rows: every event of a goal counts. Only
// rows that meet the conditions are read.
func (c *counting) goalStatement(keys []keyColumn, conditions ...string) *statement {
	s := c.newGoalStatement("one row per key: what the counted goal events add to sums over visitors", keys)
	s.where = slices.Concat(c.selection.goals, conditions)
	s.sums = statementSums(c.sumsOfReport(), false)
	if c.isOfAges() {
		s.sums = append(s.sums, statementSums(ageSums(), false)...)
	}
	return s
}

// cappedStatement returns the statement of what a cap removes from the sums of cells: it reads the goal events with a
// total above the cap before or after them.
func (c *counting) cappedStatement() *statement {
	s := c.goalStatement(nil, "greatest(value_before, value_before + value) > {cap:Int64}")
	s.sums = statementSums(cappedSums(), false)
	return s
}

// convertedStatement returns the statement of the sums of goal events that sums their rows for each visitor first.
func (c *counting) convertedStatement() *statement {
	s := c.newGoalStatement("one row per key: sums over visitors with goal events that count", nil)
	visitors := clauses{
		about:   "one row per visitor with goal events that count: their number and their total amounts",
		columns: []column{{"n", "sum(toInt64(sign))"}},
		from:    c.selection.Facts,
		where:   append(slices.Clone(c.selection.goals), counted),
		groups:  []string{"visitor_id"},
		having:  "n != 0",
	}
	var keys []column
	keys, s.keys = keysOfVisitor(s.keys)
	visitors.columns = append(visitors.columns, keys...)
	for _, amount := range amountsOfGoals {
		total := column{"total_" + amount.column, "sum(sign * " + amount.column + ")"}
		visitors.columns = append(visitors.columns, total)
	}
	if c.selection.hasUnknown {
		visitors.columns = append(visitors.columns, column{"unknown", "sum(toInt64(sign * " + ofUnknown + "))"})
	}
	s.from = subquery(visitors.text())
	s.sums = statementSums(c.sumsOfReport(), true)
	return s
}

// numberedStatement returns the statement of the series of goal events that numbers those that count again for each
// visitor, in the order of their times. All events of a time are in one bucket.
func (c *counting) numberedStatement() *statement {
	s := c.goalStatement(c.goalBucket())
	numbered := clauses{
		about: "one row per goal event that counts: its number among those of the visitor, " +
			"and sums over the earlier ones",
		columns: []column{
			{"", "* EXCEPT (number, value_before, profit_before, extra_value_before)"},
			{"number", "row_number() OVER of_visitor"},
		},
		from:  c.selection.Facts + " FINAL", // without rows that are cancelled
		where: append(s.where, counted),
		window: "of_visitor AS (PARTITION BY visitor_id ORDER BY since_ms " +
			"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
	}
	for _, amount := range amountsOfGoals {
		before := "sum(" + amount.column + ") OVER of_visitor - " + amount.column
		numbered.columns = append(numbered.columns, column{amount.column + "_before", before})
	}
	s.from = subquery(numbered.text())
	s.where = nil
	return s
}
