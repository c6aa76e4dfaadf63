package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"

	lru "github.com/hashicorp/golang-lru/v2"
)

// decisions caches the results of each subject's looks, including those at breakdown slices,
// until the events of the subject change.
type decisions struct {
	analyzer   *looks.Analyzer
	analyses   *lru.Cache[string, dated[*looks.Analysis]]
	breakdowns *lru.Cache[string, dated[map[string]*looks.Analysis]]
}

// dated is a cached value and the version of the subject's facts from which it was read.
type dated[T any] struct {
	read    T
	version uint64
}

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
	breakdowns, err := lru.New[string, dated[map[string]*looks.Analysis]](maxBreakdowns)
	if err != nil {
		panic(err)
	}
	return &decisions{analyzer: looks.NewAnalyzer(), analyses: analyses, breakdowns: breakdowns}
}

// readOnce returns the cached result for the key. It calls read again only if the subject's facts
// have changed.
func readOnce[T any](ctx context.Context, e *Engine, kept *lru.Cache[string, dated[T]], key string, x *source.ReportQuery, read func() (T, error)) (T, error) {
	version, known := e.ResultsVersion(ctx, x.Subject)
	if known {
		if last, found := kept.Get(key); found && last.version == version {
			return last.read, nil
		}
	}
	found, err := read()
	if err == nil && known {
		kept.Add(key, dated[T]{found, version})
	}
	return found, err
}

// cachedAnalysis returns the results of the looks at the declared question, from the cache if
// possible.
func (e *Engine) cachedAnalysis(ctx context.Context, x *source.ReportQuery) (*looks.Analysis, error) {
	return readOnce(ctx, e, e.decisions.analyses, analysisKey(x.Plan), x, func() (*looks.Analysis, error) { return e.readAnalysis(ctx, x) })
}

// readAnalysis reads the daily sums for the declared question, the guardrails and the secondary
// goals, and analyzes the looks.
func (e *Engine) readAnalysis(ctx context.Context, x *source.ReportQuery) (*looks.Analysis, error) {
	first, _ := e.firstView(x.Subject)
	p := x.DeclaredPlan(time.Time{})
	recorded, err := e.ledger.RecordedLooks(ctx, looks.DeclarationOf(p))
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	if first.Imported && len(recorded) == 0 {
		of := *x
		of.Plan, of.Outliers, of.CapLimit = p, nil, nil
		found, err := e.readRows(ctx, &of)
		if err != nil {
			return nil, err
		}
		first = first.WithHistory(found.Steps)
	}
	if to := x.Filters.To; !to.IsZero() {
		recorded = slices.DeleteFunc(slices.Clone(recorded), func(r looks.Record) bool { return r.End.After(to) })
	}
	schedule := looks.NewSchedule(p, first, throughOf(x), x.Stored.Newest, recorded)
	return e.decisions.analyzer.AnalyzeLooks(p, schedule, recorded, func(since time.Time, goals []int64) (map[int64][]moments.Step, error) {
		of := *x
		of.Plan, of.Outliers, of.CapLimit = x.DeclaredPlan(since), nil, nil
		of.Request.Cap = nil // the declared ones apply
		found, err := e.readGoals(ctx, &of, goals)
		steps := make(map[int64][]moments.Step, len(found))
		for goal, rows := range found {
			steps[goal] = rows.Steps
		}
		return steps, err
	})
}

// throughOf returns the time up to which looks may have ended: the last acceptance time, or the
// end of the report's window if that is earlier.
func throughOf(x *source.ReportQuery) time.Time {
	if to := x.Filters.To; !to.IsZero() && to.Before(x.Stored.Ingested) {
		return to
	}
	return x.Stored.Ingested
}

// concludeSlices sets the conclusions of the breakdown slices at the same looks.
func (e *Engine) concludeSlices(ctx context.Context, x *source.ReportQuery, a *looks.Analysis, results *result.Report) error {
	key := fmt.Sprint(analysisKey(x.Plan), x.Dimension, x.Top)
	concluded, err := readOnce(ctx, e, e.decisions.breakdowns, key, x, func() (map[string]*looks.Analysis, error) { return e.readSlices(ctx, x, a) })
	if err == nil {
		results.ConcludeSlices(concluded)
	}
	return err
}

// readSlices reads the slices of a breakdown at each look, and analyzes them. The j-th slice that
// reaches enough visitors in each variation gets a part of alpha.
func (e *Engine) readSlices(ctx context.Context, x *source.ReportQuery, a *looks.Analysis) (map[string]*looks.Analysis, error) {
	p, bySlice := x.DeclaredPlan(time.Time{}), looks.NewSlices(a)
	p.Dimension, p.Interval = x.Dimension, ""
	for _, look := range a.Looks {
		whole := &moments.Rows{}
		unknown := map[string]bool{} // slices that are in "(other)" for part of a window
		for _, w := range a.LookWindows(look) {
			found, err := e.readWindow(ctx, x, w, look.End, unknown)
			if err != nil {
				return nil, err
			}
			whole.Slices = append(whole.Slices, found.Slices...)
		}
		large := slices.DeleteFunc(result.LargeSlices(p, whole), func(name string) bool { return unknown[name] })
		bySlice.AddLook(look, large, func(name string) []moments.Row {
			if unknown[name] {
				return nil
			}
			return result.RowsOfSlice(whole, name)
		})
	}
	return e.decisions.analyzer.AnalyzeBreakdown(bySlice), nil
}

// readWindow reads the slices of the visitors of a window up to a time. It reads all visitors
// since the start of the window and subtracts those since its end. A slice that only one of the
// two reads returns is unknown if the other read has an "(other)" slice.
func (e *Engine) readWindow(ctx context.Context, x *source.ReportQuery, w looks.Window, end time.Time, unknown map[string]bool) (*moments.Rows, error) {
	since := func(from time.Time) (*moments.Rows, error) {
		of := *x
		p := x.DeclaredPlan(from)
		p.Dimension, p.Interval = x.Dimension, ""
		of.Plan, of.Outliers, of.CapLimit = p.WithWindowEnd(end), nil, nil
		return e.readRows(ctx, &of)
	}
	found, err := since(w.From)
	if err != nil || !w.To.Before(end) {
		return found, err
	}
	after, err := since(w.To)
	if err != nil {
		return nil, err
	}
	missing := func(in, from *moments.Rows) {
		for _, r := range in.Slices {
			if !r.Others && len(result.RowsOfSlice(from, result.ShownValue(r.Dimension))) == 0 {
				unknown[result.ShownValue(r.Dimension)] = true
			}
		}
	}
	hasOthers := func(in *moments.Rows) bool {
		return slices.ContainsFunc(in.Slices, func(r moments.Row) bool { return r.Others })
	}
	if hasOthers(after) {
		missing(found, after)
	}
	if hasOthers(found) {
		missing(after, found)
	}
	both := &moments.Rows{Slices: slices.Clone(found.Slices)}
	for _, r := range after.Slices {
		if !r.ExposedBefore {
			r.Moments = moments.NoMoments().Subtract(r.Moments)
			both.Slices = append(both.Slices, r)
		}
	}
	return both, nil
}

// canDecide reports whether there is something to decide.
func canDecide(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// analysisKey identifies a declared question and the window's end of a report about it.
func analysisKey(p *plan.Plan) string {
	d := &p.Declared
	key, err := json.Marshal([]any{
		p.Subject, p.Rules, d.GoalID, d.Metric, d.Guardrails, d.Secondary, d.Cap,
		p.Variations, p.MultipleExposures, p.SharePeriods, p.Runs, p.Running, p.Ended, p.Filters.To,
	})
	if err != nil {
		panic(err) // only for an infinite number or NaN, which the catalogue rejects
	}
	return string(key)
}

// AsOfFirstView returns the plan as it was in force when the first view of the subject
// was accepted.
func (e *Engine) AsOfFirstView(p *plan.Plan) *plan.Plan {
	first, viewed := e.firstView(p.Subject)
	if !viewed {
		return p // a change before the first view counts
	}
	return p.AsOf(first.Time, first.Accepted)
}
