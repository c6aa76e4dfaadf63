package source

import (
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
)

// ReportQuery is a plan on a store, with totals of the subject's stored events. It is
// immutable.
type ReportQuery struct {
	*plan.Plan
	Store    *Store
	Stored   Stored
	Outliers *moments.Outliers // bounds of goal values; nil: no z-score
	CapLimit *moments.Cap      // the cap of the report, once it is known; nil: none
	Waiting  moments.Waiting   // events that the report does not include yet
}

// WithoutOutliers returns the query without bounds of goal values.
func (x *ReportQuery) WithoutOutliers() *ReportQuery {
	without := *x
	without.Outliers = nil
	return &without
}

// EndingAt returns the query of the report with the window ending at the given
// time, without a series.
func (x *ReportQuery) EndingAt(end time.Time) *ReportQuery {
	until := *x
	until.Plan, until.Outliers = x.WithWindowEnd(end), nil
	return &until
}

// Stored are the totals of the stored events of a subject.
type Stored struct {
	Events           uint64
	Ingested, Newest time.Time // last acceptance time and latest event time
	First            time.Time // of the first view on time, or else of the first view; zero: none
}

// WithEvents returns the totals with more events. first is zero if they have no view.
func (s Stored) WithEvents(events uint64, ingested, newest, first time.Time) Stored {
	s.Events += events
	if s.First.IsZero() || !first.IsZero() && first.Before(s.First) {
		s.First = first
	}
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
