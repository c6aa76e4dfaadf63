package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/loadgen/competitors"
	"lifthouse/loadgen/population"
	"lifthouse/loadgen/report"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const competitorsHelp = `Competitors compares Lifthouse's reports with GrowthBook's and PostHog's queries (reimplemented in
loadgen/competitors/sql) on the same store and data. Each round runs each computation once, in turn. The
competitors' queries run on the events table, on a copy ordered by time, and on the tables that GrowthBook
(incremental refresh) and PostHog (precomputed exposures and metric events) keep. All copies are
dropped at the end. With --duckdb, DuckDB runs the same queries, one pass over the events, and
queries of a table with a row per visitor. Lifthouse's reports are computed from its facts.

The table has medians of wall time, CPU time and the peak memory of the store's queries, and their
ratios to Lifthouse's report, which always has all metrics. Numbers with the same definition must be
equal: the visitors of each variation without multi-exposed visitors, and the sums over their goals.
If a number differs, the exit status is 1.`

func (p *program) competitorsCommand() *cobra.Command {
	var store, jsonFile, duckDB string
	var campaign int64
	var rounds int
	cmd := &cobra.Command{
		Use:   "competitors",
		Short: "Compare reports with GrowthBook's and PostHog's queries",
		Long:  competitorsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkEmbedded(store); err != nil {
				return usageError{err}
			}
			return p.withStore(cmd.Context(), store, func(s *app.Store) error {
				return p.compareCompetitors(cmd.Context(), s, campaign, rounds, duckDB, jsonFile)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&store, "store", "", "address of a store with the campaign, such as embedded:./standard (required)")
	bounds.Var(flags, &campaign, "campaign", population.StandardCampaign, 1, bounds.MaxID, "id of the campaign")
	bounds.Var(flags, &rounds, "rounds", 5, 1, 1000, fmt.Sprintf("number of measured rounds, after %d warm-up rounds, one of them with slow queries", competitors.WarmUps))
	flags.StringVar(&duckDB, "duckdb", "", "also measure DuckDB, with the script and the npm packages of this folder, such as loadgen/competitors")
	flags.StringVar(&jsonFile, "json", "", "write the result to this JSON file")
	return cmd
}

func (p *program) compareCompetitors(ctx context.Context, s *app.Store, id int64, rounds int, duckDB, jsonFile string) (err error) {
	account, campaign := findCampaign(s.Catalogue.Snapshot(), id)
	if campaign == nil {
		return fmt.Errorf("invalid --campaign %d: the catalogue of the store has no such campaign", id)
	}
	if campaign.PrimaryGoalID == 0 {
		return fmt.Errorf("invalid --campaign %d: the campaign must have a primary goal", id)
	}
	goals := goalIDs(s.Catalogue.Snapshot(), campaign)
	options := competitors.Options{
		Conn: s.Conn, WebsiteID: campaign.WebsiteID, CampaignID: id, GoalIDs: goals,
		WarmUps: competitors.WarmUps, Rounds: rounds, Report: campaignReport(s.Engine, account, id, goals),
		Progress: func(text string) { p.printDiagnostic("%s", text) },
	}
	if duckDB != "" {
		options.DuckDB, err = competitors.StartDuckDB(ctx, duckDB)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, options.DuckDB.Close()) }()
	}
	if err := p.foldAndMerge(ctx, s); err != nil {
		return err
	}
	result, err := competitors.Compare(ctx, options)
	if err != nil {
		return err
	}
	if jsonFile != "" {
		if err := writeJSON(jsonFile, result); err != nil {
			return err
		}
	}
	if err := p.printCompetitors(result); err != nil {
		return err
	}
	if len(result.Differences) > 0 {
		return fmt.Errorf("%d of %d numbers differ:\n%s", len(result.Differences), result.Compared, strings.Join(result.Differences, "\n"))
	}
	return nil
}

// goalIDs returns the ids of the goals of the campaign's website, the campaign's
// primary goal first.
func goalIDs(s *catalogue.Snapshot, campaign *catalogue.LiveCampaign) []int64 {
	ids := []int64{campaign.PrimaryGoalID}
	for _, owned := range s.AllAccounts() {
		for _, goal := range catalogue.ByID(owned.Goals) {
			if goal.WebsiteID == campaign.WebsiteID && goal.ID != campaign.PrimaryGoalID {
				ids = append(ids, goal.ID)
			}
		}
	}
	return ids
}

// requestOf returns the request for a question.
func requestOf(question competitors.Question, to time.Time) query.Request {
	r := query.Request{Operation: query.CampaignResults, Metric: query.ValuePerVisitor, Filters: query.Filters{To: to}}
	mobile := query.ListFilter{Attribute: "device", Values: []string{"mobile"}}
	switch question {
	case competitors.ByDevice:
		r.Dimension = query.ByDevice
	case competitors.ByCity:
		r.Dimension = "city"
	case competitors.Mobile:
		r.Filters.Lists = []query.ListFilter{mobile}
	case competitors.MobileCountries:
		r.Filters.Lists = []query.ListFilter{mobile, {Attribute: "country", Values: []string{"DE", "FR"}}}
	case competitors.FourFilters:
		r.Filters.Lists = []query.ListFilter{
			mobile, {Attribute: "country", Values: []string{"DE", "FR", "US"}}, {Attribute: "os", Values: []string{"android"}},
		}
		r.Filters.Texts = []query.TextFilter{{Attribute: "firstVisitPage", Pattern: "/products/*"}}
	case competitors.GoalValue:
		r.Filters.GoalValue = big.NewRat(competitors.LeastGoalValue, 1)
	case competitors.WithoutOutliers:
		r.Filters.ZScore = competitors.OutlierZScore
	case competitors.Scorecard:
		r.Scorecard = true
	case competitors.MeanValue, competitors.ConversionRate, competitors.FourMetrics, competitors.FirstWeek:
	}
	return r
}

// campaignReport returns a function that computes the report of the campaign
// for a question.
func campaignReport(e *engine.Engine, account, id int64, goals []int64) competitors.Report {
	return func(ctx context.Context, question competitors.Question, to time.Time) ([]competitors.Counts, error) {
		r := requestOf(question, to)
		r.AccountID, r.SubjectID = account, id
		plan, err := e.PlanReport(r)
		if err != nil {
			return nil, err
		}
		results, err := e.ComputeReport(ctx, plan)
		if err != nil {
			return nil, err
		}
		counts, err := countsOf(results)
		if err == nil && question == competitors.Scorecard {
			addConverted(counts, results.Scorecard, goals)
		}
		return counts, err
	}
}

// addConverted adds the converted visitors of each goal.
func addConverted(counts []competitors.Counts, scorecard []*result.ScorecardRow, goals []int64) {
	for i := range counts {
		c := &counts[i]
		c.ConvertedByGoal = make([]int64, len(goals))
		for _, row := range scorecard {
			if row.Metric != query.GoalConversionRate || row.Goal == nil {
				continue
			}
			for _, v := range row.Variations {
				if n := slices.Index(goals, row.Goal.ID); n >= 0 && v.ID == c.VariationID && v.Estimate.Value != nil {
					c.ConvertedByGoal[n] = int64(math.Round(*v.Estimate.Value * float64(c.Visitors)))
				}
			}
		}
	}
}

// countsOf returns the counts of a report.
func countsOf(r *result.Report) ([]competitors.Counts, error) {
	if rule := r.Checks.MultipleExposures.Rule; rule != catalogue.ExcludeMultiExposed {
		return nil, fmt.Errorf("invalid multipleExposures %q of the campaign: must be %q, because the competitors exclude these visitors", rule, catalogue.ExcludeMultiExposed)
	}
	var all []competitors.Counts
	add := func(value string, variations []result.VariationResults) {
		for i := range variations {
			v := &variations[i]
			if v.Visitors == 0 {
				continue // the competitors' queries return no row without visitors
			}
			all = append(all, competitors.Counts{
				VariationID: v.ID, Dimension: value, Visitors: v.Visitors, Converted: v.ConvertedVisitors, Goals: v.GoalsReached,
				Value: storedUnits(v.Value), Profit: storedUnits(v.Profit), ExtraValue: storedUnits(v.ExtraValue),
			})
		}
	}
	if r.Dimension == nil {
		add("", r.Variations)
		return all, nil
	}
	for _, cell := range r.Breakdown {
		value := cell.Value
		if value == "(none)" {
			value = ""
		}
		add(value, cell.Variations)
	}
	return all, nil
}

func storedUnits(m result.Money) int64 {
	if m.Units == nil {
		return 0
	}
	return m.Units.Int64()
}

func (p *program) printCompetitors(r *competitors.Result) error {
	err := (&report.Benchmarks{Competitors: *r}).WriteTables(p.out, "competitors")
	_, _ = fmt.Fprintf(p.out, "\n%d numbers compared, %d differ\n", r.Compared, len(r.Differences))
	return err
}
