package population

import (
	"maps"
	"slices"

	"lifthouse/schema"
)

// Truth has the expected values of the figures in the reports of a scenario.
type Truth struct {
	Seed     uint64         `json:"seed"`
	Visitors int            `json:"visitors"`
	Subjects []SubjectTruth `json:"subjects"`
}

// SubjectTruth is the truth of a campaign or of an experiment of a widget.
type SubjectTruth struct {
	WebsiteID     int64          `json:"websiteId"`
	CampaignID    int64          `json:"campaignId,omitzero"`
	WidgetID      int64          `json:"widgetId,omitzero"`
	ExperimentID  int64          `json:"experimentId,omitzero"`
	PrimaryGoalID int64          `json:"primaryGoalId"`
	Visitors      int            `json:"visitors"` // including visitors with multiple exposures
	Outcomes      []OutcomeTruth `json:"outcomes"`
}

// OutcomeTruth is the truth of a goal or of an action on a widget.
type OutcomeTruth struct {
	Event    schema.Kind    `json:"event"`
	GoalID   int64          `json:"goalId,omitzero"`
	Segments []SegmentTruth `json:"segments"` // the first segment is all visitors
}

// SegmentTruth is the truth of the visitors whose first view has the given
// attributes.
type SegmentTruth struct {
	When       map[string]string `json:"when"`  // empty: all visitors
	Share      float64           `json:"share"` // of all visitors
	Variations []VariationTruth  `json:"variations"`
}

// VariationTruth is the truth of one variation. Rates and means are per
// visitor. Lifts are fractions relative to control. Control is variation 0, or
// the first variation with a share if variation 0 has none. Lifts are nil for
// control and if the figure of control is 0.
type VariationTruth struct {
	ID                   int64    `json:"id"`
	Share                float64  `json:"share"`
	Rate                 float64  `json:"rate"` // share of visitors with at least one event
	EventsPerVisitor     float64  `json:"eventsPerVisitor"`
	ValuePerVisitor      float64  `json:"valuePerVisitor"`
	ProfitPerVisitor     float64  `json:"profitPerVisitor"`
	ExtraValuePerVisitor float64  `json:"extraValuePerVisitor"`
	RateLift             *float64 `json:"rateLift"`
	ValueLift            *float64 `json:"valueLift"`
	ProfitLift           *float64 `json:"profitLift"`
}

// ComputeTruth computes the expected values of a valid scenario from its parameters,
// not from generated events. A stratum c is the set of visitors with equal
// effect attributes, and w(c) is its share of the visitors. For a segment S, a
// variation v and an outcome,
//
//	p(v, c)  = min(1, rate · Π effects' rate)       probability of the outcome
//	n        = 1 / (1 - again)                      mean events of a visitor with the outcome
//	m(v, c)  = value · Π effects' value             mean value of an event
//
//	rate     = Σ_S w p / Σ_S w
//	events   = n · rate
//	value    = n · Σ_S w p m / Σ_S w
//	profit   = margin · value
//	extra    = extra · value
//	lift     = figure(v) / figure(control) - 1
//
// The products run over the effects that match v and c. The formulas hold
// because shares, attributes, values and margins are drawn independently.
// Multiple exposures are drawn independently too, so the truth is the same with
// and without the visitors who have them. Late and duplicate events do not
// change a report. Rounding to cents changes a mean by less than 1 in 10,000.
func (s *Scenario) ComputeTruth() Truth {
	t := Truth{Seed: s.Seed, Visitors: s.TotalVisitors()}
	all := allStrata()
	for _, sub := range s.allSubjects() {
		truth := SubjectTruth{WebsiteID: sub.website.ID, ExperimentID: sub.experimentID, PrimaryGoalID: sub.primaryGoalID, Visitors: sub.visitors}
		if sub.kind == schema.SubjectCampaign {
			truth.CampaignID = sub.id
		} else {
			truth.WidgetID = sub.id
		}
		segments := sub.segmentAttributes()
		for i := range sub.outcomes {
			o := &sub.outcomes[i]
			outcome := OutcomeTruth{Event: o.kind}
			if o.Goal != nil {
				outcome.GoalID = o.ID
			}
			for _, when := range segments {
				outcome.Segments = append(outcome.Segments, sub.segmentTruth(o, when, all))
			}
			truth.Outcomes = append(truth.Outcomes, outcome)
		}
		t.Subjects = append(t.Subjects, truth)
	}
	return t
}

// segmentAttributes returns the attributes that define each segment: all visitors, one
// segment per value of the dimensions, and the segments of the effects.
func (s *subject) segmentAttributes() []map[string]string {
	all := []map[string]string{{}}
	for _, attribute := range []string{"device", "country", "channel", "visitorType"} {
		for _, value := range attributeValues(attribute) {
			all = append(all, map[string]string{attribute: value})
		}
	}
	for _, e := range s.effects {
		if !slices.ContainsFunc(all, func(when map[string]string) bool { return maps.Equal(when, e.When) }) {
			all = append(all, e.When)
		}
	}
	return all
}

func (s *subject) segmentTruth(o *outcome, when map[string]string, all []stratum) SegmentTruth {
	segment := SegmentTruth{When: when}
	matching := all[:0:0]
	for _, c := range all {
		if hasAttributes(&c.Attributes, when) {
			matching = append(matching, c)
			segment.Share += c.share
		}
	}
	var control *VariationTruth
	for _, variation := range s.variations.rows {
		v := s.variationTruth(o, variation, matching, segment.Share)
		if control != nil {
			v.RateLift = relativeLift(v.Rate, control.Rate)
			v.ValueLift = relativeLift(v.ValuePerVisitor, control.ValuePerVisitor)
			v.ProfitLift = relativeLift(v.ProfitPerVisitor, control.ProfitPerVisitor)
		} else if variation.share > 0 {
			control = &v
		}
		segment.Variations = append(segment.Variations, v)
	}
	return segment
}

// variationTruth returns the truth of a variation over the given strata, whose
// shares add up to share.
func (s *subject) variationTruth(o *outcome, variation sharedVariation, strata []stratum, share float64) VariationTruth {
	v := VariationTruth{ID: variation.id, Share: variation.share}
	for i := range strata {
		c := &strata[i]
		p := c.share / share * s.outcomeProbability(o, variation.id, &c.Attributes)
		v.Rate += p
		v.ValuePerVisitor += p * s.meanValue(o, variation.id, &c.Attributes)
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

// relativeLift returns treatment/control - 1, or nil if control is 0.
func relativeLift(treatment, control float64) *float64 {
	if control == 0 {
		return nil
	}
	l := treatment/control - 1
	return &l
}
