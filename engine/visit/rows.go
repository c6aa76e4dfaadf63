package visit

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Segment is the part of the visitors that a row counts.
type Segment struct {
	VariationID   int64
	Dimension     string
	ExposedBefore bool // active in the window, but first exposed before it
	MultiExposed  bool // exposed to more than one variation
}

// Row holds the sums over the visitors of one segment.
type Row struct {
	Segment
	Others bool // all values of the dimension that cannot be among the most frequent
	Moments
}

// Step is what one bucket adds to a cumulative report.
type Step struct {
	Bucket int64
	Row
}

// Rows are the rows of a report and what they include.
type Rows struct {
	Whole    []Row     // the rows of the whole report
	Cells    []Row     // the rows of the breakdown; equal to whole unless they are incomplete
	Steps    []Step    // what each bucket of the series adds; with a z-score, before the removal of outliers
	Through  time.Time // acceptance time of the last event; zero: no events
	Newest   time.Time // latest event time; zero: no events
	Outliers *Outliers // bounds of goal values; nil: no z-score
}

// MostVisited returns the values sorted by visitors, descending.
func MostVisited(visitors map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(visitors), func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
}
