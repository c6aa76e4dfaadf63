package source

import (
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
)

// Execution is a plan on a store, with what the store has of the subject. It is
// immutable.
type Execution struct {
	*plan.Plan
	Store    *Store
	Stored   Stored
	Outliers *visit.Outliers // bounds of goal values; nil: no z-score
	Limited  *visit.Cap      // the cap of the report, once it is known; nil: none
}

// WithoutOutliers returns the execution without bounds of goal values.
func (x *Execution) WithoutOutliers() *Execution {
	without := *x
	without.Outliers = nil
	return &without
}

// EndingAt returns the execution of the report with the window ending at the given
// time, without a series.
func (x *Execution) EndingAt(end time.Time) *Execution {
	until := *x
	until.Plan, until.Outliers = x.WithWindowEnd(end), nil
	return &until
}

// Stored are the totals of the stored events of a subject.
type Stored struct {
	Events           uint64
	Ingested, Newest time.Time // last acceptance time and latest event time
}

// WithEvents returns the totals with more events.
func (s Stored) WithEvents(events uint64, ingested, newest time.Time) Stored {
	s.Events += events
	if ingested.After(s.Ingested) {
		s.Ingested = ingested
	}
	if newest.After(s.Newest) {
		s.Newest = newest
	}
	return s
}

// OrNone returns zero times for a subject without events.
func (s Stored) OrNone() Stored {
	if s.Events == 0 {
		return Stored{}
	}
	s.Ingested, s.Newest = s.Ingested.UTC(), s.Newest.UTC()
	return s
}
