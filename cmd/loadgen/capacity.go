package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/loadgen/capacity"
)

const capacityHelp = `Capacity simulates a server, or a shard of a cluster, with measured costs: how long reports take and how
old their data are, at more and more events. The defaults are the costs of docs/scale.md; measure those of
your machine with loadgen folds and loadgen bench.`

// simulatedRates are the numbers of events a second, as 0.1 to 1,000 million a day.
var simulatedRates = []float64{12, 116, 1_160, 5_800, 11_600, 23_000, 46_000, 116_000}

func (p *program) capacityCommand() *cobra.Command {
	costs := capacity.Costs{}
	load := capacity.Load{}
	var cores, shards int
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Simulate a server with measured costs: latency and freshness by load",
		Long:  capacityHelp,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			table := tabwriter.NewWriter(p.out, 0, 0, 1, ' ', 0)
			_, _ = fmt.Fprintln(table, "| events/s\t| million/day\t| busy\t| report p50\t| report p99\t| data age p50\t| data age p99\t|")
			_, _ = fmt.Fprintln(table, "|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|")
			for _, rate := range simulatedRates {
				of := load
				of.Events = rate / float64(shards)
				r := capacity.Simulate(costs, of, cores, 1)
				const day = 86_400 / 1e6
				if r.Busy >= 1 {
					_, _ = fmt.Fprintf(table, "| %.0f\t| %.3g\t| %.0f %%\t| grows\t| grows\t| grows\t| grows\t|\n", rate,
						rate*day, 100*r.Busy)
					continue
				}
				_, _ = fmt.Fprintf(table, "| %.0f\t| %.3g\t| %.0f %%\t| %s\t| %s\t| %s\t| %s\t|\n", rate, rate*day, 100*r.Busy,
					roundTime(r.ReportP50), roundTime(r.ReportP99), roundTime(r.FreshP50), roundTime(r.FreshP99))
			}
			return table.Flush()
		},
	}
	flags := cmd.Flags()
	bounds.Var(flags, &cores, "cores", 2, 1, 1024, "cores of the server")
	bounds.Var(flags, &shards, "shards", 1, 1, 1024, "shards that share the events; each answers a part of every report")
	flags.DurationVar(&costs.Insert, "insert", 4*time.Microsecond, "CPU time of an event that is stored")
	flags.DurationVar(&costs.Fold, "fold", 40*time.Microsecond, "CPU time of an event that is folded as it arrives")
	flags.DurationVar(&costs.Refresh, "refresh", 15*time.Millisecond, "CPU time of a refresh, whatever it folds")
	flags.DurationVar(&costs.Cached, "cached", 200*time.Microsecond, "CPU time of a report that is unchanged")
	flags.DurationVar(&costs.Report, "report", 2*time.Millisecond, "CPU time of a report that is computed from sums")
	flags.DurationVar(&costs.Slice, "slice", 40*time.Millisecond, "CPU time of a report by an attribute")
	flags.Float64Var(&load.Reports, "reports", 20, "reports a second")
	flags.Float64Var(&load.Computed, "computed", 0.3, "share of the reports that are computed from sums")
	flags.Float64Var(&load.Sliced, "sliced", 0.05, "share of the reports that are by an attribute")
	return cmd
}

// roundTime returns a duration with two or three digits.
func roundTime(d time.Duration) string {
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
