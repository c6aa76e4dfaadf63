// Package peers compares Lifthouse's reports with the queries that GrowthBook
// and PostHog run for the same questions: their cost and their numbers. The
// queries in sql reimplement the published computations.
package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lifthouse/loadgen/measure"

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
}

// Report computes a Lifthouse report and returns its counts.
type Report func(context.Context, Question) ([]Counts, error)

// Options configure a comparison.
type Options struct {
	Conn       driver.Conn
	WebsiteID  int64
	CampaignID int64
	GoalID     int64
	WarmUps    int               // rounds that are not measured; see WarmUps
	Rounds     int               // measured rounds
	FromEvents Report            // computes the report from the events
	FromRollup Report            // computes the report from the rollups; nil: the campaign has none
	Progress   func(text string) // called before each step
}

// Result is the result of a comparison.
type Result struct {
	CampaignID  int64    `json:"campaignId"`
	GoalID      int64    `json:"goalId"`
	Visitors    uint64   `json:"visitors"`
	Events      uint64   `json:"events"`
	Rounds      int      `json:"rounds"`
	ClickHouse  string   `json:"clickhouse"` // version
	Rows        []Row    `json:"rows"`
	Compared    int      `json:"compared"`    // numbers that were compared
	Differences []string `json:"differences"` // numbers that differ; empty if the computations agree
}

// Row is the median cost of one computation. The ratios divide its cost by the
// cost of the Lifthouse report for the same question. A ratio is 0 if one of
// the costs is unknown.
type Row struct {
	Question       Question     `json:"question"`
	System         string       `json:"system"`
	Table          string       `json:"table"`
	Cost           measure.Cost `json:"cost"`
	WallRatio      float64      `json:"wallRatio"` // to the report from the events
	CPURatio       float64      `json:"cpuRatio"`
	MemoryRatio    float64      `json:"memoryRatio"`
	RollupCPURatio float64      `json:"rollupCpuRatio"` // to the report from the rollups
}

// Lifthouse reports whether the computation is a Lifthouse report.
func (r Row) Lifthouse() bool { return r.System == lifthouse || r.FromRollup() }

// FromRollup reports whether the computation is a Lifthouse report from the
// rollups.
func (r Row) FromRollup() bool { return r.System == lifthouseRollup }

// WarmUps is the recommended number of rounds that are not measured. The store
// compiles an expression when it is used for the third time, and the operating
// system caches files.
const WarmUps = 4

// Compare measures Lifthouse's reports and the peers' queries on the same store
// and data. Each round runs each computation once, in turn. The first round
// compares the numbers. Compare creates a copy of the campaign's events ordered
// by time and drops the copy at the end.
func Compare(ctx context.Context, o Options) (result *Result, err error) {
	result = &Result{CampaignID: o.CampaignID, GoalID: o.GoalID, Rounds: o.Rounds, Differences: []string{}}
	r := &runner{Options: o, result: result, expected: map[Question][]Counts{}}
	if err := r.readExtent(ctx); err != nil {
		return nil, err
	}
	all, err := computations(r.to.Sub(r.from), r.FromRollup != nil)
	if err != nil {
		return nil, err
	}
	o.Progress("copying the events ordered by time")
	defer func() { err = errors.Join(err, r.dropCopy(context.WithoutCancel(ctx))) }()
	if err := r.copyByTime(ctx); err != nil {
		return nil, err
	}
	for round := range o.WarmUps + o.Rounds {
		for _, c := range all {
			o.Progress(fmt.Sprintf("round %d of %d: %s, %s", round+1, o.WarmUps+o.Rounds, c.system, c.question))
			cost, err := r.run(ctx, c, round == 0)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.system, c.question, err)
			}
			if round >= o.WarmUps {
				c.costs = append(c.costs, cost)
			}
		}
	}
	result.Rows = rows(all)
	return result, nil
}

// runner runs the computations of one comparison.
type runner struct {
	Options
	result   *Result
	from, to time.Time             // of the campaign's events
	expected map[Question][]Counts // of the report from the events
}

func (r *runner) campaignParameters() []any {
	return []any{clickhouse.Named("website_id", r.WebsiteID), clickhouse.Named("campaign_id", r.CampaignID)}
}

func (r *runner) queryParameters() []any {
	return append(r.campaignParameters(), clickhouse.Named("goal_id", r.GoalID),
		clickhouse.DateNamed("from", r.from, clickhouse.MilliSeconds), clickhouse.DateNamed("to", r.to, clickhouse.MilliSeconds))
}

// readExtent reads the numbers of events and visitors, and the times of the
// first and last event.
func (r *runner) readExtent(ctx context.Context) error {
	text, err := sqlText("extent.sql", slots{})
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
	r.from, r.to = r.from.UTC(), last.UTC().Add(time.Millisecond)
	return nil
}

func (r *runner) copyByTime(ctx context.Context) error {
	if err := r.dropCopy(ctx); err != nil { // an earlier run may have been killed
		return err
	}
	for _, file := range []string{"by_time.sql", "by_time_rows.sql"} {
		text, err := sqlText(file, slots{Table: timeOrderedTable})
		if err != nil {
			return err
		}
		if err := r.Conn.Exec(ctx, text, r.campaignParameters()...); err != nil {
			return fmt.Errorf("copy events ordered by time: %w", err)
		}
	}
	return r.Conn.Exec(ctx, "OPTIMIZE TABLE "+string(timeOrderedTable)+" FINAL")
}

func (r *runner) dropCopy(ctx context.Context) error {
	return r.Conn.Exec(ctx, "DROP TABLE IF EXISTS "+string(timeOrderedTable)+" SYNC")
}

// run runs a computation once and returns its cost. If compare is set, run
// compares the numbers of a peer with the report from the events.
func (r *runner) run(ctx context.Context, c *computation, compare bool) (measure.Cost, error) {
	switch {
	case c.fromRollup:
		return measure.Run(ctx, r.Conn, func() error {
			counts, err := r.FromRollup(ctx, c.question)
			if err == nil && !slices.Equal(counts, r.expected[c.question]) {
				r.addDifference(c, "the counts differ from the report from the events")
			}
			return err
		})
	case c.queries == nil:
		return measure.Run(ctx, r.Conn, func() error {
			counts, err := r.FromEvents(ctx, c.question)
			r.expected[c.question] = counts
			return err
		})
	}
	var answers []peerAnswer
	cost, err := measure.Run(ctx, r.Conn, func() error {
		for _, text := range c.queries {
			answer, err := r.query(ctx, text)
			if err != nil {
				return err
			}
			answers = append(answers, answer)
		}
		return nil
	})
	if err == nil && compare {
		r.compare(c, answers, r.expected[c.question])
	}
	return cost, err
}

// rows returns the median cost of each computation, with ratios.
func rows(all []*computation) []Row {
	var rows []Row
	var fromEvents, fromRollup measure.Cost // of the current question
	for _, c := range all {
		cost := measure.Median(c.costs)
		switch {
		case c.fromRollup:
			fromRollup = cost
		case c.queries == nil:
			fromEvents, fromRollup = cost, measure.Cost{}
		}
		rows = append(rows, Row{
			Question: c.question, System: c.system, Table: tableNames[c.table], Cost: cost,
			WallRatio: ratio(cost.WallMS, fromEvents.WallMS), CPURatio: ratio(cost.CPUMS, fromEvents.CPUMS), MemoryRatio: ratio(cost.PeakMB, fromEvents.PeakMB),
			RollupCPURatio: ratio(cost.CPUMS, fromRollup.CPUMS),
		})
	}
	return rows
}

// ratio returns numerator/denominator, or 0 if either is 0.
func ratio(numerator, denominator float64) float64 {
	if numerator == 0 || denominator == 0 {
		return 0
	}
	return numerator / denominator
}
