package result

import (
	"fmt"
	"math"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
)

// PlanEstimate says what the plan of a campaign can detect.
type PlanEstimate struct {
	VisitorsPerDay float64 // over all variations
	Days           int     // of the plan
	Detectable     float64 // the lift that the plan finds with its power, as a fraction
}

// EstimatePlan estimates what a plan can detect from the visitors of a campaign. traffic is the
// plan of this campaign's report about the declared goal and metric; first is its first view.
// The estimate is nil without visitors in the last full days, without conversions, or if no
// lift can be found.
func EstimatePlan(p, traffic *plan.Plan, found *moments.Rows, first time.Time) *PlanEstimate {
	all := sumRows(found.Whole, traffic.MultipleExposures)
	j := all.compareVariations(traffic)
	daily := perDay(&j.total, first, found.Through) * p.Allocation / traffic.Allocation
	if !(daily > 0) || math.IsInf(daily, 1) {
		return nil
	}
	size, reason := j.sampleSize(p, daily)
	if reason != "" {
		return nil
	}
	planned, days := daily*float64(p.Rules.PlannedDays), p.Rules.PlannedDays
	if p.Rules.PlannedVisitors > 0 {
		planned = float64(p.Rules.PlannedVisitors)
		days = int(math.Ceil(planned / daily))
	}
	lift, reason := size.DetectableLift(planned)
	if reason != "" {
		return nil
	}
	return &PlanEstimate{daily, days, *lift}
}

// InWords returns a line for the declaration of the plan. mde is the minimum effect of the
// campaign in per cent.
func (e *PlanEstimate) InWords(mde float64) string {
	text := fmt.Sprintf("%d days detect a lift of %s at %s visitors a day", e.Days, FormatPercent(e.Detectable, 1, true), FormatCount(int64(math.Round(e.VisitorsPerDay))))
	if e.Detectable > mde/100 {
		return text + fmt.Sprintf(": too short for the minimum effect of %v %%", mde)
	}
	return text + fmt.Sprintf(", and the minimum effect is %v %%", mde)
}
