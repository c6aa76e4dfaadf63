package catalogue

import (
	"cmp"
	"fmt"
	"slices"
)

// Goals are the roles of goals in a campaign or in an experiment of a widget.
type Goals struct {
	Primary    int64           `yaml:"primary,omitempty" json:"primary,omitempty"` // equals primaryGoalId; 0: omitted
	Secondary  []SecondaryGoal `yaml:"secondary,omitempty" json:"secondary,omitempty"`
	Guardrails []Guardrail     `yaml:"guardrails,omitempty" json:"guardrails,omitempty"`
}

// SecondaryGoal is a metric of a goal that should improve but does not decide.
type SecondaryGoal struct {
	GoalID    int64  `yaml:"goalId" json:"goalId"`
	Metric    string `yaml:"metric" json:"metric" default:"goalConversionRate"`
	Direction string `yaml:"direction" json:"direction" default:"up"` // up or down: the direction that is good
}

// Guardrail is a metric of a goal that must not be harmed by more than a margin. If
// both margins are 0, the campaign's minimum detectable effect is the margin.
type Guardrail struct {
	GoalID         int64   `yaml:"goalId" json:"goalId"`
	Metric         string  `yaml:"metric" json:"metric" default:"goalConversionRate"`
	Margin         float64 `yaml:"margin,omitempty" json:"margin,omitempty"`                 // a lift, in per cent
	AbsoluteMargin float64 `yaml:"absoluteMargin,omitempty" json:"absoluteMargin,omitempty"` // in the unit of the metric; a fraction for a rate
	Direction      string  `yaml:"direction" json:"direction" default:"up"`
}

// The directions: higher values are good, or lower ones.
const (
	Up   = "up"
	Down = "down"
)

// defaultGoalMetric is the default metric of secondary goals and guardrails.
const defaultGoalMetric = "goalConversionRate"

// GoalMetrics are the metrics that secondary goals and guardrails may have.
var GoalMetrics = []string{defaultGoalMetric, "goalsPerVisitor", "valuePerVisitor", "profitPerVisitor", "averageValue"}

// perVisitor maps the older names of primary metrics to goal metrics.
var perVisitor = map[string]string{"goalsReached": defaultGoalMetric, "value": "valuePerVisitor", "profit": "profitPerVisitor"}

// withoutPrimary returns the goals without the primary one, or nil if there are none.
func (g *Goals) withoutPrimary() *Goals {
	if g == nil || len(g.Secondary)+len(g.Guardrails) == 0 {
		return nil
	}
	return &Goals{Secondary: g.Secondary, Guardrails: g.Guardrails}
}

// Limits of texts that are displayed but not evaluated.
const (
	maxTags       = 20
	maxTag        = 64
	maxHypothesis = 2048
)

// checkGoals checks the goals of a campaign or an experiment with this primary goal and
// metric.
func (c *checker) checkGoals(path string, g *Goals, primary int64, metric string, known ids) {
	if g == nil {
		return
	}
	if g.Primary != 0 && g.Primary != primary {
		c.Add(path+".primary", g.Primary, fmt.Sprintf("must equal primaryGoalId, %d, or be omitted", primary))
	}
	type measured struct {
		goal   int64
		metric string
	}
	taken := map[measured]string{{primary, cmp.Or(perVisitor[metric], metric)}: "the primary metric"}
	one := func(path string, goal int64, metric, direction string) {
		if goal < 1 {
			c.Add(path+".goalId", goal, "must be the id of a goal")
		}
		c.checkReference(path+".goalId", goal, known, "goal")
		c.oneOf(path+".metric", metric, GoalMetrics)
		c.oneOf(path+".direction", direction, []string{Up, Down})
		if other, is := taken[measured{goal, metric}]; is {
			c.Add(path, fmt.Sprintf("%s of goal %d", metric, goal), "is also "+other)
		}
		taken[measured{goal, metric}] = path
	}
	for i, s := range g.Secondary {
		one(fmt.Sprintf("%s.secondary[%d]", path, i), s.GoalID, s.Metric, s.Direction)
	}
	for i, r := range g.Guardrails {
		at := fmt.Sprintf("%s.guardrails[%d]", path, i)
		one(at, r.GoalID, r.Metric, r.Direction)
		c.checkMargins(at, &r)
	}
}

func (c *checker) checkMargins(path string, r *Guardrail) {
	switch {
	case r.Margin != 0 && r.AbsoluteMargin != 0:
		c.Add(path+".absoluteMargin", r.AbsoluteMargin, "must be omitted if margin is given")
	case r.Margin != 0 && !(r.Margin > 0 && r.Margin < 100):
		c.Add(path+".margin", r.Margin, "must be above 0 and below 100, in per cent, or be omitted")
	case r.AbsoluteMargin != 0 && !(r.AbsoluteMargin > 0):
		c.Add(path+".absoluteMargin", r.AbsoluteMargin, "must be above 0, or be omitted")
	case r.Metric == defaultGoalMetric && r.AbsoluteMargin >= 1:
		c.Add(path+".absoluteMargin", r.AbsoluteMargin, "must be below 1: it is a fraction of the visitors")
	}
}

// checkShownTexts checks texts that are displayed but not evaluated.
func (c *checker) checkShownTexts(path, hypothesis, owner string, tags []string) {
	c.checkText(path+".hypothesis", hypothesis, 0, maxHypothesis)
	c.checkText(path+".owner", owner, 0, 255)
	if len(tags) > maxTags {
		c.Add(path+".tags", len(tags), fmt.Sprintf("must have at most %d tags", maxTags))
	}
	for i, tag := range tags {
		c.checkText(fmt.Sprintf("%s.tags[%d]", path, i), tag, 1, maxTag)
		if slices.Index(tags, tag) < i {
			c.Add(fmt.Sprintf("%s.tags[%d]", path, i), tag, "is not unique")
		}
	}
}

func (c *checker) minDays(path string, days *int) {
	if days != nil {
		c.checkRange(path+".minDays", float64(*days), 0, 365)
	}
}
