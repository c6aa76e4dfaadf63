package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"lifthouse/engine/metric"
	"lifthouse/schema"
)

// File is a catalogue file, the input of `lifthouse apply`.
type File struct {
	Accounts []Account `yaml:"accounts"`

	// CorrectShares replaces the recorded history of shares: the shares of the file apply from the beginning.
	CorrectShares bool `yaml:"-"`

	// ReplacePlans makes the plans of the file apply from the beginning, as if they had been declared before the first
	// view. Only simulations may set it: they ask many questions of the same events.
	ReplacePlans bool `yaml:"-"`

	// Prune archives the resources that the file does not name.
	Prune bool `yaml:"-"`

	// IsRemote says that a client sent the file, which must not name files of the server.
	IsRemote bool `yaml:"-"`

	// AccountID limits the file to one account: the file must not declare another one, and Prune archives only
	// resources of this account. 0: no limit.
	AccountID int64 `yaml:"-"`

	// Replaces reports whether the file may replace a version of the account AccountID (AccountResources.Version). nil:
	// any version.
	Replaces func(version uint64) bool `yaml:"-"`

	read Document // what ReadYAML found
}

// Account owns websites and tokens.
type Account struct {
	ID       int64     `yaml:"id" json:"id"`
	Name     string    `yaml:"name" json:"name"`
	Logo     string    `yaml:"logo,omitempty" json:"logo,omitempty"` // id of a stored picture; empty: none
	Websites []Website `yaml:"websites,omitempty" json:"-"`
	Webhooks []Webhook `yaml:"webhooks,omitempty" json:"-"`
}

// pictures returns the ids of the pictures that an account declares.
func (a *Account) pictures() (ids []string) {
	ids = appendPictures(ids, a.Logo)
	for i := range a.Websites {
		for k := range a.Websites[i].Campaigns {
			ids = appendPictures(ids, a.Websites[i].Campaigns[k].Pictures()...)
		}
		for k := range a.Websites[i].Widgets {
			ids = appendPictures(ids, a.Websites[i].Widgets[k].Pictures()...)
		}
	}
	return ids
}

// appendPictures adds the ids of pictures that are not empty.
func appendPictures(to []string, ids ...string) []string {
	for _, id := range ids {
		if id != "" {
			to = append(to, id)
		}
	}
	return to
}

// Pictures returns the ids of the stored pictures of a campaign.
func (c *Campaign) Pictures() []string {
	ids := appendPictures(nil, c.ControlPicture)
	for i := range c.Variations {
		ids = appendPictures(ids, c.Variations[i].Picture)
	}
	return ids
}

// Pictures returns the ids of the stored pictures of a widget and its experiments.
func (w *Widget) Pictures() (ids []string) {
	for i := range w.Variations {
		ids = appendPictures(ids, w.Variations[i].Picture)
	}
	for i := range w.Experiments {
		for k := range w.Experiments[i].Variations {
			ids = appendPictures(ids, w.Experiments[i].Variations[k].Picture)
		}
	}
	return ids
}

// Pictures returns the ids of the logo and of the stored pictures of what an account owns.
func (o *AccountResources) Pictures() []string {
	ids := appendPictures(nil, o.Logo)
	for _, campaign := range o.Campaigns {
		ids = append(ids, campaign.Pictures()...)
	}
	for _, widget := range o.Widgets {
		ids = append(ids, widget.Pictures()...)
	}
	return ids
}

// Website owns goals, targets, campaigns and widgets. Its id is unique across all accounts, because events contain only
// the website id.
type Website struct {
	ID        int64      `yaml:"id" json:"id"`
	Domain    string     `yaml:"domain" json:"domain"`
	Currency  string     `yaml:"currency,omitempty" json:"currency,omitempty"` // ISO 4217, of all amounts
	Timezone  string     `yaml:"timezone,omitempty" json:"timezone,omitempty"` // IANA name, in which dates of requests begin; empty: UTC
	Ignored   []string   `yaml:"ignored,omitempty" json:"ignored,omitempty"`   // campaigns in events that are not to be declared
	Metrics   []Metric   `yaml:"metrics,omitempty" json:"metrics,omitempty"`
	Goals     []Goal     `yaml:"goals,omitempty" json:"-"`
	Targets   []Target   `yaml:"targets,omitempty" json:"-"`
	Campaigns []Campaign `yaml:"campaigns,omitempty" json:"-"`
	Widgets   []Widget   `yaml:"widgets,omitempty" json:"-"`
}

// Goal is an action that a visitor may complete.
type Goal struct {
	ID        int64  `yaml:"id" json:"id"`
	Key       string `yaml:"key,omitempty" json:"key,omitempty"` // from which the id is computed; empty: none
	WebsiteID int64  `yaml:"-" json:"websiteId"`
	Name      string `yaml:"name" json:"name"`
	System    bool   `yaml:"system,omitempty" json:"system"`
	Action    string `yaml:"action,omitempty" json:"action,omitempty"`
	Default   bool   `yaml:"default,omitempty" json:"default"`
	Value     *int64 `yaml:"value,omitempty" json:"value,omitempty"`
	// ValueCap limits the total value of each visitor in reports of this goal.
	ValueCap *schema.Cap `yaml:"valueCap,omitempty" json:"valueCap,omitempty"`
	// ConversionWindow limits the age of the events that count in reports and looks of this goal; nil: no limit.
	ConversionWindow *schema.ConversionWindow `yaml:"conversionWindow,omitempty" json:"conversionWindow,omitempty"`
	// Settle is the time after the window, or without one after the order, in which orders still change; nil: none.
	Settle *schema.Settle `yaml:"settle,omitempty" json:"settle,omitempty"`
}

// Target is an audience.
type Target struct {
	ID        int64  `yaml:"id" json:"id"`
	WebsiteID int64  `yaml:"-" json:"websiteId"`
	Name      string `yaml:"name" json:"name"`

	CreateDate *Date `yaml:"createDate,omitempty" json:"-"` // only for a new target
}

// Campaign is a personalization or an experiment with a split of the traffic.
type Campaign struct {
	ID                int64  `yaml:"id" json:"id"`
	Key               string `yaml:"key,omitempty" json:"key,omitempty"` // from which the id is computed; empty: none
	WebsiteID         int64  `yaml:"-" json:"websiteId"`
	Name              string `yaml:"name" json:"name"`
	Description       string `yaml:"description,omitempty" json:"description,omitempty"`
	Type              string `yaml:"type" json:"type" default:"personalization"`
	ControlShare      int    `yaml:"controlShare" json:"controlShare" default:"5"`
	TrafficAllocation *int   `yaml:"trafficAllocation,omitempty" json:"trafficAllocation,omitempty"` // nil: not declared
	TargetID          int64  `yaml:"targetId,omitempty" json:"targetId,omitempty"`
	TargetMode        string `yaml:"targetMode" json:"targetMode" default:"live"`
	PrimaryGoalID     int64  `yaml:"primaryGoalId,omitempty" json:"primaryGoalId,omitempty"`
	// of GoalMetrics, or the key of a metric of the website; empty: goalConversionRate
	PrimaryMetric     string  `yaml:"primaryMetric,omitempty" json:"primaryMetric,omitempty"`
	SignificanceLevel int     `yaml:"significanceLevel" json:"significanceLevel" default:"90"`
	Methodology       string  `yaml:"methodology" json:"methodology" default:"frequentist"`
	Power             int     `yaml:"power" json:"power" default:"80"`
	MDE               float64 `yaml:"mde" json:"mde" default:"20"`
	LookPlan          `yaml:",inline"`
	Prior             *Prior `yaml:"prior,omitempty" json:"prior,omitempty"` // nil: a weak one, see plan.WeakPrior
	MultipleExposures string `yaml:"multipleExposures,omitempty" json:"multipleExposures,omitempty"`
	Goals             *Goals `yaml:"goals,omitempty" json:"goals,omitempty"`
	// before a decision to ship; nil: DefaultMinDays
	MinDays *int `yaml:"minDays,omitempty" json:"minDays,omitempty"`
	// Questions are those whose answers need less evidence, see package metric.
	Questions []string `yaml:"questions,omitempty" json:"questions,omitempty"`
	// FollowUp reads the later orders of the visitors; nil: none.
	FollowUp *FollowUp `yaml:"followUp,omitempty" json:"followUp,omitempty"`
	// AutoStopRollBack, AutoStopInvalid or AutoStopBoth; empty: only people stop the campaign
	AutoStop   string   `yaml:"autoStop,omitempty" json:"autoStop,omitempty"`
	Hypothesis string   `yaml:"hypothesis,omitempty" json:"hypothesis,omitempty"`
	Owner      string   `yaml:"owner,omitempty" json:"owner,omitempty"`
	Tags       []string `yaml:"tags,omitempty" json:"tags,omitempty"`
	// ControlPicture is the id of a stored picture of control; empty: none.
	ControlPicture string      `yaml:"controlPicture,omitempty" json:"controlPicture,omitempty"`
	Variations     []Variation `yaml:"variations,omitempty" json:"variations"`
	Initial        `yaml:",inline" json:"-"`
}

// DefaultAllocation is the traffic allocation that the API shows for a campaign which does not declare one.
const DefaultAllocation = 10

// Learned is a prior in a catalogue file that is learned from past campaigns when the first view arrives.
const Learned = "learned"

// Prior is the normal prior of the lifts of a Bayesian campaign, in per cent.
type Prior struct {
	Mean              float64 `yaml:"mean" json:"mean"`
	StandardDeviation float64 `yaml:"standardDeviation" json:"standardDeviation"`
	Campaigns         *int    `yaml:"-" json:"campaigns,omitempty"` // from which it was learned; nil: from none
	IsLearned         bool    `yaml:"-" json:"learned,omitempty"`   // it is to be learned, so the numbers are 0
}

// String returns the prior as in a catalogue file.
func (p *Prior) String() string {
	if p.IsLearned {
		return Learned
	}
	return fmt.Sprintf("{mean: %v, standardDeviation: %v}", p.Mean, p.StandardDeviation)
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Prior) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*p = Prior{IsLearned: true} // no other text passes Document.checkNode
		return nil
	}
	type numbers Prior
	return node.Decode((*numbers)(p))
}

// MarshalYAML implements yaml.Marshaler.
func (p *Prior) MarshalYAML() (any, error) {
	if p.IsLearned {
		return Learned, nil
	}
	type numbers Prior
	return (*numbers)(p), nil
}

// Initial is the initial state of a campaign or a widget. Applying the file to an existing resource does not change its
// state.
type Initial struct {
	Active     bool  `yaml:"active,omitempty"`
	CreateDate *Date `yaml:"createDate,omitempty"`
	StartDate  *Date `yaml:"startDate,omitempty"`
	EndDate    *Date `yaml:"endDate,omitempty"`
}

// Variation is a variation of a campaign. Control is not declared.
type Variation struct {
	ID       int64  `yaml:"id" json:"id"`
	Key      string `yaml:"key,omitempty" json:"key,omitempty"` // from which the id is computed; empty: none
	Name     string `yaml:"name" json:"name"`
	Share    int    `yaml:"share" json:"share"`
	TargetID int64  `yaml:"targetId,omitempty" json:"targetId,omitempty"`
	Order    int    `yaml:"order,omitempty" json:"order"`
	Picture  string `yaml:"picture,omitempty" json:"picture,omitempty"`   // id of a stored picture; empty: none
	ImageURL string `yaml:"imageUrl,omitempty" json:"imageUrl,omitempty"` // of a picture; display only
}

// Widget is an on-site element.
type Widget struct {
	ID            int64             `yaml:"id" json:"id"`
	WebsiteID     int64             `yaml:"-" json:"websiteId"`
	Name          string            `yaml:"name" json:"name"`
	Type          string            `yaml:"type" json:"type"`
	PrimaryGoalID int64             `yaml:"primaryGoalId,omitempty" json:"primaryGoalId,omitempty"`
	Variations    []WidgetVariation `yaml:"variations,omitempty" json:"variations"`
	Experiments   []Experiment      `yaml:"experiments,omitempty" json:"experiments"`
	Initial       `yaml:",inline" json:"-"`
}

// WidgetVariation is a variation of a widget or of one of its experiments.
type WidgetVariation struct {
	ID       int64  `yaml:"id" json:"id"`
	Name     string `yaml:"name" json:"name"`
	Share    int    `yaml:"share" json:"share" default:"100"`
	Picture  string `yaml:"picture,omitempty" json:"picture,omitempty"`
	ImageURL string `yaml:"imageUrl,omitempty" json:"imageUrl,omitempty"`
}

// Experiment compares variations of a widget.
type Experiment struct {
	ID            int64    `yaml:"id" json:"id"`
	Name          string   `yaml:"name" json:"name"`
	PrimaryMetric string   `yaml:"primaryMetric,omitempty" json:"primaryMetric,omitempty"`
	ControlShare  int      `yaml:"controlShare" json:"controlShare"`
	Active        bool     `yaml:"active,omitempty" json:"active"`
	CreateDate    *Date    `yaml:"createDate,omitempty" json:"createDate,omitempty"`
	StartDate     *Date    `yaml:"startDate,omitempty" json:"startDate,omitempty"`
	EndDate       *Date    `yaml:"endDate,omitempty" json:"endDate,omitempty"`
	Goals         *Goals   `yaml:"goals,omitempty" json:"goals,omitempty"`
	MinDays       *int     `yaml:"minDays,omitempty" json:"minDays,omitempty"`
	Questions     []string `yaml:"questions,omitempty" json:"questions,omitempty"`
	LookPlan      `yaml:",inline"`
	Variations    []WidgetVariation `yaml:"variations,omitempty" json:"variations"`
}

// LookPlan sets when the looks of a campaign or an experiment take place, and how long it is planned to run.
type LookPlan struct {
	// 0: DefaultPlannedDays
	PlannedDays int `yaml:"plannedDays,omitempty" json:"plannedDays,omitempty"`
	// number of visitors that replaces the number of days as the clock; 0: none
	PlannedVisitors int64 `yaml:"plannedVisitors,omitempty" json:"plannedVisitors,omitempty"`
	// hours from the end of a look to its recording; nil: DefaultMaturity
	Maturity *int `yaml:"maturity,omitempty" json:"maturity,omitempty"`
	// a lift, in per cent; 0: none
	EquivalenceMargin float64 `yaml:"equivalenceMargin,omitempty" json:"equivalenceMargin,omitempty"`
}

// The defaults of a LookPlan: it plans four weeks, and a look waits one day for late events.
const (
	DefaultPlannedDays = 28
	DefaultMaturity    = 24
)

// DefaultMinDays is the default number of full days before a decision to ship. It covers every day of the week.
const DefaultMinDays = 7

// The values of Campaign.Methodology.
const (
	Frequentist = "frequentist"
	Bayesian    = "bayesian"
)

// The values of Campaign.MultipleExposures: how multi-exposed visitors are counted. If it is empty, the report chooses
// according to the shares.
const (
	ExcludeMultiExposed = "exclude"
	FirstVariation      = "first"
)

// DeclaredShares returns the percentage of control, with key 0, and the weights by which the variations divide the
// rest. The weights need not add up to 100.
func (c *Campaign) DeclaredShares() Shares {
	shares := Shares{0: c.ControlShare}
	for _, v := range c.Variations {
		shares[v.ID] = v.Share
	}
	return shares
}

// DeclaredShares is like Campaign.DeclaredShares.
func (e *Experiment) DeclaredShares() Shares {
	shares := Shares{0: e.ControlShare}
	for _, v := range e.Variations {
		shares[v.ID] = v.Share
	}
	return shares
}

// Goals are the roles of goals in a campaign or in an experiment of a widget.
type Goals struct {
	Primary    int64           `yaml:"primary,omitempty" json:"primary,omitempty"` // equals primaryGoalId; 0: omitted
	Secondary  []SecondaryGoal `yaml:"secondary,omitempty" json:"secondary,omitempty"`
	Guardrails []Guardrail     `yaml:"guardrails,omitempty" json:"guardrails,omitempty"`
}

// SecondaryGoal is a metric of a goal that should improve but does not decide.
type SecondaryGoal struct {
	GoalID    int64  `yaml:"goalId,omitempty" json:"goalId,omitempty"`          // 0: a metric of the website
	Metric    string `yaml:"metric" json:"metric" default:"goalConversionRate"` // or the key of a metric of the website
	Direction string `yaml:"direction" json:"direction" default:"up"`           // up or down: the direction that is good
	// Window replaces the conversion window of the goal; nil: that of the goal.
	Window *schema.ConversionWindow `yaml:"window,omitempty" json:"window,omitempty"`
	// Settle replaces the time of the goal in which orders still change; nil: that of the goal.
	Settle *schema.Settle `yaml:"settle,omitempty" json:"settle,omitempty"`
}

// Guardrail is a metric of a goal that must not be harmed by more than a margin. If both margins are 0, the campaign's
// minimum detectable effect is the margin.
type Guardrail struct {
	GoalID int64   `yaml:"goalId,omitempty" json:"goalId,omitempty"`          // 0: a metric of the website
	Metric string  `yaml:"metric" json:"metric" default:"goalConversionRate"` // or the key of a metric of the website
	Margin float64 `yaml:"margin,omitempty" json:"margin,omitempty"`          // a lift, in per cent
	// in the unit of the metric; a fraction for a rate
	AbsoluteMargin float64 `yaml:"absoluteMargin,omitempty" json:"absoluteMargin,omitempty"`
	Direction      string  `yaml:"direction" json:"direction" default:"up"`
	// Window replaces the conversion window of the goal; nil: that of the goal.
	Window *schema.ConversionWindow `yaml:"window,omitempty" json:"window,omitempty"`
	// Settle replaces the time of the goal in which orders still change; nil: that of the goal.
	Settle *schema.Settle `yaml:"settle,omitempty" json:"settle,omitempty"`
}

// The directions: higher values are good, or lower ones.
const (
	Up   = "up"
	Down = "down"
)

// defaultGoalMetric is the default metric of secondary goals and guardrails.
const defaultGoalMetric = "goalConversionRate"

// GoalMetrics are the metrics of a goal that secondary goals and guardrails may have.
var GoalMetrics = []string{defaultGoalMetric, "goalsPerVisitor", "valuePerVisitor", "profitPerVisitor", "averageValue"}

// perVisitor maps the older names of primary metrics to goal metrics.
var perVisitor = map[string]string{
	"goalsReached": defaultGoalMetric, "value": "valuePerVisitor", "profit": "profitPerVisitor",
}

// Window returns the conversion window of the goal, with the time in which its orders still change; nil: none.
func (g *Goal) Window() *schema.ConversionWindow { return windowOf(g.ConversionWindow, g.Settle) }

// windowOf returns a conversion window with the time in which orders still change; nil: none.
func windowOf(window *schema.ConversionWindow, settle *schema.Settle) *schema.ConversionWindow {
	w := window.ValueOrNone()
	if settle != nil {
		w.Settle = time.Duration(*settle)
	}
	if w == (schema.ConversionWindow{}) {
		return nil
	}
	return &w
}

// resolveTerms returns the goals without the primary one, each with the conversion window that it has or that its goal
// has, and with the text of a declared metric in the place of its key; nil: there are none.
func (g *Goals) resolveTerms(of *Terms) *Goals {
	if g == nil || len(g.Secondary)+len(g.Guardrails) == 0 {
		return nil
	}
	others := &Goals{Secondary: slices.Clone(g.Secondary), Guardrails: slices.Clone(g.Guardrails)}
	for i := range others.Secondary {
		s := &others.Secondary[i]
		s.Metric, s.Window = of.resolveRole(s.GoalID, s.Metric, s.Window, s.Settle)
	}
	for i := range others.Guardrails {
		r := &others.Guardrails[i]
		r.Metric, r.Window = of.resolveRole(r.GoalID, r.Metric, r.Window, r.Settle)
	}
	return others
}

// checkGoals checks the goals of a campaign or an experiment with this primary goal and metric.
func (c *checker) checkGoals(path string, g *Goals, primary int64, metric string, terms *Terms) {
	if g == nil {
		return
	}
	c.AddIf(g.Primary != 0 && g.Primary != primary,
		path+".primary", g.Primary, fmt.Sprintf("must equal primaryGoalId, %d, or be omitted", primary))
	if _, isDeclared := terms.FindMetric(metric); isDeclared {
		primary = 0
	}
	roles := goalChecker{checker: c, terms: terms, taken: map[measured]string{
		{goal: primary, metric: cmp.Or(perVisitor[metric], metric)}: "the primary metric",
	}}
	for i, s := range g.Secondary {
		roles.checkGoal(fmt.Sprintf("%s.secondary[%d]", path, i),
			measured{goal: s.GoalID, metric: s.Metric}, s.Direction, s.Window, s.Settle)
	}
	for i, r := range g.Guardrails {
		at := fmt.Sprintf("%s.guardrails[%d]", path, i)
		roles.checkGoal(at, measured{goal: r.GoalID, metric: r.Metric}, r.Direction, r.Window, r.Settle)
		c.checkLookWindow(at+".window", r.Window)
		if m, isDeclared := terms.FindMetric(r.Metric); isDeclared {
			c.checkLookWindow(at+".metric", &m.Window)
		}
		c.checkMargins(at, &r, terms)
	}
}

// measured is what a goal of a campaign or an experiment measures.
type measured struct {
	goal   int64
	metric string
	window string // empty: that of the goal
	settle schema.Settle
}

// goalChecker checks the goals of one campaign or experiment, which must measure different things.
type goalChecker struct {
	*checker
	terms *Terms
	taken map[measured]string // where it is measured
}

// checkGoal checks a goal whatever its role.
func (c *goalChecker) checkGoal(path string, is measured, direction string, window *schema.ConversionWindow,
	settle *schema.Settle,
) {
	switch m, isDeclared := c.terms.FindMetric(is.metric); {
	case isDeclared:
		c.checkDeclared(path, m, is.goal, window, settle)
	case c.terms.hasMetric(is.metric): // its expression has a fault
	default:
		c.AddIf(is.goal < 1, path+".goalId", is.goal, "must be the id of a goal")
		c.checkReference(path+".goalId", is.goal, c.terms.goalIDs(), "goal")
		c.oneOf(path+".metric", is.metric, c.terms.metricNames(GoalMetrics))
	}
	c.oneOf(path+".direction", direction, []string{Up, Down})
	c.checkWindow(path+".window", window)
	if window != nil {
		is.window = window.String()
	}
	if settle != nil {
		is.settle = *settle
	}
	if other, twice := c.taken[is]; twice {
		of := fmt.Sprintf("%s of goal %d", is.metric, is.goal)
		if is.goal == 0 {
			of = is.metric
		}
		c.Add(path, of, "is also "+other)
	}
	c.taken[is] = path
}

// checkDeclared checks a role of a declared metric, which names its goals and their conversion windows itself.
func (c *checker) checkDeclared(path string, m *DeclaredMetric, goal int64, window *schema.ConversionWindow,
	settle *schema.Settle,
) {
	const names = "must be omitted: a declared metric names its goals and their windows, such as within 7d"
	c.AddIf(goal != 0, path+".goalId", goal, names)
	c.AddIf(window != nil, path+".window", window, names)
	if settle != nil {
		c.Add(path+".settle", time.Duration(*settle), names)
	}
	if fault := m.roleFault(); fault != "" {
		c.Add(path+".metric", m.Key, fault)
	}
}

// checkMargins checks by how much a guardrail may be worse.
func (c *checker) checkMargins(path string, r *Guardrail, terms *Terms) {
	isRate := r.Metric == defaultGoalMetric
	if m, isDeclared := terms.FindMetric(r.Metric); isDeclared {
		isRate = m.Written.Kind() == metric.Rate
	}
	switch {
	case r.Margin != 0 && r.AbsoluteMargin != 0:
		c.Add(path+".absoluteMargin", r.AbsoluteMargin, "must be omitted if margin is given")
	case r.Margin != 0 && !(r.Margin > 0 && r.Margin < 100):
		c.Add(path+".margin", r.Margin, "must be above 0 and below 100, in per cent, or be omitted")
	case r.AbsoluteMargin != 0 && !(r.AbsoluteMargin > 0):
		c.Add(path+".absoluteMargin", r.AbsoluteMargin, "must be above 0, or be omitted")
	case isRate && r.AbsoluteMargin >= 1:
		c.Add(path+".absoluteMargin", r.AbsoluteMargin, "must be below 1: it is a fraction of the visitors")
	}
}

func (c *checker) minDays(path string, days *int) {
	if days != nil {
		c.checkRange(path+".minDays", float64(*days), 0, 365)
	}
}

// MetricKey returns how a goal is written in a metric: its key, or else its name in lower case with - for spaces.
func (g *Goal) MetricKey() string {
	return cmp.Or(g.Key, strings.ToLower(strings.Join(strings.Fields(g.Name), "-")))
}

// MetricGoals returns the goals of a website as they are written in metrics. Of goals with the same name and no
// key, none has it.
func MetricGoals(goals []Goal) []metric.Goal {
	taken := map[string]int{}
	for i := range goals {
		taken[goals[i].MetricKey()]++
	}
	written := make([]metric.Goal, len(goals))
	for i := range goals {
		key := goals[i].MetricKey()
		if taken[key] > 1 && goals[i].Key == "" {
			key = ""
		}
		written[i] = metric.Goal{ID: goals[i].ID, Key: key}
	}
	return written
}
