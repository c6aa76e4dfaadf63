package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"

	lru "github.com/hashicorp/golang-lru/v2"
)

// decisions keeps what the looks of subjects found, and their looks at the cells of
// breakdowns, as long as the events of the subjects do not change.
type decisions struct {
	analyzer *looks.Analyzer
	analyses *lru.Cache[string, dated[*looks.Analysis]]
	cells    *lru.Cache[string, dated[map[string]*looks.Analysis]]
}

// dated is something that was read at a version of a subject's events.
type dated[T any] struct {
	read    T
	version uint64
	at      time.Time // when it was read
	through time.Time // acceptance time of the last event
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
	analyses, err := lru.New[string, dated[*looks.Analysis]](maxDecisions)
	if err != nil {
		panic(err) // only for a size below 1
	}
	cells, err := lru.New[string, dated[map[string]*looks.Analysis]](maxBreakdowns)
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

// readOnce returns what read returned for the key at the version of the events. It is read
// again only if the events changed.
func readOnce[T any](ctx context.Context, e *Engine, kept *lru.Cache[string, dated[T]], key string, x *source.Execution, s state, read func() (T, error)) (T, error) {
	version := e.version(ctx, x, &s)
	if version != nil {
		if last, found := kept.Get(key); found && last.isOf(*version, &s, e.store.Limits) {
			return last.read, nil
		}
	}
	found, err := read()
	if err == nil && version != nil {
		kept.Add(key, dated[T]{found, *version, time.Now(), s.through})
	}
	return found, err
}

// analysis returns what the looks of the declared question found.
func (e *Engine) analysis(ctx context.Context, x *source.Execution, s state) (*looks.Analysis, error) {
	return readOnce(ctx, e, e.decisions.analyses, analysisKey(x.Plan), x, s, func() (*looks.Analysis, error) { return e.readAnalysis(ctx, x, s) })
}

// readAnalysis reads the daily sums of the declared question, of the guardrails and of the
// secondary goals, and analyzes the looks.
func (e *Engine) readAnalysis(ctx context.Context, x *source.Execution, s state) (*looks.Analysis, error) {
	first, _, err := e.firstView(ctx, x.Subject)
	if err != nil {
		return nil, err
	}
	p := x.Declaration(time.Time{})
	recorded, err := e.ledger.Recorded(ctx, looks.DeclarationOf(p))
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	if to := x.Filters.To; !to.IsZero() {
		recorded = slices.DeleteFunc(slices.Clone(recorded), func(r looks.Record) bool { return r.End.After(to) })
	}
	schedule := looks.NewSchedule(p, first, throughOf(x, s), x.Stored.Newest, recorded)
	return e.decisions.analyzer.Analyze(p, schedule, recorded, func(since time.Time, goals []int64) (map[int64][]visit.Step, error) {
		of := *x
		of.Plan, of.Outliers, of.Limited = x.Declaration(since), nil, nil
		of.Request.Cap = nil // the declared ones apply
		s.declined = nil
		found, _, err := readGoals(ctx, &of, s, goals)
		steps := make(map[int64][]visit.Step, len(found))
		for goal, rows := range found {
			steps[goal] = rows.Steps
		}
		return steps, err
	})
}

// throughOf returns the time up to which looks may have ended: the data of the report, or the
// end of its window.
func throughOf(x *source.Execution, s state) time.Time {
	if to := x.Filters.To; !to.IsZero() && to.Before(s.through) {
		return to
	}
	return s.through
}

// concludeCells sets the conclusions of the cells of a breakdown, from the same looks.
func (e *Engine) concludeCells(ctx context.Context, x *source.Execution, s state, a *looks.Analysis, results *result.Report) error {
	key := fmt.Sprint(analysisKey(x.Plan), x.Dimension, x.Top)
	concluded, err := readOnce(ctx, e, e.decisions.cells, key, x, s, func() (map[string]*looks.Analysis, error) { return readCells(ctx, x, s, e.decisions.analyzer, a) })
	if err == nil {
		results.ConcludeCells(concluded)
	}
	return err
}

// readCells reads the cells of a breakdown at each look, and analyzes them. The j-th cell to
// have enough visitors in each variation has a part of alpha.
func readCells(ctx context.Context, x *source.Execution, s state, analyzer *looks.Analyzer, a *looks.Analysis) (map[string]*looks.Analysis, error) {
	s.declined = nil
	p, cells := x.Declaration(time.Time{}), looks.NewCells(a)
	p.Dimension, p.Interval = x.Dimension, ""
	for _, look := range a.Looks {
		windows, whole := []*visit.Rows{}, &visit.Rows{}
		unknown := map[string]bool{} // cells that are in "(other)" of a part of a window
		for _, w := range a.Windows(look) {
			found, err := readWindow(ctx, x, s, w, look.End, unknown)
			if err != nil {
				return nil, err
			}
			windows, whole.Cells = append(windows, found), append(whole.Cells, found.Cells...)
		}
		large := slices.DeleteFunc(result.LargeCells(p, whole), func(name string) bool { return unknown[name] })
		cells.Add(look, large, func(name string) [][]visit.Row {
			if unknown[name] {
				return nil
			}
			rows := make([][]visit.Row, len(windows))
			for i, found := range windows {
				rows[i] = result.RowsOfCell(found, name)
			}
			return rows
		})
	}
	return analyzer.Cells(cells), nil
}

// readWindow reads the cells of the visitors of a window up to a time. It subtracts those
// whose first view is after the window, and adds the names of the cells of only one of the
// two to unknown, if the other has further values in "(other)".
func readWindow(ctx context.Context, x *source.Execution, s state, w looks.Window, end time.Time, unknown map[string]bool) (*visit.Rows, error) {
	since := func(from time.Time) (*visit.Rows, error) {
		of := *x
		p := x.Declaration(from)
		p.Dimension, p.Interval = x.Dimension, ""
		of.Plan, of.Outliers, of.Limited = p.Until(end), nil, nil
		found, _, err := read(ctx, &of, s)
		return found, err
	}
	found, err := since(w.From)
	if err != nil || !w.To.Before(end) {
		return found, err
	}
	after, err := since(w.To)
	if err != nil {
		return nil, err
	}
	missing := func(in, from *visit.Rows) {
		for _, r := range in.Cells {
			if !r.Others && len(result.RowsOfCell(from, result.ShownValue(r.Dimension))) == 0 {
				unknown[result.ShownValue(r.Dimension)] = true
			}
		}
	}
	hasOthers := func(in *visit.Rows) bool {
		return slices.ContainsFunc(in.Cells, func(r visit.Row) bool { return r.Others })
	}
	if hasOthers(after) {
		missing(found, after)
	}
	if hasOthers(found) {
		missing(after, found)
	}
	both := &visit.Rows{Cells: slices.Clone(found.Cells)}
	for _, r := range after.Cells {
		if !r.ExposedBefore {
			m := visit.NoMoments()
			m.Subtract(&r.Moments)
			r.Moments = m
			both.Cells = append(both.Cells, r)
		}
	}
	return both, nil
}

// decides reports whether there is something to decide.
func decides(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// analysisKey identifies a declared question and the window's end of a report about it.
func analysisKey(p *plan.Plan) string {
	d := &p.Declared
	key, err := json.Marshal([]any{
		p.Subject, p.Rules, d.GoalID, d.Metric, d.Guardrails, d.Secondary, d.Cap,
		p.Variations, p.MultipleExposures, p.SharePeriods, p.Runs, p.Running, p.Ended, p.Filters.To,
	})
	if err != nil {
		panic(err) // only for a number that is not finite, which the catalogue refuses
	}
	return string(key)
}

// isOf reports whether something may be used for a version of the events. Without a rollup,
// that of an earlier version suffices for a while.
func (d *dated[T]) isOf(version uint64, s *state, limits source.Limits) bool {
	return d.version == version || s.rollup == nil && s.facts == nil && d.isRecent(s, limits)
}

// isRecent reports whether something of a large subject was read less than maxDaysAge ago,
// and on the day of the last event.
func (d *dated[T]) isRecent(s *state, limits source.Limits) bool {
	day := func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
	return s.events > limits.MaxInProcess() && time.Since(d.at) < maxDaysAge && day(d.through).Equal(day(s.through))
}

// asOfFirstView returns the plan as it was in force when the first view of the subject
// was accepted.
func (e *Engine) asOfFirstView(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	if !p.PlanChanged() {
		return p, nil
	}
	first, viewed, err := e.firstView(ctx, p.Subject)
	switch {
	case err != nil:
		return nil, err
	case !viewed:
		return p, nil // a change before the first view counts
	}
	return p.AsOf(first.Accepted), nil
}
