package result

import (
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/stats"
)

func pointer[T any](x T) *T { return &x }

func TestPlannedLookInWords(t *testing.T) {
	end := time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		look     *PlannedLook
		visitors int64
		filters  map[string]any
		want     string
	}{
		{nil, 9, nil, ""},
		{&PlannedLook{Time: &end, RequiredVisitors: pointer[int64](20_000), Visitors: pointer[int64](20_013), Segment: 1}, 9, nil, "Planned look: 2026-11-18 (20,013 visitors; 20,000 planned)."},
		{&PlannedLook{RequiredVisitors: pointer[int64](20_000), Segment: 1}, 14_000, nil, "Planned look: not reached yet (14,000 of 20,000 visitors)."},
		{&PlannedLook{RequiredVisitors: pointer[int64](20_000), Segment: 1}, 20_000, nil, "Planned look: at the end of the day in UTC (20,000 of 20,000 visitors)."},
		{&PlannedLook{RequiredVisitors: pointer[int64](20_000), Segment: 1}, 14_000, map[string]any{"device": "mobile"}, "Planned look: not reached yet (20,000 visitors planned)."},
		{&PlannedLook{RequiredVisitors: pointer[int64](20_000), Segment: 2}, 14_000, nil, "Planned look: not reached yet (20,000 visitors planned) in period 2 of equal shares."},
		{&PlannedLook{Segment: 1, Reason: stats.ReasonNoPlannedSample}, 9, nil, "Planned look: none: a metric of values has no planned look without plannedVisitors."},
	} {
		r := Report{PlannedLook: c.look, Filters: c.filters}
		r.Totals.Visitors = c.visitors
		if got := r.PlannedLookInWords(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestDecidedInWords has a winner of the planned look whose effect shrank since.
func TestDecidedInWords(t *testing.T) {
	o := stats.Options{SignificanceLevel: 95, Shares: []float64{.5, .5}, PlannedVisitors: 4000}
	today := NewComparison(stats.Compare(stats.Rate{Visitors: 3000, Converted: 300}, []stats.Sample{stats.Rate{Visitors: 3000, Converted: 326}}, o)[0])
	o.PlannedLook = true
	decided := NewComparison(stats.Compare(stats.Rate{Visitors: 2000, Converted: 200}, []stats.Sample{stats.Rate{Visitors: 2000, Converted: 246}}, o)[0])
	r := Report{CompareMetric: pointer(query.GoalConversionRate), Cell: Cell{
		Variations: []VariationResults{{ID: 0}, {ID: 1, Comparison: today}},
		Conclusion: &Conclusion{Status: stats.StatusWinner, VariationID: pointer[int64](1), DecidedAt: pointer(time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)), Decided: decided},
	}}
	if got, want := r.DecidedInWords(), "Decided on 2026-11-18: lift +23.0 % [+2.8 %, +47.2 %], p = 0.0232; today's figures are in the table."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Variations[1].Comparison = decided
	if got := r.DecidedInWords(); got != "" {
		t.Errorf("%q, though today's figures are the same", got)
	}
}

// TestNoConclusionNoColour checks that a conclusive verdict of another goal or metric
// than the declared one reads like no decision.
func TestNoConclusionNoColour(t *testing.T) {
	of := &Comparison{Verdict: stats.VerdictBetter, Conclusive: pointer(true)}
	cell := Cell{Conclusion: &Conclusion{Status: stats.StatusInconclusive, Reasons: []stats.Reason{stats.ReasonNotDeclared}}}
	if words, judged := cell.VerdictInWords(of), cell.Judged(of); words != "better (no conclusion)" || judged != stats.VerdictInconclusive {
		t.Errorf("%q, %s", words, judged)
	}
	cell.Conclusion.Status = stats.StatusWinner
	if words, judged := cell.VerdictInWords(of), cell.Judged(of); words != "better" || judged != stats.VerdictBetter {
		t.Errorf("%q, %s", words, judged)
	}
}
