package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// ComputeReport computes a report of this moment, including the results of the subject's looks and what its treatments
// are worth. The error is an InvalidError, a StoreError, or the error of the context.
func (e *Engine) ComputeReport(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	version, err := e.ReadVersion(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	p, err = e.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	report, err := e.ComputeReportAt(ctx, p, version)
	if err != nil {
		return nil, err
	}
	report.Checks = report.ChecksAt(report.GeneratedAt)
	if report.Scorecard != nil {
		report.Worth, err = e.ReadWorth(ctx, p, report.WorthReason)
	}
	return report, err
}

// ComputeReportAt computes the report of a plan in force, see PlanInForce, from the data of a version or from newer
// data. The report depends on the data and the catalogue only: it lacks what its treatments are worth, which depends on
// all campaigns, and a warning of silence, which depends on the clock.
func (e *Engine) ComputeReportAt(ctx context.Context, p *plan.Plan, version Version) (*result.Report, error) {
	found, err := e.readReport(ctx, p, version)
	if err != nil {
		return nil, err
	}
	return e.newReport(ctx, p, version, found)
}

// newReport computes a report from its data.
func (e *Engine) newReport(
	ctx context.Context, p *plan.Plan, version Version, found reportData,
) (*result.Report, error) {
	report := result.New(p, found.rows, found.looks)
	if check := report.Checks.SampleRatio; check != nil && check.Mismatch {
		cause, err := e.readSplitCause(ctx, p, version)
		if err != nil {
			return nil, err
		}
		report.Checks.SplitCause = cause
	}
	if err := e.addEvidence(ctx, p, found.rows, report); err != nil {
		return nil, err
	}
	if err := e.addParts(ctx, p, found.rows, report); err != nil {
		return nil, err
	}
	if found.byGoal != nil {
		report.AddScorecard(p, found.byGoal, found.looks)
		report.Decision = result.Decide(p, found.looks, &report.Slice)
	}
	hasLooks := found.looks != nil && p.OfAllVisitors() && p.IsDeclared()
	if hasCurve := p.Expression == nil; hasLooks && hasCurve {
		if err := e.addNovelty(ctx, p, found.looks, report); err != nil {
			return nil, err
		}
	}
	return report, e.addWarnings(ctx, p, version, report)
}

// reportData is what a report is computed from.
type reportData struct {
	looks  *looks.Analysis      // nil: the report is not about the declared question and all visitors
	rows   *moments.Rows        // of the question of the report
	byGoal []result.MeasureRows // of the scorecard; nil: the report has none
}

// readReport judges the looks and reads the sums of a report.
func (e *Engine) readReport(ctx context.Context, p *plan.Plan, version Version) (found reportData, err error) {
	hasScorecard := p.Asked.Scorecard && canDecide(p)
	isDeclared := canDecide(p) && p.OfAllVisitors() && p.IsDeclared()
	if hasScorecard || isDeclared {
		judged, err := e.judgeAt(ctx, p, version)
		if err != nil {
			return found, err
		}
		found.looks = judged.Looks
	}
	if hasScorecard {
		found.rows, found.byGoal, err = e.readScorecard(ctx, p)
		if err != nil {
			return found, err
		}
	}
	if found.rows == nil || p.Dimension != "" || p.Interval != "" {
		found.rows, err = e.facts.ReadRows(ctx, p.Question)
		if err != nil {
			return found, err
		}
	}
	if p.Asked.Complement {
		found.rows, err = e.withEveryone(ctx, p, found.rows)
	}
	return found, err
}

// addParts adds to a report the parts that the request asks for: the series, the curve and the distribution.
func (e *Engine) addParts(ctx context.Context, p *plan.Plan, rows *moments.Rows, report *result.Report) (err error) {
	if p.Interval != "" {
		report.Series, err = e.computeSeries(ctx, p, rows)
		if err != nil {
			return err
		}
	}
	if p.Asked.Curve {
		report.Curve, err = e.computeCurve(ctx, p, rows)
		if err != nil {
			return err
		}
	}
	if p.Asked.Distribution {
		steps, err := e.facts.ReadDistribution(ctx, p.Question, result.ValueBins())
		if err != nil {
			return err
		}
		report.Distribution = result.NewDistribution(p, steps)
	}
	return nil
}

// addWarnings adds to a report the warnings of what its sums do not show.
func (e *Engine) addWarnings(ctx context.Context, p *plan.Plan, version Version, report *result.Report) error {
	if p.OfAllVisitors() && p.IsDeclared() {
		report.AddInteractions(e.interactions.ofSubject(p.Subject))
	}
	var negative int64
	for id, goal := range e.facts.SubjectCounters(p.Subject).Goals {
		if p.GoalID == 0 || id == p.GoalID {
			negative += goal.Negative
		}
	}
	if negative > 0 {
		report.WarnOfNegativeValues(negative)
	}
	unseen, err := e.facts.ReadUnseen(ctx, p.Subject, p.GoalID)
	if err != nil {
		return source.StoreFailure(ctx, err)
	}
	if unseen.IsSuspicious() {
		report.WarnOfUnseen(unseen.WithoutView, unseen.Goals)
	}
	if version.Waiting.Events > 0 {
		report.AddWaiting(version.Waiting)
	}
	report.AddDamage(version.Damage)
	return nil
}

// readSplitCause returns where a sample ratio mismatch comes from. It reads once for all reports about the same
// visitors at a version.
func (e *Engine) readSplitCause(ctx context.Context, p *plan.Plan, version Version) (*result.SplitCause, error) {
	f := &p.Filters
	visitors, err := json.Marshal([]any{
		p.Subject, p.Variations, p.SharePeriods, f.From, f.To, f.Lists, f.Texts, f.Visitors,
	})
	if err != nil {
		return nil, err
	}
	type split struct{ visitors string }
	return valueAt(e, split{string(visitors)}, version, func() (*result.SplitCause, int64, error) {
		by, err := e.readFirstViews(ctx, visitorQuestion(p))
		if err != nil {
			return nil, 0, err
		}
		lost, err := e.facts.ReadLostViews(ctx, visitorQuestion(p))
		if err != nil {
			return nil, 0, err
		}
		cause := result.NewSplitCause(p, by, lost)
		rest := by
		if attribute, values := cause.RestAfter(by); attribute != "" {
			rest, err = e.readFirstViews(ctx, withValues(visitorQuestion(p), attribute, values))
			if err != nil {
				return nil, 0, err
			}
		}
		cause.AddSecond(p, rest)
		const bytes = 4096 // of the parts, about
		return cause, bytes, nil
	})
}

// withValues returns the question with a filter for some of the values of an attribute that its visitors have.
func withValues(q plan.Question, attribute string, values []string) plan.Question {
	f := &q.Filters
	f.Lists = slices.DeleteFunc(slices.Clone(f.Lists),
		func(filter query.ListFilter) bool { return filter.Attribute == attribute })
	f.Texts = slices.DeleteFunc(slices.Clone(f.Texts),
		func(filter query.TextFilter) bool { return filter.Attribute == attribute })
	f.Lists = append(f.Lists, query.ListFilter{Attribute: attribute, Values: values})
	return q
}

// visitorQuestion returns the question of a plan about visitors only.
func visitorQuestion(p *plan.Plan) plan.Question {
	q := p.Question
	q.Cap = nil
	q.ConversionWindow = schema.ConversionWindow{}
	q.Timing = plan.WhenMature
	q.Crossings = false
	return q
}

// readFirstViews reads the visitors of a question by day of the first view, for each of result.SplitAttributes.
func (e *Engine) readFirstViews(ctx context.Context, q plan.Question) (map[query.Dimension][]moments.Step, error) {
	by := map[query.Dimension][]moments.Step{}
	for _, attribute := range result.SplitAttributes {
		steps, err := e.facts.ReadFirstViews(ctx, q, attribute)
		if err != nil {
			return nil, err
		}
		by[attribute] = steps
	}
	return by, nil
}

// withEveryone returns the rows of a report with those of all visitors, whatever their attributes.
func (e *Engine) withEveryone(ctx context.Context, p *plan.Plan, rows *moments.Rows) (*moments.Rows, error) {
	q := p.Question
	q.Filters = q.Filters.OfAllVisitors()
	q.Dimension = ""
	q.Interval = ""
	q.Cap = fixedCap(rows.Cap)
	everyone, err := e.facts.ReadRows(ctx, q)
	if err != nil {
		return nil, err
	}
	both := *rows
	both.Everyone = everyone.Whole
	return &both, nil
}

// readScorecard returns the rows of the goals of a scorecard: the goals that the subject declares, the goal of the
// report, and all goals of the website with events of the subject. The conversion window of a request holds for all. It
// also returns the rows of the report's goal, without breakdown and series.
func (e *Engine) readScorecard(ctx context.Context, p *plan.Plan) (*moments.Rows, []result.MeasureRows, error) {
	goals := append(p.Declared.AllMeasures(), p.Measure())
	for id := range e.facts.SubjectCounters(p.Subject).Goals {
		if _, known := p.FindGoal(id); known {
			goals = append(goals, plan.Measure{GoalID: id, Window: p.WindowOf(id)})
		}
	}
	if p.Asked.ConversionWindow != nil {
		for i := range goals {
			goals[i].Window = p.ConversionWindow
		}
	}
	goals = plan.SortedMeasures(goals)
	found, err := e.facts.ReadMeasures(ctx, p.AboutMeasure(p.Measure()).Question, measuresOf(p, goals))
	if err != nil {
		return nil, nil, err
	}
	var byGoal []result.MeasureRows
	for i, goal := range goals {
		byGoal = append(byGoal, result.MeasureRows{Plan: p.AboutMeasure(goal), Rows: found[i]})
	}
	return found[slices.Index(goals, p.Measure())], byGoal, nil
}

// Limits of a series. With a z-score, each point is a separate report.
const (
	maxPoints       = 1000
	maxZScorePoints = 100
)

// computeSeries returns a point at the end of each bucket, including empty ones, from the first visitor to the last
// counted event. The last point equals the report.
func (e *Engine) computeSeries(ctx context.Context, p *plan.Plan, found *moments.Rows) ([]result.Point, error) {
	steps := found.Steps
	if len(steps) == 0 {
		return []result.Point{}, nil
	}
	first, last := steps[0].Bucket, steps[len(steps)-1].Bucket
	most := int64(maxPoints)
	if p.Filters.ZScore != 0 {
		most = maxZScorePoints
	}
	if n := last - first + 1; n > most {
		const detail = "would return %d points, the maximum is %d: choose a longer interval or a shorter window"
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{
			{Name: query.ParamInterval, Value: string(p.Interval), Detail: fmt.Sprintf(detail, n, most)},
		}}
	}
	if p.Filters.ZScore == 0 {
		return result.CumulateSteps(p, steps), nil
	}
	// Each point is a separate report, with the cap of the whole report.
	var points []result.Point
	for bucket := first; bucket <= last; bucket++ {
		until := p.Question
		until.Filters.To = result.EndOf(p, bucket)
		until.Interval = ""
		until.Cap = fixedCap(found.Cap)
		whole, err := e.facts.ReadRows(ctx, until)
		if err != nil {
			return nil, err
		}
		points = append(points, result.NewPoint(p, bucket, whole.Whole))
	}
	return points, nil
}

// fixedCap returns the cap of a report as an amount, for other reports with the same cap.
func fixedCap(of *moments.AppliedCap) *schema.Cap {
	if of == nil || of.Limit == 0 {
		return nil
	}
	return &schema.Cap{Units: of.Limit}
}

const day = 24 * time.Hour

// computeCurve returns the curve by age of a report with these rows. Without a number of days in the request, it has as
// many that half of the visitors are in the cohort.
func (e *Engine) computeCurve(ctx context.Context, p *plan.Plan, found *moments.Rows) (*result.Curve, error) {
	days := p.Asked.CurveDays
	if days == 0 {
		var err error
		days, err = e.daysOfHalf(ctx, p, found)
		if err != nil {
			return nil, err
		}
	}
	steps, err := e.readAges(ctx, p, days)
	if err != nil {
		return nil, err
	}
	curve := result.NewCurve(p, days, steps, found.Whole)
	first := schema.LaterTime(found.First, p.Filters.From)
	if most := int(curveEnd(p, found).Sub(first) / day); curve.Cohort.Visitors == 0 && p.Asked.CurveDays > 0 &&
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
	ages.Interval = query.Daily
	ages.Dimension = ""
	ages.Timing = plan.ByAge
	ages.Crossings = false
	steps, err := e.facts.ReadSteps(ctx, ages.Question, measuresOf(&ages, []plan.Measure{ages.Measure()}))
	if err != nil {
		return nil, err
	}
	return steps[0], nil
}

// daysOfHalf returns the largest number of days, up to the default, for which half of the visitors are in the cohort.
func (e *Engine) daysOfHalf(ctx context.Context, p *plan.Plan, found *moments.Rows) (int, error) {
	q := p.Question
	q.ConversionWindow = schema.ConversionWindow{}
	q.Cap = nil
	q.Dimension = ""
	q.Interval = query.Daily
	q.Timing = 0
	steps, err := e.facts.ReadVisitorSteps(ctx, q)
	if err != nil {
		return 0, err
	}
	var all, so int64
	for _, step := range steps {
		all += step.Visitors
	}
	for _, step := range steps {
		so += step.Visitors
		if 2*so >= all {
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
// visitors of a look whose first days have passed then. Only late events change that, so it is computed once. The
// report must be about the declared question and all visitors.
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
