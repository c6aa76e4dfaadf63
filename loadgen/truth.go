package loadgen

import (
	"maps"
	"slices"

	"lifthouse/schema"
)

// Truth is what reports of a scenario should say, but for chance.
type Truth struct {
	Seed     uint64         `json:"seed"`
	Visitors int            `json:"visitors"`
	Subjects []SubjectTruth `json:"subjects"`
}

// SubjectTruth is the truth of a campaign, or of an experiment of a widget.
type SubjectTruth struct {
	WebsiteID     int64          `json:"websiteId"`
	CampaignID    int64          `json:"campaignId,omitzero"`
	WidgetID      int64          `json:"widgetId,omitzero"`
	ExperimentID  int64          `json:"experimentId,omitzero"`
	PrimaryGoalID int64          `json:"primaryGoalId"`
	Visitors      int            `json:"visitors"` // crossovers too
	Outcomes      []OutcomeTruth `json:"outcomes"`
}

// OutcomeTruth is the truth of a goal, or of an action with a widget.
type OutcomeTruth struct {
	Event    schema.Kind    `json:"event"`
	GoalID   int64          `json:"goalId,omitzero"`
	Segments []SegmentTruth `json:"segments"` // all visitors first
}

// SegmentTruth is the truth of the visitors whose first view has the
// attributes.
type SegmentTruth struct {
	When       map[string]string `json:"when"`  // empty: all visitors
	Share      float64           `json:"share"` // of all visitors
	Variations []VariationTruth  `json:"variations"`
}

// VariationTruth is the truth of one variation. Rates and means are per
// visitor; lifts, as fractions, are against control, which is variation 0, or
// the first variation with a share where control has none. A lift is null for
// control itself, and where control's figure is 0.
type VariationTruth struct {
	ID                   int64    `json:"id"`
	Share                float64  `json:"share"`
	Rate                 float64  `json:"rate"` // share of the visitors who do it at least once
	EventsPerVisitor     float64  `json:"eventsPerVisitor"`
	ValuePerVisitor      float64  `json:"valuePerVisitor"`
	ProfitPerVisitor     float64  `json:"profitPerVisitor"`
	ExtraValuePerVisitor float64  `json:"extraValuePerVisitor"`
	RateLift             *float64 `json:"rateLift"`
	ValueLift            *float64 `json:"valueLift"`
	ProfitLift           *float64 `json:"profitLift"`
}

// Truth computes what a valid scenario plants, from its parameters and not
// from draws. Visitors who are alike in all that effects may depend on are a
// cell c, with the share w(c) of the visitors. For a segment S, a variation v
// and an outcome,
//
//	p(v, c)  = min(1, rate · Π effects' rate)       chance to do it at all
//	n        = 1 / (1 - again)                      events of who does
//	m(v, c)  = value · Π effects' value             mean value of an event
//
//	rate     = Σ_S w p / Σ_S w
//	events   = n · rate
//	value    = n · Σ_S w p m / Σ_S w
//	profit   = margin · value
//	extra    = extra · value
//	lift     = figure(v) / figure(control) - 1
//
// over the effects whose conditions v and c meet. Shares, attributes, values
// and the margin's noise are drawn independently of each other, which is why
// the means factor. Whether a visitor is a crossover is independent of all
// else, so the truth is the same with and without them; late and duplicate
// events change nothing that a report says. Amounts are rounded to cents, which
// moves a mean by less than 1 in 10,000.
func (s *Scenario) Truth() Truth {
	t := Truth{Seed: s.Seed, Visitors: s.Visitors()}
	all := cells()
	for _, g := range s.groups() {
		of := SubjectTruth{WebsiteID: g.website.ID, ExperimentID: g.within, PrimaryGoalID: g.primary, Visitors: g.visitors}
		if g.subject == schema.SubjectCampaign {
			of.CampaignID = g.id
		} else {
			of.WidgetID = g.id
		}
		segments := g.segments()
		for i := range g.outcomes {
			of.Outcomes = append(of.Outcomes, g.outcomeTruth(&g.outcomes[i], segments, all))
		}
		t.Subjects = append(t.Subjects, of)
	}
	return t
}

// segments are all visitors, those with each value of what reports break down
// by, and those of the effects.
func (g *group) segments() []map[string]string {
	all := []map[string]string{{}}
	for _, attribute := range []string{"device", "country", "channel", "visitorType"} {
		for _, value := range valuesOf(attribute) {
			all = append(all, map[string]string{attribute: value})
		}
	}
	for _, e := range g.effects {
		if !slices.ContainsFunc(all, func(when map[string]string) bool { return maps.Equal(when, e.When) }) {
			all = append(all, e.When)
		}
	}
	return all
}

func (g *group) outcomeTruth(o *outcome, segments []map[string]string, all []cell) OutcomeTruth {
	of := OutcomeTruth{Event: o.kind}
	if o.Goal != nil {
		of.GoalID = o.ID
	}
	for _, when := range segments {
		of.Segments = append(of.Segments, g.segmentTruth(o, when, all))
	}
	return of
}

func (g *group) segmentTruth(o *outcome, when map[string]string, all []cell) SegmentTruth {
	segment := SegmentTruth{When: when}
	within := all[:0:0]
	for _, c := range all {
		if matches(when, &c.Attributes) {
			within = append(within, c)
			segment.Share += c.share
		}
	}
	var control *VariationTruth
	for _, arm := range g.arms.rows {
		v := g.variationTruth(o, arm, within, segment.Share)
		if control != nil {
			v.RateLift = lift(v.Rate, control.Rate)
			v.ValueLift = lift(v.ValuePerVisitor, control.ValuePerVisitor)
			v.ProfitLift = lift(v.ProfitPerVisitor, control.ProfitPerVisitor)
		} else if arm.share > 0 {
			control = &v
		}
		segment.Variations = append(segment.Variations, v)
	}
	return segment
}

func (g *group) variationTruth(o *outcome, a arm, within []cell, share float64) VariationTruth {
	v := VariationTruth{ID: a.id, Share: a.share}
	for i := range within {
		c := &within[i]
		p := c.share / share * g.chance(o, a.id, &c.Attributes)
		v.Rate += p
		v.ValuePerVisitor += p * g.meanValue(o, a.id, &c.Attributes)
	}
	v.EventsPerVisitor = v.Rate
	if o.Goal == nil {
		return v
	}
	n := 1 / (1 - o.Again)
	v.EventsPerVisitor *= n
	v.ValuePerVisitor *= n
	v.ProfitPerVisitor = o.Margin * v.ValuePerVisitor
	v.ExtraValuePerVisitor = o.Extra * v.ValuePerVisitor
	return v
}

func lift(of, control float64) *float64 {
	if control == 0 {
		return nil
	}
	l := of/control - 1
	return &l
}

func matches(when map[string]string, a *schema.Attributes) bool {
	for attribute, value := range when {
		if attributesOf[attribute](a) != value {
			return false
		}
	}
	return true
}
