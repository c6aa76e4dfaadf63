// Package facts maintains the table of facts: the rows that package fold makes of each visitor's events, and sums of
// these rows. A refresh folds the visitors with new events. It inserts the changes, and the position up to which events
// are folded, as one atomic block. Reports are statements over the table.
package facts

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/fold"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Reader answers questions from the facts of a store.
type Reader struct {
	Shards
	Store *source.Store
}

// answer reads the answer to a question.
type answer struct {
	plan.Question
	Reader
	goals    []int64             // several goals whose events are summed apart; nil: GoalID
	stored   Stored              // totals of the stored events of the subject
	outliers *moments.Outliers   // bounds of goal values; nil: no z-score, or they are not read yet
	limit    *moments.AppliedCap // of the total values of visitors; nil: no cap, or it is not read yet
	states   []state             // of the shards, at the moment of the answer
}

// state is the state of a report's subject on a server. All statements of the report read this server.
type state struct {
	*server
	Position
	SubjectCounters
	days   bool // whether the subject has cells by day
	recent recentVisitors
}

const (
	// mostTries is the maximum number of times that a report is read. It is read again if a refresh changed the facts
	// of its subject.
	mostTries = 10
	// holdingTry is the first try during which no refresh of an embedded store stores facts. Earlier ones do not hold
	// off refreshes, because a waiting refresh holds off all reports.
	holdingTry = 2
	// patience is the pause before a retry, in which a server may fetch missing facts.
	patience = 50 * time.Millisecond
)

// ReadRows returns the sums of the visitors of a question.
func (r Reader) ReadRows(ctx context.Context, q plan.Question) (found *moments.Rows, err error) {
	wanted := factSums{visitors: true, goals: []int64{q.GoalID}}
	wanted.pair = q.Expression != nil
	err = r.atOnePosition(ctx, q, func(x answer) (err error) {
		x, err = x.withLimits(ctx)
		if err != nil {
			return err
		}
		s, err := x.readBreakdown(ctx, wanted)
		if err != nil {
			return err
		}
		found = s.reportRows()
		if err := s.readForeign(ctx, found); err != nil {
			return err
		}
		found.Carried, err = s.readCarried(ctx)
		if err != nil || x.Interval == "" {
			return err
		}
		x.outliers = nil // steps are before the removal of outliers
		steps := x.newSums()
		err = steps.countOnServers(ctx, wanted, (*counting).readSteps)
		found.Steps = steps.bucketSteps()
		return err
	})
	return found, err
}

// readBreakdown reads the sums of a report, by the values of its dimension if it has one. It first uses the values that
// an earlier breakdown found. If it meets no other value, it has them all, and need not look for the most frequent
// ones.
func (x answer) readBreakdown(ctx context.Context, wanted factSums) (*sums, error) {
	s := x.newSums()
	if kept := x.keptValues(); kept != nil {
		s.setTops([][]string{kept})
		if err := s.countOnServers(ctx, wanted, (*counting).readTotals); err != nil {
			return nil, err
		}
		hasOthers := false
		for at, m := range s.of {
			hasOthers = hasOthers || at.rank == 0 && m.Visitors > 0
		}
		if !hasOthers {
			return s, nil
		}
		s = x.newSums()
	}
	var tops [][]string
	for _, attribute := range x.Dimension.Attributes() {
		of := x
		of.Dimension = query.Dimension(attribute)
		of.Top = min(x.Top, plan.MaxBreakdown)
		top, err := of.readTop(ctx)
		if err != nil {
			return nil, err
		}
		tops = append(tops, top)
	}
	s.setTops(tops)
	return s, s.countOnServers(ctx, wanted, (*counting).readTotals)
}

// atOnePosition calls read until the subject's facts do not change during a call. Each statement reads the facts that
// are stored at that moment. If the position is the same before and after all statements, they have read the same
// facts.
func (r Reader) atOnePosition(ctx context.Context, q plan.Question, read func(answer) error) error {
	for try := range mostTries {
		moved, err := r.readOnce(ctx, q, try >= holdingTry, read)
		if err == nil && !moved {
			return nil
		}
		if err != nil && !r.canRetry(err) {
			return source.StoreFailure(ctx, err)
		}
		if errors.Is(err, ErrIncomplete) {
			select {
			case <-time.After(patience):
			case <-ctx.Done():
				return source.StoreFailure(ctx, context.Cause(ctx))
			}
		}
	}
	return &source.StoreError{Fault: source.Busy}
}

// canRetry reports whether a report may succeed at once after an error. Each shard uses its next replica, because the
// failed server is not known.
func (r Reader) canRetry(err error) (can bool) {
	for _, shard := range r.Shards {
		can = shard.canRetry(err) || can
	}
	return can
}

// readOnce calls read with the state of the subject on the servers, and reports whether its facts have changed since.
// If hold is set, no refresh of an embedded store stores facts during the call.
func (r Reader) readOnce(
	ctx context.Context, q plan.Question, hold bool, read func(answer) error,
) (moved bool, err error) {
	held := hold && r.Shards[0].alone
	if held {
		r.Shards[0].inserting.RLock()
		defer r.Shards[0].inserting.RUnlock()
	}
	x, err := r.openAnswer(ctx, q, held)
	if err != nil {
		return false, err
	}
	if err := read(x); err != nil {
		return false, err
	}
	for i, shard := range r.Shards {
		if moved, err := shard.hasMoved(ctx, q.Subject, &x.states[i], held); moved || err != nil {
			return true, err
		}
	}
	for i, shard := range r.Shards {
		if recent := &x.states[i].recent; recent.counts != nil && !recent.kept {
			shard.kept.StoreValue(q.Subject, recent.version, recent.counts, int64(len(recent.counts))*countBytes)
		}
	}
	return false, nil
}

// openAnswer reads the state of the subject of a question on the servers, and takes what is kept of it.
func (r Reader) openAnswer(ctx context.Context, q plan.Question, held bool) (x answer, err error) {
	x = answer{Question: q, Reader: r, states: make([]state, len(r.Shards))}
	for i, shard := range r.Shards {
		now := &x.states[i]
		now.server = shard.currentServer()
		now.Position, err = shard.positionOn(ctx, now.server, held)
		if err != nil {
			return x, err
		}
		now.SubjectCounters, err = shard.readCountersOn(ctx, now.server, q.Subject)
		if err != nil {
			return x, err
		}
		now.days = now.Visitors >= shard.LeastVisitorsByDay
	}
	x.stored = newStored(x.states)
	from, _ := plan.RecentPeriod(x.stored.Ingested)
	for i, shard := range r.Shards {
		recent := &x.states[i].recent
		recent.version = recentVersion{x.states[i].Version, from}
		if shard.alone { // else its facts may be newer than this process knows
			recent.version.facts = shard.published.settledVersion(q.Subject)
		}
		if last, version := shard.kept.LastValue(q.Subject); version == recent.version {
			recent.counts = last.(counts)
			recent.kept = true
		}
	}
	return x, nil
}

// hasMoved reports whether the facts of a subject have changed on a server since it had a state.
func (r *Refresher) hasMoved(ctx context.Context, subject schema.Subject, was *state, held bool) (bool, error) {
	at, err := r.positionOn(ctx, was.server, held)
	if err != nil || at == was.Position {
		return false, err
	}
	counters, err := r.readCountersOn(ctx, was.server, subject)
	return counters.Version != was.Version, err
}

// withLimits returns the source with the bounds of the requested z-score, and with the cap of the report. A percentile
// ignores filters of visitors.
func (x answer) withLimits(ctx context.Context) (answer, error) {
	if x.Filters.ZScore != 0 {
		var total int64
		var totalSum, totalSquares big.Int
		err := x.eachCompared(ctx, "outliers.sql", func(row driver.Rows) error {
			var n int64
			var sum, squares big.Int
			err := row.Scan(&n, &sum, &squares)
			total += n
			totalSum.Add(&totalSum, &sum)
			totalSquares.Add(&totalSquares, &squares)
			return err
		})
		if err != nil {
			return x, err
		}
		x.outliers = moments.NewOutliers(total, &totalSum, &totalSquares, x.Filters.ZScore)
	}
	if x.Cap == nil {
		return x, nil
	}
	var totals []int64
	switch {
	case x.Cap.Percentile == 0:
	case x.Expression != nil:
		var err error
		totals, err = x.readPairTotals(ctx)
		if err != nil {
			return x, err
		}
	default:
		all := x
		all.Filters = x.Filters.OfAllVisitors()
		all.Dimension = ""
		all.Interval = ""
		if err := all.eachCompared(ctx, "totals.sql", func(row driver.Rows) error {
			var some []int64
			err := row.Scan(&some)
			totals = append(totals, some...)
			return err
		}); err != nil {
			return x, err
		}
	}
	x.limit = moments.NewCap(*x.Cap, totals)
	return x, nil
}

// ReadVisitorSteps reads the series of visitors, without goal events. The question must have an interval.
func (r Reader) ReadVisitorSteps(ctx context.Context, q plan.Question) (found []moments.Step, err error) {
	err = r.atOnePosition(ctx, q, func(x answer) error {
		s := x.newSums()
		err := s.countOnServers(ctx, factSums{visitors: true}, (*counting).readSteps)
		found = s.bucketSteps()
		return err
	})
	return found, err
}

// Measure is a measure of a question about several ones.
type Measure struct {
	plan.Measure
	Cap    *schema.Cap    // of the values of a goal, or of the quantity of a metric; nil: none
	Metric *metric.Metric // whose quantities are read beside the events of the goal; nil: none
}

// ReadMeasures reads the sums for each of several measures, in their order. The question must have no dimension and no
// series.
func (r Reader) ReadMeasures(
	ctx context.Context, q plan.Question, measures []Measure,
) (found []*moments.Rows, err error) {
	found = make([]*moments.Rows, len(measures))
	err = r.eachMeasure(ctx, q, measures, (*counting).readTotals, func(i int, s *sums) error {
		found[i] = s.reportRows()
		s.GoalID = measures[i].GoalID
		s.goals = nil
		return s.readForeign(ctx, found[i])
	})
	return found, err
}

// ReadSteps reads the series of each of several measures, in their order. The question must have an interval, and no
// dimension and no z-score.
func (r Reader) ReadSteps(
	ctx context.Context, q plan.Question, measures []Measure,
) (found [][]moments.Step, err error) {
	found = make([][]moments.Step, len(measures))
	err = r.eachMeasure(ctx, q, measures, (*counting).readSteps, func(i int, s *sums) error {
		found[i] = s.bucketSteps()
		return nil
	})
	return found, err
}

// eachMeasure reads sums with read, and calls each with those of each measure. Visitors are read once for each
// conversion window. Goals of which every event counts in full are read together, and each other measure alone.
func (r Reader) eachMeasure(
	ctx context.Context, q plan.Question, measures []Measure, read readSums, each func(i int, s *sums) error,
) error {
	q.Cap = nil
	q.Expression = nil
	return r.atOnePosition(ctx, q, func(x answer) error {
		together := map[schema.ConversionWindow]*sums{}
		for i := range measures {
			window := measures[i].Window
			if together[window] != nil {
				continue
			}
			several := x
			several.ConversionWindow = window
			several.goals = countedInFull(&q, measures, window)
			s := several.newSums()
			if err := s.countOnServers(ctx, factSums{visitors: true, goals: several.goals}, read); err != nil {
				return err
			}
			together[window] = s
		}
		for i := range measures {
			s, err := x.sumMeasure(ctx, &measures[i], together[measures[i].Window], read)
			if err != nil {
				return err
			}
			if err := each(i, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// countedInFull returns the goals with a conversion window of which every event counts in full, each once.
func countedInFull(q *plan.Question, measures []Measure, window schema.ConversionWindow) (ids []int64) {
	isFiltered := q.Filters.GoalValue != nil || q.Filters.ZScore != 0
	if isFiltered || window.From != 0 {
		return nil
	}
	for _, of := range measures {
		isWhole := of.Window == window && of.GoalID != 0 && of.Cap == nil
		if isWhole && !slices.Contains(ids, of.GoalID) {
			ids = append(ids, of.GoalID)
		}
	}
	return ids
}

// sumMeasure returns the sums of a measure. together has those of visitors, and of the goals that were read with them;
// any other goal is read alone, and so are the quantities of a metric.
func (x answer) sumMeasure(ctx context.Context, of *Measure, together *sums, read readSums) (*sums, error) {
	s := x.newSums()
	s.ConversionWindow = of.Window
	s.addGoal(together, 0) // visitors
	wanted := factSums{pair: of.Metric != nil}
	if slices.Contains(together.goals, of.GoalID) {
		s.addGoal(together, of.GoalID)
	} else {
		wanted.goals = []int64{of.GoalID}
	}
	if len(wanted.goals) == 0 && !wanted.pair {
		return s, nil
	}
	s.GoalID = of.GoalID
	s.Cap = of.Cap
	s.Expression = of.Metric
	var err error
	s.answer, err = s.withLimits(ctx)
	if err != nil {
		return nil, err
	}
	return s, s.countOnServers(ctx, wanted, read)
}

// oldRate is the number of days between the newest rate and the newest order above which rates are old: they are
// missing on weekends and holidays.
const oldRate = 4

// readForeign reads the currencies of counted goal events whose amounts are in no sum, and those whose rates are old,
// if there may be any.
func (x answer) readForeign(ctx context.Context, found *moments.Rows) error {
	book := x.Books()[x.Subject.WebsiteID]
	isUnknown := slices.ContainsFunc(found.Whole, func(r moments.GroupMoments) bool { return r.Unknown > 0 })
	if !isUnknown && !book.HasRates() {
		return nil
	}
	seen := map[string]bool{}
	newest := map[string]int64{}
	err := x.eachCompared(ctx, "foreign.sql", func(row driver.Rows) error {
		var code string
		var unknown, at int64
		err := row.Scan(&code, &unknown, &at)
		if unknown != 0 {
			seen[code] = true
		}
		newest[code] = max(newest[code], at)
		newest[book.CurrencyOf()] = max(newest[book.CurrencyOf()], at)
		return err
	})
	found.Foreign = slices.Sorted(maps.Keys(seen))
	for _, code := range slices.Sorted(maps.Keys(newest)) {
		latest, isKnown := book.LatestRate(code)
		if isKnown && fold.DayOf(newest[code])-latest > oldRate {
			found.OldRates = append(found.OldRates, moments.OldRate{
				Currency: code, Latest: books.TimeOf(latest), Newest: time.UnixMilli(newest[code]).UTC(),
			})
		}
	}
	return err
}

// mostKept is the maximum number of values of an attribute that are kept. Reading the sums of more values takes longer
// than finding the most frequent ones.
const mostKept = 200

// valuesOf is the key of the values of an attribute that visitors of a subject had at some time.
type valuesOf struct {
	schema.Subject
	attribute query.Dimension
}

// keptValues returns the values of the dimension that earlier reports found; nil: none, or there is no dimension.
func (x answer) keptValues() []string {
	last, _ := x.Shards[0].kept.LastValue(valuesOf{x.Subject, x.Dimension})
	values, _ := last.([]string)
	return values
}

// readTop returns the most frequent values of the dimension. It keeps the values that it knows if these are few.
func (x answer) readTop(ctx context.Context) ([]string, error) {
	counts := map[string]int64{}
	for _, value := range x.keptValues() {
		counts[value] = 0
	}
	most := uint32(math.MaxUint32) // a value may be frequent only over all servers
	if len(x.Shards) == 1 {
		most = uint32(max(x.Top, mostKept) + 1) //nolint:gosec // few
	}
	for _, c := range x.newCountings(nil) {
		if err := c.countValues(ctx, most, counts); err != nil {
			return nil, err
		}
	}
	values := moments.MostVisited(counts)
	if 0 < len(values) && len(values) <= mostKept {
		bytes := 0
		for _, value := range values {
			bytes += len(value)
		}
		x.Shards[0].kept.StoreValue(valuesOf{x.Subject, x.Dimension}, nil, values, int64(bytes))
	}
	return values[:min(len(values), x.Top)], nil
}

// countValues adds the numbers of visitors by value of the dimension, of at most some values. With a conversion window,
// visitors whose window has not ended do not count.
func (c *counting) countValues(ctx context.Context, most uint32, visitors map[string]int64) error {
	of := c.selection
	number := "toInt64(sign)"
	if isOfMature(&c.of.Question) {
		number += " * (" + isMature + ")"
	}
	values := clauses{
		about:   "one row per value of an attribute, by visitors, in descending order",
		columns: []column{{"dimension", "toString(" + of.dimensions[0] + ")"}, {"visitors", "sum(" + number + ")"}},
		from:    of.Facts,
		where:   slices.Concat(of.visitors, of.times, []string{counted, "NOT endsWith(variation, '!')"}),
		groups:  []string{"dimension"},
		having:  "sum(toInt64(sign)) > 0",
		order:   "visitors DESC, dimension\nLIMIT {most:UInt32}",
	}
	params := slices.Clone(of.params)
	params.add("most", most)
	return c.store.EachRow(ctx, values.withSettings(of.few), params, func(row driver.Rows) error {
		var value string
		var n int64
		err := row.Scan(&value, &n)
		visitors[value] += n
		return err
	})
}

// comparedVariations returns the values of the column variation of the visitors that the report compares.
func (x answer) comparedVariations() []string {
	variations := []string{}
	for _, v := range x.Variations {
		variations = append(variations, fold.VariationOf(v.ID, false))
		if x.MultipleExposures == catalogue.FirstVariation {
			variations = append(variations, fold.VariationOf(v.ID, true))
		}
	}
	return variations
}

// eachCompared runs a statement about the goal events of the visitors that the report compares.
func (x answer) eachCompared(ctx context.Context, file string, scan func(driver.Rows) error) error {
	return x.eachOfCompared(ctx, scan, func(c *counting, _ *parameters) string {
		return c.selection.render(file, slices.Concat(c.selection.goals, []string{ofCompared})...)
	})
}

// ofCompared is the condition of the rows of the visitors that the report compares.
const ofCompared = "variation IN {variations:Array(String)}"

// eachOfCompared runs a statement with the condition ofCompared. statement may add parameters.
func (x answer) eachOfCompared(
	ctx context.Context, scan func(driver.Rows) error, statement func(*counting, *parameters) string,
) error {
	variations := x.comparedVariations()
	for _, c := range x.newCountings(nil) {
		params := slices.Clone(c.selection.params)
		params.add("variations", variations)
		if x.limit != nil {
			params.add("cap", x.limit.Limit)
		}
		sql := statement(c, &params)
		if err := c.store.EachRow(ctx, sql, params, scan); err != nil {
			return err
		}
	}
	return nil
}
