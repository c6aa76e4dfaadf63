package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// ComputeReport computes a report, including the results of the subject's looks. The error is an InvalidError, a
// StoreError, or the error of the context.
func (e *Engine) ComputeReport(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	version, err := e.ReadVersion(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	return e.ComputeReportAt(ctx, p, version)
}

// ComputeReportAt computes a report from the data of a version, or from newer data.
func (e *Engine) ComputeReportAt(ctx context.Context, p *plan.Plan, version Version) (*result.Report, error) {
	p, err := e.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	return e.computeReport(ctx, p, version)
}

// computeReport computes the report of a plan in force at the first view.
func (e *Engine) computeReport(ctx context.Context, p *plan.Plan, version Version) (*result.Report, error) {
	var a *looks.Analysis
	if canDecide(p) && (p.Scorecard || p.IsDeclared() && p.OfAllVisitors()) {
		judged, err := e.judgeAt(ctx, p, version)
		if err != nil {
			return nil, err
		}
		a = judged.Looks
	}
	rows, byGoal, err := e.readReport(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.Complement {
		if rows, err = e.withEveryone(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	report := result.New(p, rows, a)
	if err := e.addSplitCause(ctx, p, version, report); err != nil {
		return nil, err
	}
	if p.Interval != "" {
		if report.Series, err = e.computeSeries(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	if p.Curve {
		if report.Curve, err = e.computeCurve(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	if p.Distribution {
		steps, err := e.facts.ReadDistribution(ctx, p.Question, result.ValueBins())
		if err != nil {
			return nil, err
		}
		report.Distribution = result.NewDistribution(p, steps)
	}
	if byGoal != nil {
		report.AddScorecard(p, byGoal, a)
		if err := e.addWorth(ctx, p, a, report); err != nil {
			return nil, err
		}
	}
	if err := e.addNovelty(ctx, p, a, report); err != nil {
		return nil, err
	}
	report.WarnOfNegativeValues(e.negativeGoals(p))
	report.AddWaiting(version.Waiting)
	return report, nil
}

// addSplitCause adds where a sample ratio mismatch comes from. It reads nothing while the split matches, and once for
// all reports about the same visitors at a version.
func (e *Engine) addSplitCause(ctx context.Context, p *plan.Plan, version Version, report *result.Report) (err error) {
	if check := report.Checks.SampleRatio; check == nil || !check.Mismatch {
		return nil
	}
	q := p.Question
	q.Cap, q.ConversionWindow, q.Timing, q.Crossings = nil, schema.ConversionWindow{}, plan.WhenMature, false
	f := &p.Filters
	visitors, err := json.Marshal([]any{p.Subject, p.Variations, p.SharePeriods, f.From, f.To, f.Lists, f.Texts})
	if err != nil {
		return err
	}
	type split struct{ visitors string }
	read := func() (*result.SplitCause, int64, error) {
		by := map[query.Dimension][]moments.Step{}
		for _, attribute := range result.SplitAttributes {
			if by[attribute], err = e.facts.ReadFirstViews(ctx, q, attribute); err != nil {
				return nil, 0, err
			}
		}
		lost, err := e.facts.ReadLostViews(ctx, q)
		const bytes = 4096 // of the parts, about
		return result.NewSplitCause(p, by, lost), bytes, err
	}
	report.Checks.SplitCause, err = valueAt(e, split{string(visitors)}, version, read)
	return err
}

// withEveryone returns the rows of a report with those of all visitors, whatever their attributes.
func (e *Engine) withEveryone(ctx context.Context, p *plan.Plan, rows *moments.Rows) (*moments.Rows, error) {
	q := p.Question
	q.Filters.Lists, q.Filters.Texts, q.Dimension, q.Interval, q.Cap = nil, nil, "", "", fixedCap(rows.Cap)
	everyone, err := e.facts.ReadRows(ctx, q)
	if err != nil {
		return nil, err
	}
	both := *rows
	both.Everyone = everyone.Whole
	return &both, nil
}

// negativeGoals returns the number of events of the goal with values below 0.
func (e *Engine) negativeGoals(p *plan.Plan) (events int64) {
	for id, goal := range e.facts.SubjectCounters(p.Subject).Goals {
		if p.GoalID == 0 || id == p.GoalID {
			events += goal.Negative
		}
	}
	return events
}

// readReport returns the rows of a report and those of the goals of its scorecard; nil: it has none.
func (e *Engine) readReport(ctx context.Context, p *plan.Plan) (*moments.Rows, []result.GoalRows, error) {
	if !p.Scorecard || !canDecide(p) {
		rows, err := e.facts.ReadRows(ctx, p.Question)
		return rows, nil, err
	}
	goals := e.scorecardGoals(p)
	found, err := e.facts.ReadGoals(ctx, p.AboutGoal(p.Goal()).Question, questionsAbout(p, goals))
	if err != nil {
		return nil, nil, err
	}
	var byGoal []result.GoalRows
	for i, goal := range goals {
		byGoal = append(byGoal, result.GoalRows{Plan: p.AboutGoal(goal), Rows: found[i]})
	}
	rows := found[slices.Index(goals, p.Goal())]
	if p.Dimension != "" || p.Interval != "" {
		rows, err = e.facts.ReadRows(ctx, p.Question)
	}
	return rows, byGoal, err
}

// scorecardGoals returns the goals of a scorecard: the goals that the subject declares, the goal of the report, and all
// goals of the website with events of the subject. The conversion window of a request holds for all.
func (e *Engine) scorecardGoals(p *plan.Plan) []plan.GoalWindow {
	goals := append(p.Declared.AllGoals(), p.Goal())
	for id := range e.facts.SubjectCounters(p.Subject).Goals {
		if _, known := p.FindGoal(id); known {
			goals = append(goals, plan.GoalWindow{GoalID: id, Window: p.WindowOf(id)})
		}
	}
	if p.AsksForWindow() {
		for i := range goals {
			goals[i].Window = p.ConversionWindow
		}
	}
	return plan.SortedGoals(goals)
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
	if p.Filters.ZScore != 0 {
		return e.readPoints(ctx, p, found.Cap, first, last)
	}
	return result.CumulateSteps(p, steps), nil
}

// fixedCap returns the cap of a report as an amount, for other reports with the same cap.
func fixedCap(of *moments.Cap) *schema.Cap {
	if of == nil || of.Limit == 0 {
		return nil
	}
	return &schema.Cap{Units: of.Limit}
}

// readPoints computes a separate report for each point. All points use the cap of the whole report.
func (e *Engine) readPoints(
	ctx context.Context, p *plan.Plan, limit *moments.Cap, first, last int64,
) ([]result.Point, error) {
	var points []result.Point
	for bucket := first; bucket <= last; bucket++ {
		until := p.Question
		until.Filters.To, until.Interval, until.Cap = result.EndOf(p, bucket), "", fixedCap(limit)
		found, err := e.facts.ReadRows(ctx, until)
		if err != nil {
			return nil, err
		}
		points = append(points, result.NewPoint(p, bucket, found.Whole))
	}
	return points, nil
}
