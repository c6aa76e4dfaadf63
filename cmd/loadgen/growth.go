package main

import (
	"context"
	"errors"
	"fmt"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/loadgen/measure"
	"lifthouse/loadgen/population"
	"lifthouse/loadgen/report"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const growthHelp = `Growth measures the cost of reports by campaign size. It adds campaigns with 50,000 to 1,580,000
visitors to a store with the standard data set, and computes the same reports for each campaign.`

func (p *program) growthCommand() *cobra.Command {
	var store, jsonFile string
	var scale float64
	var rounds int
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Measure the cost of reports by campaign size",
		Long:  growthHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkEmbedded(store); err != nil {
				return usageError{err}
			}
			return p.withStore(cmd.Context(), store, func(s *app.Store) error { return p.measureGrowth(cmd.Context(), s, scale, rounds, jsonFile) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&store, "store", "", "address of a store with the standard data set, such as embedded:./standard (required)")
	bounds.Var(flags, &scale, "scale", 1, minScale, 100, "factor of all numbers of visitors, as in loadgen standard")
	bounds.Var(flags, &rounds, "rounds", 21, 1, 1000, "number of measured rounds of each report")
	flags.StringVar(&jsonFile, "json", "", "write the result to this JSON file")
	return cmd
}

func (p *program) measureGrowth(ctx context.Context, s *app.Store, scale float64, rounds int, jsonFile string) error {
	account, large := findCampaign(s.Catalogue.Snapshot(), population.StandardCampaign)
	if large == nil {
		return errors.New("the store does not have the standard data set: create one with loadgen standard")
	}
	campaigns := population.GrowingCampaigns()
	if _, existing := findCampaign(s.Catalogue.Snapshot(), campaigns[0]); existing == nil {
		growing := population.GrowingScenario(scale, 1)
		if _, err := p.insertScenario(ctx, s, &growing); err != nil {
			return err
		}
	}
	if err := p.foldAndMerge(ctx, s); err != nil {
		return err
	}
	r := &reporter{rounds: rounds, engine: s.Engine, snapshot: s.Catalogue.Snapshot(), account: account}
	visitors, err := r.countVisitors(ctx, campaigns)
	if err != nil {
		return err
	}
	growth, err := measure.GrowthOf(ctx, visitors, campaigns, r.measuredQueries())
	if err != nil {
		return err
	}
	if jsonFile != "" {
		if err := writeJSON(jsonFile, growth); err != nil {
			return err
		}
	}
	return (&report.Benchmarks{Growth: growth}).WriteTables(p.out, "growth")
}

// reporter computes reports.
type reporter struct {
	rounds   int // of each report
	engine   *engine.Engine
	snapshot *catalogue.Snapshot
	account  int64
}

// countVisitors returns the number of visitors of each campaign.
func (r *reporter) countVisitors(ctx context.Context, campaigns []int64) ([]int64, error) {
	var all []int64
	for _, id := range campaigns {
		results, err := r.computeReport(ctx, id, func(*query.Request) {})
		if err != nil {
			return nil, err
		}
		all = append(all, results.Totals.Visitors)
	}
	return all, nil
}

// measuredQueries returns the measured queries.
func (r *reporter) measuredQueries() []measure.Query {
	var queries []measure.Query
	add := func(name string, change func(*query.Request)) { // change modifies the unfiltered request
		queries = append(queries, measure.Query{Name: name, Rounds: r.rounds, Run: func(ctx context.Context, campaign int64) error {
			_, err := r.computeReport(ctx, campaign, change)
			return err
		}})
	}
	mobile := query.ListFilter{Attribute: "device", Values: []string{"mobile"}}
	countries := query.ListFilter{Attribute: "country", Values: []string{"DE", "FR"}}
	add("unfiltered", func(*query.Request) {})
	for goal := range int64(4) {
		add(fmt.Sprintf("goal %d", goal+2), func(request *query.Request) { request.GoalID += goal + 1 })
	}
	for _, dimension := range []query.Dimension{query.ByDevice, query.ByCountry, query.ByChannel, query.ByReferrer} {
		add("by "+string(dimension), func(request *query.Request) { request.Dimension = dimension })
	}
	add("mobile", func(request *query.Request) { request.Filters.Lists = []query.ListFilter{mobile} })
	add("mobile in DE, FR", func(request *query.Request) { request.Filters.Lists = []query.ListFilter{mobile, countries} })
	add("by day", func(request *query.Request) { request.Interval = query.Daily })
	return queries
}

// computeReport computes the report of a campaign. change modifies the unfiltered request.
func (r *reporter) computeReport(ctx context.Context, campaign int64, change func(*query.Request)) (*result.Report, error) {
	_, c := findCampaign(r.snapshot, campaign)
	if c == nil {
		return nil, fmt.Errorf("the catalogue has no campaign %d", campaign)
	}
	request := query.Request{Operation: query.CampaignResults, AccountID: r.account, SubjectID: campaign, GoalID: c.PrimaryGoalID, Metric: query.ValuePerVisitor}
	change(&request)
	plan, err := r.engine.PlanReport(request)
	if err != nil {
		return nil, err
	}
	return r.engine.ComputeReport(ctx, plan)
}
