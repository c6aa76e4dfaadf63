package result

import (
	"fmt"
	"time"

	"lifthouse/stats"
)

// Recorded is a conclusion as it was recorded when it was named.
type Recorded struct {
	Status      stats.Status `json:"status"`
	VariationID int64        `json:"variationId"`
	DecidedAt   time.Time    `json:"decidedAt"`  // end of the day that decided
	Visitors    int64        `json:"visitors"`   // counted until then, over all variations
	RecordedAt  time.Time    `json:"recordedAt"` // when it was named
}

// SameAs reports whether both name the same variation on the same day.
func (r Recorded) SameAs(other Recorded) bool {
	return r.Status == other.Status && r.VariationID == other.VariationID && r.DecidedAt.Equal(other.DecidedAt)
}

// Named is a conclusion with what else is recorded of it.
type Named struct {
	Recorded
	GoalID     int64 // 0: all goals count
	Metric     string
	Segment    int
	Basis      Basis
	Comparison *Comparison // of the variation at that time
}

// Named returns the conclusion that the days named, or nil if there is none.
func (d *Decision) Named() *Named {
	if d == nil || d.Decided == nil {
		return nil
	}
	p, decided := d.days.plan, d.Decided
	of := decided.Comparisons[decided.Conclusion.Index]
	return &Named{
		Recorded: Recorded{
			Status: decided.Conclusion.Status, VariationID: p.Variations[decided.Conclusion.Index+1].ID,
			DecidedAt: d.days.ends[decided.Look], Visitors: d.days.looks[decided.Look].Visitors,
		},
		GoalID: p.Declared.GoalID, Metric: string(p.Metric), Segment: p.Segment,
		Basis: basisOf(decided.PlannedLook), Comparison: NewComparison(of),
	}
}

// revised reports whether the events now decide otherwise than what was recorded: other
// visitors were counted on that day, or it did not decide. A winner may follow a loser.
func (d *Decision) revised() bool {
	if d == nil || d.Recorded == nil {
		return false
	}
	now := d.Named()
	if now == nil {
		return true
	}
	follows := d.Recorded.Status == stats.StatusLoser && now.Status == stats.StatusWinner &&
		now.VariationID != d.Recorded.VariationID && now.DecidedAt.After(d.Recorded.DecidedAt)
	same := now.SameAs(*d.Recorded) && now.Visitors == d.Recorded.Visitors
	return !follows && !same
}

// revise adds what was recorded to a conclusion that differs from it, and to its text.
func (c *Conclusion) revise(d *Decision, variations []VariationResults) {
	if !d.revised() {
		return
	}
	c.Revised, c.Recorded = true, d.Recorded
	r := d.Recorded
	if now := d.Named(); now != nil && now.SameAs(*r) {
		c.Text += fmt.Sprintf(" Later or removed events changed that day: when it was decided, it had %s visitors.", Grouped(r.Visitors))
		return
	}
	name := fmt.Sprint("variation ", r.VariationID)
	for i := range variations {
		if variations[i].ID == r.VariationID {
			name = variations[i].Name
		}
	}
	word := "better"
	if r.Status == stats.StatusLoser {
		word = "worse"
	}
	c.Text += fmt.Sprintf(" Later or removed events changed this: on %s, the conclusion was that %s is %s.", lastDay(r.DecidedAt), name, word)
}
