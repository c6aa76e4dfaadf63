package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/loadgen"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const growthHelp = `Growth shows what reports cost by the number of visitors: it adds campaigns of 50,000 to 1,580,000
visitors to a store with the standard data set, brings the sums behind large reports up to date, and
asks every campaign the same questions. All but the first, which is counted from the events, are
answered from those sums; if one is not, the exit status is 1.`

// settledRounds and countedRounds are how often a report is made from the sums,
// and from the events, which takes a hundred times as long.
const (
	settledRounds = 21
	countedRounds = 3
)

func (p *program) growthCommand() *cobra.Command {
	var store, toFile string
	var scale float64
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Show what reports cost by the number of visitors",
		Long:  growthHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var errs []error
			if home, err := schema.ParseAddress(store, os.Getenv); err != nil || home.Dir == "" {
				errs = append(errs, fmt.Errorf("--store %q: want an embedded store, whose cost this process can tell, such as embedded:./standard", store))
			}
			if !(scale > 0 && scale <= 100) {
				errs = append(errs, fmt.Errorf("--scale %v: want more than 0, at most 100", scale))
			}
			if err := errors.Join(errs...); err != nil {
				return usageError{err}
			}
			return p.withStore(cmd.Context(), store, func(s *app.Store) error { return p.growth(cmd.Context(), s, scale, toFile) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&store, "store", "", "store that has the standard data set, such as embedded:./standard")
	flags.Float64Var(&scale, "scale", 1, "of the numbers of visitors, as the standard data set was made")
	flags.StringVar(&toFile, "json", "", "file for the figures")
	return cmd
}

func (p *program) growth(ctx context.Context, s *app.Store, scale float64, toFile string) error {
	account, large := findCampaign(s.Catalogue.Snapshot(), loadgen.StandardCampaign)
	if large == nil {
		return errors.New("--store: it has no standard data set: make one with loadgen standard")
	}
	campaigns := loadgen.GrowingCampaigns()
	if _, grown := findCampaign(s.Catalogue.Snapshot(), campaigns[0]); grown == nil {
		growing := loadgen.Growing(scale, 1)
		if _, err := p.fill(ctx, s, &growing); err != nil {
			return err
		}
		if err := loadgen.Merge(ctx, s.Conn); err != nil {
			return err
		}
	}
	if _, err := p.settled(ctx, s, engine.Subject{}); err != nil {
		return err
	}
	if err := calm(ctx, s); err != nil {
		return err
	}
	asker := &asker{engine: s.Engine, snapshot: s.Catalogue.Snapshot(), account: account}
	s.Engine.ObservePath(func(path string) { asker.path = path })
	visitors, err := asker.visitors(ctx, campaigns)
	if err != nil {
		return err
	}
	var measured *loadgen.Growth
	if err := serving(ctx, s, func() (err error) {
		measured, err = loadgen.MeasureGrowth(ctx, visitors, campaigns, asker.questions())
		return err
	}); err != nil {
		return err
	}
	if toFile != "" {
		if err := writeFile(toFile, func(w io.Writer) error { return json.NewEncoder(w).Encode(measured) }); err != nil {
			return err
		}
	}
	return measured.Write(p.out)
}

// asker asks for reports, and notices how they were made.
type asker struct {
	engine   *engine.Engine
	snapshot *catalogue.Snapshot
	account  int64
	path     string
}

func (a *asker) visitors(ctx context.Context, campaigns []int64) ([]int64, error) {
	var all []int64
	for _, id := range campaigns {
		results, err := a.engine.Report(ctx, engine.Request{Operation: engine.CampaignResults, AccountID: a.account, SubjectID: id})
		if err != nil {
			return nil, err
		}
		all = append(all, results.Totals.Visitors)
	}
	return all, nil
}

// questions are those that the sums answer.
func (a *asker) questions() []loadgen.Question {
	lists := func(r *engine.Request, attributes ...string) {
		values := map[string][]string{"device": {"mobile"}, "country": {"DE", "FR"}}
		for _, attribute := range attributes {
			r.Filters.Lists = append(r.Filters.Lists, engine.ListFilter{Attribute: attribute, Values: values[attribute]})
		}
	}
	questions := []loadgen.Question{
		{Text: "counted from the events", Rounds: countedRounds, Ask: a.counted},
		a.question("unfiltered", func(*engine.Request) {}),
	}
	for goal := range int64(4) {
		questions = append(questions, a.question(fmt.Sprintf("goal %d", goal+2), func(r *engine.Request) { r.GoalID += goal + 1 }))
	}
	for _, dimension := range []engine.Dimension{engine.ByDevice, engine.ByCountry, engine.ByChannel, engine.ByReferrer} {
		questions = append(questions, a.question("by "+string(dimension), func(r *engine.Request) { r.Dimension = dimension }))
	}
	return append(questions,
		a.question("mobile", func(r *engine.Request) { lists(r, "device") }),
		a.question("mobile in DE, FR", func(r *engine.Request) { lists(r, "device", "country") }),
		a.question("a point a day", func(r *engine.Request) { r.Interval = engine.Daily }),
	)
}

func (a *asker) request(campaign int64) (engine.Request, error) {
	_, c := findCampaign(a.snapshot, campaign)
	if c == nil {
		return engine.Request{}, fmt.Errorf("the catalogue has no campaign %d", campaign)
	}
	return engine.Request{Operation: engine.CampaignResults, AccountID: a.account, SubjectID: campaign, GoalID: c.PrimaryGoalID, Metric: engine.ValuePerVisitor}, nil
}

func (a *asker) counted(ctx context.Context, campaign int64) error {
	r, err := a.request(campaign)
	if err == nil {
		_, err = a.engine.Reference(ctx, r)
	}
	return err
}

func (a *asker) question(text string, change func(*engine.Request)) loadgen.Question {
	return loadgen.Question{Text: text, Rounds: settledRounds, Ask: func(ctx context.Context, campaign int64) error {
		r, err := a.request(campaign)
		if err != nil {
			return err
		}
		change(&r)
		if _, err := a.engine.Report(ctx, r); err != nil {
			return err
		}
		if a.path != engine.PathRollup {
			return fmt.Errorf("it was answered another way: %s", a.path)
		}
		return nil
	}}
}
