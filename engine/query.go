package engine

import (
	"embed"
	"strings"
	"text/template"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

// Query is a statement and the values it is bound to.
type Query struct {
	SQL    string
	Params []Param
}

// Param is the value of {Name:Type} in a statement.
type Param struct {
	Name  string
	Value any
}

func (q *Query) args() []any {
	args := make([]any, len(q.Params))
	for i, p := range q.Params {
		if instant, ok := p.Value.(time.Time); ok {
			args[i] = clickhouse.DateNamed(p.Name, instant, clickhouse.MilliSeconds)
			continue
		}
		args[i] = clickhouse.Named(p.Name, p.Value)
	}
	return args
}

// expr is trusted SQL: only this file makes one, of constants and the names
// of parameters. A user's text is never part of one.
type expr string

// momentsSlots are what differs between the reports of sql/moments.sql.
type momentsSlots struct {
	Dimension expr // of a view: the value it is broken down by
	Filters   expr // of a view: whether its visitor is in the report
	Goal      expr // of a goal event: whether it counts
}

// columns says where the attributes are.
var columns = map[string]expr{
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

// momentsQuery compiles the plan into the one statement that answers it.
func (p *Plan) momentsQuery() (*Query, error) {
	recentFrom, recentTo := p.recent()
	q := &Query{Params: append(p.subjectParams(),
		Param{"from", p.from()},
		Param{"to", p.to()},
		Param{"shares_since", p.SharesSince},
		Param{"recent_from", recentFrom},
		Param{"recent_to", recentTo})}
	slots := momentsSlots{Dimension: "''", Filters: "true", Goal: "true"}
	if p.Dimension != "" {
		slots.Dimension = "toString(" + columns[string(p.Dimension)] + ")"
	}
	if p.Goal != nil {
		slots.Goal = "goal_id = {goal_id:Int64}"
		q.Params = append(q.Params, Param{"goal_id", p.Goal.ID})
	}
	var conditions []string
	for _, filter := range p.Filters.Lists {
		param := "filter_" + columns[filter.Attribute]
		conditions = append(conditions, string(columns[filter.Attribute]+" IN {"+param+":Array(String)}"))
		q.Params = append(q.Params, Param{string(param), filter.Values})
	}
	for _, filter := range p.Filters.Texts {
		param := "filter_" + columns[filter.Attribute]
		operator, value := expr(" = "), filter.Pattern
		if strings.Contains(value, "*") {
			operator, value = " LIKE ", likePattern(value)
		}
		conditions = append(conditions, string(columns[filter.Attribute]+operator+"{"+param+":String}"))
		q.Params = append(q.Params, Param{string(param), value})
	}
	if len(conditions) > 0 {
		slots.Filters = expr(strings.Join(conditions, " AND "))
	}
	return q, q.render("moments.sql", slots)
}

// freshnessQuery asks what is stored of the subject.
func (p *Plan) freshnessQuery() (*Query, error) {
	q := &Query{Params: p.subjectParams()}
	return q, q.render("freshness.sql", struct{}{})
}

func (p *Plan) subjectParams() []Param {
	return []Param{
		{"website_id", p.Campaign.WebsiteID},
		{"subject", string(schema.SubjectCampaign)},
		{"subject_id", p.Campaign.ID},
		{"experiment_id", int64(0)},
	}
}

func (q *Query) render(file string, slots any) error {
	var text strings.Builder
	if err := sqlTemplates.ExecuteTemplate(&text, file, slots); err != nil {
		return err
	}
	q.SQL = text.String()
	return nil
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// likePattern writes a filter's pattern as LIKE reads it.
func likePattern(pattern string) string { return likeEscaper.Replace(pattern) }
