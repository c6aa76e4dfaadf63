package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const generateHelp = `Generate generates the synthetic visitors of a small shop and their events. Equal flags generate the same
events, byte for byte, on any number of cores. Events go to one destination:

  -o FILE          JSON lines, for lifthouse import; - is standard output
  --store STORE    a store that no other process has open; the catalogue is applied too

The truth has the true rates, means and lifts of the shop as JSON. It is computed from the parameters
of the shop, not from the events. The truth goes to --truth FILE, or to standard output unless the
events go there.`

// generateOptions has the flags of the command.
type generateOptions struct {
	start, output, store, truth, catalogue string
}

func (p *program) generateCommand() *cobra.Command {
	var o generateOptions
	s := population.DefaultScenario()
	var visitors int
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate events with known effects",
		Long:  generateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			start, err := time.Parse(time.DateOnly, o.start)
			if err != nil {
				err = fmt.Errorf("invalid --start %q: must be a day such as 2026-03-01", o.start)
			}
			if err := errors.Join(err, o.checkDestination()); err != nil {
				return usageError{err}
			}
			s.Start = catalogue.Date{Time: start}
			s.SetVisitors(visitors)
			return p.generateEvents(cmd.Context(), &o, &s)
		},
	}
	flags := cmd.Flags()
	bounds.Var(flags, &visitors, "visitors", s.TotalVisitors(), 1, 1_000_000_000, "total number of visitors")
	bounds.Var(flags, &s.Days, "days", s.Days, 1, 3650, "number of days with first visits")
	flags.StringVar(&o.start, "start", s.Start.Format(time.DateOnly), "first day")
	bounds.Var(flags, &s.Seed, "seed", s.Seed, 0, math.MaxUint64, "seed of the random numbers")
	flags.StringVarP(&o.output, "output", "o", "", "write the events to this file; - is standard output")
	flags.StringVar(&o.store, "store", "", "insert the events into this store, such as embedded:./data")
	flags.StringVar(&o.truth, "truth", "", "write the truth to this JSON file")
	flags.StringVar(&o.catalogue, "catalogue", "", "write the catalogue to this file, for lifthouse apply")
	return cmd
}

// checkDestination checks the flags that select the destination of the events.
func (o *generateOptions) checkDestination() error {
	switch {
	case o.output != "" && o.store != "":
		return errors.New("--output and --store are mutually exclusive")
	case o.output+o.store+o.truth+o.catalogue == "":
		return errors.New("missing destination: set --output or --store, or only --truth or --catalogue")
	}
	return nil
}

func (p *program) generateEvents(ctx context.Context, o *generateOptions, s *population.Scenario) error {
	if o.catalogue != "" {
		if err := writeFile(o.catalogue, s.CatalogueFile().WriteYAML); err != nil {
			return err
		}
	}
	started := time.Now()
	sent, destination, err := p.sendEvents(ctx, o, s)
	if err != nil {
		return err
	}
	if destination != "" {
		seconds := time.Since(started).Seconds()
		p.printDiagnostic("%s: %d events of %d visitors in %.1f s (%.0f events/s)", destination, sent.Events, sent.Visitors, seconds, float64(sent.Events)/seconds)
	}
	writeTruth := func(w io.Writer) error { return encodeJSON(w, s.ComputeTruth()) }
	switch {
	case o.truth != "":
		return writeFile(o.truth, writeTruth)
	case destination != "" && o.output != "-":
		return writeTruth(p.out)
	}
	return nil
}

// sendEvents sends the events to their destination and returns its name, or "" if
// there is no destination.
func (p *program) sendEvents(ctx context.Context, o *generateOptions, s *population.Scenario) (sent population.Progress, destination string, err error) {
	switch {
	case o.store != "":
		err = p.withStore(ctx, o.store, func(store *app.Store) error {
			sent, err = p.insertScenario(ctx, store, s)
			return err
		})
		return sent, schema.ShowAddress(o.store), err
	case o.output == "":
		return sent, "", nil
	}
	update := p.sendProgress(o.output, s.TotalVisitors())
	write := func(w io.Writer) error {
		sent, err = population.WriteNDJSON(ctx, s, w, update)
		return err
	}
	if o.output == "-" {
		stdout := bufio.NewWriterSize(p.out, 1<<20)
		return sent, o.output, errors.Join(write(stdout), stdout.Flush())
	}
	err = writeFile(o.output, write)
	return sent, o.output, err
}
