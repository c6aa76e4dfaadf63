package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lifthouse/engine/facts"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
	"lifthouse/stats"
)

// TestCurveEqualsTheFold compares each point of random curves with the fold of the same cohort, and the last one with
// the report that has all days as its conversion window.
func TestCurveEqualsTheFold(t *testing.T) {
	const worldDays = 12
	w := worlds.New(7)
	w.Days, w.Visitors = worldDays, 60
	var events []schema.Event
	var ids []int64
	for id := int64(1); id <= 6; id++ {
		ids, events = append(ids, id), append(events, w.Events(id, 400)...)
	}
	conn := schematest.OpenMigrated(t)
	e, r := openEngine(conn, nil)
	ingested := worlds.Start.AddDate(0, 0, worldDays).Add(time.Hour)
	must.OK(t, schema.InsertEvents(t.Context(), conn, events, ingested))
	must.Get(r.RefreshFacts(t.Context()))(t)
	in, owned, cohorts := stored{e, events}, drawResources(w, ids...), 0
	worlds.Check(t, tier.Of(40, 2_000), func(t *rapid.T, random worlds.Rand) {
		r := drawRequest(worlds.Of(random), 1+random.Int64N(6))
		r.Dimension, r.Interval, r.Filters.ZScore = "", "", 0
		if r.Operation == query.WidgetResults { // nothing is compared
			return
		}
		r.Curve, r.CurveDays = true, 2+random.IntN(8)
		if r.Filters.From.IsZero() && random.IntN(2) == 0 {
			r.Filters.To = worlds.Start.AddDate(0, 0, random.IntN(2*worldDays)) // also after the last event
		}
		p := must.Get(plan.New(r, owned))(t)
		report, err := e.ComputeReport(t.Context(), p)
		if invalid := (*query.InvalidError)(nil); errors.As(err, &invalid) {
			return // no visitor is old enough
		}
		must.OK(t, err)
		c := report.Curve
		must.Equal(t, c.Cohort.Days, r.CurveDays, "cohort %+v with %d points, want %d days", c.Cohort, len(c.Points),
			r.CurveDays)
		must.Equal(t, len(c.Points), r.CurveDays, "cohort %+v with %d points, want %d days", c.Cohort, len(c.Points),
			r.CurveDays)
		var limit *moments.AppliedCap // that of the cohort
		if p.Cap != nil {
			whole := *p
			whole.ConversionWindow = schema.ConversionWindow{To: time.Duration(r.CurveDays) * day}
			rows := must.Get(e.facts.ReadRows(t.Context(), whole.Question))(t)
			limit = rows.Cap
		}
		for _, point := range c.Points {
			until := *p
			until.ConversionWindow = schema.ConversionWindow{To: time.Duration(point.Day) * day}
			x := (&reportQuery{Stored: facts.Stored{
				Ingested: *report.DataThrough,
				Newest:   *report.NewestEvent,
			}}).about(&until)
			x.cohort = time.Duration(r.CurveDays) * day
			x.CapLimit = limit
			sums := foldPlainly(x, in.events)[all]
			check.That(t, sums.visitors-sums.immature == c.Cohort.Visitors || p.MultipleExposures != "first",
				"%d visitors, want %d", c.Cohort.Visitors, sums.visitors-sums.immature)
			for _, v := range point.Variations {
				if v.Comparison == nil || v.Simultaneous == nil {
					continue
				}
				checkNested(t, v.Simultaneous.Difference.Interval, v.Comparison.Difference.Interval)
				checkNested(t, v.Simultaneous.Improvement.Interval, v.Comparison.Improvement.Interval)
			}
			for i, v := range point.Variations {
				want, n := 0.0, 0
				for _, visit := range sums.visits[p.Variations[i].ID] {
					want, n = want+float64(visit[p.Metric]), n+1
				}
				if n == 0 || p.Metric == query.AverageValue || v.Value == nil {
					continue
				}
				cohorts++
				if want /= float64(n); !p.Metric.IsRate() && p.Metric != query.GoalsPerVisitor {
					want /= schema.MoneyScale
				}
				got := *v.Value
				check.That(t, got-want <= 1e-9*max(1, want, -want), "day %d of %d, variation %d: %v, want %v\n%+v",
					point.Day, r.CurveDays, v.ID, got, want, p)
				check.That(t, want-got <= 1e-9*max(1, want, -want), "day %d of %d, variation %d: %v, want %v\n%+v",
					point.Day, r.CurveDays, v.ID, got, want, p)
			}
		}
		r.Curve, r.ConversionWindow = false, &schema.ConversionWindow{To: time.Duration(r.CurveDays) * day}
		whole := must.Get(plan.New(r, owned))(t)
		last := must.Get(e.ComputeReport(t.Context(), whole))(t)
		for i, v := range last.Variations {
			at := c.Points[r.CurveDays-1].Variations[i]
			check.Equal(t, fmt.Sprint(deref(at.Value)), fmt.Sprint(deref(v.Metrics.EstimateOf(p.Metric).Value)),
				"the last point\n%+v", p)
			if v.Comparison != nil && at.Comparison != nil {
				got := written(t, at.Comparison)
				want := written(t,
					result.CurveEffects{Difference: v.Comparison.Difference, Improvement: v.Comparison.Improvement})
				check.That(t, got == want || len(last.Variations) == 0 || last.Totals.Visitors == 0,
					"the last point has %s, the report %s\n%+v", got, want, p)
			}
		}
	})
	check.That(t, cohorts >= 100, "only %d values compared", cohorts)
}

// checkNested checks that an interval of the whole curve contains that of a single point. An interval that cannot be
// computed contains everything.
func checkNested(t worlds.TB, whole, single *stats.Interval) {
	t.Helper()
	if whole == nil || single == nil {
		return
	}
	text := written(t, whole) + " does not contain " + written(t, single)
	const rounding = 1e-9
	if whole[0] != nil {
		isBelow := single[0] != nil && *whole[0] <= *single[0]+rounding*math.Abs(*single[0])
		check.That(t, isBelow, "%s", text)
	}
	if whole[1] != nil {
		isAbove := single[1] != nil && *whole[1] >= *single[1]-rounding*math.Abs(*single[1])
		check.That(t, isAbove, "%s", text)
	}
}

func deref(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// TestNoveltyIsFound stores a campaign of 5,000 visitors a variation, whose treatment converts more on the first days
// only, and one whose treatment converts equally more at every age. Only the first has a finding, at the look that
// decides, and it stands in the text of the decision.
func TestNoveltyIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(59, 2))
	for _, test := range []struct {
		name        string
		early, late float64 // shares of the visitors of the treatment who convert at once, and later
		want        string
	}{
		{"fades", 0.20, 0.05, result.Fades},
		{"constant", 0.15, 0.15, ""},
	} {
		x := newTrial(t, firstDay)
		x.campaign.PlannedDays = 14
		x.apply()
		var events []schema.Event
		for visitor := range 12_000 {
			early, late := 0.1, 0.1
			if visitor%2 == 1 {
				early, late = test.early, test.late
			}
			view := x.view(firstDay.Add(time.Duration(random.Int64N(int64(28*day)))).Truncate(time.Millisecond),
				visitor%2)
			events = append(events, view)
			age := time.Duration(-1)
			switch u := random.Float64(); {
			case u < early:
				age = time.Duration(random.Int64N(int64(2 * day)))
			case u < early+late:
				age = 2*day + time.Duration(random.Int64N(int64(11*day)))
			}
			if age >= 0 {
				events = append(events, goalAfter(view, age.Truncate(time.Millisecond)))
			}
		}
		must.OK(t, schema.InsertEvents(t.Context(), x.conn, events, firstDay.AddDate(0, 0, 45)))
		x.refresh()
		report := x.report(func(r *query.Request) { r.Scorecard, r.Curve = true, true })
		n := report.Curve.Novelty[0]
		check.Equal(t, n.Finding, test.want, "%s: novelty %s, decision %q", test.name, inJSON(t, n),
			report.Decision.Text)
		check.That(t, n.PValue != nil, "%s: novelty %s, decision %q", test.name, inJSON(t, n), report.Decision.Text)
		check.That(t, report.Curve.Cohort.Days == query.DefaultCurveDays, "%s: cohort %+v", test.name,
			report.Curve.Cohort)
		t.Logf("%s: %s; %s", test.name, inJSON(t, n), report.Decision.Text)
	}
}
