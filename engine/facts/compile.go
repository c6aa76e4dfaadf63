package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lifthouse/engine/metric"
)

// compiler writes conditions and quantities of a metric as SQL. Values are only ever parameters, which it adds
// to the parameters.
type compiler struct {
	params    *parameters
	endsEarly bool   // the window of times excludes events at its end
	name      string // of what it writes, with which the names of the parameters begin
	n         int    // number of parameters
	// split is a text: of events and lines, only those whose text is the column split_value are read; nil: all are
	split *metric.Field
}

// param adds a parameter, and returns it as it is written in a statement.
func (c *compiler) param(kind string, value any) string {
	c.n++
	name := fmt.Sprintf("%s_%d", c.name, c.n)
	c.params.add(name, value)
	return "{" + name + ":" + kind + "}"
}

// lineColumn is a column of the lines. In a lambda over lines it is an argument, whose name no column has: profit is
// also an amount of the event.
type lineColumn struct{ field, column, argument string }

var lineColumns = []lineColumn{
	{"items.product", "item_product", "line_product"},
	{"items.variant", "item_variant", "line_variant"},
	{"items.category", "item_category", "line_category"},
	{"items.brand", "item_brand", "line_brand"},
	{"items.quantity", "item_quantity", "line_quantity"},
	{"items.revenue", "item_revenue", "line_revenue"},
	{"items.profit", "item_profit", "line_profit"},
}

// eventColumns are the columns of the amounts of an event.
var eventColumns = map[string]string{"value": "value", "profit": "profit", "extraValue": "extra_value"}

// text returns a text of a row: of a line, the argument of a lambda.
func (c *compiler) text(f metric.Field) string {
	switch f.Source {
	case metric.OfLine:
		return lineColumnOf(f).argument
	case metric.OfProperty:
		return c.label("properties", f.Name, "=([^\\0]*)")
	default: // an attribute
		if column, known := columns[f.Name]; known {
			return column
		}
		return c.label("custom", f.Name, "=([^\\0]*)")
	}
}

// label returns a label out of a column of joined labels; empty: the row has none. ClickHouse evaluates it once for
// each distinct text of the column.
func (c *compiler) label(column, name, value string) string {
	return "regexpExtract(" + column + ", " + c.param("String", labelPattern(name, value)) + ", 1)"
}

// labelPattern returns the expression that matches a label. Names have only letters, digits and _.
func labelPattern(name, value string) string { return "(?:^|\\0)" + name + value + "\\0" }

// number returns a number of a row, and a condition that it has the number; an empty condition: every row has it.
func (c *compiler) number(f metric.Field) (number, has string) {
	switch f.Source {
	case metric.OfLine:
		return lineColumnOf(f).argument, ""
	case metric.OfProperty:
		of := c.label("properties", f.Name, "#(-?[0-9]+)")
		return "toInt64OrZero(" + of + ")", of + " != ''"
	default:
		return eventColumns[f.Name], ""
	}
}

// lineColumnOf returns the column of a field of lines.
func lineColumnOf(f metric.Field) lineColumn {
	at := slices.IndexFunc(lineColumns, func(of lineColumn) bool { return of.field == f.Name })
	return lineColumns[at] // no other fields are of lines
}

// condition returns a condition of a row, or of a line if it reads lines, in which case it is the body of a lambda.
func (c *compiler) condition(of *metric.Condition) string {
	if of == nil {
		return "true"
	}
	switch of.Operator {
	case metric.And, metric.Or:
		parts := make([]string, len(of.Parts))
		for i, part := range of.Parts {
			parts[i] = c.condition(part)
		}
		return "(" + strings.Join(parts, " "+strings.ToUpper(string(of.Operator))+" ") + ")"
	case metric.Not:
		return "(NOT " + c.condition(of.Parts[0]) + ")"
	default:
		if of.Field.Number {
			return c.compareNumber(of)
		}
		return c.compareText(of)
	}
}

func (c *compiler) compareNumber(of *metric.Condition) string {
	number, has := c.number(of.Field)
	comparison := number + " IN " + c.param("Array(Int64)", of.Numbers)
	if of.Operator != metric.In {
		comparison = number + " " + string(of.Operator) + " " + c.param("Int64", of.Numbers[0])
	}
	if has == "" {
		return "(" + comparison + ")"
	}
	return "(" + has + " AND " + comparison + ")"
}

func (c *compiler) compareText(of *metric.Condition) string {
	text := c.text(of.Field)
	switch of.Operator {
	case metric.In:
		return "(" + text + " IN " + c.param("Array(String)", of.Texts) + ")"
	case metric.Like:
		return "(" + text + " LIKE " + c.param("String", likeEscaper.Replace(of.Texts[0])) + ")"
	default:
		return "(" + text + " " + string(of.Operator) + " " + c.param("String", of.Texts[0]) + ")"
	}
}

// lambda returns a lambda over the lines of a row with the columns that it is applied to: all that its body may name.
func lambda(body string) (function, arguments string) {
	var names, columns []string
	for _, of := range lineColumns {
		names = append(names, of.argument)
		columns = append(columns, of.column)
	}
	return "(" + strings.Join(names, ", ") + ") -> " + body, strings.Join(columns, ", ")
}

// events returns the condition of the rows that are of some events of a quantity.
func (c *compiler) events(e *metric.Events, within metric.Range) string {
	conditions := []string{"section = {goals:UInt64}"}
	if len(e.Goals) > 0 {
		conditions = append(conditions, "goal_id IN "+c.param("Array(Int64)", goalIDs(e.Goals)))
	}
	if within.From > 0 {
		conditions = append(conditions, "since_ms >= "+c.param("UInt64", within.From.Milliseconds()))
	}
	if within.IsSet() {
		conditions = append(conditions, "since_ms < "+c.param("UInt64", within.To.Milliseconds()))
	}
	if c.endsEarly {
		conditions = append(conditions, "toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}")
	}
	switch body, readsLines := c.where(e); {
	case body == "":
	case readsLines:
		function, arguments := lambda(body)
		conditions = append(conditions, "arrayExists("+function+", "+arguments+")")
	default:
		conditions = append(conditions, body)
	}
	return "(" + strings.Join(conditions, " AND ") + ")"
}

// where returns the condition of the events of a step, or of a line if readsLines is true; empty: there is none.
func (c *compiler) where(e *metric.Events) (body string, readsLines bool) {
	var parts []string
	if e.Where != nil {
		parts = append(parts, c.condition(e.Where))
		readsLines = e.Where.ReadsLines()
	}
	if c.split != nil {
		parts = append(parts, "("+c.text(*c.split)+" = split_value)")
		readsLines = readsLines || c.split.Source == metric.OfLine
	}
	return strings.Join(parts, " AND "), readsLines
}

// lineCondition returns the condition of the lines of which a quantity reads a field.
func (c *compiler) lineCondition(q *metric.Quantity) string {
	body, _ := c.where(&q.Steps[0])
	return cmp.Or(body, "true")
}

func goalIDs(goals []metric.Goal) []int64 {
	ids := make([]int64, len(goals))
	for i, goal := range goals {
		ids[i] = goal.ID
	}
	return ids
}

// compiled is a quantity of a visitor as SQL.
type compiled struct {
	rows    string // condition of the rows that it reads
	value   string // aggregate over these rows of a visitor
	isFinal bool   // the rows must not have cancelled ones: the aggregate is no sum
	last    string // of a funnel: condition of the rows of its last step; visitors without one are left out
}

// quantity compiles a quantity.
func (c *compiler) quantity(q *metric.Quantity) compiled {
	step := &q.Steps[0]
	if len(step.Goals) > 0 && step.Goals[0].Action != "" {
		return c.actions(q)
	}
	if q.Call == metric.Funnel {
		return c.funnel(q)
	}
	rows := c.events(step, q.Within)
	switch q.Call {
	case metric.Converted:
		least := c.param("Int64", q.AtLeast)
		return compiled{rows: rows, value: "toInt64(sum(toInt64(sign) * " + rows + ") >= " + least + ")"}
	case metric.Count:
		return compiled{rows: rows, value: "sum(toInt64(sign) * " + rows + ")"}
	case metric.Distinct:
		return compiled{rows: rows, value: c.distinct(q, rows), isFinal: true}
	default:
		return c.numbers(q, rows)
	}
}

// numbers compiles the total or the largest of a number.
func (c *compiler) numbers(q *metric.Quantity, rows string) compiled {
	isMax := q.Call == metric.Max
	if q.Field.Source == metric.OfLine {
		number, _ := c.number(q.Field)
		matches := c.lineCondition(q)
		if isMax {
			function, arguments := lambda("(" + matches + ", " + number + ")")
			values := "arrayMap(x -> x.2, arrayFilter(x -> x.1, arrayMap(" + function + ", " + arguments + ")))"
			return compiled{rows: rows, value: "maxArrayIf(" + values + ", " + rows + ")", isFinal: true}
		}
		function, arguments := lambda("if(" + matches + ", " + number + ", 0)")
		return compiled{rows: rows, value: "sumIf(sign * arraySum(" + function + ", " + arguments + "), " + rows + ")"}
	}
	number, has := c.number(q.Field)
	if has != "" {
		rows = "(" + rows + " AND " + has + ")"
	}
	if isMax {
		return compiled{rows: rows, value: "maxIf(" + number + ", " + rows + ")", isFinal: true}
	}
	return compiled{rows: rows, value: "sumIf(sign * " + number + ", " + rows + ")"}
}

// distinct compiles the number of different texts.
func (c *compiler) distinct(q *metric.Quantity, rows string) string {
	text := c.text(q.Field)
	if q.Field.Source != metric.OfLine {
		return "toInt64(uniqExactIf(" + text + ", " + rows + " AND " + text + " != ''))"
	}
	function, arguments := lambda("if(" + c.lineCondition(q) + ", toString(" + text + "), '')")
	texts := "arrayFilter(x -> x != '', arrayMap(" + function + ", " + arguments + "))"
	return "toInt64(uniqExactArrayIf(" + texts + ", " + rows + "))"
}

// noWindow is the window of a funnel without one, in milliseconds: longer than all time.
const noWindow = 1 << 50

// funnel compiles a funnel. Of events in the same millisecond, those of later steps precede those of earlier ones, so
// none continues the other, and each counts: windowFunnel alone ends at the first of several events of a time.
func (c *compiler) funnel(q *metric.Quantity) compiled {
	window := int64(noWindow)
	if q.Within.IsSet() {
		window = q.Within.To.Milliseconds()
	}
	var steps, places []string
	for i := range q.Steps {
		step := c.events(&q.Steps[i], metric.Range{})
		steps = append(steps, step)
		places = append(places, fmt.Sprintf("%s, %d", step, metric.MaxSteps-1-i))
	}
	time := fmt.Sprintf("%d * since_ms + multiIf(%s, 0)", metric.MaxSteps, strings.Join(places, ", "))
	value := fmt.Sprintf("toInt64(windowFunnel(%d, 'strict_increase')(toUInt64(%s), %s) = %d)",
		metric.MaxSteps*window, time, strings.Join(steps, ", "), len(steps))
	rows := "(" + strings.Join(steps, " OR ") + ")"
	return compiled{rows: rows, value: value, isFinal: true, last: steps[len(steps)-1]}
}

// kindsOfActions are the values of the column later_kinds.
var kindsOfActions = map[metric.Action]uint32{
	"view": 1, "click": 2, "submit": 3, "completion": 4, "conversion": 5, "contact": 6,
}

// actions compiles a number of actions, or whether there are enough of them. The row of a visitor has them; the first
// view is at the age 0.
func (c *compiler) actions(q *metric.Quantity) compiled {
	var kinds []uint32
	for _, goal := range q.Steps[0].Goals {
		kinds = append(kinds, kindsOfActions[goal.Action])
	}
	conditions := []string{"kind IN " + c.param("Array(UInt32)", kinds)}
	if q.Within.IsSet() {
		conditions = append(conditions, "ms >= "+c.param("UInt64", q.Within.From.Milliseconds()),
			"ms < "+c.param("UInt64", q.Within.To.Milliseconds()))
	}
	if c.endsEarly {
		conditions = append(conditions, "toUnixTimestamp64Milli(first_time) + ms < {to_ms:Int64}")
	}
	const rows = "(section = {visitors:UInt64})"
	count := "arrayCount((ms, kind) -> " + strings.Join(conditions, " AND ") +
		", arrayPushFront(later_ms, toUInt64(0)), arrayPushFront(later_kinds, toUInt8(1)))"
	count = "sumIf(toInt64(sign) * toInt64(" + count + "), " + rows + ")"
	if q.Call == metric.Converted {
		count = "toInt64(" + count + " >= " + c.param("Int64", q.AtLeast) + ")"
	}
	return compiled{rows: rows, value: count}
}
