package engine

import (
	"context"
	"fmt"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

const day = 24 * time.Hour

// computeCurve returns the curve by age of a report with these rows. Without a number of days in the request, it has as
// many that half of the visitors are in the cohort.
func (e *Engine) computeCurve(ctx context.Context, p *plan.Plan, found *moments.Rows) (*result.Curve, error) {
	days := p.CurveDays
	if days == 0 {
		var err error
		if days, err = e.daysOfHalf(ctx, p, found); err != nil {
			return nil, err
		}
	}
	steps, err := e.readAges(ctx, p, days)
	if err != nil {
		return nil, err
	}
	curve := result.NewCurve(p, days, steps, found.Whole)
	first := schema.LaterTime(found.First, p.Filters.From)
	if most := int(curveEnd(p, found).Sub(first) / day); curve.Cohort.Visitors == 0 && p.CurveDays > 0 &&
		!first.IsZero() {
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{{
			Name: query.ParamCurveDays, Value: fmt.Sprint(days),
			Detail: fmt.Sprintf("no visitor was first exposed so long ago: must be at most %d", most),
		}}}
	}
	return curve, nil
}

// readAges reads what each day of age adds to the sums of the visitors whose first view was at least some days ago.
func (e *Engine) readAges(ctx context.Context, p *plan.Plan, days int) ([]moments.Step, error) {
	ages := *p
	ages.ConversionWindow = schema.ConversionWindow{To: time.Duration(days) * day}
	ages.Interval, ages.Dimension, ages.Timing, ages.Crossings = query.Daily, "", plan.ByAge, false
	steps, err := e.facts.ReadSteps(ctx, ages.Question, questionsAbout(&ages, []plan.GoalWindow{ages.Goal()}))
	if err != nil {
		return nil, err
	}
	return steps[0], nil
}

// daysOfHalf returns the largest number of days, up to the default, for which half of the visitors are in the cohort.
func (e *Engine) daysOfHalf(ctx context.Context, p *plan.Plan, found *moments.Rows) (int, error) {
	q := p.Question
	q.ConversionWindow, q.Cap, q.Dimension, q.Interval, q.Timing = schema.ConversionWindow{}, nil, "", query.Daily, 0
	steps, err := e.facts.ReadVisitorSteps(ctx, q)
	if err != nil {
		return 0, err
	}
	var all, so int64
	for _, step := range steps {
		all += step.Visitors
	}
	for _, step := range steps {
		if so += step.Visitors; 2*so >= all {
			median := time.UnixMilli((step.Bucket + 1) * day.Milliseconds())
			days := int(curveEnd(p, found).Sub(median) / day)
			return min(max(days, query.LeastCurveDays), query.DefaultCurveDays), nil
		}
	}
	return query.LeastCurveDays, nil
}

// curveEnd returns the time at which the visitors of a curve must be mature.
func curveEnd(p *plan.Plan, found *moments.Rows) time.Time {
	if to := p.Filters.To; !to.IsZero() && to.Before(found.Complete) {
		return to
	}
	return found.Complete
}

// addNovelty adds what the looks that decide found about novelty: it compares the ages of first conversions among the
// visitors of a look whose first days have passed then. Only late events change that, so it is computed once. The report
// must be about the declared question and all visitors.
func (e *Engine) addNovelty(ctx context.Context, p *plan.Plan, a *looks.Analysis, report *result.Report) error {
	type novelty struct {
		question string
		look     int
	}
	for _, look := range a.DecidingLooks() {
		key := novelty{questionKey(p), look.Number}
		found, err := cache.ValueAt(e.cache, key, nil, func() ([]result.Novelty, int64, error) {
			about := *p.DeclaredReport()
			about.Filters.From = a.EndOfDay(1).Add(-day)
			about.Filters.To = look.End.Add(about.ConversionWindow.Maturity())
			days, err := e.daysOfHalf(ctx, &about, &moments.Rows{Complete: about.Filters.To})
			if err != nil {
				return nil, 0, err
			}
			steps, err := e.readAges(ctx, &about, days)
			if err != nil {
				return nil, 0, err
			}
			found := result.NewCurve(&about, days, steps, nil).Novelty
			return found, int64(len(found)) * noveltyBytes, nil
		})
		if err != nil {
			return err
		}
		report.AddNovelty(found)
	}
	return nil
}

// noveltyBytes is the approximate size of the novelty of a variation.
const noveltyBytes = 128
