package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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

// sums adds up the rows of a report.
type sums struct {
	answer
	top []string // most frequent values of the dimension, in the order of their ranks
	of  map[key]*moments.Moments
}

// key is the key of sums.
type key struct {
	goal   int64 // only of several goals
	bucket int64
	rank   uint16 // of the value of the dimension, from 1; 0: another value, or no dimension
	// crossed is the bucket of a multi-exposed visitor's first view of another variation, if the plan reads crossings.
	// In a report without a series, it is crossedLater, or 0.
	crossed int64
	moments.RowKey
}

// crossedLater marks multi-exposed visitors who saw another variation after the end of the window only.
const crossedLater = -1

func (x answer) newSums() *sums { return &sums{answer: x, of: map[key]*moments.Moments{}} }

func mergeSums(into, others map[key]*moments.Moments) {
	for at, m := range others {
		moments.AddTo(into, at, m)
	}
}

// addGoal adds the sums of one of several goals; 0: those of visitors.
func (s *sums) addGoal(several *sums, goal int64) {
	for at, m := range several.of {
		if at.goal == goal {
			at.goal = 0
			moments.AddTo(s.of, at, m)
		}
	}
}

// counting adds up the rows of one server.
type counting struct {
	answer
	*state
	store      source.Store
	top        []string
	variations []string // of the stored visitors
	of         map[key]*moments.Moments
}

// newCountings returns an empty counting for each server.
func (x answer) newCountings(top []string) []*counting {
	all := make([]*counting, len(x.states))
	for i := range x.states {
		s := &counting{answer: x, state: &x.states[i], top: top, of: map[key]*moments.Moments{}}
		s.store = source.Store{Conn: s.Conn, Limits: x.limits, Observe: x.Store.Observe}
		s.variations = []string{""} // transform needs a value
		for at := range s.all {
			if at.Goal == 0 && fold.IsCounted(at.Variation) {
				s.variations = append(s.variations, at.Variation)
			}
		}
		slices.Sort(s.variations)
		all[i] = s
	}
	return all
}

// countOnServers counts the rows of each server, and adds them to the sums.
func (s *sums) countOnServers(ctx context.Context, count func(*counting, context.Context) error) error {
	all := s.newCountings(s.top)
	work, ctx := errgroup.WithContext(ctx)
	for _, c := range all {
		work.Go(func() error { return count(c, ctx) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, counted := range all {
		mergeSums(s.of, counted.of)
	}
	return nil
}

// addMoments adds the moments of rows with a variation whose events count.
func (s *counting) addMoments(variation string, at key, m *moments.Moments) error {
	if !fold.IsCounted(variation) {
		return nil
	}
	variation, at.MultiExposed = strings.CutSuffix(variation, fold.MultiExposed)
	var err error
	if at.VariationID, err = strconv.ParseInt(variation, 10, 64); err != nil {
		return fmt.Errorf("facts: variation %q: %w", variation, err)
	}
	if at.crossed == crossedLater {
		at.MultiExposed, at.crossed = false, 0
	}
	if s.of[at] == nil {
		none := moments.NoMoments()
		s.of[at] = &none
	}
	*s.of[at] = s.of[at].Merge(*m)
	return nil
}

// addPlace adds the moments of the rows with a place: a number for the variation and for the rank of the dimension
// value. ClickHouse groups by one number much faster than by two columns. Rows of events that do not count have no
// variation.
func (s *counting) addPlace(place uint32, at key, m *moments.Moments) error {
	width := uint32(len(s.top) + 1) //nolint:gosec // few
	if place < width {
		return nil
	}
	at.rank = uint16(place % width) //nolint:gosec // few
	return s.addMoments(s.variations[place/width-1], at, m)
}

// addTotals adds some sums of a report without its series.
func (s *sums) addTotals(ctx context.Context, wanted factSums) error {
	return s.countOnServers(ctx, func(c *counting, ctx context.Context) error { return c.readTotals(ctx, wanted) })
}

// readTotals reads sums from the cells, if they have them, or else from the rows.
func (s *counting) readTotals(ctx context.Context, wanted factSums) error {
	byDay, hasVisitors, hasGoals := s.hasCells()
	var ofCells factSums
	if hasVisitors {
		ofCells.visitors, wanted.visitors = wanted.visitors, false
	}
	if hasGoals {
		ofCells.goals, wanted.goals = wanted.goals, nil
	}
	goals := *s
	goals.of = map[key]*moments.Moments{}
	reading, ctx := errgroup.WithContext(ctx)
	switch {
	case !ofCells.visitors && len(ofCells.goals) == 0:
	case byDay:
		reading.Go(func() error { return s.readDays(ctx, ofCells) })
	default:
		reading.Go(func() error { return s.readAll(ctx, ofCells) })
	}
	if wanted.visitors {
		reading.Go(func() error { return s.readVisitors(ctx) })
	}
	if len(wanted.goals) > 0 || len(ofCells.goals) > 0 && s.isCapped() {
		q, file := goals.newQuery(), "goals.sql"
		add := goals.addGoals
		if q.AboveCap = hasGoals; q.AboveCap {
			add = goals.addRemainder
		} else if !s.isEveryEvent() {
			file = "converted.sql"
		}
		reading.Go(func() error { return goals.runQuery(ctx, file, q, add) })
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	mergeSums(s.of, goals.of)
	return nil
}

// readVisitors reads the sums of visitors from their rows. If all visitors are in the report, addRecent counts those of
// the recent days: comparing each first day takes a quarter of the statement.
func (s *counting) readVisitors(ctx context.Context) error {
	q := s.newQuery()
	f, isBrokenDown := &s.Filters, s.Dimension != "" || q.ByPeriod || q.ByCrossing
	isFiltered := len(f.Lists) > 0 || len(f.Texts) > 0 || !f.From.IsZero() || !f.To.IsZero()
	if q.Mature && !q.Widget && !isFiltered && !isBrokenDown {
		return s.readByMaturity(ctx, q)
	}
	q.Recent = isFiltered
	if err := s.runQuery(ctx, "visitors.sql", q, s.addVisitors); err != nil || isFiltered {
		return err
	}
	return s.addRecent(ctx)
}

// readByMaturity reads the sums of all visitors of a campaign, with those of immature visitors apart. The mature ones
// are those of the cells that are not immature.
func (s *counting) readByMaturity(ctx context.Context, q *reportQuery) error {
	if err := s.readAll(ctx, factSums{visitors: true}); err != nil {
		return err
	}
	immature := *s
	immature.of = map[key]*moments.Moments{}
	q.Recent, q.OnlyImmature = true, true
	err := immature.runQuery(ctx, "visitors.sql", q, immature.addVisitors)
	for at, m := range immature.of {
		moments.AddTo(s.of, at, m)
		at.Immature = false
		rest := moments.NoMoments().Subtract(*m)
		moments.AddTo(s.of, at, &rest)
	}
	return err
}

// runQuery runs the statement of a file, and calls add for each row.
func (s *counting) runQuery(ctx context.Context, file string, q *reportQuery, add func(driver.Rows) error) error {
	if err := q.RenderFrom(reportTemplates, file, &q.slots); err != nil {
		return err
	}
	return s.store.EachRow(ctx, &q.Statement, add)
}

// addVisitors adds a row of sums of visitors.
func (s *counting) addVisitors(row driver.Rows) error {
	var place uint32
	var at key
	var period uint8
	m := moments.NoMoments()
	to := []any{
		&place, &at.ExposedBefore, &at.Immature, &at.bucket, &period, &at.crossed, &m.Visitors, &m.Recent, &m.Views,
	}
	if s.Subject.Kind == schema.SubjectWidget {
		to = append(to, &m.Clicks, &m.Submits, &m.Completions, &m.Conversions, &m.Contacts, &m.Completed, &m.Conversion)
	}
	if err := row.Scan(to...); err != nil {
		return err
	}
	at.Period = int(period)
	return s.addPlace(place, at, &m)
}

// addGoals adds a row of sums of goal events.
func (s *counting) addGoals(row driver.Rows) error {
	var place uint32
	var at key
	var period uint8
	var goals, goalsSquares int64
	m := moments.NoMoments()
	to := []any{&at.goal, &place, &at.bucket, &period, &at.crossed, &m.Converted, &goals, &goalsSquares}
	amount := func(a *moments.Amounts) { to = append(to, a.Sum, a.Squares, &a.Nonzero, &a.Negative) }
	amount(&m.Value)
	to = append(to, m.ValueGoals)
	amount(&m.Profit)
	amount(&m.ExtraValue)
	if s.isCapped() {
		capped, value, profit := &m.CappedRemainder, &m.CappedRemainder.Value, &m.CappedRemainder.Profit
		value.Sum, value.Squares, profit.Squares = new(big.Int), new(big.Int), new(big.Int)
		profit.Sum = value.Sum
		to = append(to, &capped.Visitors, value.Sum, value.Squares, profit.Squares, &profit.Nonzero, &profit.Negative)
	}
	if s.Timing == plan.ByAge {
		m.FirstAge = stats.Sums{Sum: new(big.Int), Squares: new(big.Int)}
		to = append(to, m.FirstAge.Sum, m.FirstAge.Squares)
	}
	if err := row.Scan(to...); err != nil {
		return err
	}
	at.Period, m.Goals = int(period), stats.Sums{Sum: big.NewInt(goals), Squares: big.NewInt(goalsSquares)}
	return s.addPlace(place, at, &m)
}

// addRemainder adds what the cap removes, of a row of sums of goal events whose other sums the cells have.
func (s *counting) addRemainder(row driver.Rows) error {
	above := *s
	above.of = map[key]*moments.Moments{}
	if err := above.addGoals(row); err != nil {
		return err
	}
	for at, m := range above.of {
		removed := moments.NoMoments()
		removed.CappedRemainder = m.CappedRemainder
		moments.AddTo(s.of, at, &removed)
	}
	return nil
}

// addSteps adds what each bucket of the series adds to some sums.
func (s *sums) addSteps(ctx context.Context, wanted factSums) error {
	return s.countOnServers(ctx, func(c *counting, ctx context.Context) error {
		crossers, done, err := c.addDaySteps(ctx, wanted)
		if err != nil || done {
			return err
		}
		if wanted.visitors {
			q := c.newQuery()
			if q.Crossers = crossers; c.Timing == plan.ByAge && !q.Widget {
				err = c.readVisitors(ctx) // no metric of a campaign needs the ages of views
			} else {
				err = c.runQuery(ctx, "visitor_steps.sql", q, c.addVisitors)
			}
		}
		if err != nil || len(wanted.goals) == 0 {
			return err
		}
		q := c.newQuery()
		q.Crossers, q.Series, q.ByPlace, q.Numbered = crossers, true, true, !c.isEveryEvent()
		q.Bucket = bucketOf(c.stepTime(q.Numbered))
		return c.runQuery(ctx, "goals.sql", q, c.addGoals)
	})
}

// addDaySteps adds steps from the cells by day. done means that they have all. Else crossers means that they have all
// but those of multi-exposed visitors.
func (s *counting) addDaySteps(ctx context.Context, wanted factSums) (crossers, done bool, err error) {
	if byDay, hasVisitors, hasGoals := s.hasCells(); !byDay || !hasVisitors || !hasGoals || s.isCapped() {
		return false, false, nil
	}
	crossers = s.newQuery().ByCrossing && s.hasCrossers()
	err = s.addDays(ctx, wanted, true, crossers)
	return crossers, !crossers, err
}

// factTime is the time of a fact, in milliseconds since 1970.
const factTime expr = "toUnixTimestamp64Milli(first_time) + toInt64(since_ms)"

// stepTime returns the time at which a goal event changes the series. Rows of numbered.sql have other columns.
func (s *counting) stepTime(numbered bool) expr {
	first, event := expr("toUnixTimestamp64Milli(first_time)"), factTime
	if numbered {
		first, event = "toInt64(first_ms)", "toInt64(at_ms)"
	}
	switch {
	case !s.ConversionWindow.IsSet() || s.Timing == plan.OnEvent:
		return event
	case s.Timing == plan.OnFirstView:
		return first
	case s.Timing == plan.ByAge:
		return "(" + event + ") - " + first
	}
	return first + " + {age_to_ms:Int64} - 1" // the last millisecond of the window
}

// bucketOf returns the bucket of the series at a time in milliseconds since 1970.
func bucketOf(ms expr) expr {
	return "toInt64(intDiv(" + ms + " + {shift:Int64}, {width:Int64}))"
}

// hasOtherValues reports whether a visitor has a value of the dimension that is not in top.
func (s *sums) hasOtherValues() bool {
	for at, m := range s.of {
		if at.rank == 0 && m.Visitors != 0 {
			return true
		}
	}
	return false
}

// bucketSteps returns the sums by bucket.
func (s *sums) bucketSteps() (steps []moments.Step) {
	for at, m := range s.of {
		if !m.IsEmpty() {
			row := moments.Row{RowKey: at.RowKey, Others: s.top != nil && at.rank == 0, Moments: *m}
			if at.rank != 0 {
				row.Dimension = s.top[at.rank-1]
			}
			steps = append(steps, moments.Step{Bucket: at.bucket, Crossed: at.crossed, Row: row})
		}
	}
	slices.SortFunc(steps, func(a, b moments.Step) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return steps
}

// reportRows returns the rows of the whole report that have visitors, and those of the breakdown.
func (s *sums) reportRows() (whole, cells []moments.Row) {
	merged, ranked := map[moments.RowKey]*moments.Moments{}, map[moments.RowKey]*moments.Moments{}
	for at, m := range s.of {
		moments.AddTo(merged, at.RowKey, m)
		if at.rank != 0 {
			at.Dimension = s.top[at.rank-1]
			moments.AddTo(ranked, at.RowKey, m)
		}
	}
	whole = sortedRows(merged)
	if s.top == nil {
		return whole, whole
	}
	return whole, moments.WithOthers(sortedRows(ranked), whole, s.Top)
}

func sortedRows(of map[moments.RowKey]*moments.Moments) []moments.Row {
	rows := []moments.Row{}
	for _, at := range slices.SortedFunc(maps.Keys(of), func(a, b moments.RowKey) int {
		byVariation := cmp.Compare(a.VariationID, b.VariationID)
		return cmp.Or(byVariation, cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Period, b.Period))
	}) {
		if of[at].Visitors != 0 || of[at].Recent != 0 {
			rows = append(rows, moments.Row{RowKey: at, Moments: *of[at]})
		}
	}
	return rows
}

// expr is trusted SQL. It consists of constants and parameter names, and never has user input.
type expr string

// slots are the slots of the files of sql/ that reports use.
type slots struct {
	Facts, Sent  expr   // tables of facts and of events
	Widget       bool   // also count clicks, submits, completions, conversions and contacts
	Dimension    expr   // value of the dimension
	Filters      expr   // of a first view: whether its visitor is in the report
	Goals        expr   // of a goal event: whether it counts
	Cap          bool   // total values of visitors are limited to {cap}
	AboveCap     bool   // only events with a total above {cap} before or after them
	From, To     bool   // whether the window has a start, and an end before the newest event
	Columns      expr   // of a visitor, apart from the counts
	Counts       []expr // of a visitor: columns with the events until the end of the window
	Place        expr   // of a row, see addPlace
	ByPlace      bool   // rows are grouped by the place, else by the variation
	Period       expr   // index of the period of equal shares of the first view
	ByPeriod     bool   // the shares changed
	Crossed      expr   // see key.crossed
	ByCrossing   bool
	ByFirstDay   bool // rows of visitors are grouped by the day of the first view
	Recent       bool // also count the visitors of the recent days
	Window       bool // only events of ages below {age_to_ms} count
	AgeFrom      bool // and from {age_from_ms} on
	Mature       bool // only visitors first exposed until {mature_ms} count
	OnlyImmature bool // only the others count
	ByAge        bool // also sum the ages of first conversions
	OnFirstView  bool // the events of the window count at the time of the first view
	Immature     expr // of a visitor: whether the window has not ended
	Completions  expr // of a visitor
	Conversions  expr // of a visitor
	InWindow     expr // of an event of a widget: 1 if it counts, and else 0
	StepTime     expr // of an event other than a goal, in a series
	Crossers     bool // only multi-exposed visitors
	OneGoal      bool // events of one goal count, {goal_id}
	SeveralGoals bool // events of several goals are summed apart, {goal_ids}
	Series       bool // group by the bucket
	Bucket       expr // of a goal event
	Numbered     bool // number the counted events of each visitor again
	Most         bool // at most {most} values
	Few          bool // the statement reads few rows: one thread suffices
	Amounts      [3]amount
	Attributes   string // columns, separated by commas
}

// isEveryEvent reports whether every event of one goal counts. If so, the sums in the rows are the sums of the report.
func (s *counting) isEveryEvent() bool {
	return (s.GoalID != 0 || len(s.goals) > 0) && s.Filters.GoalValue == nil && s.outliers == nil &&
		s.ConversionWindow.From == 0
}

// amount is a column of goal events whose total is summed for each visitor.
type amount struct {
	Column expr // empty: the total of each visitor is 0
	Type   expr // function that converts to the type of products
}

// newAmounts returns the amounts that the statement sums. The sums of squares over all visitors, which the cells have,
// show which totals are 0, and where 64 bits suffice: no sum of products over some of the visitors is greater.
func (s *counting) newAmounts() (all [3]amount) {
	isKnown := s.isEveryEvent() && !s.endsEarly() && s.Interval == "" && !s.ConversionWindow.IsSet()
	for k, column := range []expr{"value", "profit", "extra_value"} {
		has, fits := !isKnown, isKnown
		for at, cell := range s.all {
			if at.Goal == s.GoalID || slices.Contains(s.goals, at.Goal) {
				squares := cell.AmountSquares(k)
				has = has || squares != fold.Int128{}
				fits = fits && squares.IsInt64()
			}
		}
		if all[k].Type = "toInt128"; fits {
			all[k].Type = "toInt64"
		}
		if has {
			all[k].Column = column
		}
	}
	return all
}

// isCapped reports whether total values of visitors are limited.
func (s *counting) isCapped() bool { return s.limit != nil && s.limit.Limit > 0 }

// multiplesOf returns the first n multiples of a number.
func multiplesOf(width, n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32((i + 1) * width) //nolint:gosec // few
	}
	return all
}

// endsEarly reports whether the window excludes events at its end.
func (s *counting) endsEarly() bool {
	return !s.Filters.To.IsZero() && !s.Filters.To.After(s.stored.Newest)
}

// reportQuery is a statement of a report, with the slots from which its text is rendered.
type reportQuery struct {
	source.Statement
	slots
}

func (q *reportQuery) addParam(name string, value any) {
	q.Params = append(q.Params, driver.NamedValue{Name: name, Value: value})
}

// columns maps attributes to columns.
var columns = map[string]expr{
	"device":         "device",
	"browser":        "browser",
	"os":             "os",
	"country":        "country",
	"region":         "region",
	"city":           "city",
	"channel":        "channel",
	"referrer":       "referrer",
	"utmSource":      "utm_source",
	"utmMedium":      "utm_medium",
	"utmCampaign":    "utm_campaign",
	"utmContent":     "utm_content",
	"utmTerm":        "utm_term",
	"firstVisitPage": "first_visit_page",
	"visitorType":    "visitor_type",
}

// addVisitorFilters adds the filters on first views.
func (q *reportQuery) addVisitorFilters(filters *query.Filters) {
	add := func(attribute string, operator, kind expr, value any) {
		column := columns[attribute]
		q.Filters += " AND " + column + operator + "{filter_" + column + ":" + kind + "}"
		q.addParam("filter_"+string(column), value)
	}
	for _, filter := range filters.Lists {
		add(filter.Attribute, " IN ", "Array(String)", filter.Values)
	}
	for _, filter := range filters.Texts {
		if strings.Contains(filter.Pattern, "*") {
			add(filter.Attribute, " LIKE ", "String", likeEscaper.Replace(filter.Pattern))
		} else {
			add(filter.Attribute, " = ", "String", filter.Pattern)
		}
	}
	q.Filters = expr(strings.TrimPrefix(string(q.Filters), "true AND "))
}

// likeEscaper converts the pattern of a filter to a LIKE pattern.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// addValueFilters adds the filters on the values of goal events. bounds are those of the requested z-score; nil: none.
func (q *reportQuery) addValueFilters(filters *query.Filters, bounds *moments.Outliers) {
	if filters.GoalValue != nil {
		q.Goals += " AND value >= {goal_value:Int64}"
		q.addParam("goal_value", leastUnits(filters.GoalValue))
	}
	if bounds != nil && !bounds.Open {
		q.Goals += " AND value >= {outlier_least:Int64} AND value <= {outlier_most:Int64}"
		q.addParam("outlier_least", bounds.Least)
		q.addParam("outlier_most", bounds.Most)
	}
	q.Goals = expr(strings.TrimPrefix(string(q.Goals), "true AND "))
}

// leastUnits rounds an amount up to 1/schema.MoneyScale.
func leastUnits(amount *big.Rat) int64 {
	const most = schema.MaxMoney*schema.MoneyScale + 1
	units := new(big.Rat).Mul(amount, new(big.Rat).SetInt64(schema.MoneyScale))
	up := new(big.Int).Add(units.Num(), new(big.Int).Sub(units.Denom(), big.NewInt(1)))
	up.Div(up, units.Denom())
	if up.Cmp(big.NewInt(most)) > 0 {
		return most
	}
	if up.Cmp(big.NewInt(-most)) < 0 {
		return -most
	}
	return up.Int64()
}

// newQuery returns the parameters and slots that all statements of the report share.
func (s *counting) newQuery() *reportQuery {
	p := &s.Question
	q := &reportQuery{slots: slots{
		Facts: expr(s.Facts), Sent: expr(s.Sent), Widget: p.Subject.Kind == schema.SubjectWidget,
		Filters: "true", Goals: "true",
		From: !p.Filters.From.IsZero(), To: s.endsEarly(), OneGoal: s.GoalID != 0,
		Few:    s.Visitors < leastVisitorsByDay,
		Place:  "transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))",
		Bucket: "toInt64(0)", Period: "toUInt8(0)", Crossed: "toInt64(0)",
		Immature: "false", Completions: "completions", Conversions: "conversions", InWindow: "1",
		StepTime:   "toUnixTimestamp64Milli(first_time) + ms",
		Attributes: attributes,
	}}
	q.addParam("visitors", SectionOf(p.Subject, fold.OfVisitor))
	q.addParam("goals", SectionOf(p.Subject, fold.OfGoal))
	q.addParam("days", SectionOf(p.Subject, fold.OfDay))
	q.addVisitorFilters(&p.Filters)
	q.addValueFilters(&s.Filters, s.outliers)
	if q.Cap = s.isCapped(); q.Cap {
		q.addParam("cap", s.limit.Limit)
	}
	if s.GoalID != 0 {
		q.addParam("goal_id", s.GoalID)
	}
	if q.SeveralGoals = len(s.goals) > 0; q.SeveralGoals {
		q.addParam("goal_ids", s.goals)
	}
	if q.From {
		q.addParam("from_ms", p.WindowStart().UnixMilli())
	}
	if q.To {
		q.addParam("to_ms", p.WindowEnd().UnixMilli())
	}
	if q.ByPeriod = len(p.SharePeriods) > 1; q.ByPeriod {
		var changes []int64
		for _, period := range p.SharePeriods[1:] {
			changes = append(changes, period.Since.UnixMilli())
		}
		q.addParam("share_changes", changes)
		q.Period = "toUInt8(arrayCount(ms -> toUnixTimestamp64Milli(first_time) >= ms, " +
			"{share_changes:Array(Int64)}))"
	}
	q.Columns = "sign, variation, first_time, first_day, multi_exposed_at"
	if p.ConversionWindow.IsSet() {
		s.addWindow(q)
	}
	recentFrom, recentTo := plan.RecentPeriod(s.stored.Ingested)
	q.addParam("recent_from", recentFrom.Format(time.DateOnly))
	q.addParam("recent_to", recentTo.Format(time.DateOnly))
	if p.Interval != "" {
		width, shift := p.Interval.BucketGrid()
		q.addParam("width", width.Milliseconds())
		q.addParam("shift", shift.Milliseconds())
	}
	switch {
	case !p.Crossings:
	case p.Interval != "":
		q.Crossed = bucketOf("toUnixTimestamp64Milli(multi_exposed_at)")
	case q.To:
		q.Crossed = "-toInt64(toUnixTimestamp64Milli(multi_exposed_at) >= {to_ms:Int64})"
	}
	q.ByCrossing = q.Crossed != "toInt64(0)"
	if p.Dimension != "" {
		q.Dimension = columns[string(p.Dimension)]
		q.Columns += ", " + q.Dimension
	}
	q.addParam("stored_variations", s.variations)
	q.addParam("places", multiplesOf(len(s.top)+1, len(s.variations)))
	if len(s.top) > 0 {
		q.addParam("top", s.top)
		q.addParam("ranks", multiplesOf(1, len(s.top)))
		q.Place += " + transform(" + q.Dimension + ", {top:Array(String)}, {ranks:Array(UInt32)}, toUInt32(0))"
	}
	q.ByPlace = len(s.top) > 0 || q.ByPeriod || q.ByCrossing
	q.Amounts = s.newAmounts()
	for i, column := range []string{"views", "clicks", "submits", "completions", "conversions", "contacts"} {
		const text = "arrayCount((ms, kind) -> kind = %d AND toUnixTimestamp64Milli(first_time) + ms < {to_ms:Int64}," +
			" later_ms, later_kinds)"
		counted := fmt.Sprintf(text, i+int(moments.View))
		if column == "views" {
			counted = "1 + " + counted // the first view
		}
		q.Counts = append(q.Counts, expr(fmt.Sprintf("toUInt32(%s) AS %s", counted, column)))
	}
	return q
}

// addWindow adds the conversion window of the report.
func (s *counting) addWindow(q *reportQuery) {
	w := s.ConversionWindow
	q.Window, q.AgeFrom, q.OnFirstView = true, w.From > 0, s.Timing == plan.OnFirstView
	q.addParam("age_from_ms", w.From.Milliseconds())
	q.addParam("age_to_ms", w.To.Milliseconds())
	q.ByAge = s.Timing == plan.ByAge
	if q.Mature = s.Timing == plan.WhenMature || q.ByAge; q.Mature {
		through := s.through
		if to := s.Filters.To; !to.IsZero() && to.Before(through) {
			through = to
		}
		q.addParam("mature_ms", through.Add(-w.Maturity()).UnixMilli())
		q.Immature = "toUnixTimestamp64Milli(first_time) > {mature_ms:Int64}"
	}
	const inside = "arrayCount((ms, kind) -> kind = %d AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, " +
		"later_ms, later_kinds)"
	q.Completions = expr(fmt.Sprintf(inside, moments.Completion))
	q.Conversions = expr(fmt.Sprintf(inside, moments.Conversion))
	switch s.Timing {
	case plan.WhenMature:
		q.StepTime = "toUnixTimestamp64Milli(first_time) + greatest(toInt64(ms), {age_to_ms:Int64} - 1)"
	case plan.OnFirstView:
		if q.Widget {
			q.StepTime = "toUnixTimestamp64Milli(first_time) + if(kind IN (4, 5), 0, ms)"
		}
	case plan.ByAge:
		q.StepTime = "toInt64(ms)"
	case plan.OnEvent:
	}
	if q.Widget {
		q.Columns += ", later_ms, later_kinds"
		q.InWindow = "toUInt8(kind NOT IN (4, 5) OR ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64})"
	}
}

// A report about all visitors is read from cells: hundreds of rows in place of millions.

// hasCells reports whether cells have the sums of visitors and of goal events of the report, apart from what a cap
// removes, and whether these are the cells by day. Subjects with fewer visitors than leastVisitorsByDay have none by
// day. Filters of goal events do not change the sums of visitors.
func (s *counting) hasCells() (byDay, visitors, goals bool) {
	f, window := &s.Filters, s.ConversionWindow.IsSet()
	byDay = !f.From.IsZero() || !f.To.IsZero() || s.Interval != ""
	switch {
	case len(f.Lists) > 0, len(f.Texts) > 0, s.Dimension != "", len(s.SharePeriods) > 1:
		return byDay, false, false
	case byDay && (!isWholeDay(f.From) || !isWholeDay(f.To) || !s.days || s.Interval == query.Hourly):
		return byDay, false, false
	}
	isWhole := f.GoalValue == nil && f.ZScore == 0 && (!s.isCapped() || s.isEveryEvent())
	return byDay, !window, !window && isWhole
}

// isWholeDay reports whether an end of a window is open or at midnight UTC.
func isWholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// readAll reads sums from the cells of all visitors.
func (s *counting) readAll(ctx context.Context, wanted factSums) error {
	if err := s.addAll(wanted); err != nil || !wanted.visitors {
		return err
	}
	return s.addRecent(ctx)
}

// readDays reads sums from the cells by day.
func (s *counting) readDays(ctx context.Context, wanted factSums) error {
	if err := s.addDays(ctx, wanted, false, false); err != nil || !wanted.visitors {
		return err
	}
	if !s.Filters.From.IsZero() {
		before, err := s.countVisitors(ctx, "before.sql")
		if err != nil {
			return err
		}
		for variation, n := range before {
			m := moments.NoMoments()
			m.Visitors = n
			if err := s.addMoments(variation, key{RowKey: moments.RowKey{ExposedBefore: true}}, &m); err != nil {
				return err
			}
		}
	}
	return s.addRecent(ctx)
}

// addRecent adds the visitors of the recent days.
func (s *counting) addRecent(ctx context.Context) (err error) {
	file := "recent.sql"
	if s.days {
		file = "recent_days.sql"
	}
	counts := s.recent.counts
	if hasWindow := !s.Filters.From.IsZero() || !s.Filters.To.IsZero(); counts == nil || hasWindow {
		if counts, err = s.countVisitors(ctx, file); err != nil {
			return err
		}
		if !hasWindow {
			s.recent.counts = counts
		}
	}
	for variation, n := range counts {
		m := moments.NoMoments()
		m.Recent = n
		if err := s.addMoments(variation, key{}, &m); err != nil {
			return err
		}
	}
	return nil
}

// recentVisitors are the visitors of the recent days of a subject on a server, by variation. Without a window, they
// change only with the subject's facts and with the day, so they are kept once they are known to be read at one
// position.
type recentVisitors struct {
	version recentVersion
	counts  map[string]int64 // nil: not read
	kept    bool
}

type recentVersion struct {
	facts uint64
	from  time.Time
}

// countBytes is the approximate size of the count of a variation.
const countBytes = 64

// countVisitors reads a number of visitors of each variation.
func (s *counting) countVisitors(ctx context.Context, file string) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.runQuery(ctx, file, s.newQuery(), func(row driver.Rows) error {
		var variation string
		var n int64
		err := row.Scan(&variation, &n)
		counts[variation] = n
		return err
	})
	return counts, err
}

// factSums are the sums that a report adds.
type factSums struct {
	visitors bool    // of visitors
	goals    []int64 // of the events of these goals; 0: of all goals
}

// addAll adds sums of the cells of all visitors.
func (s *counting) addAll(wanted factSums) error {
	for at, cell := range s.all {
		if at.Goal != 0 && !slices.Contains(wanted.goals, at.Goal) {
			continue
		}
		m := s.cellMoments(at.Goal, *cell, wanted)
		if err := s.addMoments(at.Variation, key{goal: s.goalKey(at.Goal)}, &m); err != nil {
			return err
		}
	}
	return nil
}

// goalKey returns the goal in the key of sums.
func (s *counting) goalKey(goal int64) int64 {
	if s.goals == nil {
		return 0
	}
	return goal
}

// hasCrossers reports whether any visitor is multi-exposed.
func (s *counting) hasCrossers() bool {
	for of := range s.all {
		if strings.HasSuffix(of.Variation, fold.MultiExposed) {
			return true
		}
	}
	return false
}

// addDays adds sums of the cells by day, by the buckets of the series if series is true. If oneVariation is true, it
// leaves out multi-exposed visitors.
func (s *counting) addDays(ctx context.Context, wanted factSums, series, oneVariation bool) error {
	q := s.newQuery()
	if q.Series = series; series {
		q.Bucket = bucketOf(factTime)
	}
	goals := wanted.goals
	if wanted.visitors {
		goals = append([]int64{0}, goals...)
	}
	q.addParam("cell_goals", goals)
	return s.runQuery(ctx, "day_cells.sql", q, func(row driver.Rows) error {
		var variation string
		var goal int64
		var at key
		var large []*big.Int
		if err := row.Scan(&variation, &goal, &at.bucket, &large); err != nil {
			return err
		}
		if oneVariation && strings.HasSuffix(variation, fold.MultiExposed) {
			return nil
		}
		cell, err := cellOf(large)
		if err != nil {
			return err
		}
		at.goal = s.goalKey(goal)
		m := s.cellMoments(goal, *cell, wanted)
		return s.addMoments(variation, at, &m)
	})
}

// cellMoments returns the moments of the sums of a cell that a report adds.
func (s *counting) cellMoments(goal int64, cell fold.Cell, wanted factSums) moments.Moments {
	if goal != 0 || !wanted.visitors {
		clear(cell.Sums[:fold.Goals])
	}
	if !slices.Contains(wanted.goals, goal) {
		clear(cell.Sums[fold.Goals:])
	}
	if s.Subject.Kind != schema.SubjectWidget { // reports of campaigns have views and goals only
		clear(cell.Sums[fold.Clicks : fold.Conversed+1])
	}
	return cell.AsMoments()
}
