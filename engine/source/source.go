package source

import (
	"context"
	"slices"

	"lifthouse/engine/visit"
)

// The sources of the rows of a report.
const (
	NameInProcess  = "in-process"  // the server counts the events; for subjects with few events
	NameRollup     = "rollup"      // cubes of the rollup
	NameFacts      = "facts"       // the rows that the fold makes of events
	NameVisitors   = "visitors"    // the rows of visitors that the rollup refresh maintains
	NameSinglePass = "single-pass" // the store counts the events in one pass
	NameReference  = "reference"   // the store counts the events by lists per visitor
)

// Source returns the rows of a report.
type Source interface {
	// Name is one of the names of sources.
	Name() string
	// Read returns the rows. If the source turns out to be unable to serve the
	// report, Read returns the reason, and another source must serve it.
	Read(ctx context.Context) (found *visit.Rows, declined string, err error)
}

// Answer returns rows that were read from the events.
func (x *Execution) Answer(rows []visit.Row, steps []visit.Step) *visit.Rows {
	return &visit.Rows{Whole: rows, Cells: rows, Steps: steps, Through: x.Stored.Ingested, Newest: x.Stored.Newest, Outliers: x.Outliers, Cap: x.Limited}
}

// steps returns what each bucket of the series adds, before the removal of
// outliers; nil without a series.
func (x *Execution) steps(ctx context.Context) ([]visit.Step, error) {
	if x.Interval == "" {
		return nil, nil
	}
	query, err := x.WithoutOutliers().SeriesQuery()
	if err != nil {
		return nil, err
	}
	return scanSteps(ctx, x.Store, query)
}

// variationIDs returns the ids of the variations in ascending order.
func (x *Execution) variationIDs() []int64 {
	ids := make([]int64, len(x.Variations))
	for i, v := range x.Variations {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	return ids
}
