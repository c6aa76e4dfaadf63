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

const (
	longestCost = time.Minute
	// mostReports keeps the simulated reports in memory.
	mostReports = 1_000
)

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
			if load.Computed+load.Sliced > 1 {
				return usageError{fmt.Errorf("--computed %g and --sliced %g: the sum must be at most 1", load.Computed,
					load.Sliced)}
			}
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
	bounds.Var(flags, &costs.Insert, "insert", 5*time.Microsecond, 0, longestCost, "CPU time of an event that is stored")
	bounds.Var(flags, &costs.Fold, "fold", 150*time.Microsecond, 0, longestCost,
		"CPU time of an event that is folded as it arrives")
	bounds.Var(flags, &costs.Refresh, "refresh", 15*time.Millisecond, 0, longestCost,
		"CPU time of a refresh, whatever it folds")
	bounds.Var(flags, &costs.Cached, "cached", 200*time.Microsecond, 0, longestCost, "CPU time of a report that is unchanged")
	bounds.Var(flags, &costs.Report, "report", 2*time.Millisecond, 0, longestCost,
		"CPU time of a report that is computed from sums")
	bounds.Var(flags, &costs.Slice, "slice", 40*time.Millisecond, 0, longestCost, "CPU time of a report by an attribute")
	bounds.Var(flags, &load.Reports, "reports", 20, 0, mostReports, "reports a second")
	bounds.Var(flags, &load.Computed, "computed", 0.3, 0, 1, "share of the reports that are computed from sums")
	bounds.Var(flags, &load.Sliced, "sliced", 0.05, 0, 1, "share of the reports that are by an attribute")
	return cmd
}

// roundTime returns a duration with two or three digits.
func roundTime(d time.Duration) string {
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
