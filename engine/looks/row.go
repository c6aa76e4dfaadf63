package looks

import (
	"slices"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// Kind says what a row is about.
type Kind string

// The kinds of rows.
const (
	OfLook Kind = "look"
	OfHarm Kind = "harm" // of the metric, at the end of a day; the row has the number 0
	OfEnd  Kind = "end"  // of the subject, with all its full days; the number of the row is theirs
	// OfReturns is of the first look at whose time orders had changed at different ages; the row has the number 0.
	OfReturns Kind = "returns"
	// OfSplit is of the visitors, at the end of the first day that finds a sample ratio mismatch. The number and the
	// variation are 0.
	OfSplit Kind = "split"
	// OfFollowUp is a reading of later orders of the visitors of a look; the number of the row is the days of its
	// window.
	OfFollowUp Kind = "followUp"
)

// IsState reports whether the row has the state of a subject at a time: the sums of visitors.
func (k Kind) IsState() bool { return k == OfLook || k == OfEnd }

// FixesClock reports whether the row has the first full day.
func (k Kind) FixesClock() bool { return k != OfSplit }

// LookRow is the result of a look for one variation, on one metric. The row of harm has only the end of the day and
// Upper, that of returns only Returns, the row of an end only visitors, strata and the sample ratio, and the row of a
// split only the end of the day and the sample ratio.
type LookRow struct {
	Look
	Kind        Kind `json:"-"`
	VariationID int64
	Visitors    int64 // of the look, over all variations
	Tau         float64
	Strata      []RowStratum
	stats.LookResult
	PValue     *float64
	Chance     *float64          // to beat control; only Bayesian
	FirstDay   time.Time         // of a recorded row: start of the first full day
	RecordedAt time.Time         `json:"-"` // zero: computed from the events
	Recomputed *stats.LookResult `json:"-"` // from the events of today, if it differs from what was recorded
	MismatchP  *float64          // the smallest p-value of the sample ratio at the end of any full day so far
	Upper      *float64          `json:",omitempty"` // the bound that shows harm
	Returns    *Returns          `json:",omitempty"`
}

// RowStratum has the exact sums of control and of the variation in one period of equal shares.
type RowStratum struct {
	Control, Variation moments.Moments
}

// conclusiveDirection returns 1 if the look concludes that the variation is above control, -1 if it is below, and 0
// otherwise. A Bayesian conclusion needs the chance as well.
func (r *LookRow) conclusiveDirection(alpha float64) int {
	if r.Chance != nil {
		return r.BayesianDirection(*r.Chance, alpha)
	}
	return r.SignificantDirection()
}

// hasBoundary reports whether the look could be significant.
func (r *LookRow) hasBoundary() bool { return r.Critical != nil && r.Difference.Interval != nil }

// waitsForRate reports whether the row is not known because amounts are in another currency.
func (r *LookRow) waitsForRate(p *plan.Plan) bool {
	return readsAmounts(&p.Question) && slices.ContainsFunc(r.Strata, func(s RowStratum) bool {
		return s.Control.Unknown+s.Variation.Unknown > 0
	})
}

// Question has the looks at one metric.
type Question struct {
	Rows [][]LookRow // by look and variation, without control
}

// ofTreatment returns the rows of a treatment, in order; none: there is no look.
func (q *Question) ofTreatment(treatment int) (rows []LookRow) {
	for _, of := range q.Rows {
		rows = append(rows, of[treatment])
	}
	return rows
}

// SupportsVerdict reports whether any look supports a verdict on a treatment.
func (q *Question) SupportsVerdict(treatment int, verdict stats.Verdict, alpha float64) bool {
	want := map[stats.Verdict]int{stats.VerdictBetter: 1, stats.VerdictWorse: -1}[verdict]
	return want != 0 && slices.ContainsFunc(q.Rows, func(rows []LookRow) bool {
		return rows[treatment].conclusiveDirection(alpha) == want
	})
}

// FindOutcome returns the winner or the loser of all looks, or nil.
func (q *Question) FindOutcome(alpha float64) *stats.Outcome {
	var findings [][]stats.Finding
	for _, rows := range q.Rows {
		look := make([]stats.Finding, len(rows))
		for i := range rows {
			look[i].Direction = rows[i].conclusiveDirection(alpha)
			if rows[i].Difference.Value != nil {
				look[i].Difference = *rows[i].Difference.Value
			}
		}
		findings = append(findings, look)
	}
	return stats.ConcludeLooks(findings)
}

// LastLook returns the last look at a variation that has a boundary, or else the last one; nil: there is none. A look
// without new visitors has no boundary, and the look before it stays valid.
func (q *Question) LastLook(treatment int) *LookRow {
	if q == nil || len(q.Rows) == 0 {
		return nil
	}
	for _, rows := range slices.Backward(q.Rows) {
		if row := &rows[treatment]; row.hasBoundary() {
			return row
		}
	}
	return &q.Rows[len(q.Rows)-1][treatment]
}

// WinnerOf returns the winner that the looks among the rows of a plan's primary question conclude; nil: there is none.
// Rows of harm are not looks.
func WinnerOf(p *plan.Plan, rows []LookRow) *plan.Variation {
	var q Question
	for _, r := range rows {
		if r.Kind != OfLook {
			continue
		}
		for len(q.Rows) < r.Number {
			q.Rows = append(q.Rows, make([]LookRow, len(p.Variations)-1))
		}
		for t := range p.Variations[1:] {
			if p.Variations[t+1].ID == r.VariationID {
				q.Rows[r.Number-1][t] = r
			}
		}
	}
	if o := q.FindOutcome(alphaOf(p)); o != nil && o.Winner {
		return &p.Variations[o.Treatment+1]
	}
	return nil
}
