package result

import (
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/stats"
)

// Impact is what a variation would change in a month, relative to control for everybody.
type Impact struct {
	PerMonth *Effect      `json:"perMonth"` // in the unit of the metric; null: see Reason
	Reason   stats.Reason `json:"reason,omitempty"`
}

// The period of an impact, and the least number of full days that it needs: a week has
// all days of the week.
const (
	daysPerMonth  = 30
	minImpactDays = 7
)

// The reasons why there is no impact.
const (
	reasonTooFewDays stats.Reason = "TOO_FEW_DAYS"
	reasonNotASum    stats.Reason = "NOT_A_SUM" // the metric is not a sum over visitors
	reasonFiltered   stats.Reason = "FILTERED"  // the report is not about all visitors
)

// scope is the traffic of the full days of a report.
type scope struct {
	days       int
	visitors   int64
	allocation float64      // share of all traffic
	reason     stats.Reason // why the days are not those of the report; empty: they are
}

// scope returns the traffic of the full days of a report.
func (d *Decision) scope(p *plan.Plan) scope {
	s := scope{allocation: p.Allocation}
	switch {
	case !p.OfAllVisitors():
		s.reason = reasonFiltered
	case p.SharesSince.After(plan.OpenFrom):
		s.reason = stats.ReasonSharesChanged
	}
	if n := d.fullDays(); n > 0 {
		s.days = int(d.days.ends[n-1].Sub(d.days.ends[0])/(24*time.Hour)) + 1
		s.visitors = d.days.looks[n-1].Visitors
	}
	return s
}

// fullDays returns the number of the days with events that are decided.
func (d *Decision) fullDays() int {
	if d == nil {
		return 0
	}
	return d.looks
}

// impact returns the impact of a variation:
//
//	d N 30 / D / allocation
//
// where d is the difference per visitor with its interval of the sequence, N the
// visitors of all variations in D full days, and allocation the share of the traffic
// that takes part. It assumes traffic as in these days, without seasons.
func (s scope) impact(metric query.Metric, c *Comparison) *Impact {
	switch {
	case metric == query.AverageValue:
		return &Impact{Reason: reasonNotASum}
	case s.reason != "":
		return &Impact{Reason: s.reason}
	case s.days < minImpactDays:
		return &Impact{Reason: reasonTooFewDays}
	case s.allocation <= 0:
		return &Impact{Reason: stats.ReasonNoTraffic}
	case c == nil || c.Difference.Value == nil:
		return &Impact{Reason: stats.ReasonNoVisitors}
	}
	by := float64(s.visitors) * daysPerMonth / float64(s.days) / s.allocation
	scaled := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		y := *x * by
		return &y
	}
	e := &Effect{Value: scaled(c.Difference.Value)}
	if c.Difference.Observed != nil {
		e.Value = scaled(c.Difference.Observed)
	}
	if c.Sequential != nil && c.Sequential.Difference != nil {
		e.Interval = &Bounds{scaled(c.Sequential.Difference[0]), scaled(c.Sequential.Difference[1])}
	} else if c.Sequential != nil {
		e.Reason = c.Sequential.Reason
	}
	return &Impact{PerMonth: e}
}
