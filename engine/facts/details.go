package facts

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ReadFirstViews reads the visitors of a question by an attribute and the day of the first view, which is the bucket of
// a step. It reads no goal events.
func (r Reader) ReadFirstViews(
	ctx context.Context, q plan.Question, by query.Dimension,
) (found []moments.Step, err error) {
	q.Dimension = by
	q.Interval = ""
	err = r.atOnePosition(ctx, q, func(x answer) (err error) {
		s := x.newSums()
		top, err := x.readTop(ctx)
		if err != nil {
			return err
		}
		s.setTops([][]string{top})
		err = s.countOnServers(ctx, factSums{}, func(c *counting, ctx context.Context, _ factSums) (counts, error) {
			return c.run(ctx, c.visitorStatement(false, keyColumn{
				column{"first_day_number", "toInt64(first_day)"}, "Int64", func(at *rowKey) any { return &at.bucket },
			}))
		})
		found = s.bucketSteps()
		return err
	})
	return found, err
}

// ReadDistribution reads the numbers of the goal events that a question counts, by their value. The bucket of a step is
// the lower bound of the bin. bins has all lower bounds, ascending, from one that is not above any value.
func (r Reader) ReadDistribution(ctx context.Context, q plan.Question, bins []int64) (found []moments.Step, err error) {
	q.Cap = nil
	q.Dimension = ""
	q.Interval = ""
	err = r.atOnePosition(ctx, q, func(x answer) (err error) {
		x, err = x.withLimits(ctx)
		if err != nil {
			return err
		}
		s := x.newSums()
		err = s.countOnServers(ctx, factSums{}, func(c *counting, ctx context.Context, _ factSums) (counts, error) {
			return c.run(ctx, c.distributionStatement(bins))
		})
		found = s.bucketSteps()
		return err
	})
	return found, err
}

// distributionStatement returns the statement of the numbers of goal events by the bin of their value.
func (c *counting) distributionStatement(bins []int64) *statement {
	bin := keyColumn{
		column{"bucket", "toInt64(roundDown(value, {bins:Array(Int64)}))"},
		"Int64",
		func(at *rowKey) any { return &at.bucket },
	}
	s := c.newStatement("one row per key and lower bound of a bin: the number of counted goal events in the bin", bin)
	s.params.add("bins", bins)
	s.where = c.selection.goals
	if c.selection.hasUnknown {
		s.where = append(slices.Clone(s.where), ofUnknown+" = 0")
	}
	s.sums = []sum{{
		column{"goals_reached", "toInt128(sum(toInt64(sign)))"}, func(m *moments.Moments) any { return m.Goals.Sum },
	}}
	return s
}

// ReadLostViews reads the goal events of a subject whose visitors have no view of it, by the variation that they carry.
func (r Reader) ReadLostViews(ctx context.Context, q plan.Question) (found map[int64]moments.LostViews, err error) {
	err = r.atOnePosition(ctx, q, func(x answer) error {
		found = map[int64]moments.LostViews{}
		for _, c := range x.newCountings(nil) {
			params := slices.Clone(c.selection.params)
			params.add("website_id", q.Subject.WebsiteID)
			params.add("subject", string(q.Subject.Kind))
			params.add("subject_id", q.Subject.ID)
			params.add("experiment_id", q.Subject.ExperimentID)
			params.add("through", c.on.Through)
			sql := c.selection.render("lost_views.sql")
			if err := c.store.EachRow(ctx, sql, params, func(row driver.Rows) error {
				var variation int64
				var goals, visitors int64
				err := row.Scan(&variation, &goals, &visitors)
				n := found[variation]
				n.Goals, n.Visitors = n.Goals+goals, n.Visitors+visitors
				found[variation] = n
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// Value is a value of an attribute in the form of a filter, and the number of visitors with that value in their first
// view. It is empty if the attribute is not set.
type Value struct {
	Value    string `json:"value"`
	Visitors int64  `json:"visitors"`
}

// ReadValues returns the values of an attribute of all visitors of a subject, the most frequent first.
func (r Reader) ReadValues(ctx context.Context, q plan.Question, attribute string) ([]Value, error) {
	q.Dimension = query.Dimension(attribute)
	q.Filters = query.Filters{}
	q.ConversionWindow = schema.ConversionWindow{}
	var counts map[string]int64
	err := r.atOnePosition(ctx, q, func(x answer) error {
		counts = map[string]int64{}
		for _, c := range x.newCountings(nil) {
			if err := c.countValues(ctx, math.MaxUint32, counts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var values []Value
	for _, value := range moments.MostVisited(counts) {
		values = append(values, Value{value, counts[value]})
	}
	return values, nil
}

// Visitor is a visitor of a report, as a row of a Parquet file. The sums over the rows of a variation are the numbers
// of the report.
type Visitor struct {
	ID           uint64    `parquet:"visitor"`
	VariationID  int64     `parquet:"variationId,dict"`
	FirstView    time.Time `parquet:"firstView,timestamp(millisecond)"`
	MultiExposed bool      `parquet:"multiExposed"`

	schema.Attributes // of the first view

	Views        uint64 `parquet:"views"` // from the first view until the end of the window, like all events
	Clicks       uint64 `parquet:"clicks"`
	Submits      uint64 `parquet:"submits"`
	Completions  uint64 `parquet:"completions"`
	Conversions  uint64 `parquet:"conversions"`
	Contacts     uint64 `parquet:"contacts"`
	GoalsReached uint64 `parquet:"goalsReached"`
	// of these, the goals whose amounts have no rate to the website's currency, and are in no sum
	UnknownValues uint64 `parquet:"unknownValues"`

	Value          float64 `parquet:"value"` // with the cap of the report
	Profit         float64 `parquet:"profit"`
	ExtraValue     float64 `parquet:"extraValue"`
	UncappedValue  float64 `parquet:"uncappedValue"`
	UncappedProfit float64 `parquet:"uncappedProfit"`

	X *float64 `parquet:"x,optional"` // of a metric without a name, with the cap of the report; nil: it has one
	Y *float64 `parquet:"y,optional"` // of its denominator; nil: it has none
}

// EachVisitor calls each for the visitors of the report that count, in no particular order. All visitors of a server
// are read from the same facts. It has no time limit, because each may wait for a client that downloads a file.
func (r Reader) EachVisitor(ctx context.Context, q plan.Question, each func(*Visitor) error) error {
	var x answer
	err := r.atOnePosition(ctx, q, func(now answer) (err error) {
		x, err = now.withLimits(ctx)
		return err
	})
	if err != nil {
		return err
	}
	x.stored.Newest = schema.EndOfTime // of events that may arrive now
	store := *x.Store
	store.Limits.Time = 0
	x.Store = &store
	return x.eachOfCompared(ctx, func(row driver.Rows) error {
		var v Visitor
		var variation, attributes string
		var first int64
		var value, profit, extra, countedValue, countedProfit, numerator, denominator int64
		err := row.Scan(&v.ID, &variation, &first, &attributes,
			&v.Views, &v.Clicks, &v.Submits, &v.Completions, &v.Conversions, &v.Contacts, &v.GoalsReached,
			&v.UnknownValues, &value, &profit, &extra, &countedValue, &countedProfit, &numerator, &denominator)
		if err != nil {
			return err
		}
		if v.Views == 0 { // a replica lacks the visitor's row
			return &source.StoreError{Fault: source.Busy}
		}
		variation, v.MultiExposed = strings.CutSuffix(variation, fold.MultiExposed)
		v.VariationID, err = strconv.ParseInt(variation, 10, 64)
		if err != nil {
			return fmt.Errorf("facts: variation %q: %w", variation, err)
		}
		v.FirstView = time.UnixMilli(first).UTC()
		v.Attributes = schema.SplitAttributes(attributes)
		amount := func(units int64) float64 { return float64(units) / schema.MoneyScale }
		v.Value, v.Profit, v.ExtraValue = amount(countedValue), amount(countedProfit), amount(extra)
		v.UncappedValue, v.UncappedProfit = amount(value), amount(profit)
		if of := q.Expression; of != nil {
			v.X = inUnits(numerator, &of.Numerator)
			if of.Denominator != nil {
				v.Y = inUnits(denominator, of.Denominator)
			}
		}
		return each(&v)
	}, (*counting).eachVisitor)
}

// inUnits returns a quantity of a visitor as people write it.
func inUnits(total int64, of *metric.Quantity) *float64 {
	return new(float64(total) / float64(of.Scale()))
}

// eachVisitor returns the statement of EachVisitor.
func (c *counting) eachVisitor(params *parameters) string {
	of := c.selection
	views := slices.Concat(of.visitors, of.firstView)
	isRead := []string{strings.Join(of.goals, " AND "), strings.Join(views, " AND ")}
	x, y := "toInt64(0)", "toInt64(0)"
	if c.of.Expression != nil {
		q := c.newPairQuery(nil, params)
		x, y = q.values()
		ofMetric := slices.Concat([]string{q.rows()}, of.filters, of.firstView)
		isRead = append(isRead, strings.Join(ofMetric, " AND "))
	}
	rows := clauses{
		columns: []column{{"", "*"}, {"is_counted", "(" + isRead[0] + ")"}}, // whether it is an event of the goal
		from:    of.Facts + " FINAL",                                        // without rows that are cancelled
		where:   []string{ofCompared, "(" + strings.Join(isRead, " OR ") + ")"},
	}
	each := clauses{
		about: "one row per visitor of the report: the first view, the events until the end of the window, " +
			"and the goal events that count",
		columns: []column{
			{"", "visitor_id"},
			{"of_variation", "any(variation)"},
			{"first_ms", "any(" + firstTime + ")"},
			{"of_first_view", "any(concatWithSeparator('\\0', " + attributes + "))"},
			{"all_views", "sumIf(" + c.numberOf(moments.View, "views") + ", grain = 'visitor')"},
		},
		from:   subquery(rows.text()),
		groups: []string{"visitor_id"},
	}
	for _, action := range actionColumns[1:] {
		number := "0" // a campaign has none
		if isOfWidget(c.of.Subject) {
			number = "if(grain = 'visitor', " + c.numberOf(action.kind, action.name) + ", 0)"
		}
		each.columns = append(each.columns, column{"", "toUInt64(sum(" + number + "))"})
	}
	removed := "0"
	if c.asked.isCapped {
		removed = "greatest(total_value - {cap:Int64}, 0)"
	}
	each.columns = append(each.columns,
		column{"goal_events", "countIf(is_counted)"},
		column{"unknown_values", "countIf(is_counted AND " + ofUnknown + " = 1)"},
		column{"total_value", "sumIf(value, is_counted)"},
		column{"total_profit", "sumIf(profit, is_counted)"},
		column{"total_extra", "sumIf(extra_value, is_counted)"},
		column{"counted_value", "total_value - " + removed},
		column{"counted_profit", "total_profit - (total_value - counted_value)"},
		column{"x", x},
		column{"y", y},
	)
	// Other visitors wait on the disk.
	const settings = ", max_bytes_before_external_group_by = 268435456, max_bytes_ratio_before_external_group_by = 0"
	return each.withSettings(of.few) + settings
}

// Order is a counted goal event, or, with negative numbers, one that a refresh has replaced.
type Order struct {
	Visitor               uint64
	Variation             string // as in rows
	Number, Value, Profit int64  // Number is 1 or -1
	Foreign               string // currency in which it was sent; empty: that of the website
}

// EachOrder calls each for the counted goal events of a question's subject and goal, whose own time is in its window,
// and whose age in its conversion window. Only visitors first exposed until mature count.
func (s Shards) EachOrder(ctx context.Context, q *plan.Question, mature int64, each func(*Order)) error {
	var order Order
	ages := q.ConversionWindow
	if !ages.IsSet() {
		ages.To = math.MaxInt64
	}
	return s.eachServer(ctx, inFile("orders.sql"), func(row driver.Rows) error {
		err := row.Scan(&order.Visitor, &order.Variation, &order.Number, &order.Value, &order.Profit, &order.Foreign)
		each(&order)
		return err
	}, sectionParam{"section", q.Subject, fold.OfGoal}, clickhouse.Named("goal_id", q.GoalID),
		clickhouse.Named("from_ms", q.WindowStart().UnixMilli()), clickhouse.Named("to_ms", q.WindowEnd().UnixMilli()),
		clickhouse.Named("age_from_ms", ages.From.Milliseconds()),
		clickhouse.Named("age_to_ms", ages.To.Milliseconds()), clickhouse.Named("mature_ms", mature))
}

// FindGoalIDs returns which of some event ids a website has stored goals with.
func (s Shards) FindGoalIDs(ctx context.Context, website int64, ids []uint64) (map[uint64]bool, error) {
	found := map[uint64]bool{}
	for some := range slices.Chunk(ids, visitorsAtOnce) {
		if err := s.eachServer(ctx, inFile("goal_ids.sql"), func(row driver.Rows) error {
			var id uint64
			err := row.Scan(&id)
			found[id] = true
			return err
		}, clickhouse.Named("website_id", website), clickhouse.Named("ids", some)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// sectionParam is a parameter of a statement: the section of a grain of a subject on the server that executes it.
type sectionParam struct {
	name    string
	subject schema.Subject
	grain   fold.Grain
}

// inFile returns the statement of a file for a server.
func inFile(file string) func(*server) string {
	return func(on *server) string { return on.render(file, "") }
}

// eachServer calls each for each row of a statement on each shard.
func (s Shards) eachServer(
	ctx context.Context, statement func(*server) string, each func(driver.Rows) error, params ...any,
) error {
	for _, shard := range s {
		on, err := shard.shownServer(ctx)
		if err != nil {
			return err
		}
		own := slices.Clone(params)
		for i := range own {
			if section, is := own[i].(sectionParam); is {
				own[i] = clickhouse.Named(section.name, on.sectionOf(section.subject, section.grain))
			}
		}
		if err := schema.EachRow(ctx, on, statement(on), each, own...); err != nil {
			return fmt.Errorf("read orders: %w", err)
		}
	}
	return nil
}

// EachVisitorsEvents calls each for the folded events of each visitor of a website.
func (s Shards) EachVisitorsEvents(ctx context.Context, website int64, ids []uint64, each func([]fold.Event)) error {
	for _, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(ids, visitorsAtOnce) {
			visitors := make([]schema.Visitor, len(some))
			for i, id := range some {
				visitors[i] = schema.Visitor{WebsiteID: website, ID: id}
			}
			events, err := shard.currentServer().readEvents(ctx, visitors, at.Through)
			if err != nil {
				return err
			}
			for own := range splitVisitors(events) {
				each(own)
			}
		}
	}
	return nil
}
