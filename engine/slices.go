package engine

import (
	"context"
	"slices"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
)

// concludeSlices sets the conclusions of the breakdown slices of a report at the same looks.
func (e *Engine) concludeSlices(ctx context.Context, p *plan.Plan, version Version, a *looks.Analysis, report *result.Report) error {
	type breakdown struct {
		question  string
		dimension query.Dimension
	}
	key := breakdown{questionKey(p), p.Dimension}
	concluded, err := valueAt(e, key, version, func() (map[string]*looks.Analysis, int64, error) {
		found, err := e.readSlices(ctx, p, a)
		bytes := int64(0)
		for _, slice := range found {
			bytes += slice.Bytes()
		}
		return found, bytes, err
	})
	if err == nil {
		report.ConcludeSlices(concluded)
	}
	return err
}

// readSlices reads the slices of a breakdown at each look, and analyzes them. The j-th slice that
// reaches enough visitors in each variation gets a part of alpha.
func (e *Engine) readSlices(ctx context.Context, p *plan.Plan, a *looks.Analysis) (map[string]*looks.Analysis, error) {
	declared, bySlice := p.DeclaredPlan(), looks.NewSlices(a)
	declared.Dimension, declared.Interval = p.Dimension, ""
	for _, look := range a.Looks {
		whole := &moments.Rows{}
		unknown := map[string]bool{} // slices that are in "(other)" for part of a window
		for _, w := range a.LookWindows(look) {
			found, err := e.readWindow(ctx, declared.Question, w, look.End, unknown)
			if err != nil {
				return nil, err
			}
			whole.Slices = append(whole.Slices, found.Slices...)
		}
		large := slices.DeleteFunc(result.LargeSlices(declared, whole), func(name string) bool { return unknown[name] })
		bySlice.AddLook(look, large, func(name string) []moments.Row {
			if unknown[name] {
				return nil
			}
			return result.RowsOfSlice(whole, name)
		})
	}
	return e.analyzer.AnalyzeBreakdown(bySlice), nil
}

// readWindow reads the slices of the visitors of a window up to a time. It reads all visitors
// since the start of the window and subtracts those since its end. A slice that only one of the
// two reads returns is unknown if the other read has an "(other)" slice.
func (e *Engine) readWindow(
	ctx context.Context, q plan.Question, w looks.Window, end time.Time, unknown map[string]bool,
) (*moments.Rows, error) {
	q.Filters.From, q.Filters.To = w.From, end
	found, err := e.facts.ReadRows(ctx, q)
	if err != nil || !w.To.Before(end) {
		return found, err
	}
	q.Filters.From = w.To
	after, err := e.facts.ReadRows(ctx, q)
	if err != nil {
		return nil, err
	}
	addMissing := func(read, other *moments.Rows) {
		for _, r := range read.Slices {
			if !r.Others && len(result.RowsOfSlice(other, result.ShownValue(r.Dimension))) == 0 {
				unknown[result.ShownValue(r.Dimension)] = true
			}
		}
	}
	hasOthers := func(read *moments.Rows) bool {
		return slices.ContainsFunc(read.Slices, func(r moments.Row) bool { return r.Others })
	}
	if hasOthers(after) {
		addMissing(found, after)
	}
	if hasOthers(found) {
		addMissing(after, found)
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
