package result

import (
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Figures are the figures of a scorecard that its JSON does not have, and tables do.
type Figures struct {
	Goals []GoalFigures
	Rows  []RowFigures  // by row of the scorecard
	Looks []LookFigures // that are computed from the events
}

// LookFigures are the figures of a record. Unlike its sums, they are small.
type LookFigures struct {
	looks.Record                   // without its strata
	Control, Treatment *LookCounts // nil: the record has no sums
}

// LookCounts are the sums of a variation at a look.
type LookCounts struct {
	Visitors, Converted, Goals int64
	Value                      *float64 // nil: not known
}

// NewLookFigures returns the figures of a record.
func NewLookFigures(of looks.Record) LookFigures {
	found := LookFigures{Record: of}
	found.Strata = nil
	if len(of.Strata) == 0 {
		return found
	}
	var control, treatment moments.Moments
	for i := range of.Strata {
		control = control.Merge(of.Strata[i].Control)
		treatment = treatment.Merge(of.Strata[i].Variation)
	}
	found.Control = newLookCounts(&control)
	found.Treatment = newLookCounts(&treatment)
	return found
}

func newLookCounts(of *moments.Moments) *LookCounts {
	return &LookCounts{
		Visitors: of.Visitors, Converted: of.Converted, Goals: of.GoalsReached(),
		Value: Money{of.Value.Sum, of.Unknown > 0}.Float(),
	}
}

// GoalFigures are the counts of a goal.
type GoalFigures struct {
	plan.Measure
	Variations []Counts // in the order of the report
}

// RowFigures are those of a row of a scorecard.
type RowFigures struct {
	Goal      int        // index in Goals
	LookLifts []*float64 // lifts at the last look, by variation; nil: no look is about the row
}

// Size returns the approximate size, in bytes.
func (f *Figures) Size() int {
	const perCount, perLift, perLook = 100, 16, 700
	size := perLook * len(f.Looks)
	for i := range f.Goals {
		size += perCount * len(f.Goals[i].Variations)
	}
	for i := range f.Rows {
		size += perLift * (4 + len(f.Rows[i].LookLifts))
	}
	return size
}

// ScorecardFigures returns the figures of the scorecard.
func (r *Report) ScorecardFigures() *Figures {
	found := &Figures{Looks: r.computedLooks}
	goals := map[*sliceSums]int{}
	for _, row := range r.Scorecard {
		at, known := goals[row.sums]
		if !known {
			at = len(found.Goals)
			goals[row.sums] = at
			of := GoalFigures{Measure: row.plan.Measure()}
			for i := range row.result.Variations {
				of.Variations = append(of.Variations, row.result.Variations[i].Counts)
			}
			found.Goals = append(found.Goals, of)
		}
		figures := RowFigures{Goal: at}
		if row.Role == RolePrimary || row.guardrail >= 0 {
			for i := range row.Variations {
				figures.LookLifts = append(figures.LookLifts, row.Variations[i].lookLift)
			}
		}
		found.Rows = append(found.Rows, figures)
	}
	return found
}

// Increment is what a day adds to the counts of a variation.
type Increment struct {
	Day         time.Time // its start
	VariationID int64
	Counts
}

// NewIncrements returns what each day adds to the counts of a plan, from the daily steps. The sums over the days are
// the counts of the report. Days without visitors and events are left out.
func NewIncrements(p *plan.Plan, steps []moments.Step) []Increment {
	type cell struct{ bucket, variation int64 }
	var order []cell
	days := map[cell]moments.Moments{}
	total := sliceSums{counted: map[int64]moments.Moments{}}
	for i := range steps {
		step := &steps[i]
		isExcluded := step.MultiExposed && p.MultipleExposures == catalogue.ExcludeMultiExposed
		isIncluded := !step.ExposedBefore && !step.Immature && !isExcluded
		isKnown := p.IndexOfVariation(step.VariationID) >= 0
		if !isIncluded || !isKnown || step.IsEmpty() {
			continue
		}
		at := cell{step.Bucket, step.VariationID}
		if _, has := days[at]; !has {
			order = append(order, at)
		}
		days[at] = days[at].Merge(step.Moments)
		total.counted[step.VariationID] = total.counted[step.VariationID].Merge(step.Moments)
	}
	total.spreadUnknown(p)
	increments := make([]Increment, 0, len(order))
	for _, at := range order {
		m := days[at]
		increments = append(increments, Increment{
			Day: time.Unix(at.bucket*int64(24*time.Hour/time.Second), 0).UTC(), VariationID: at.variation,
			Counts: total.countsOf(&m),
		})
	}
	return increments
}

// countsOf returns the counts of moments.
func (c *sliceSums) countsOf(m *moments.Moments) Counts {
	money := func(a *moments.Amounts) Money { return Money{a.Sum, c.unknown > 0} }
	return Counts{
		Visitors: m.Visitors, Views: m.Views, ConvertedVisitors: m.Converted, GoalsReached: m.GoalsReached(),
		Value: money(&m.Value), Profit: money(&m.Profit), ExtraValue: money(&m.ExtraValue),
	}
}

// Float returns the amount as a number; nil: it is not known.
func (m Money) Float() *float64 {
	if m.Withheld {
		return nil
	}
	if m.Units == nil {
		return new(float64)
	}
	units, _ := m.Units.Float64()
	return new(units / schema.MoneyScale)
}
