package result

import (
	"maps"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// deviceRows returns rows of 1,000 visitors in each variation with each device, and the
// converted ones of control and treatment.
func deviceRows(converted map[string][2]int64) *visit.Rows {
	found := &visit.Rows{}
	for device, of := range converted {
		for variation, n := range of {
			found.Cells = append(found.Cells, visit.Row{
				Segment: visit.Segment{VariationID: int64(variation), Dimension: device},
				Moments: visit.Moments{Visitors: 1000 + int64(len(device)), Converted: n},
			})
		}
	}
	found.Whole = found.Cells
	return found
}

var lookDay = time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)

func byDevice() *plan.Plan {
	p := &plan.Plan{
		Top: 2, ControlShare: 50, SharesSince: plan.OpenFrom, MultipleExposures: catalogue.ExcludeMultiExposed,
		Rules:      plan.Rules{Compare: true, Methodology: catalogue.Frequentist, SignificanceLevel: 95, Power: 80, MDE: 20},
		Variations: []plan.Variation{{ID: 0, Name: "Control", Control: true, Share: 50}, {ID: 1, Name: "Green", Share: 50}},
	}
	p.Metric, p.Declared.Metric, p.Dimension = query.GoalConversionRate, query.GoalConversionRate, query.ByDevice
	return p
}

// TestCellsThatAreGoneCount checks that Holm's family at the planned look has all cells of
// that look.
func TestCellsThatAreGoneCount(t *testing.T) {
	p := byDevice()
	decision := &Decision{Decision: stats.Decision{PlannedLook: 0}, days: &Days{plan: p, ends: []time.Time{lookDay}, looks: []stats.Look{{Visitors: 4000}}, through: lookDay}}
	now := deviceRows(map[string][2]int64{"mobile": {100, 100}})
	now.Newest = lookDay.Add(time.Hour)
	for _, test := range []struct {
		name string
		then map[string][2]int64
		want stats.Status
	}{
		{"p = .043 alone", map[string][2]int64{"mobile": {100, 129}}, stats.StatusWinner},
		{"p = .043 beside another cell", map[string][2]int64{"mobile": {100, 129}, "tv": {100, 100}}, stats.StatusInconclusive},
		{"p = .011 beside another cell", map[string][2]int64{"mobile": {100, 137}, "tv": {100, 100}}, stats.StatusWinner},
		{"p = .011 beside four others, which are three cells", map[string][2]int64{"mobile": {100, 137}, "desktop": {100, 100}, "tv": {100, 100}, "car": {100, 100}, "tablet": {100, 100}}, stats.StatusWinner},
	} {
		r := New(p, now, decision)
		earlier := &EarlierCells{}
		if !r.NeedsPlannedLook(earlier, p.DeclaredCells()) || !r.LookEnd().Equal(lookDay) {
			t.Fatalf("%s: the planned look is not needed", test.name)
		}
		earlier = earlier.WithPlannedLook(p, deviceRows(test.then))
		if r.NeedsPlannedLook(earlier, p.DeclaredCells()) {
			t.Errorf("%s: the planned look is needed again", test.name)
		}
		if _, needed := r.NextCheckpoint(earlier); needed || len(decision.days.checkpoints(time.Time{})) != 1 {
			t.Errorf("%s: without an effect, ranks are needed", test.name)
		}
		r.Conclude(earlier)
		if got := r.Breakdown[0].Conclusion; len(r.Breakdown) != 1 || got.Status != test.want {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// TestSmallCells checks that a cell counts only with 100 visitors in each variation with a
// share, and that "(other)" has no rank.
func TestSmallCells(t *testing.T) {
	p := byDevice()
	p.Variations = append(p.Variations, plan.Variation{ID: 2, Name: "Red", Share: 50}, plan.Variation{ID: 3, Name: "Blue"})
	found := &visit.Rows{}
	for device, visitors := range map[string][4]int64{"large": {500, 100, 100, 0}, "small": {500, 500, 99, 500}, "rare": {100, 100, 100, 100}} {
		for variation, n := range visitors {
			found.Cells = append(found.Cells, visit.Row{Segment: visit.Segment{VariationID: int64(variation), Dimension: device}, Moments: visit.Moments{Visitors: n, Converted: n / 5}})
		}
	}
	earlier := (&EarlierCells{}).WithPlannedLook(p, found).WithCheckpoint(p, found)
	if names := slices.Sorted(maps.Keys(earlier.planned)); !slices.Equal(names, []string{"(other)", "large"}) {
		t.Errorf("at the planned look: %v", names)
	}
	if !slices.Equal(earlier.Order(), []string{"large"}) {
		t.Errorf("order %v", earlier.Order())
	}
	p.Top = 3
	if again := earlier.WithCheckpoint(p, found); !slices.Equal(again.Order(), []string{"large", "rare"}) || len(earlier.Order()) != 1 {
		t.Errorf("order %v, then %v", earlier.Order(), again.Order())
	}
}

func TestCheckpoints(t *testing.T) {
	const day = 24 * time.Hour
	days := func(numbers ...int) *Days {
		d := &Days{plan: &plan.Plan{}, through: lookDay.Add(100 * day)}
		for _, n := range numbers {
			d.ends, d.looks = append(d.ends, lookDay.Add(time.Duration(n)*day)), append(d.looks, stats.Look{Visitors: int64(n)})
		}
		return d
	}
	live, ended := days(1, 2, 3, 4, 5), days(1, 2, 3, 4, 5)
	live.through, ended.through, ended.plan.Ended = lookDay.Add(6*day), lookDay.Add(5*day), true
	for _, test := range []struct {
		name string
		days *Days
		to   int
		want []int
	}{
		{"none", days(), 0, nil},
		{"no visitors", days(0), 0, nil},
		{"one day", days(1), 0, []int{1}},
		{"until the last day", days(1, 2, 3, 9), 0, []int{1, 2, 4, 8, 16}},
		{"exactly the last day", days(1, 4), 0, []int{1, 2, 4}},
		{"days without visitors before", days(0, 3, 6), 0, []int{3, 4, 6}},
		{"the eighth day is not full", live, 0, []int{1, 2, 4}},
		{"ended", ended, 0, []int{1, 2, 4, 8}},
		{"up to day 4", ended, 4, []int{1, 2, 4}},
		{"up to day 3", ended, 3, []int{1, 2}},
	} {
		var to time.Time
		if test.to > 0 {
			to = lookDay.Add(time.Duration(test.to) * day)
		}
		var got []int
		for _, end := range test.days.checkpoints(to) {
			got = append(got, int(end.Sub(lookDay)/day))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
