package facts

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// counting adds up the rows of one server.
type counting struct {
	answer
	*state
	store      source.Store
	tops       [][]string // of each attribute of the dimension, the values with a rank
	variations []string   // of the stored visitors
	of         map[key]moments.Moments

	hasUnknown   bool // amounts of some events of the subject are in another currency
	isEveryEvent bool // every event of one goal counts: the sums in the rows are the sums of the report
	isCapped     bool // total values of visitors are limited
	endsEarly    bool // the window excludes events at its end
	isJoint      bool // statements about goal events also read visitors, as those of goal 0

	// whether cells have the sums of visitors and of goal events of the report, apart from what a cap removes, and
	// whether these are the cells by day
	visitorCells, goalCells, dayCells bool
}

// untilSettled returns the answer up to the last day (UTC) whose orders have settled, if results wait for that without
// a conversion window.
func (x answer) untilSettled() answer {
	if w := x.ConversionWindow; w.SettlesOnly() && x.Timing == plan.WhenMature {
		until := x.stored.SettledAfter(w.Settle)
		if to := x.Filters.To; to.IsZero() || until.Before(to) {
			x.Filters.To = schema.LaterTime(until, plan.OpenFrom)
		}
	}
	return x
}

// newCountings returns an empty counting for each server, and decides where its sums are.
func (x answer) newCountings(tops [][]string) []*counting { //nolint:gocyclo // each condition says where some sums are
	x = x.untilSettled()
	all := make([]*counting, len(x.states))
	for i := range x.states {
		s := &counting{answer: x, state: &x.states[i], tops: tops, of: map[key]moments.Moments{}}
		s.isEveryEvent = (s.GoalID != 0 || len(s.goals) > 0) && s.Filters.GoalValue == nil && s.outliers == nil &&
			s.ConversionWindow.From == 0
		s.isCapped = s.limit != nil && s.limit.Limit > 0 && s.Expression == nil // whose own statement applies it
		s.endsEarly = !s.Filters.To.IsZero() && !s.Filters.To.After(s.stored.Newest)
		s.store = source.Store{Conn: s.Conn, Limits: x.Store.Limits, Observe: x.Store.Observe}
		s.variations = []string{""} // transform needs a value
		for at, cell := range s.all {
			s.hasUnknown = s.hasUnknown || cell.CountAt(fold.UnknownValues) > 0
			if at.Goal == 0 && fold.IsCounted(at.Variation) {
				s.variations = append(s.variations, at.Variation)
			}
		}
		slices.Sort(s.variations)

		// Cells have the sums of all visitors: hundreds of rows in place of millions. Subjects with few visitors have
		// none by day. Filters of goal events do not change the sums of visitors.
		f := &s.Filters
		s.dayCells = !f.From.IsZero() || !f.To.IsZero() || s.Interval != ""
		hasDays := s.days && s.Interval != query.Hourly && isWholeDay(f.From) && isWholeDay(f.To)
		isWhole := !f.SelectsVisitors() && s.Dimension == "" && len(s.SharePeriods) <= 1
		s.visitorCells = isWhole && (hasDays || !s.dayCells) && !s.ConversionWindow.IsSet()
		s.goalCells = s.visitorCells && f.GoalValue == nil && f.ZScore == 0 && (!s.isCapped || s.isEveryEvent)
		all[i] = s
	}
	return all
}

// addMoments adds the moments of rows, if the events of their variation count.
func (s *counting) addMoments(of rowKey, m *moments.Moments) (err error) {
	if !fold.IsCounted(of.variation) {
		return nil
	}
	at := of.key
	variation := ""
	variation, at.MultiExposed = strings.CutSuffix(of.variation, fold.MultiExposed)
	at.VariationID, err = strconv.ParseInt(variation, 10, 64)
	if err != nil {
		return fmt.Errorf("facts: variation %q: %w", variation, err)
	}
	if at.crossed == crossedLater {
		at.MultiExposed = false
		at.crossed = 0
	}
	s.of[at] = s.of[at].Merge(*m)
	return nil
}

// rowKey has the values of the key columns of a row.
type rowKey struct {
	key
	variation string
}

// addRows runs a statement that groups sums by columns, apart from empty ones, and by a place: that of the rows of
// facts, unless another one is given. It adds each row of sums, which it scans to the destinations in some moments.
func (s *counting) addRows(
	ctx context.Context, file string, q *reportQuery, place expr, columns []keyColumn,
	destinations func(*moments.Moments) []any,
) error {
	// A place is a number for the goal, the variation and the rank of the dimension value: ClickHouse groups by one
	// number much faster than by several columns. Events that do not count have no variation.
	multiples := func(of uint32, from, n int) []uint32 {
		all := make([]uint32, n)
		for i := range all {
			all[i] = uint32(from+i) * of //nolint:gosec // few
		}
		return all
	}
	ranks := uint32(1)
	for _, top := range s.tops {
		ranks *= uint32(len(top) + 1) //nolint:gosec // few
	}
	variations := uint32(len(s.variations) + 1) //nolint:gosec // few
	q.addParam("stored_variations", s.variations)
	q.addParam("places", multiples(ranks, 1, len(s.variations)))
	q.Place = "transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))"
	stride := ranks
	for i, top := range s.tops {
		stride /= uint32(len(top) + 1) //nolint:gosec // few
		if len(top) > 0 {
			n := strconv.Itoa(i)
			q.addParam("top"+n, top)
			q.addParam("ranks"+n, multiples(stride, 1, len(top)))
			q.Place += " + transform(" + q.dimensions[i] + ", {top" + expr(n) + ":Array(String)}, {ranks" + expr(n) +
				":Array(UInt32)}, toUInt32(0))"
		}
	}
	if q.byGoal {
		q.addParam("goal_places", multiples(ranks*variations, 0, len(q.goals)))
		q.Place += " + transform(goal_id, {goal_ids:Array(Int64)}, {goal_places:Array(UInt32)}, toUInt32(0))"
	}
	q.Keys = slices.DeleteFunc(columns, func(c keyColumn) bool { return c.Value == "" })
	if len(q.Keys) == 0 && ranks == 1 && place == "" && !q.byGoal {
		q.Keys = []keyColumn{{"variation", "variation"}} // there is nothing but the variation
	} else {
		q.Keys = append(q.Keys, keyColumn{"place", "toUInt32(" + cmp.Or(place, q.Place) + ")"})
	}

	// Each row has the values of these columns, and then the sums.
	return s.runQuery(ctx, file, q, func(row driver.Rows) error {
		var at rowKey
		var place uint32
		var period uint8
		of := map[string]any{
			"exposed_before": &at.ExposedBefore, "immature": &at.Immature, "bucket": &at.bucket, "period": &period,
			"crossed": &at.crossed, "variation": &at.variation, "place": &place, "split": &at.split,
		}
		var to []any
		for _, c := range q.Keys {
			to = append(to, of[c.Name])
		}
		m := moments.NoMoments()
		if err := row.Scan(append(to, destinations(&m)...)...); err != nil {
			return err
		}
		at.Period = int(period)
		at.rank = s.rankOf(place % ranks)
		if v := place / ranks % variations; v > 0 {
			at.variation = s.variations[v-1]
		}
		if q.byGoal {
			at.goal = q.goals[place/ranks/variations]
		}
		return s.addMoments(at, &m)
	})
}

// rankOf returns the rank of the value, or the pair of values, at a place of the dimension, from 1; 0: one of the
// values has no rank.
func (s *counting) rankOf(place uint32) uint16 {
	if len(s.tops) < 2 {
		return uint16(place) //nolint:gosec // few
	}
	seconds := uint32(len(s.tops[1])) //nolint:gosec // few
	first, second := place/(seconds+1), place%(seconds+1)
	if first == 0 || second == 0 {
		return 0
	}
	return uint16((first-1)*seconds + second) //nolint:gosec // few
}

// readTotals reads sums of a report without its series: from the cells, if they have them, or else from the rows.
func (s *counting) readTotals(ctx context.Context, wanted factSums) error { //nolint:funlen,gocognit,gocyclo // the parts of one report
	// What the cells have, and what the rows of visitors and of goal events must give.
	var ofCells factSums
	if s.visitorCells {
		ofCells.visitors = wanted.visitors
		wanted.visitors = false
	}
	if s.goalCells {
		ofCells.goals = wanted.goals
		wanted.goals = nil
	}

	// They are read at the same time, so sums of the rows of goal events are added apart. One statement reads the rows
	// of few visitors and of their goal events, because planning another one takes longer than adding them up.
	goals := *s
	goals.of = map[key]moments.Moments{}
	goals.isJoint = wanted.visitors && len(wanted.goals) > 0 && s.isEveryEvent && !s.days &&
		s.Subject.Kind == schema.SubjectCampaign && !s.dayCells && !s.ConversionWindow.IsSet()
	reading, ctx := errgroup.WithContext(ctx)
	switch {
	case !ofCells.visitors && len(ofCells.goals) == 0:
	case s.dayCells:
		reading.Go(func() error {
			if err := s.addDays(ctx, ofCells, false, false); err != nil || !ofCells.visitors {
				return err
			}
			if !s.Filters.From.IsZero() {
				before, err := s.countVisitors(ctx, "before.sql")
				if err != nil {
					return err
				}
				for variation, n := range before {
					m := moments.NoMoments()
					at := rowKey{variation: variation}
					m.Visitors = n
					at.ExposedBefore = true
					if err := s.addMoments(at, &m); err != nil {
						return err
					}
				}
			}
			return s.addRecent(ctx)
		})
	default:
		reading.Go(func() error { return s.readAll(ctx, ofCells) })
	}
	if wanted.visitors && !goals.isJoint {
		reading.Go(func() error { return s.readVisitors(ctx) })
	}
	ofMetric := *s
	ofMetric.of = map[key]moments.Moments{}
	if wanted.pair {
		reading.Go(func() error { return ofMetric.countPair(ctx, nil) })
	}
	if len(wanted.goals) > 0 || len(ofCells.goals) > 0 && s.isCapped {
		q := goals.newQuery()
		file := "goals.sql"
		q.AboveCap = s.goalCells
		if !s.isEveryEvent {
			file = "converted.sql"
		}
		reading.Go(func() error { return goals.countGoalRows(ctx, file, q, "") })
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	for at, m := range ofMetric.of {
		s.of[at] = s.of[at].Merge(m)
	}
	for at, m := range goals.of {
		switch {
		case !goals.isJoint:
		case at.goal == 0: // the sums of visitors, whose rows were counted like goal events
			visitors := moments.NoMoments()
			visitors.Visitors = m.Goals.Sum.Int64()
			visitors.Recent = m.Recent
			visitors.Views = m.Views
			m = visitors
		default:
			m.Recent = 0
			at.goal = s.goalKey(at.goal)
		}
		s.of[at] = s.of[at].Merge(m)
	}
	return nil
}

// readVisitors reads the sums of visitors from their rows. If all visitors are in the report, addRecent counts those of
// the recent days: comparing each first day takes a quarter of the statement. If a campaign's report about all of them
// has a conversion window, only the immature ones are read; the mature ones are the others of the cells.
func (s *counting) readVisitors(ctx context.Context) error {
	q := s.newQuery()
	f := &s.Filters
	isBrokenDown := s.Dimension != "" || q.Period != "" || q.Crossed != ""
	isFiltered := f.SelectsVisitors() || !f.From.IsZero() || !f.To.IsZero()
	if q.Mature && !q.Widget && !isFiltered && !isBrokenDown {
		if err := s.readAll(ctx, factSums{visitors: true}); err != nil {
			return err
		}
		immature := *s
		immature.of = map[key]moments.Moments{}
		q.Recent, q.OnlyImmature = true, true
		err := immature.countVisitorRows(ctx, "visitors.sql", q)
		for at, m := range immature.of {
			s.of[at] = s.of[at].Merge(m)
			at.Immature = false
			s.of[at] = s.of[at].Subtract(m)
		}
		return err
	}
	q.Recent = isFiltered
	if err := s.countVisitorRows(ctx, "visitors.sql", q); err != nil || isFiltered {
		return err
	}
	return s.addRecent(ctx)
}

// countVisitorRows reads the sums of visitors from their rows: with visitor_steps.sql, those that each bucket adds.
func (s *counting) countVisitorRows(ctx context.Context, file string, q *reportQuery) error {
	var place, exposedBefore, firstDay expr
	if q.From {
		exposedBefore = "toUnixTimestamp64Milli(first_time) < {from_ms:Int64}"
	}
	if q.ByFirstDay {
		firstDay = "toInt64(first_day)"
	}
	keys := []keyColumn{
		{"exposed_before", exposedBefore},
		{"immature", q.Immature},
		{"bucket", firstDay},
		{"period", q.Period},
		{"crossed", q.Crossed},
	}
	if file == visitorSteps {
		place = "of_place"
		keys = append(q.visitorKeys(), keyColumn{"bucket", bucketOf("e.1")})
	}
	return s.addRows(ctx, file, q, place, keys, func(m *moments.Moments) []any {
		to := []any{&m.Visitors}
		if q.Recent {
			to = append(to, &m.Recent)
		}
		to = append(to, &m.Views)
		if q.Widget {
			to = append(to, &m.Clicks, &m.Submits, &m.Completions, &m.Conversions, &m.Contacts, &m.Completed,
				&m.Conversion)
		}
		return to
	})
}

// countGoalRows reads the sums of goal events from their rows, also by a bucket unless it is empty; if the statement is
// joint, also those of visitors. If the cells have the sums without the cap, it adds only what the cap removes.
func (s *counting) countGoalRows(ctx context.Context, file string, q *reportQuery, bucket expr) error { //nolint:gocognit,gocyclo // the columns of one statement, in its order
	// The sums over all visitors, which the cells have, show what is true for some of them, too: totals of an amount
	// are all 0, never 0, or never below 0. They also show where 64 bits suffice: no sum of products over some of the
	// visitors is greater.
	isKnown := s.isEveryEvent && !s.endsEarly && s.Interval == "" && !s.ConversionWindow.IsSet()
	for k, column := range []expr{"value", "profit", "extra_value"} {
		has := !isKnown
		hasZero := !isKnown
		hasNegative := !isKnown
		fits := isKnown
		for at, cell := range s.all {
			squares, nonzero, negative := cell.AmountTotals(k)
			isSummed := at.Goal != 0 && slices.Contains(q.goals, at.Goal) && fold.IsCounted(at.Variation)
			if isSummed && squares != (fold.Int128{}) {
				has = true
				hasZero = hasZero || nonzero != cell.CountAt(fold.Converted)
				hasNegative = hasNegative || negative != 0
				fits = fits && squares.IsInt64()
			}
		}
		q.Amounts[k] = amount{HasZero: hasZero, HasNegative: hasNegative, Type: "toInt128"}
		if has && !q.AboveCap { // else no sum without the cap is used
			q.Amounts[k].Column = column
		}
		if fits {
			q.Amounts[k].Type = "toInt64"
		}
	}

	// If not every event counts, the rows of each visitor are summed before.
	var place expr
	q.byGoal = s.goals != nil || s.isJoint
	keys := []keyColumn{{"bucket", bucket}, {"period", q.Period}, {"crossed", q.Crossed}}
	if !s.isEveryEvent {
		place = "of_place"
		keys = append(q.visitorKeys(), keyColumn{"bucket", bucket})
	}

	// The sums of each row: without their cap, and what it removes.
	return s.addRows(ctx, file, q, place, keys, func(m *moments.Moments) []any {
		all := m
		if q.AboveCap {
			all = new(moments.NoMoments()) // which are not added
		}
		to := []any{&all.Converted, all.Goals.Sum, all.Goals.Squares}
		if q.Unknown {
			to = append(to, &all.Unknown)
		}
		for i, amounts := range []*moments.Amounts{&all.Value, &all.Profit, &all.ExtraValue} {
			if q.Amounts[i].Column == "" {
				continue
			}
			to = append(to, amounts.Sum, amounts.Squares, &amounts.Nonzero, &amounts.Negative)
			if i == 0 {
				to = append(to, all.ValueGoals)
			}
		}
		if q.Cap {
			capped, value, profit := &m.CappedRemainder, &m.CappedRemainder.Value, &m.CappedRemainder.Profit
			value.Sum, value.Squares, profit.Squares = new(big.Int), new(big.Int), new(big.Int)
			profit.Sum = value.Sum
			to = append(to, &capped.Visitors, value.Sum, value.Squares, profit.Squares, &profit.Nonzero,
				&profit.Negative)
		}
		if q.ByAge {
			all.FirstAge = stats.Sums{Sum: new(big.Int), Squares: new(big.Int)}
			to = append(to, all.FirstAge.Sum, all.FirstAge.Squares)
		}
		if s.isJoint {
			to = append(to, &m.Recent, &m.Views)
		}
		return to
	})
}

// runQuery runs the statement of a file, or the one that the query writes, and calls add for each row.
func (s *counting) runQuery(ctx context.Context, file string, q *reportQuery, add func(driver.Rows) error) error {
	if q.write != nil {
		return s.store.EachRow(ctx, q.write(), q.params, add)
	}
	return s.store.EachRow(ctx, q.render(file), q.params, add)
}

// readSteps reads what each bucket of the series adds to some sums: from the cells by day, if they have them. If these
// lack only those of multi-exposed visitors, it reads the rows of these visitors.
func (s *counting) readSteps(ctx context.Context, wanted factSums) (err error) { //nolint:gocyclo // the parts of one series
	hasCrossers := false
	if s.dayCells && s.goalCells && !s.isCapped {
		for of := range s.all {
			hasCrossers = hasCrossers || fold.IsMultiExposed(of.Variation)
		}
		hasCrossers = hasCrossers && s.newQuery().Crossed != ""
		if err := s.addDays(ctx, wanted, true, hasCrossers); err != nil || !hasCrossers {
			return err
		}
	}
	if wanted.visitors {
		q := s.newQuery()
		q.Crossers = hasCrossers
		if s.Timing == plan.ByAge && !q.Widget {
			err = s.readVisitors(ctx) // no metric of a campaign needs the ages of views
		} else {
			err = s.countVisitorRows(ctx, visitorSteps, q)
		}
	}
	if err != nil || len(wanted.goals) == 0 {
		return err
	}

	// A goal event changes the series at its own time, at that of the first view, or when the visitor is mature. Rows
	// of numbered.sql have other columns.
	q := s.newQuery()
	q.Crossers = hasCrossers
	q.Numbered = !s.isEveryEvent
	first := expr("toUnixTimestamp64Milli(first_time)")
	at := factTime
	if q.Numbered {
		first, at = "toInt64(first_ms)", "toInt64(at_ms)"
	}
	switch {
	case !s.ConversionWindow.IsSet() || s.Timing == plan.OnEvent:
	case s.Timing == plan.OnFirstView:
		at = first
	case s.Timing == plan.ByAge:
		at = "(" + at + ") - " + first
	default:
		at = first + " + {maturity_ms:Int64} - 1"
	}
	return s.countGoalRows(ctx, "goals.sql", q, bucketOf(at))
}

// isWholeDay reports whether an end of a window is open or at midnight UTC.
func isWholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// factSums are the sums that a report adds.
type factSums struct {
	visitors bool    // of visitors
	goals    []int64 // of the events of these goals; 0: of all goals
	pair     bool    // of the quantities of the metric
}

// goalKey returns the goal in the key of sums.
func (s *counting) goalKey(goal int64) int64 {
	if s.goals == nil {
		return 0
	}
	return goal
}
