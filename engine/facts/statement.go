package facts

import (
	"strings"

	"lifthouse/engine/moments"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// statement is a SELECT statement as data: a row for each group of rows with equal keys, with sums. Its text consists
// of constants and of names of parameters, and never has a text of a request.
type statement struct {
	about  string // what a row is
	keys   []keyColumn
	sums   []sum
	from   string   // a table, or a subquery
	where  []string // conditions that all rows meet
	params parameters
	places places // what the key place numbers
	few    bool   // the statement reads few rows: one thread suffices
}

// keyColumn is a column by which a statement groups its rows, and where its value is scanned to.
type keyColumn struct {
	column
	kind string // type of the column
	to   func(*rowKey) any
}

// rowKey has the values of the key columns of a row.
type rowKey struct {
	key
	place  uint32 // see places
	period uint8
}

// sum is a column with a sum over the rows of a group, and where it is scanned to.
type sum struct {
	column
	to func(*moments.Moments) any
}

// text returns the text of the statement.
func (s *statement) text() string {
	c := clauses{about: s.about, from: s.from, where: s.where}
	for _, key := range s.keys {
		c.columns = append(c.columns, key.column)
		c.groups = append(c.groups, key.name)
	}
	for _, sum := range s.sums {
		c.columns = append(c.columns, sum.column)
	}
	return c.withSettings(s.few)
}

// settingsOf returns the settings of a statement. Compiling takes longer than most statements, and no projections or
// skip indexes apply.
func settingsOf(few bool) string {
	const settings = "SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, " +
		"compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, " +
		"enable_multiple_prewhere_read_steps = 0"
	if few {
		return settings + ", max_threads = 1"
	}
	return settings
}

// column is an expression with a name.
type column struct{ name, sql string }

func (c column) text() string {
	if c.name == "" || c.name == c.sql {
		return c.sql
	}
	return c.sql + " AS " + c.name
}

// clauses are the clauses of a SELECT.
type clauses struct {
	about   string // what a row is
	columns []column
	from    string
	where   []string
	groups  []string // names of columns
	having  string
	window  string // named windows
	order   string // and limit
}

// text returns the SELECT with a line for each column and each condition.
func (c *clauses) text() string {
	lines := []string{}
	if c.about != "" {
		lines = append(lines, "-- "+c.about)
	}
	columns := make([]string, len(c.columns))
	for i, column := range c.columns {
		columns[i] = "    " + column.text()
	}
	lines = append(lines, "SELECT", strings.Join(columns, ",\n"), "FROM "+c.from)
	if len(c.where) > 0 {
		lines = append(lines, "WHERE "+strings.Join(c.where, "\n    AND "))
	}
	if len(c.groups) > 0 {
		lines = append(lines, "GROUP BY "+strings.Join(c.groups, ", "))
	}
	if c.having != "" {
		lines = append(lines, "HAVING "+c.having)
	}
	if c.window != "" {
		lines = append(lines, "WINDOW "+c.window)
	}
	if c.order != "" {
		lines = append(lines, "ORDER BY "+c.order)
	}
	return strings.Join(lines, "\n")
}

// withSettings returns the SELECT as a whole statement.
func (c *clauses) withSettings(few bool) string { return c.text() + "\n" + settingsOf(few) }

// subquery returns a statement as the table of another one.
func subquery(text string) string { return "(\n" + indent(text) + "\n)" }

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// parameters are the values of the parameters of a statement. A store is sent only those that the text names.
type parameters []driver.NamedValue

func (p *parameters) add(name string, value any) {
	*p = append(*p, driver.NamedValue{Name: name, Value: value})
}
