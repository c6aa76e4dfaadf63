package engine

import (
	"context"
	"slices"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
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
	return e.computeReport(ctx, e.AsOfFirstView(p), version)
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
	_, span := source.Tracer.Start(ctx, "stats")
	report := result.New(p, rows, a)
	span.End()
	if p.Interval != "" {
		if report.Series, err = e.computeSeries(ctx, p, rows); err != nil {
			return nil, err
		}
	}
	if a != nil && p.Dimension != "" && p.IsDeclared() && p.OfAllVisitors() {
		if err := e.concludeSlices(ctx, p, version, a, report); err != nil {
			return nil, err
		}
	}
	if byGoal != nil {
		report.AddScorecard(p, byGoal, a)
	}
	report.AddWaiting(version.Waiting)
	return report, nil
}

// readReport returns the rows of a report and those of the goals of its scorecard; nil: it has none.
func (e *Engine) readReport(ctx context.Context, p *plan.Plan) (*moments.Rows, []result.GoalRows, error) {
	if !p.Scorecard || !canDecide(p) {
		rows, err := e.facts.ReadRows(ctx, p.Question)
		return rows, nil, err
	}
	goals := e.scorecardGoals(p)
	found, err := e.readGoals(ctx, p.AboutGoal(p.GoalID), goals)
	if err != nil {
		return nil, nil, err
	}
	var byGoal []result.GoalRows
	for _, goal := range goals {
		byGoal = append(byGoal, result.GoalRows{Plan: p.AboutGoal(goal), Rows: found[goal]})
	}
	rows := found[p.GoalID]
	if p.Dimension != "" || p.Interval != "" {
		rows, err = e.facts.ReadRows(ctx, p.Question)
	}
	return rows, byGoal, err
}

// scorecardGoals returns the goals of a scorecard: the goals that the subject declares, the goal of
// the report, and all goals of the website with events of the subject.
func (e *Engine) scorecardGoals(p *plan.Plan) []int64 {
	goals := p.Declared.AllGoals()
	goals = append(goals, p.GoalID)
	for id := range e.facts.SubjectCounters(p.Subject).Goals {
		if _, known := p.FindGoal(id); known {
			goals = append(goals, id)
		}
	}
	slices.Sort(goals)
	return slices.Compact(goals)
}
