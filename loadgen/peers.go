package loadgen

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var peerFiles embed.FS

var peerTexts = template.Must(template.New("").Option("missingkey=error").ParseFS(peerFiles, "sql/*.sql"))

// expr is trusted SQL: only constants of this package become one.
type expr string

// peerSlots fill the peers' texts.
type peerSlots struct {
	Table     expr
	Dimension expr
	Value     expr
	Aggregate expr
	Filter    expr // of the exposures
	Span      expr // of the window, in milliseconds
}

// The tables that the peers' computations read: ours, and a copy.
const (
	ourTable    expr = "events"
	timeOrdered expr = "loadgen_events_by_time"
)

// Measured is what a report says of one variation, or of those of its visitors
// with one value of a dimension. Money is in units of the store.
type Measured struct {
	VariationID int64
	Dimension   string
	Visitors    int64
	Converted   int64
	Goals       int64
	Value       int64
	Profit      int64
	ExtraValue  int64
}

// PeersOptions are what to compare.
type PeersOptions struct {
	Conn       driver.Conn
	WebsiteID  int64
	CampaignID int64
	GoalID     int64
	WarmUps    int // rounds that do not count: see WarmUps
	Rounds     int
	// Ours makes our report from the events, and says what it says; Settled, from
	// sums that are kept, nil where none are.
	Ours, Settled func(context.Context, Asked) ([]Measured, error)
	Tell          func(text string) // what is done now
}

// PeersResult is what the comparison gave.
type PeersResult struct {
	CampaignID int64      `json:"campaignId"`
	GoalID     int64      `json:"goalId"`
	Visitors   uint64     `json:"visitors"`
	Events     uint64     `json:"events"`
	Rounds     int        `json:"rounds"`
	Engine     string     `json:"engine"` // version of the store
	Rows       []PeersRow `json:"rows"`
	Compared   int        `json:"compared"`    // numbers
	Differ     []string   `json:"differences"` // of those; must be empty
}

// PeersRow is one computation. The ratios are its cost over that of our report
// for the same question, counted from the events, and in CPU over that from the
// sums; 0 where one of them is unknown.
type PeersRow struct {
	Question     Asked   `json:"question"`
	Who          string  `json:"who"`
	Table        string  `json:"table"`
	Cost         Cost    `json:"cost"`
	WallRatio    float64 `json:"wallRatio"`
	CPURatio     float64 `json:"cpuRatio"`
	MemoryRatio  float64 `json:"memoryRatio"`
	SettledRatio float64 `json:"settledCpuRatio"`
}

// Asked is a question. Our report answers with all metrics whatever is asked.
type Asked string

// The questions.
const (
	AskMean            Asked = "mean value"
	AskProportion      Asked = "conversion rate"
	AskFour            Asked = "goals, value, profit and extra value"
	AskByDevice        Asked = "mean value by device"
	AskMobile          Asked = "mean value, mobile"
	AskMobileCountries Asked = "mean value, mobile in DE, FR"
)

var questions = []Asked{AskMean, AskProportion, AskFour, AskByDevice, AskMobile, AskMobileCountries}

// filters are what the filtered questions leave of the exposures.
var filters = map[Asked]expr{
	AskMobile:          "device = 'mobile'",
	AskMobileCountries: "device = 'mobile' AND country IN ('DE', 'FR')",
}

// measure is a number that a computation gives for each variation.
type measure func(*Measured) int64

func visitorsWith(m *Measured) int64 { return m.Converted }
func goalsOf(m *Measured) int64      { return m.Goals }
func valueOf(m *Measured) int64      { return m.Value }
func profitOf(m *Measured) int64     { return m.Profit }
func extraOf(m *Measured) int64      { return m.ExtraValue }

// contestant answers a question in one way.
type contestant struct {
	question Asked
	who      string
	table    expr
	settled  bool      // of ours
	texts    []string  // of a peer, one query after the other
	measures []measure // what they give, in turn
	costs    []Cost
}

// contestants are all ways to all questions, ours of each question first.
func contestants(span time.Duration, settled bool) ([]*contestant, error) {
	var all []*contestant
	var errs []error
	add := func(question Asked, who string, table expr, measures []measure, file string, slots ...peerSlots) {
		c := &contestant{question: question, who: who, table: table, measures: measures}
		for _, s := range slots {
			s.Table, s.Span = table, expr(strconv.FormatInt(span.Milliseconds(), 10))
			text, err := peerText(file, s)
			c.texts, errs = append(c.texts, text), append(errs, err)
		}
		all = append(all, c)
	}
	slots := func(value, dimension expr) peerSlots {
		return peerSlots{Dimension: dimension, Value: value, Aggregate: "sum", Filter: "true"}
	}
	const none, device, one, value = "''", "toString(device)", "toFloat64(1)", "toFloat64(value)"
	four := []measure{goalsOf, valueOf, profitOf, extraOf}
	for _, question := range questions {
		add(question, "Lifthouse", ourTable, nil, "")
		if settled {
			all = append(all, &contestant{question: question, who: "Lifthouse, settled", table: ourTable, settled: true})
		}
		for _, table := range []expr{ourTable, timeOrdered} {
			switch question {
			case AskMean:
				add(question, "GrowthBook", table, []measure{valueOf}, "growthbook.sql", slots(value, none))
				add(question, "PostHog", table, []measure{valueOf}, "posthog_mean.sql", slots(value, none))
			case AskProportion:
				add(question, "GrowthBook", table, []measure{visitorsWith}, "growthbook.sql", peerSlots{Dimension: none, Value: one, Aggregate: "max", Filter: "true"})
				add(question, "PostHog", table, []measure{visitorsWith}, "posthog_proportion.sql", peerSlots{})
			case AskFour:
				add(question, "GrowthBook", table, four, "growthbook_four.sql", peerSlots{})
				add(question, "PostHog", table, four, "posthog_mean.sql", // a query a metric
					slots(one, none), slots(value, none), slots("toFloat64(profit)", none), slots("toFloat64(extra_value)", none))
			case AskByDevice:
				add(question, "GrowthBook", table, []measure{valueOf}, "growthbook.sql", slots(value, device))
				add(question, "PostHog", table, []measure{valueOf}, "posthog_mean.sql", slots(value, device))
			case AskMobile, AskMobileCountries:
				if table == timeOrdered {
					continue // theirs are faster on ours
				}
				filtered := slots(value, none)
				filtered.Filter = filters[question]
				add(question, "GrowthBook", table, []measure{valueOf}, "growthbook.sql", filtered)
				add(question, "PostHog", table, []measure{valueOf}, "posthog_mean.sql", filtered)
			}
		}
	}
	return all, errors.Join(errs...)
}

func peerText(file string, slots peerSlots) (string, error) {
	var text strings.Builder
	err := peerTexts.ExecuteTemplate(&text, file, slots)
	return text.String(), err
}

// WarmUps is how many rounds should not count: the store compiles expressions
// at their third use, and reads files into memory.
const WarmUps = 4

// Peers measures our report and the peers' computations on the same store and
// data, in turn: each round has every one once. It makes a copy of the
// campaign's events in the order of time, and drops it.
func Peers(ctx context.Context, o PeersOptions) (result *PeersResult, err error) {
	result = &PeersResult{CampaignID: o.CampaignID, GoalID: o.GoalID, Rounds: o.Rounds, Differ: []string{}}
	p := &peers{PeersOptions: o, result: result}
	if err := p.extent(ctx); err != nil {
		return nil, err
	}
	all, err := contestants(p.to.Sub(p.from), p.Settled != nil)
	if err != nil {
		return nil, err
	}
	o.Tell("copying the events in the order of time …")
	defer func() { err = errors.Join(err, p.drop(context.WithoutCancel(ctx))) }()
	if err := p.copyByTime(ctx); err != nil {
		return nil, err
	}
	for round := range o.WarmUps + o.Rounds {
		for _, c := range all {
			o.Tell(fmt.Sprintf("round %d of %d: %s, %s …", round+1, o.WarmUps+o.Rounds, c.who, c.question))
			cost, err := p.compete(ctx, c, round == 0)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.who, c.question, err)
			}
			if round >= o.WarmUps {
				c.costs = append(c.costs, cost)
			}
		}
	}
	result.Rows = rowsOf(all)
	return result, nil
}

type peers struct {
	PeersOptions
	result   *PeersResult
	from, to time.Time
	ours     map[Asked][]Measured
}

func (p *peers) subject() []any {
	return []any{clickhouse.Named("website_id", p.WebsiteID), clickhouse.Named("campaign_id", p.CampaignID)}
}

func (p *peers) parameters() []any {
	return append(p.subject(), clickhouse.Named("goal_id", p.GoalID),
		clickhouse.DateNamed("from", p.from, clickhouse.MilliSeconds), clickhouse.DateNamed("to", p.to, clickhouse.MilliSeconds))
}

func (p *peers) extent(ctx context.Context) error {
	text, err := peerText("extent.sql", peerSlots{})
	if err != nil {
		return err
	}
	var last time.Time
	if err := p.Conn.QueryRow(ctx, text, p.subject()...).Scan(&p.result.Events, &p.result.Visitors, &p.from, &last); err != nil {
		return fmt.Errorf("look at the campaign: %w", err)
	}
	if err := p.Conn.QueryRow(ctx, "SELECT version()").Scan(&p.result.Engine); err != nil {
		return err
	}
	if p.result.Events == 0 {
		return fmt.Errorf("campaign %d has no events", p.CampaignID)
	}
	p.from, p.to = p.from.UTC(), last.UTC().Add(time.Millisecond)
	return nil
}

func (p *peers) copyByTime(ctx context.Context) error {
	if err := p.drop(ctx); err != nil { // what a run left that was killed
		return err
	}
	for _, file := range []string{"by_time.sql", "by_time_rows.sql"} {
		text, err := peerText(file, peerSlots{Table: timeOrdered})
		if err != nil {
			return err
		}
		if err := p.Conn.Exec(ctx, text, p.subject()...); err != nil {
			return fmt.Errorf("copy by time: %w", err)
		}
	}
	return p.Conn.Exec(ctx, "OPTIMIZE TABLE "+string(timeOrdered)+" FINAL")
}

func (p *peers) drop(ctx context.Context) error {
	return p.Conn.Exec(ctx, "DROP TABLE IF EXISTS "+string(timeOrdered)+" SYNC")
}

// compete has a contestant answer once; the first time its numbers are
// compared with ours.
func (p *peers) compete(ctx context.Context, c *contestant, compare bool) (Cost, error) {
	switch {
	case c.settled:
		return costOf(ctx, p.Conn, func() error {
			said, err := p.Settled(ctx, c.question)
			if err == nil && !slices.Equal(said, p.ours[c.question]) {
				p.differ(c, "it is not what our report from the events says")
			}
			return err
		})
	case c.texts == nil:
		return costOf(ctx, p.Conn, func() error {
			said, err := p.Ours(ctx, c.question)
			if p.ours == nil {
				p.ours = map[Asked][]Measured{}
			}
			p.ours[c.question] = said
			return err
		})
	}
	var answers []peerAnswer
	cost, err := costOf(ctx, p.Conn, func() error {
		for _, text := range c.texts {
			rows, err := p.ask(ctx, text)
			if err != nil {
				return err
			}
			answers = append(answers, rows)
		}
		return nil
	})
	if err == nil && compare {
		p.compare(c, answers, p.ours[c.question])
	}
	return cost, err
}

// rowsOf tells the medians, and their ratios to ours.
func rowsOf(all []*contestant) []PeersRow {
	var rows []PeersRow
	var ours, settled Cost
	for _, c := range all {
		cost := medianCost(c.costs)
		switch {
		case c.settled:
			settled = cost
		case c.texts == nil:
			ours, settled = cost, Cost{}
		}
		rows = append(rows, PeersRow{
			Question: c.question, Who: c.who, Table: tableNames[c.table], Cost: cost,
			WallRatio: ratio(cost.WallMS, ours.WallMS), CPURatio: ratio(cost.CPUMS, ours.CPUMS), MemoryRatio: ratio(cost.PeakMB, ours.PeakMB),
			SettledRatio: ratio(cost.CPUMS, settled.CPUMS),
		})
	}
	return rows
}

var tableNames = map[expr]string{ourTable: "as stored", timeOrdered: "by time"}

func ratio(of, to float64) float64 {
	if of == 0 || to == 0 {
		return 0
	}
	return of / to
}
