package source

import (
	"embed"
	"math/big"
	"slices"
	"strings"
	"text/template"

	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// ParseTemplates returns the templates of sql/capped_remainder.sql. The caller may add templates.
func ParseTemplates() *template.Template {
	type pair struct{ V, P string }
	functions := template.FuncMap{"pair": func(value, profit string) pair { return pair{value, profit} }}
	return template.Must(template.New("").Option("missingkey=error").Funcs(functions).ParseFS(sqlFiles,
		"sql/capped_remainder.sql"))
}

// Expr is trusted SQL. It consists of constants and parameter names, and never has user input.
type Expr string

// Slots are the variable parts of the files in sql/.
type Slots struct {
	Widget    bool // also count clicks, submits, completions, conversions and contacts
	Dimension Expr // of a view: the value of the dimension
	Filters   Expr // of a view: whether its visitor is in the report
	Goals     Expr // of an event: whether it is a goal that counts
	Cap       bool // total values of visitors are limited to {cap}
}

// Columns maps attributes to columns.
var Columns = map[string]Expr{
	"device":         "device",
	"browser":        "browser",
	"os":             "os",
	"country":        "country",
	"region":         "region",
	"city":           "city",
	"channel":        "channel",
	"referrer":       "referrer",
	"utmSource":      "utm_source",
	"utmMedium":      "utm_medium",
	"utmCampaign":    "utm_campaign",
	"utmContent":     "utm_content",
	"utmTerm":        "utm_term",
	"firstVisitPage": "first_visit_page",
	"visitorType":    "visitor_type",
}

// VisitorFilters sets the slot of the filters on first views, and adds their parameters.
func (q *Statement) VisitorFilters(filters *query.Filters, s *Slots) {
	var conditions []string
	for _, filter := range filters.Lists {
		param := "filter_" + Columns[filter.Attribute]
		conditions = append(conditions, string(Columns[filter.Attribute]+" IN {"+param+":Array(String)}"))
		q.Params = append(q.Params, Param{string(param), filter.Values})
	}
	for _, filter := range filters.Texts {
		param := "filter_" + Columns[filter.Attribute]
		operator, value := Expr(" = "), filter.Pattern
		if strings.Contains(value, "*") {
			operator, value = " LIKE ", likeEscaper.Replace(value)
		}
		conditions = append(conditions, string(Columns[filter.Attribute]+operator+"{"+param+":String}"))
		q.Params = append(q.Params, Param{string(param), value})
	}
	if len(conditions) > 0 {
		s.Filters = Expr(strings.Join(conditions, " AND "))
	}
}

// SetCap sets the slot of the cap, if there is a limit.
func (q *Statement) SetCap(limit int64, s *Slots) {
	if s.Cap = limit > 0; s.Cap {
		q.Params = append(q.Params, Param{"cap", limit})
	}
}

// ValueFilters adds the filters on the values of goal events to the slot of goals, and their parameters. bounds are
// those of the requested z-score; nil: none.
func (q *Statement) ValueFilters(filters *query.Filters, bounds *moments.Outliers, s *Slots) {
	if filters.GoalValue != nil {
		s.Goals += " AND value >= {goal_value:Int64}"
		q.Params = append(q.Params, Param{"goal_value", leastUnits(filters.GoalValue)})
	}
	if bounds != nil && !bounds.Open {
		s.Goals += " AND value >= {outlier_least:Int64} AND value <= {outlier_most:Int64}"
		q.Params = append(q.Params, Param{"outlier_least", bounds.Least}, Param{"outlier_most", bounds.Most})
	}
}

// leastUnits rounds an amount up to 1/schema.MoneyScale.
func leastUnits(amount *big.Rat) int64 {
	const most = schema.MaxMoney*schema.MoneyScale + 1
	units := new(big.Rat).Mul(amount, new(big.Rat).SetInt64(schema.MoneyScale))
	up := new(big.Int).Add(units.Num(), new(big.Int).Sub(units.Denom(), big.NewInt(1)))
	up.Div(up, units.Denom())
	if up.Cmp(big.NewInt(most)) > 0 {
		return most
	}
	if up.Cmp(big.NewInt(-most)) < 0 {
		return -most
	}
	return up.Int64()
}

// likeEscaper converts the pattern of a filter to a LIKE pattern.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// RemainderTargets returns the destinations in m for the columns of sql/capped_remainder.sql, which are the last ones
// of a capped report. It returns nil if the report is not capped.
func RemainderTargets(found driver.Rows, m *moments.CappedRemainder) []any {
	if !slices.Contains(found.Columns(), "capped_visitors") {
		return nil
	}
	value, profit := &m.Value, &m.Profit
	value.Sum, value.Squares, profit.Squares = new(big.Int), new(big.Int), new(big.Int)
	profit.Sum = value.Sum
	return []any{&m.Visitors, value.Sum, value.Squares, profit.Squares, &profit.Nonzero, &profit.Negative}
}
