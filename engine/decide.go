package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// decisions keeps what the looks of subjects found, and their looks at the cells of
// breakdowns, as long as the events of the subjects do not change.
type decisions struct {
	analyzer *looks.Analyzer
	mu       sync.Mutex
	analyses *simplelru.LRU[string, datedAnalysis]
	cells    *simplelru.LRU[string, datedCells]
}

// dated says of which version of a subject's events something was read.
type dated struct {
	version uint64
	at      time.Time // when it was read
	through time.Time // acceptance time of the last event
}

// datedAnalysis is what the looks of a subject found, at a version of its events.
type datedAnalysis struct {
	dated
	analysis *looks.Analysis
}

// datedCells are the looks at the cells of a breakdown, at a version of the events.
type datedCells struct {
	dated
	cells map[string]*looks.Analysis
}

// maxDaysAge is how long the looks of a large subject without a rollup are used although new
// events arrived. Reading them takes the store several times as long as a report, and they
// change only by late events, until the next day is full.
const maxDaysAge = time.Minute

// The limits bound the memory: about 1 KiB for each look and variation.
const (
	maxDecisions  = 1000
	maxBreakdowns = 300
)

func newDecisions() *decisions {
	analyses, err := simplelru.NewLRU[string, datedAnalysis](maxDecisions, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	cells, err := simplelru.NewLRU[string, datedCells](maxBreakdowns, nil)
	if err != nil {
		panic(err)
	}
	return &decisions{analyzer: looks.NewAnalyzer(), analyses: analyses, cells: cells}
}

// decideAndReport computes a report and what the looks of the subject found, and returns the
// name of its source.
func (e *Engine) decideAndReport(ctx context.Context, x *source.Execution, s state) (*result.Report, string, error) {
	if !decides(x.Plan) {
		return reportOf(ctx, x, s, nil)
	}
	a, err := e.analysis(ctx, x, s)
	if err != nil {
		return nil, "", err
	}
	var results *result.Report
	var from string
	if x.Scorecard {
		results, from, err = e.scorecardReport(ctx, x, s, a)
	} else {
		results, from, err = reportOf(ctx, x, s, a)
	}
	if err == nil && x.Dimension != "" && x.IsDeclared() && x.OfAllVisitors() {
		err = e.concludeCells(ctx, x, s, a, results)
	}
	return results, from, err
}

// version returns the version of the events that a report reads, or nil if it is not
// known.
func (e *Engine) version(ctx context.Context, x *source.Execution, s *state) *uint64 {
	version, known := e.Version(ctx, x.Subject)
	if !known || x.AllEvents && s.rollup != nil && s.rollup.Lacks {
		return nil // it is that of the rollup
	}
	return &version
}

// analysis returns what the looks of the declared question found. They are read again only
// if the events changed.
func (e *Engine) analysis(ctx context.Context, x *source.Execution, s state) (*looks.Analysis, error) {
	key, version := analysisKey(x.Plan), e.version(ctx, x, &s)
	if version != nil {
		e.decisions.mu.Lock()
		last, kept := e.decisions.analyses.Get(key)
		e.decisions.mu.Unlock()
		if kept && last.isOf(*version, &s, e.store.Limits) {
			return last.analysis, nil
		}
	}
	found, err := e.readAnalysis(ctx, x, s)
	if err == nil && version != nil {
		e.decisions.mu.Lock()
		e.decisions.analyses.Add(key, datedAnalysis{dated{*version, time.Now(), s.through}, found})
		e.decisions.mu.Unlock()
	}
	return found, err
}

// readAnalysis reads the daily sums of the declared question, of the guardrails and of the
// secondary goals, and analyzes the looks.
func (e *Engine) readAnalysis(ctx context.Context, x *source.Execution, s state) (*looks.Analysis, error) {
	first, _, err := e.store.FirstView(ctx, x.Subject)
	if err != nil {
		return nil, err
	}
	p := x.Declaration(time.Time{})
	recorded, err := e.ledger.Recorded(ctx, looks.DeclarationOf(p))
	if err != nil {
		return nil, err
	}
	if to := x.Filters.To; !to.IsZero() {
		recorded = slices.DeleteFunc(slices.Clone(recorded), func(r looks.Record) bool { return r.End.After(to) })
	}
	schedule := looks.NewSchedule(p, first, throughOf(x, s), x.Stored.Newest, recorded)
	cuts := schedule.Cuts(p)
	goals := []int64{p.CountedGoal()}
	for _, g := range p.Declared.Guardrails {
		goals = append(goals, g.GoalID)
	}
	for _, g := range p.Declared.Secondary {
		goals = append(goals, g.GoalID)
	}
	slices.Sort(goals)
	goals = slices.Compact(goals)
	steps := map[int64][][]visit.Step{}
	for _, cut := range cuts {
		of := *x
		of.Plan, of.Outliers, of.Limited = x.Declaration(cut), nil, nil
		of.Request.Cap = nil // the declared ones apply
		s.declined = nil
		found, _, err := readGoals(ctx, &of, s, goals)
		if err != nil {
			return nil, err
		}
		for goal, rows := range found {
			steps[goal] = append(steps[goal], rows.Steps)
		}
	}
	sumsOf := func(goal int64, metric query.Metric) *looks.Sums {
		about := p.About(goal).WithMetric(metric)
		return looks.NewSums(about, cuts, steps[goal])
	}
	var guardrails, secondary []*looks.Sums
	for _, g := range p.Declared.Guardrails {
		guardrails = append(guardrails, sumsOf(g.GoalID, g.Metric))
	}
	for _, g := range p.Declared.Secondary {
		secondary = append(secondary, sumsOf(g.GoalID, g.Metric))
	}
	return e.decisions.analyzer.Analyze(schedule, looks.NewSums(p, cuts, steps[p.CountedGoal()]), guardrails, secondary, recorded), nil
}

// throughOf returns the time up to which looks may have ended: the data of the report, or the
// end of its window.
func throughOf(x *source.Execution, s state) time.Time {
	if to := x.Filters.To; !to.IsZero() && to.Before(s.through) {
		return to
	}
	return s.through
}

// concludeCells sets the conclusions of the cells of a breakdown, from the same looks. The
// j-th cell of its dimension to have enough visitors in each variation has a part of alpha.
// Visitors of other shares, and breaks between weeks, leave the cells without looks.
func (e *Engine) concludeCells(ctx context.Context, x *source.Execution, s state, a *looks.Analysis, results *result.Report) error {
	window, one := a.OneWindow()
	if !one {
		return nil
	}
	key, version := fmt.Sprint(analysisKey(x.Plan), x.Dimension, x.Top), e.version(ctx, x, &s)
	if version != nil {
		e.decisions.mu.Lock()
		last, kept := e.decisions.cells.Get(key)
		e.decisions.mu.Unlock()
		if kept && last.isOf(*version, &s, e.store.Limits) {
			results.ConcludeCells(last.cells)
			return nil
		}
	}
	p := x.Declaration(window)
	p.Dimension, p.Interval = x.Dimension, ""
	cells := looks.NewCells(a)
	for _, look := range a.Looks {
		of := *x
		of.Plan, of.Outliers, of.Limited = p.Until(look.End), nil, nil
		s.declined = nil
		found, _, err := read(ctx, &of, s)
		if err != nil {
			return err
		}
		cells.Add(look, result.LargeCells(p, found), func(name string) []visit.Row { return result.RowsOfCell(found, name) })
	}
	concluded := cells.Analyses()
	if version != nil {
		e.decisions.mu.Lock()
		e.decisions.cells.Add(key, datedCells{dated{*version, time.Now(), s.through}, concluded})
		e.decisions.mu.Unlock()
	}
	results.ConcludeCells(concluded)
	return nil
}

// decides reports whether there is something to decide.
func decides(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// analysisKey identifies a declared question and the window's end of a report about it.
func analysisKey(p *plan.Plan) string {
	prior := ""
	if p.Rules.Prior != nil {
		prior = fmt.Sprint(*p.Rules.Prior)
	}
	rules := p.Rules
	rules.Prior = nil
	return fmt.Sprint(p.Subject, rules, prior, p.Declared.GoalID, p.Declared.Metric, p.Declared.Guardrails, p.Declared.Secondary, p.Declared.Cap,
		p.Variations, p.MultipleExposures, p.SharePeriods, p.Runs, p.Running, p.Ended, p.Filters.To)
}

// isOf reports whether something may be used for a version of the events. Without a rollup,
// that of an earlier version suffices for a while.
func (d *dated) isOf(version uint64, s *state, limits source.Limits) bool {
	return d.version == version || s.rollup == nil && d.isRecent(s, limits)
}

// isRecent reports whether something of a large subject was read less than maxDaysAge ago,
// and on the day of the last event.
func (d *dated) isRecent(s *state, limits source.Limits) bool {
	day := func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
	return s.events > limits.MaxInProcess() && time.Since(d.at) < maxDaysAge && day(d.through).Equal(day(s.through))
}

// asOfFirstView returns the plan as it was in force when the first view of the subject
// was accepted.
func (e *Engine) asOfFirstView(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	if !p.PlanChanged() {
		return p, nil
	}
	first, viewed, err := e.store.FirstView(ctx, p.Subject)
	switch {
	case err != nil:
		return nil, err
	case !viewed:
		return p, nil // a change before the first view counts
	}
	return p.AsOf(first.Accepted), nil
}
