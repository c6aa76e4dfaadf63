package main

import (
	"errors"

	"lifthouse/loadgen/report"

	"github.com/spf13/cobra"
)

const reportHelp = `Report writes the benchmark report in Markdown: one page with summaries, and a directory with the full
tables. It reads the results of other commands from the directory of --results:

  standard.json                                     --json file of standard (required)
  competitors.json                                  --json file of competitors (required)
  growth.json, calibration.json, decisions.json     --json files of growth, calibrate, calibrate decisions
  cached.json, uncached.json, analyst.json          --json files of bench --ladder with this --mix
  import.txt                                        a text about an import, included as it is

make benchmarks runs all measurements and writes the report.`

func (p *program) reportCommand() *cobra.Command {
	var results, command, revision, page, details string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write BENCHMARKS.md from the results of other commands",
		Long:  reportHelp,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if results == "" || page == "" {
				return usageError{errors.New("missing --results or --output: set the directory with the results, and the file of the page, such as BENCHMARKS.md")}
			}
			b, err := report.ReadResults(results)
			if err != nil {
				return err
			}
			b.Command, b.Machine.Revision = command, revision
			return b.WriteFiles(page, details)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&results, "results", "", "directory with the results of other commands (required)")
	flags.StringVar(&command, "command", "make benchmarks", "command that generates the report, named on the page")
	flags.StringVar(&revision, "revision", "unknown", "revision named on the page")
	flags.StringVarP(&page, "output", "o", "", "file for the page, such as BENCHMARKS.md (required)")
	flags.StringVar(&details, "details", "docs/benchmarks", "directory for the full tables")
	return cmd
}
