package looks

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// visitor has the days of a visitor's first view and goals, in hours since March 2.
type visitor struct {
	variation int64
	crossed   int // 0: never
	first     int
	goals     []int
}

// randomVisitors returns visitors of variations 0 to 2 over 24 days.
func randomVisitors(r *rand.Rand) []visitor {
	all := make([]visitor, 400)
	for i := range all {
		all[i] = visitor{variation: r.Int64N(3), first: r.IntN(24 * 24)}
		if r.IntN(20) == 0 {
			all[i].crossed = all[i].first + 1 + r.IntN(400)
		}
		for range r.IntN(3) {
			all[i].goals = append(all[i].goals, all[i].first+r.IntN(200))
		}
	}
	return all
}

func hour(h int) time.Time { return at(2, 0).Add(time.Duration(h) * time.Hour) }

// stepsSince returns the daily series of the visitors whose first view is at or after a cut.
func stepsSince(p *plan.Plan, all []visitor, cut time.Time) []moments.Step {
	add := map[int64]map[key]*moments.Moments{}
	of := func(h int, at key) *moments.Moments {
		bucket := hour(h).UnixMilli() / day.Milliseconds()
		if add[bucket] == nil {
			add[bucket] = map[key]*moments.Moments{}
		}
		if add[bucket][at] == nil {
			m := moments.NoMoments()
			add[bucket][at] = &m
		}
		return add[bucket][at]
	}
	for _, v := range all {
		if hour(v.first).Before(cut) {
			continue
		}
		at := key{
			variation: v.variation, period: plan.PeriodAt(p.SharePeriods, hour(v.first)),
			multiExposed: v.crossed != 0,
		}
		if at.multiExposed {
			at.crossed = hour(v.crossed).UnixMilli() / day.Milliseconds()
		}
		of(v.first, at).Visitors++
		if len(v.goals) > 0 {
			of(slices.Min(v.goals), at).Converted++
		}
	}
	var steps []moments.Step
	for bucket, of := range add {
		for at, m := range of {
			steps = append(steps, moments.Step{Bucket: bucket, Crossed: at.crossed, GroupMoments: moments.GroupMoments{
				GroupKey: moments.GroupKey{VariationID: at.variation, MultiExposed: at.multiExposed, Period: at.period},
				Moments:  *m,
			}})
		}
	}
	slices.SortFunc(steps, func(a, b moments.Step) int { return int(a.Bucket - b.Bucket) })
	return steps
}

// TestStrataEqualTheFold compares the sums of looks with a count of the visitors one by one, over breaks, changed
// shares and both rules for multi-exposed visitors.
func TestStrataEqualTheFold(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	for range 50 {
		all := randomVisitors(r)
		p := &plan.Plan{
			Runs:    []catalogue.Run{run(hour(9), hour(24*r.IntN(14)+60)), run(hour(24*16+r.IntN(48)), time.Time{})},
			Running: true,
		}
		p.MultipleExposures = []string{catalogue.ExcludeMultiExposed, catalogue.FirstVariation}[r.IntN(2)]
		p.SharePeriods = []plan.SharePeriod{{Since: plan.OpenFrom}, {Since: hour(r.IntN(24 * 20))}}
		p.Variations = []plan.Variation{{ID: 0}, {ID: 1}, {ID: 2}}
		p.Rules.LookRules = plan.LookRules{PlannedDays: 28, Maturity: 0}
		s := NewSchedule(p, live(hour(10)), hour(24*25), hour(24*25), nil)
		cuts := SeriesCuts(s)
		steps := make([][]moments.Step, len(cuts))
		for i, cut := range cuts {
			steps[i] = stepsSince(p, all, cut)
		}
		sums := newSums(p, cuts, steps)
		check := func(spans []Window, end time.Time) {
			for _, st := range sums.strataUntil(spans, end) {
				for id := range int64(3) {
					var want stats.Rate
					for _, v := range all {
						first := hour(v.first)
						in := plan.PeriodAt(p.SharePeriods, first) == st.period &&
							slices.ContainsFunc(spans,
								func(o Window) bool { return !first.Before(o.From) && first.Before(o.To) })
						crossed := v.crossed != 0 &&
							hour(v.crossed).Before(end) // a later view of another variation does not matter
						if !in || !first.Before(end) || v.variation != id || crossed &&
							p.MultipleExposures == catalogue.ExcludeMultiExposed {
							continue
						}
						want.Visitors++
						if len(v.goals) > 0 && hour(slices.Min(v.goals)).Before(end) {
							want.Converted++
						}
					}
					m := st.counted[id]
					must.Equal[stats.Sample](t, SampleOf(&m, query.GoalConversionRate), want,
						"until %s, period %d, variation %d", end, st.period, id)
				}
			}
		}
		for _, l := range s.Looks {
			check(s.LookWindows(l.End), l.End)
		}
		for _, end := range s.fullDays() {
			check(s.sinceLooks(end), end)
		}
	}
}

// TestSupportsNeedsTheChance checks that a Bayesian look supports a verdict only if the chance agrees with its
// boundary.
func TestSupportsNeedsTheChance(t *testing.T) {
	z, chance := 3.0, 0.96
	q := Question{Rows: [][]LookRow{{{LookResult: stats.LookResult{Z: &z, Significant: true}}}}}
	check.That(t, q.SupportsVerdict(0, stats.VerdictBetter, 0.05), "a frequentist look above its boundary supports what it does not say")
	check.That(t, !q.SupportsVerdict(0, stats.VerdictWorse, 0.05), "a frequentist look above its boundary supports what it does not say")
	check.That(t, !q.SupportsVerdict(0, stats.VerdictInconclusive, 0.05), "a frequentist look above its boundary supports what it does not say")
	q.Rows[0][0].Chance = &chance
	if q.SupportsVerdict(0, stats.VerdictBetter, 0.05) || q.FindOutcome(0.05) != nil {
		t.Error("a chance of 96 % is enough at alpha .05")
	}
	chance = 0.98
	if !q.SupportsVerdict(0, stats.VerdictBetter, 0.05) || q.FindOutcome(0.05) == nil {
		t.Error("a chance of 98 % is not enough at alpha .05")
	}
}
