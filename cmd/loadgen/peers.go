package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/loadgen"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const peersHelp = `Peers has GrowthBook's and PostHog's computations (in our words: loadgen/sql) and our reports answer
the same questions on the same store, in turn: on the events as they are stored, and on a copy in
the order of time, which is made and dropped. Our report is made from the events, and once more
from the sums that settlement keeps, where the campaign is large enough to have any. It shows medians of wall time, CPU and the peak memory
of the store's queries, and ratios to our report, which has all metrics whatever is asked. Where both
mean the same, the numbers have to be equal: visitors of each variation without those who saw
several, and sums over their goals. If one is not, the exit status is 1.`

func (p *program) peersCommand() *cobra.Command {
	var store, toFile string
	var campaign int64
	var rounds int
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Compare our reports with GrowthBook's and PostHog's computations",
		Long:  peersHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var errs []error
			home, err := schema.ParseAddress(store, os.Getenv)
			if err != nil || home.Dir == "" {
				errs = append(errs, fmt.Errorf("--store %q: want an embedded store, whose cost this process can tell, such as embedded:./standard", store))
			}
			if rounds < 1 || rounds > 1000 {
				errs = append(errs, fmt.Errorf("--rounds %d: want 1 to 1000", rounds))
			}
			if err := errors.Join(errs...); err != nil {
				return usageError{err}
			}
			return p.withStore(cmd.Context(), store, func(s *app.Store) error {
				return p.peers(cmd.Context(), s, campaign, rounds, toFile)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&store, "store", "", "store that has the campaign, such as embedded:./standard")
	flags.Int64Var(&campaign, "campaign", loadgen.StandardCampaign, "whose results are asked for")
	flags.IntVar(&rounds, "rounds", 5, "that count, after four to warm up")
	flags.StringVar(&toFile, "json", "", "file for the figures")
	return cmd
}

func (p *program) peers(ctx context.Context, s *app.Store, id int64, rounds int, toFile string) error {
	account, campaign := findCampaign(s.Catalogue.Snapshot(), id)
	if campaign == nil {
		return fmt.Errorf("--campaign %d: the store's catalogue has no such campaign", id)
	}
	if campaign.PrimaryGoalID == 0 {
		return fmt.Errorf("--campaign %d: it has no primary goal to compare", id)
	}
	options := loadgen.PeersOptions{
		Conn: s.Conn, WebsiteID: campaign.WebsiteID, CampaignID: id, GoalID: campaign.PrimaryGoalID,
		WarmUps: loadgen.WarmUps, Rounds: rounds, Ours: ourReport(s.Engine.Reference, account, id),
		Tell: func(text string) { p.complain("%s", text) },
	}
	settled, err := p.settled(ctx, s, engine.Subject{WebsiteID: campaign.WebsiteID, Kind: schema.SubjectCampaign, ID: id})
	if err != nil {
		return err
	}
	if settled {
		options.Settled = ourReport(s.Engine.Report, account, id)
	}
	if err := calm(ctx, s); err != nil {
		return err
	}
	var result *loadgen.PeersResult
	if err := serving(ctx, s, func() (err error) {
		result, err = loadgen.Peers(ctx, options)
		return err
	}); err != nil {
		return err
	}
	if toFile != "" {
		if err := writeFile(toFile, func(w io.Writer) error { return json.NewEncoder(w).Encode(result) }); err != nil {
			return err
		}
	}
	if err := p.showPeers(result); err != nil {
		return err
	}
	if len(result.Differ) > 0 {
		return fmt.Errorf("%d of %d numbers differ:\n%s", len(result.Differ), result.Compared, strings.Join(result.Differ, "\n"))
	}
	return nil
}

// calm returns when nothing goes on in the store that would cost what is
// measured: it has learned which events it has, and merges nothing.
func calm(ctx context.Context, s *app.Store) error {
	s.Learned()
	return loadgen.Calm(ctx, s.Conn)
}

// settled brings the sums behind large reports up to date, and says whether the
// campaign has them.
func (p *program) settled(ctx context.Context, s *app.Store, campaign engine.Subject) (bool, error) {
	p.complain("settling …")
	began := time.Now()
	if err := s.Refresher.RefreshAll(ctx); err != nil {
		return false, err
	}
	p.complain("settled in %s", time.Since(began).Round(time.Millisecond))
	subjects, err := s.Engine.RollupSubjects(ctx)
	return slices.Contains(subjects, campaign), err
}

// ourReport makes the campaign's report.
func ourReport(report func(context.Context, engine.Request) (*engine.Results, error), account, id int64) func(context.Context, loadgen.Asked) ([]loadgen.Measured, error) {
	return func(ctx context.Context, asked loadgen.Asked) ([]loadgen.Measured, error) {
		r := engine.Request{Operation: engine.CampaignResults, AccountID: account, SubjectID: id, Metric: engine.ValuePerVisitor}
		mobile, countries := engine.ListFilter{Attribute: "device", Values: []string{"mobile"}}, engine.ListFilter{Attribute: "country", Values: []string{"DE", "FR"}}
		switch asked {
		case loadgen.AskByDevice:
			r.Dimension = engine.ByDevice
		case loadgen.AskMobile:
			r.Filters.Lists = []engine.ListFilter{mobile}
		case loadgen.AskMobileCountries:
			r.Filters.Lists = []engine.ListFilter{mobile, countries}
		case loadgen.AskMean, loadgen.AskProportion, loadgen.AskFour:
		}
		return measured(report(ctx, r))
	}
}

func findCampaign(s *catalogue.Snapshot, id int64) (account int64, campaign *catalogue.LiveCampaign) {
	for _, owned := range s.Accounts() {
		if c, has := owned.Campaigns[id]; has {
			return owned.ID, &c
		}
	}
	return 0, nil
}

// measured are the counts of a report.
func measured(r *engine.Results, err error) ([]loadgen.Measured, error) {
	if err != nil {
		return nil, err
	}
	if rule := r.Checks.MultipleExposures.Rule; rule != catalogue.ExcludeMultiExposed {
		return nil, fmt.Errorf("the campaign's multipleExposures is %q; the peers leave such visitors out: want %q", rule, catalogue.ExcludeMultiExposed)
	}
	var all []loadgen.Measured
	add := func(value string, variations []engine.VariationResults) {
		for i := range variations {
			v := &variations[i]
			if v.Visitors == 0 {
				continue // the peers have no row for nobody
			}
			all = append(all, loadgen.Measured{
				VariationID: v.ID, Dimension: value, Visitors: v.Visitors, Converted: v.ConvertedVisitors, Goals: v.GoalsReached,
				Value: units(v.Value), Profit: units(v.Profit), ExtraValue: units(v.ExtraValue),
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

func units(m engine.Money) int64 {
	if m.Units == nil {
		return 0
	}
	return m.Units.Int64()
}

func (p *program) showPeers(r *loadgen.PeersResult) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\t\n", args...) }
	_, _ = fmt.Fprintf(p.out, "campaign %d, %d visitors, %d events, medians of %d rounds; ratios to Lifthouse\n", r.CampaignID, r.Visitors, r.Events, r.Rounds)
	line("question\twho\tevents\twall ×\tCPU ×\tmemory ×\tsettled, CPU ×\twall ms\tCPU ms\tpeak MB")
	for _, row := range r.Rows {
		line("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t%s", row.Question, row.Who, row.Table,
			times(row.WallRatio), times(row.CPURatio), times(row.MemoryRatio), times(row.SettledRatio), row.Cost.WallMS, row.Cost.CPUMS, megabytes(row.Cost.PeakMB))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "%d numbers compared, %d differ\n", r.Compared, len(r.Differ))
	return err
}

func times(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ratio)
}

func megabytes(peak float64) string {
	if peak == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", peak)
}
