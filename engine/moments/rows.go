package moments

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// RowKey identifies the visitors that a row counts.
type RowKey struct {
	VariationID   int64
	Dimension     string
	Period        int  // index of the period of equal shares of the first view, see plan.Plan.SharePeriods
	ExposedBefore bool // active in the window, but first exposed before it
	MultiExposed  bool // exposed to more than one variation
}

// withoutDimension returns the key of the same visitors with any value of the dimension.
func (k RowKey) withoutDimension() RowKey {
	k.Dimension = ""
	return k
}

// Row holds the sums over the visitors of one segment.
type Row struct {
	RowKey
	Others bool // all values of the dimension that cannot be among the most frequent
	Moments
}

// Step has the sums that one bucket adds to a cumulative report.
type Step struct {
	Bucket  int64
	Crossed int64 // of multi-exposed visitors: the bucket of the first view of another variation; only in steps of looks
	Row
}

// Rows are the rows of a report and what they include.
type Rows struct {
	Whole    []Row     // the rows of the whole report
	Slices   []Row     // the rows of the breakdown; equal to whole unless they are incomplete
	Steps    []Step    // sums that each bucket of the series adds; with a z-score, before the removal of outliers
	First    time.Time // first view, see facts.Stored; zero: no view
	Through  time.Time // acceptance time of the last event; zero: no events
	Newest   time.Time // latest event time; zero: no events
	Outliers *Outliers // bounds of goal values; nil: no z-score
	Cap      *Cap      // limit of the total values of visitors; nil: none
}

// Waiting are accepted events that no report includes yet.
type Waiting struct {
	Events int64  `json:"events"`
	Reason string `json:"reason"` // Folding or DiskFull
}

// Reasons why events wait.
const (
	Folding  = "folding"
	DiskFull = "full"
)

// MostVisited returns the values sorted by visitors, descending.
func MostVisited(visitors map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(visitors), func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
}

// WithOthers returns the rows of the top most frequent dimension values, and rows for all other
// values: the whole report minus these rows.
func WithOthers(ranked, whole []Row, top int) []Row {
	visitors := map[string]int64{}
	for i := range ranked {
		visitors[ranked[i].Dimension] += ranked[i].Visitors
	}
	values := MostVisited(visitors)
	values = values[:min(len(values), top)]
	ranked = slices.DeleteFunc(ranked, func(r Row) bool { return !slices.Contains(values, r.Dimension) })
	kept := len(ranked)
	for _, others := range whole {
		others.Others, others.Recent = true, 0
		for i := range ranked[:kept] {
			if r := &ranked[i]; r.withoutDimension() == others.RowKey {
				others.Moments = others.Subtract(r.Moments)
			}
		}
		if others.Visitors != 0 {
			ranked = append(ranked, others)
		}
	}
	if !slices.ContainsFunc(ranked[kept:], func(r Row) bool { return !r.ExposedBefore }) {
		return ranked[:kept] // no other value has visitors of the window
	}
	return ranked
}
