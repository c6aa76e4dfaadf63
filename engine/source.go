package engine

import (
	"context"
	"lifthouse/engine/visit"
	"slices"
)

// The sources of the rows of a report.
const (
	SourceInProcess  = "in-process"  // the server counts the events; for subjects with few events
	SourceRollup     = "rollup"      // cubes of the rollup
	SourceSinglePass = "single-pass" // the store counts the events in one pass
	SourceReference  = "reference"   // the store counts the events by lists per visitor
)

// source returns the rows of a report.
type source interface {
	// name is one of the names of sources.
	name() string
	// read returns the rows. If the source turns out to be unable to serve the
	// report, read returns the reason, and another source must serve it.
	read(ctx context.Context) (found *visit.Rows, declined string, err error)
}

// answer returns rows that were read from the events.
func (x *execution) answer(rows []visit.Row, steps []visit.Step) *visit.Rows {
	return &visit.Rows{Whole: rows, Cells: rows, Steps: steps, Through: x.stored.ingested, Newest: x.stored.newest, Outliers: x.outliers}
}

// steps returns what each bucket of the series adds, before the removal of
// outliers; nil without a series.
func (x *execution) steps(ctx context.Context) ([]visit.Step, error) {
	if x.Interval == "" {
		return nil, nil
	}
	query, err := x.withoutOutliers().seriesQuery()
	if err != nil {
		return nil, err
	}
	return scanSteps(ctx, x.store, query)
}

// variationIDs returns the ids of the variations in ascending order.
func (x *execution) variationIDs() []int64 {
	ids := make([]int64, len(x.Variations))
	for i, v := range x.Variations {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	return ids
}
