package result

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// FollowUp is a reading of the later orders of a campaign: what the visitors of its looks spent within a window after
// their first view. It is the effect of having been in a variation during the campaign: after a ship, everybody has the
// variation, so it is not the value of a longer time with it. It decides nothing.
type FollowUp struct {
	Metric      query.Metric    `json:"metric"`
	Window      string          `json:"window"`               // such as 90d
	Visitors    int64           `json:"visitors,omitempty"`   // of the cohort, over all variations
	PublishedAt *time.Time      `json:"publishedAt"`          // when it is or was due; null: the last look is not known yet
	RecordedAt  *time.Time      `json:"recordedAt,omitempty"` // nil: computed from the events
	Variations  []FollowUpOfOne `json:"variations,omitempty"` // with control; none: it is not due
	Reason      stats.Reason    `json:"reason,omitempty"`     // why it has no variations
	Text        string          `json:"text"`
}

// FollowUpOfOne is a reading of one variation.
type FollowUpOfOne struct {
	ID         int64          `json:"id"`
	Name       string         `json:"name"`
	Value      *float64       `json:"value"`      // the mean over the visitors of the cohort; null: an amount is unknown
	Comparison *LookVariation `json:"comparison"` // null for control
	Finding    *string        `json:"finding"`    // More or Less; null: no difference is shown, or control
}

// The findings of a reading.
const (
	More = "more"
	Less = "less"
)

// MeaningOfFollowUp says what a reading of later orders is, and what it is not.
const MeaningOfFollowUp = "The effect of having been in a variation during the campaign. After a ship, everybody has " +
	"the variation, so this is not the value of a longer time with it. It decides nothing."

// newFollowUps returns the readings of a subject.
func newFollowUps(a *looks.Analysis) (all []FollowUp) {
	for i := range a.FollowUp {
		all = append(all, NewFollowUp(&a.FollowUp[i]))
	}
	return all
}

// NewFollowUp returns a reading as it is shown.
func NewFollowUp(of *looks.Reading) FollowUp {
	p := of.Plan
	f := FollowUp{
		Metric: p.Metric, Window: fmt.Sprintf("%dd", of.Window()), PublishedAt: optionalTime(of.Published),
	}
	if len(of.Rows) == 0 {
		f.Reason = reasonNotMature
		f.Text = f.metricInWords() + " is read when the last look of the campaign is known."
		switch {
		case of.HasNoLook:
			f.Reason = stats.ReasonTooEarly
			f.Text = f.metricInWords() + " is not read: the campaign ended before its first look."
		case !of.Published.IsZero():
			f.Text = f.metricInWords() + " is due on " + of.Published.UTC().Format(time.DateOnly) + "."
		}
		return f
	}
	f.Visitors = of.Rows[0].Visitors
	f.RecordedAt = optionalTime(of.Rows[0].RecordedAt)
	control := FollowUpOfOne{ID: p.Variations[0].ID, Name: p.Variations[0].Name}
	control.Value = meanOfStrata(p, of.Rows[0].Strata, func(s looks.RowStratum) moments.Moments { return s.Control })
	f.Variations = append(f.Variations, control)
	var sentences []string
	for i := range of.Rows {
		row := &of.Rows[i]
		shown := NewLookVariation(row)
		one := FollowUpOfOne{ID: row.VariationID, Comparison: &shown, Finding: findingOf(row)}
		if at := p.IndexOfVariation(row.VariationID); at >= 0 {
			one.Name = p.Variations[at].Name
		}
		one.Value = meanOfStrata(p, row.Strata, func(s looks.RowStratum) moments.Moments { return s.Variation })
		f.Variations = append(f.Variations, one)
		sentences = append(sentences, f.findingInWords(&one, control.Name, levelOfFollowUp(p)))
	}
	f.Text = strings.Join(sentences, " ")
	return f
}

// meanOfStrata returns the mean value of the visitors of all strata; nil: there are none, or an amount is unknown.
func meanOfStrata(
	p *plan.Plan, strata []looks.RowStratum, of func(looks.RowStratum) moments.Moments,
) *float64 {
	var all moments.Moments
	for _, s := range strata {
		all = all.Merge(of(s))
	}
	mean, isMean := looks.SampleOfQuestion(&all, &p.Question).(stats.Mean)
	if !isMean || mean.Unknown || all.Visitors == 0 {
		return nil
	}
	return &mean.Mean
}

// findingOf returns whether visitors of a variation spent more or less than those of control; nil: neither is shown.
func findingOf(row *looks.LookRow) *string {
	switch row.SignificantDirection() {
	case 1:
		return new(More)
	case -1:
		return new(Less)
	}
	return nil
}

// metricInWords returns what is read: Value per visitor within 90 days.
func (f *FollowUp) metricInWords() string {
	name := "Value"
	if f.Metric == query.ProfitPerVisitor {
		name = "Profit"
	}
	return name + " per visitor within " + strings.TrimSuffix(f.Window, "d") + " days"
}

// levelOfFollowUp returns the confidence level of the intervals of each reading, in per cent: the error rate of the
// campaign is divided by the number of readings.
func levelOfFollowUp(p *plan.Plan) string {
	alpha := statsOptions(p).Alpha() / float64(len(p.Declared.FollowUp))
	return strconv.FormatFloat(math.Round(1000*(1-alpha))/10, 'f', -1, 64) + " %"
}

// findingInWords returns a sentence about one variation.
func (f *FollowUp) findingInWords(one *FollowUpOfOne, control, level string) string {
	of := one.Comparison
	about := fmt.Sprintf("%s: %s against %s", f.metricInWords(), one.Name, control)
	lift := of.Improvement
	if lift.Value == nil || lift.Interval == nil {
		if of.Reason == "" {
			return about + " is not known."
		}
		return about + " is not known: " + wording.ExplainReason(of.Reason) + "."
	}
	write := func(x float64) string { return wording.FormatLift(x, lift.Interval) }
	figures := fmt.Sprintf("%s (%s interval %s)", write(*lift.Value), level, wording.RangeInWords(lift.Interval, write))
	if one.Finding == nil {
		return about + " shows no difference: " + figures + "."
	}
	return about + " is " + *one.Finding + ": " + figures + "."
}
