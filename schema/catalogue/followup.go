package catalogue

import (
	"fmt"
	"slices"
	"time"

	"lifthouse/schema"
)

// FollowUp declares readings of the later orders of a campaign: a metric of its primary goal, of the visitors of the
// looks, within each of some windows. Each window has one reading, once it has ended for the last visitor and the
// orders have settled. Readings describe, and decide nothing.
type FollowUp struct {
	Metric  string                    `yaml:"metric" json:"metric" default:"valuePerVisitor"` // of FollowUpMetrics
	Windows []schema.ConversionWindow `yaml:"windows" json:"windows"`                         // 1 to MaxFollowUps, ascending
}

// FollowUpMetrics are the metrics that a follow-up may have.
var FollowUpMetrics = []string{"valuePerVisitor", "profitPerVisitor"}

// MaxFollowUps is the maximum number of windows of a follow-up, which share the error rate of the campaign.
const MaxFollowUps = 4

// minFollowUp is the shortest window of a follow-up: a shorter one is a metric with looks.
const minFollowUp = 30 * 24 * time.Hour

// checkFollowUp finds faults in the follow-up of a campaign.
func (c *checker) checkFollowUp(path string, f *FollowUp, primaryGoal int64) {
	if f == nil {
		return
	}
	c.AddIf(primaryGoal == 0, path+".metric", f.Metric, "needs primaryGoalId: it is a metric of the primary goal")
	c.oneOf(path+".metric", f.Metric, FollowUpMetrics)
	n := len(f.Windows)
	c.AddIf(n < 1 || n > MaxFollowUps, path+".windows", n, fmt.Sprintf("must be 1 to %d windows", MaxFollowUps))
	for i, w := range f.Windows {
		at := fmt.Sprintf("%s.windows[%d]", path, i)
		isWhole := w.From == 0 && w.Settle == 0 && w.To%(24*time.Hour) == 0
		c.AddIf(!isWhole || w.To < minFollowUp, at, w, fmt.Sprintf("must be whole days from %dd to %dd, such as 90d",
			minFollowUp/(24*time.Hour), schema.MaxWindow/(24*time.Hour)))
		c.AddIf(i > 0 && w.To <= f.Windows[i-1].To, at, w, "must be longer than the window before it")
	}
}

// followUpTime returns how long after its end a campaign is followed at most; 0: it is not. A day is for the pass of
// the recorder that reads the last window.
func (p *Plan) followUpTime() time.Duration {
	if p.FollowUp == nil {
		return 0
	}
	maturity := DefaultMaturity
	if p.Maturity != nil {
		maturity = *p.Maturity
	}
	last := p.FollowUp.Windows[len(p.FollowUp.Windows)-1]
	return last.Maturity() + time.Duration(maturity)*time.Hour + 24*time.Hour
}

// resolveGoal returns the follow-up whose windows have the time after which orders of the goal have settled; nil: there
// is none.
func (f *FollowUp) resolveGoal(of *Terms, goal int64) *FollowUp {
	if f == nil {
		return nil
	}
	resolved := &FollowUp{Metric: f.Metric, Windows: slices.Clone(f.Windows)}
	if primary := of.goals[goal]; primary.Settle != nil {
		for i := range resolved.Windows {
			resolved.Windows[i].Settle = time.Duration(*primary.Settle)
		}
	}
	return resolved
}
