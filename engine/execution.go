package engine

import (
	"context"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
)

// execution is a plan on a store, with what the store has of the subject. It is
// immutable.
type execution struct {
	*plan.Plan
	store    *store
	stored   subjectTotals
	outliers *visit.Outliers // bounds of goal values; nil: no z-score
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

// subjectTotals has the totals of a subject.
type subjectTotals struct {
	events           uint64
	ingested, newest time.Time // last acceptance time and latest event time
}

func (s subjectTotals) with(events uint64, ingested, newest time.Time) subjectTotals {
	s.events += events
	if ingested.After(s.ingested) {
		s.ingested = ingested
	}
	if newest.After(s.newest) {
		s.newest = newest
	}
	return s
}

// orNone returns zero times for a subject without events.
func (s subjectTotals) orNone() subjectTotals {
	if s.events == 0 {
		return subjectTotals{}
	}
	s.ingested, s.newest = s.ingested.UTC(), s.newest.UTC()
	return s
}
