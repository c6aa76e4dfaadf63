// Package competitors compares the cost and the numbers of Lifthouse's reports with
// those of other systems. GrowthBook and PostHog answer the same questions, from
// events and from the tables that they precompute. DuckDB runs on a copy of the
// data. The queries in sql reimplement the published computations.
package competitors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lifthouse/loadgen/measure"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Counts has the counts of one variation, or of its visitors with one value of
// a dimension. Amounts are in stored units.
type Counts struct {
	VariationID int64
	Dimension   string
	Visitors    int64
	Converted   int64
	Goals       int64
	Value       int64
	Profit      int64
	ExtraValue  int64

	ConvertedByGoal []int64 // only in the question Scorecard: by goal, as in Options.GoalIDs
}

// Report computes a Lifthouse report and returns its counts. The window of the
// report ends at the time to. If to is zero, the window is open.
type Report func(ctx context.Context, question Question, to time.Time) ([]Counts, error)

// Options configure a comparison.
type Options struct {
	Conn       driver.Conn
	WebsiteID  int64
	CampaignID int64
	GoalIDs    []int64           // ids of the website's goals, first the primary one of the campaign
	DuckDB     *DuckDB           // nil: DuckDB is not measured
	WarmUps    int               // rounds that are not measured; see WarmUps
	Rounds     int               // measured rounds
	Report     Report            // computes the report of Lifthouse
	Progress   func(text string) // called before each step
}

// Result is the result of a comparison.
type Result struct {
	CampaignID  int64        `json:"campaignId"`
	GoalID      int64        `json:"goalId"`
	Visitors    uint64       `json:"visitors"`
	Events      uint64       `json:"events"`
	Rounds      int          `json:"rounds"`
	ClickHouse  string       `json:"clickhouse"` // version
	DuckDB      string       `json:"duckdb"`     // version; empty: not measured
	Rows        []MedianCost `json:"rows"`
	Compared    int          `json:"compared"`    // numbers that were compared
	Differences []string     `json:"differences"` // numbers that differ; empty if the computations agree
}

// MedianCost is the median cost of one computation. The ratios divide this cost by the cost
// of the Lifthouse report for the same question. A ratio is 0 if either cost is
// unknown.
type MedianCost struct {
	Question    Question     `json:"question"`
	System      string       `json:"system"`
	Table       string       `json:"table"`
	Cost        measure.Cost `json:"cost"`
	WallRatio   float64      `json:"wallRatio"`
	CPURatio    float64      `json:"cpuRatio"`
	MemoryRatio float64      `json:"memoryRatio"`
}

// Lifthouse reports whether the computation is a Lifthouse report.
func (r MedianCost) Lifthouse() bool { return r.System == lifthouse }

// Groups are the kinds of competitors' computations that the report distinguishes.
var Groups = []string{
	growthBook + ", events", postHog + ", events", growthBook + ", " + precomputed, postHog + ", " + precomputed, "DuckDB, events", "DuckDB, " + rowPerVisitor,
}

// GroupName returns the group of a competitor's computation, one of Groups.
func (r MedianCost) GroupName() string {
	switch {
	case r.System == rowPerVisitor:
		return "DuckDB, " + rowPerVisitor
	case r.Table == inDuckDB:
		return "DuckDB, events"
	case r.Table == precomputed:
		return r.System + ", " + precomputed
	default:
		return r.System + ", events"
	}
}

// WarmUps is the recommended number of rounds that are not measured. In these
// rounds, the operating system caches files and the store compiles expressions: at
// their third use, or at once in the competitors' queries.
const WarmUps = 4

// slow is the wall time above which a computation has only one warm-up round.
const slow = time.Second

// compileAtOnce makes the store compile expressions and aggregate functions at their
// first use.
var compileAtOnce = clickhouse.Settings{"min_count_to_compile_expression": 0, "min_count_to_compile_aggregate_expression": 0, "min_count_to_compile_sort_description": 0}

// Compare measures Lifthouse's reports and the competitors' queries on the same store
// and data, and DuckDB's queries on a copy of the data. Each round runs every
// computation once, in turn. The first round compares the numbers. Further warm-up
// rounds skip slow computations. Compare creates the tables that the competitors
// read, and drops them at the end.
func Compare(ctx context.Context, o Options) (result *Result, err error) {
	result = &Result{CampaignID: o.CampaignID, GoalID: o.GoalIDs[0], Rounds: o.Rounds, Differences: []string{}}
	r := &runner{Options: o, result: result, expected: map[Question][]Counts{}}
	if err := r.readExtent(ctx); err != nil {
		return nil, err
	}
	all, err := r.allComputations()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.dropCopies(context.WithoutCancel(ctx))) }()
	if err := r.createCopies(ctx); err != nil {
		return nil, err
	}
	if o.DuckDB != nil {
		if err := r.loadDuckDB(ctx); err != nil {
			return nil, err
		}
	}
	for round := range o.WarmUps + o.Rounds {
		for _, c := range all {
			if round < o.WarmUps && c.isSlow {
				continue
			}
			o.Progress(fmt.Sprintf("round %d of %d: %s, %s, %s", round+1, o.WarmUps+o.Rounds, c.question, c.system, c.table))
			cost, err := r.runComputation(ctx, c, round == 0)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s: %w", c.question, c.system, c.table, err)
			}
			c.isSlow = c.isSlow || cost.WallMS > slow.Seconds()*1000
			if round >= o.WarmUps {
				c.costs = append(c.costs, cost)
			}
		}
	}
	result.Rows = resultRows(all)
	return result, nil
}

// runner runs the computations of one comparison.
type runner struct {
	Options
	result   *Result
	from, to time.Time             // of the campaign's events
	expected map[Question][]Counts // of the report of Lifthouse
}

func (r *runner) campaignParameters() []any {
	return []any{clickhouse.Named("website_id", r.WebsiteID), clickhouse.Named("campaign_id", r.CampaignID)}
}

// storedGoalValue is LeastGoalValue in stored units.
const storedGoalValue = LeastGoalValue * schema.MoneyScale

// questionParameters returns the parameters of the queries for a question.
func (r *runner) questionParameters(question Question) []any {
	all := append(r.campaignParameters(), clickhouse.Named("goal_value", storedGoalValue),
		clickhouse.DateNamed("from", r.from, clickhouse.MilliSeconds), clickhouse.DateNamed("to", question.windowEnd(r.from, r.to), clickhouse.MilliSeconds))
	for n, id := range r.GoalIDs {
		all = append(all, clickhouse.Named(string(goalColumn(n+1)), id))
	}
	return all
}

// readExtent reads the number of events and visitors, and the times of the first and
// the last event.
func (r *runner) readExtent(ctx context.Context) error {
	text, err := sqlText("extent.sql", &slots{})
	if err != nil {
		return err
	}
	var last time.Time
	if err := r.Conn.QueryRow(ctx, text, r.campaignParameters()...).Scan(&r.result.Events, &r.result.Visitors, &r.from, &last); err != nil {
		return fmt.Errorf("read campaign: %w", err)
	}
	if err := r.Conn.QueryRow(ctx, "SELECT version()").Scan(&r.result.ClickHouse); err != nil {
		return err
	}
	if r.result.Events == 0 {
		return fmt.Errorf("campaign %d has no events", r.CampaignID)
	}
	r.from = r.from.UTC()
	r.to = last.UTC().Add(time.Millisecond)
	return nil
}

// runComputation runs a computation once and returns its cost. If compare is set, it
// compares the numbers of a competitor with the Lifthouse report.
func (r *runner) runComputation(ctx context.Context, c *computation, compare bool) (measure.Cost, error) {
	if c.isLifthouse() {
		return measure.Run(ctx, r.Conn, func() error {
			counts, err := r.Report(ctx, c.question, r.openEnd(c.question))
			r.expected[c.question] = counts
			return err
		})
	}
	answers, cost, err := r.runPeer(ctx, c)
	if err == nil && compare && c.hasSameDefinition() {
		r.compareAnswers(c, answers, r.expected[c.question])
	}
	return cost, err
}

// openEnd returns the end of a report's window, or zero if the window is open.
func (r *runner) openEnd(question Question) time.Time {
	if end := question.windowEnd(r.from, r.to); end != r.to {
		return end
	}
	return time.Time{}
}

// runPeer runs the queries of a competitor.
func (r *runner) runPeer(ctx context.Context, c *computation) (answers []peerAnswer, cost measure.Cost, err error) {
	if c.table == inDuckDB {
		return r.runDuckDB(c)
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(compileAtOnce))
	cost, err = measure.Run(ctx, r.Conn, func() error {
		for _, text := range c.queries {
			answer, err := r.readAnswer(ctx, text, c.question)
			if err != nil {
				return err
			}
			answers = append(answers, answer)
		}
		return nil
	})
	return answers, cost, err
}

// resultRows returns the median cost of each computation, with ratios.
func resultRows(all []*computation) []MedianCost {
	var rows []MedianCost
	var report measure.Cost // of the current question
	for _, c := range all {
		cost := measure.Median(c.costs)
		if c.isLifthouse() {
			report = cost
		}
		rows = append(rows, MedianCost{
			Question: c.question, System: c.system, Table: c.table, Cost: cost,
			WallRatio: ratioOrZero(cost.WallMS, report.WallMS), CPURatio: ratioOrZero(cost.CPUMS, report.CPUMS), MemoryRatio: ratioOrZero(cost.PeakMB, report.PeakMB),
		})
	}
	return rows
}

// ratioOrZero returns numerator/denominator, or 0 if either is 0.
func ratioOrZero(numerator, denominator float64) float64 {
	if numerator == 0 || denominator == 0 {
		return 0
	}
	return numerator / denominator
}

// copies are the tables that a comparison creates, and drops at the end.
var copies = []struct {
	table expr
	file  string // statement that creates and fills it
}{
	{visitorOrderedTable, "by_visitor.sql"},
	{timeOrderedTable, "by_time.sql"},
	{"loadgen_growthbook_units", "growthbook_units.sql"},
	{"loadgen_growthbook_metrics", "growthbook_metrics.sql"},
	{"loadgen_posthog_exposures", "posthog_exposures.sql"},
	{"loadgen_posthog_metric_events", "posthog_metric_events.sql"},
}

// createCopies creates the tables that the competitors' queries read, and merges their
// parts.
func (r *runner) createCopies(ctx context.Context) error {
	if err := r.dropCopies(ctx); err != nil { // an earlier run may have been killed
		return err
	}
	for _, c := range copies {
		r.Progress("creating " + string(c.table))
		text, err := sqlText(c.file, &slots{Events: c.table, Goals: r.goalNames()})
		if err != nil {
			return err
		}
		if err := r.Conn.Exec(ctx, text, r.questionParameters(MeanValue)...); err != nil {
			return fmt.Errorf("create %s: %w", c.table, err)
		}
		if err := r.Conn.Exec(ctx, "OPTIMIZE TABLE "+string(c.table)+" FINAL"); err != nil {
			return fmt.Errorf("merge the parts of %s: %w", c.table, err)
		}
	}
	return nil
}

func (r *runner) dropCopies(ctx context.Context) error {
	var errs []error
	for _, c := range copies {
		errs = append(errs, r.Conn.Exec(ctx, "DROP TABLE IF EXISTS "+string(c.table)+" SYNC"))
	}
	return errors.Join(errs...)
}

// goalNames returns the names of the parameters with the ids of all goals.
func (r *runner) goalNames() []expr {
	var names []expr
	for n := range r.GoalIDs {
		names = append(names, goalColumn(n+1))
	}
	return names
}
