package result

import (
	"maps"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/stats"
)

// Days are the looks at the declared question of a subject: at the end of each full
// day in UTC with events.
type Days struct {
	looks []stats.Look
	ends  []time.Time
	plan  *plan.Plan // see plan.Plan.Declaration

	through time.Time // acceptance time of the last event
}

// NewDays returns the days of the steps of a daily series. A day is full once data
// were accepted after its end, or if the campaign has ended.
func NewDays(p *plan.Plan, steps []visit.Step, through time.Time) *Days {
	d := &Days{plan: p, through: through}
	sums := map[visit.Segment]visit.Row{}
	for i, step := range steps {
		sum := sums[step.Segment]
		sum.Segment, sum.Moments = step.Segment, sum.Merge(step.Moments)
		sums[step.Segment] = sum
		if i+1 < len(steps) && steps[i+1].Bucket == step.Bucket {
			continue
		}
		end := EndOf(p, step.Bucket)
		if !d.isFull(end) {
			break
		}
		c := sumRows(slices.Collect(maps.Values(sums)), p.MultipleExposures)
		d.looks, d.ends = append(d.looks, c.look(p)), append(d.ends, end)
	}
	return d
}

// isFull reports whether the day that ends at the given time is full.
func (d *Days) isFull(end time.Time) bool { return !end.After(d.through) || d.plan.Ended }

// checkpoints returns the ends of the full days 1, 2, 4, 8, … since the first day with
// visitors, up to the given time; zero: all. The last one is that at or after the last
// full day with events.
func (d *Days) checkpoints(to time.Time) []time.Time {
	const day = 24 * time.Hour
	first := slices.IndexFunc(d.looks, func(l stats.Look) bool { return l.Visitors > 0 })
	if first < 0 {
		return nil
	}
	var ends []time.Time
	start, last := d.ends[first].Add(-day), d.ends[len(d.ends)-1]
	for n := time.Duration(1); ; n *= 2 {
		end := start.Add(n * day)
		if !d.isFull(end) || !to.IsZero() && end.After(to) {
			return ends
		}
		if ends = append(ends, end); !end.Before(last) {
			return ends
		}
	}
}

// look returns the samples of a cell.
func (c *cell) look(p *plan.Plan) stats.Look {
	var look stats.Look
	var total visit.Moments
	for _, v := range p.Variations {
		m := c.counted[v.ID]
		total = total.Merge(m)
		look.Samples = append(look.Samples, looks.SampleOf(&m, p.Metric))
	}
	capped := total.Capped()
	look.Visitors, look.NonNegative = total.Visitors, looks.NeverNegative(&capped, p.Metric)
	return look
}

// Decide returns what the days up to the given time decided; zero: all days.
func (d *Days) Decide(to time.Time) *Decision {
	n := len(d.ends)
	for n > 0 && !to.IsZero() && d.ends[n-1].After(to) {
		n--
	}
	o := options(d.plan)
	o.SharesChanged = false
	return &Decision{Decision: stats.Decide(d.looks[:n], decisionPlan(d.plan), o), days: d, looks: n}
}

func decisionPlan(p *plan.Plan) stats.DecisionPlan {
	return stats.DecisionPlan{
		Shares: p.ExpectedShares(), MinimumEffect: p.Rules.MDE / 100, Power: float64(p.Rules.Power) / 100, Capped: p.Cap != nil,
	}
}

// Decision is what the days of the declared question decided.
type Decision struct {
	stats.Decision
	Recorded *Recorded // the last conclusion that was recorded; nil: none
	days     *Days
	looks    int // number of the days until the end of the report
}

// lookEnd returns the end of the day of the planned look, or false if it is not
// reached.
func (d *Decision) lookEnd() (time.Time, bool) {
	if d == nil || d.PlannedLook < 0 {
		return time.Time{}, false
	}
	return d.days.ends[d.PlannedLook], true
}

// isPlannedLook reports whether a report whose data end at the given time is the
// planned look.
func (d *Decision) isPlannedLook(end time.Time) bool {
	look, reached := d.lookEnd()
	return reached && look.Equal(end)
}

// includes reports whether a report is the planned look: its window ends with the day
// of the look, or there are no later events.
func (d *Decision) includes(p *plan.Plan, newest time.Time) bool {
	look, reached := d.lookEnd()
	if !reached || !p.IsDeclared() {
		return false
	}
	to := p.Filters.To
	return to.Equal(look) || newest.Before(look) && (to.IsZero() || to.After(look))
}

// pending returns why an effect that is significant as if there were only one look is
// not conclusive.
func (d *Decision) pending() stats.Reason {
	switch {
	case d == nil:
		return ""
	case d.PlannedLook >= 0:
		return stats.ReasonPlannedLookInconclusive
	case d.Reason == stats.ReasonNoPlannedSample:
		return d.Reason
	}
	return stats.ReasonTooEarly
}

// PlannedLook is the look that has nine tenths of alpha: the report at
// the end of the first full day on which the required sample was reached.
type PlannedLook struct {
	Time             *time.Time   `json:"time"`             // end of the day; null: not reached yet
	RequiredVisitors *int64       `json:"requiredVisitors"` // over all variations
	Visitors         *int64       `json:"visitors"`         // at that time
	Segment          int          `json:"segment"`          // number of the period of equal shares, from 1
	Reason           stats.Reason `json:"reason,omitempty"`
}

func (d *Decision) plannedLook() *PlannedLook {
	if d == nil {
		return nil
	}
	shown := &PlannedLook{RequiredVisitors: d.Required, Segment: d.days.plan.Segment, Reason: d.Reason}
	if end, reached := d.lookEnd(); reached {
		shown.Time, shown.Visitors = &end, &d.days.looks[d.PlannedLook].Visitors
	} else if shown.Reason == "" {
		shown.Reason = stats.ReasonTooEarly
	}
	return shown
}
