package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Plan is a request whose meaning is settled against the catalogue: what is
// counted, for whom, and who is compared with whom. It names no table.
type Plan struct {
	Request
	Subject           Subject
	Rules             Rules
	Goal              *catalogue.Goal // nil: all goals count
	Variations        []Variation     // control first
	MultipleExposures string          // catalogue.ExcludeCrossovers or FirstVariation
	SharesSince       time.Time       // since when the variations' shares hold
	DataThrough       time.Time       // the report's now: acceptance of the subject's last event; zero: it has none
	Outliers          *Outliers       // bounds of the values that count, where the request asks for a z-score

	shards       *shards   // nil: one server
	newest       time.Time // event; zero: there is none
	events       uint64    // how many are stored of the subject, about
	top          int       // how many values of the dimension stand alone
	primaryGoal  int64
	controlShare int
}

// Variation is one alternative of the report.
type Variation struct {
	ID      int64
	Name    string
	Control bool
	Share   int // relative weight
}

// openFrom and openTo stand for the open ends of a window: the ends of what
// the time column holds.
var (
	openFrom = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	openTo   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// NewPlan resolves a request against what its account owns. The error is an
// InvalidError or a NotFoundError.
func NewPlan(r Request, owned *catalogue.Owned) (*Plan, error) {
	if _, known := owned.Goals[r.GoalID]; r.GoalID != 0 && !known {
		return nil, unknownGoal(r.GoalID)
	}
	plan := &Plan{Request: r, top: maxBreakdown}
	if err := plan.resolve(owned); err != nil {
		return nil, err
	}
	return plan, plan.resolveGoal(owned)
}

func unknownGoal(id int64) error {
	value := fmt.Sprint(id)
	if id == NoID {
		value = "0, or more digits than an id has"
	}
	return &InvalidError{Code: UnknownGoal, Faults: []Fault{
		{paramGoal, value, "want the id of a goal of the same website"},
	}}
}

func (p *Plan) resolveGoal(owned *catalogue.Owned) error {
	id := cmp.Or(p.GoalID, p.primaryGoal)
	if id == 0 {
		return nil
	}
	goal, known := owned.Goals[id]
	if !known || goal.WebsiteID != p.Subject.WebsiteID {
		return unknownGoal(id)
	}
	p.Goal = &goal
	return nil
}

// equalShares is how far two shares may lie apart to mean the same: whole
// percentages cannot say thirds.
const equalShares = 0.015

// defaultCrossovers excludes visitors of several variations where the expected
// shares are equal; elsewhere exclusion would bias the comparison.
func (p *Plan) defaultMultipleExposures() string {
	taken := slices.DeleteFunc(p.expectedShares(), func(share float64) bool { return share == 0 })
	if len(taken) > 0 && slices.Max(taken)-slices.Min(taken) <= equalShares {
		return catalogue.ExcludeMultiExposed
	}
	return catalogue.FirstVariation
}

// split returns how the traffic is meant to be divided, and the ids in its
// order: variation 0 first, whether or not it is in the report.
func (p *Plan) split() (stats.Split, []int64) {
	split, ids := stats.Split{Control: float64(p.controlShare)}, []int64{0}
	for _, v := range p.Variations {
		if v.ID != 0 {
			split.Variations = append(split.Variations, float64(v.Share))
			ids = append(ids, v.ID)
		}
	}
	return split, ids
}

// expectedShares are the shares of the traffic that the variations should
// get, in their order; all 0 where the catalogue's make no sense.
func (p *Plan) expectedShares() []float64 {
	split, ids := p.split()
	expected := split.Expected()
	shares := make([]float64, len(p.Variations))
	for i, v := range p.Variations {
		if at := slices.Index(ids, v.ID); at < len(expected) {
			shares[i] = expected[at]
		}
	}
	return shares
}

// recentDays are the full days before DataThrough that tell how fast visitors
// come in: a week, because days of the week differ.
const recentDays = 7

// recent returns the span of those days.
func (p *Plan) recent() (from, to time.Time) {
	to = orElse(p.DataThrough, openFrom).UTC().Truncate(24 * time.Hour)
	return to.AddDate(0, 0, -recentDays), to
}

// from returns the window's start, and to its end, which is outside.
func (p *Plan) from() time.Time { return orElse(p.Filters.From, openFrom) }

func (p *Plan) to() time.Time { return orElse(p.Filters.To, openTo) }

func orElse(t, instead time.Time) time.Time {
	if t.IsZero() {
		return instead
	}
	return t
}

// String prints the plan for people and for golden files.
func (p *Plan) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("subject", "%s %d of website %d", p.Subject.Kind, p.Subject.ID, p.Subject.WebsiteID)
	if p.Operation == ExperimentResults {
		line("experiment", "%d", p.Subject.ExperimentID)
	}
	if p.Goal == nil {
		line("goal", "all")
	} else {
		line("goal", "%d %q", p.Goal.ID, p.Goal.Name)
	}
	line("metric", "%s", cmp.Or(string(p.Metric), "none is compared"))
	line("dimension", "%s", cmp.Or(string(p.Dimension), "none"))
	line("interval", "%s", cmp.Or(string(p.Interval), "none"))
	line("population", "first exposed in [%s, %s)", formatInstant(p.from()), formatInstant(p.to()))
	for _, filter := range p.Filters.Lists {
		line("filter", "%s in %q", filter.Attribute, filter.Values)
	}
	for _, filter := range p.Filters.Texts {
		line("filter", "%s like %q", filter.Attribute, filter.Pattern)
	}
	if p.Filters.GoalValue != nil {
		line("filter", "goal value >= %s", p.Filters.GoalValue.RatString())
	}
	if p.Filters.ZScore != 0 {
		line("filter", "goal value within %v standard deviations of the mean", p.Filters.ZScore)
	}
	line("crossovers", "%s", p.MultipleExposures)
	for _, v := range p.Variations {
		role := ""
		if v.Control {
			role = ", control"
		}
		line("variation", "%d %q share %d%s", v.ID, v.Name, v.Share, role)
	}
	return b.String()
}
