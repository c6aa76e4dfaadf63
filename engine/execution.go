package engine

import (
	"context"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// execution is a plan on a store, with what the store has of the subject. It is
// immutable.
type execution struct {
	*plan.Plan
	store    *store
	stored   subjectTotals
	outliers *Outliers // bounds of goal values; nil: no z-score
}

// withoutOutliers returns the execution without bounds of goal values.
func (x *execution) withoutOutliers() *execution {
	without := *x
	without.outliers = nil
	return &without
}

// until returns the execution of the report with the window ending at the given
// time, without a series.
func (x *execution) until(ctx context.Context, end time.Time) (*execution, error) {
	until := *x
	until.Plan = x.Until(end)
	var err error
	until.outliers, err = until.readOutliers(ctx)
	return &until, err
}

// execution reads from the store how fresh the data are and which values are
// outliers.
func (e *Engine) execution(ctx context.Context, p *plan.Plan) (x *execution, err error) {
	ctx, span := tracer.Start(ctx, "plan")
	defer func() { endSpan(span, err) }()
	x = &execution{Plan: p, store: e.store}
	if x.stored, err = e.freshness(ctx, p.Subject); err != nil {
		return nil, err
	}
	x.outliers, err = x.readOutliers(ctx)
	return x, err
}

// freshness returns the acceptance time of the last event, the time of the
// newest event, and the number of events of a subject. It is called before the
// events are read, so that the report has at least these events. Values that a
// server remembers are slightly older and also valid.
func (e *Engine) freshness(ctx context.Context, of plan.Subject) (subjectTotals, error) {
	if last := e.stats.last.Load(); last != nil && time.Since(last.readAt) < statsMaxAge {
		return last.events[of].orNone(), nil
	}
	query, err := freshnessQuery(of, schema.CountersTable(e.store.Conn))
	if err != nil {
		return subjectTotals{}, err
	}
	var now subjectTotals
	err = e.store.each(ctx, query, func(row driver.Rows) error { return row.Scan(&now.events, &now.ingested, &now.newest) })
	return now.orNone(), err
}

// orNone returns zero times for a subject without events.
func (s subjectTotals) orNone() subjectTotals {
	if s.events == 0 {
		return subjectTotals{}
	}
	s.ingested, s.newest = s.ingested.UTC(), s.newest.UTC()
	return s
}

// recentDays is the number of full days before the last acceptance time from
// which the visitors per day are estimated. A week covers all days of the week.
const recentDays = 7

// recent returns the period of recentDays.
func recent(through time.Time) (from, to time.Time) {
	if through.IsZero() {
		through = plan.OpenFrom
	}
	to = through.UTC().Truncate(24 * time.Hour)
	return to.AddDate(0, 0, -recentDays), to
}
