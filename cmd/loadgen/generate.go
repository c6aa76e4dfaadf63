package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/inputs"
	"lifthouse/loadgen/population"
	"lifthouse/loadgen/send"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const generateHelp = `Generate generates synthetic visitors and their events. Equal scenarios and seeds generate the same
events, byte for byte, on any number of cores. Events go to one destination:

  -o FILE          JSON lines (compressed if FILE ends in .gz or .zst) or .parquet; - is standard output
  --store STORE    a store that no other process has open; the catalogue is applied too
  --url URL        a running server, with a --token with scope ingest

The truth has the true rates, means and lifts of the scenario as JSON. It is computed from the
parameters of the scenario, not from the events. The truth goes to --truth FILE, or to standard output
unless the events go there.

Without -f the scenario is a small shop. With -f it is read from a YAML file:

  seed: 1
  start: 2026-03-01
  days: 28
  traffic: {views: 3, returning: 0.3, multipleExposures: 0.01, sourceChanges: 0.3, late: 0.01, duplicates: 0.005}
  websites:
    - id: 1
      domain: shop.example.com
      goals:                                  # rate: share of visitors who reach the goal; again: probability of another event
        - {id: 3, name: Purchase, rate: 0.06, again: 0.15, value: 54, spread: 0.9, margin: 0.25, noise: 0.2, extra: 0.08}
      campaigns:
        - id: 12
          name: Banner
          primaryGoalId: 3
          visitors: 60000
          controlShare: 50
          variations: [{id: 1, name: Banner, share: 100}]
          effects:                            # the factors of all matching effects are multiplied
            - {variation: 1, goal: 3, rate: 1.1}
            - {variation: 1, goal: 3, when: {device: mobile}, rate: 1.3, value: 0.95}
      widgets:
        - id: 21
          name: Popup
          primaryGoalId: 3
          experiments:
            - id: 1
              name: Headline
              visitors: 15000
              actions: {click: 0.2, conversion: 0.07}
              variations: [{id: 2, name: New, share: 100}]
              effects: [{variation: 2, event: conversion, rate: 1.25}]`

// generateOptions has the flags of the command.
type generateOptions struct {
	scenarioFile string
	visitors     int
	days         int
	start        string
	seed         uint64
	output       string
	store        string
	url          string
	tokens       []string
	truth        string
	catalogue    string
}

func (p *program) generateCommand() *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate events with known effects",
		Long:  generateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.readScenario(cmd)
			if err != nil {
				return err
			}
			return p.generateEvents(cmd.Context(), &o, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.scenarioFile, "file", "f", "", "YAML file with the scenario (default a small shop)")
	bounds.Var(flags, &o.visitors, "visitors", 0, 1, 1_000_000_000, "total number of visitors (default as in the scenario)")
	bounds.Var(flags, &o.days, "days", 0, 1, 3650, "number of days with first visits (default as in the scenario)")
	flags.StringVar(&o.start, "start", "", "first day, such as 2026-03-01 (default as in the scenario)")
	bounds.Var(flags, &o.seed, "seed", 0, 0, math.MaxUint64, "seed of the random numbers (default as in the scenario)")
	flags.StringVarP(&o.output, "output", "o", "", "write the events to this file; - is standard output")
	flags.StringVar(&o.store, "store", "", "insert the events into this store, such as embedded:./data")
	flags.StringVar(&o.url, "url", "", "post the events to this server, such as http://127.0.0.1:8080")
	flags.StringArrayVar(&o.tokens, "token", nil, "token with scope ingest for --url; with several websites, one WEBSITE=TOKEN per website")
	flags.StringVar(&o.truth, "truth", "", "write the truth to this JSON file")
	flags.StringVar(&o.catalogue, "catalogue", "", "write the catalogue to this file, for lifthouse apply")
	return cmd
}

// readScenario returns the scenario of the file, or the default scenario, with the
// values of the flags.
func (o *generateOptions) readScenario(cmd *cobra.Command) (*population.Scenario, error) {
	s := population.DefaultScenario()
	if o.scenarioFile != "" {
		file, err := os.Open(o.scenarioFile)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		if s, err = population.ReadScenario(file); err != nil {
			return nil, usageError{fmt.Errorf("%s:\n%w", o.scenarioFile, err)}
		}
	}
	changed := cmd.Flags().Changed
	if changed("visitors") {
		s.SetVisitors(o.visitors)
	}
	if changed("days") {
		s.Days = o.days
	}
	if changed("seed") {
		s.Seed = o.seed
	}
	if changed("start") {
		start, err := time.Parse(time.DateOnly, o.start)
		if err != nil {
			return nil, usageError{fmt.Errorf("invalid --start %q: must be a day such as 2026-03-01", o.start)}
		}
		s.Start = catalogue.Date{Time: start}
	}
	if err := s.Validate(); err != nil {
		return nil, usageError{err}
	}
	return &s, nil
}

func (p *program) generateEvents(ctx context.Context, o *generateOptions, s *population.Scenario) error {
	if err := o.checkDestination(s); err != nil {
		return usageError{err}
	}
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
	return p.writeTruth(o, s)
}

// checkDestination checks the flags that select the destination of the events.
func (o *generateOptions) checkDestination(s *population.Scenario) error {
	var errs []error
	destinations := 0
	for _, destination := range []string{o.output, o.store, o.url} {
		if destination != "" {
			destinations++
		}
	}
	if destinations > 1 {
		errs = append(errs, errors.New("--output, --store and --url are mutually exclusive"))
	}
	if destinations == 0 && o.truth == "" && o.catalogue == "" {
		errs = append(errs, errors.New("missing destination: set --output, --store or --url, or only --truth or --catalogue"))
	}
	if o.url == "" && len(o.tokens) > 0 {
		errs = append(errs, errors.New("--token needs --url"))
	}
	if o.url != "" {
		_, err := o.targetServer(s)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, o.checkOutputs()...)...)
}

// checkOutputs returns an error for each output that is the scenario.
func (o *generateOptions) checkOutputs() (errs []error) {
	var read inputs.Files
	read.AddPath(o.scenarioFile, o.scenarioFile)
	for flag, path := range map[string]string{"--output": o.output, "--truth": o.truth, "--catalogue": o.catalogue} {
		errs = append(errs, read.CheckOutput(flag, path, path))
	}
	return errs
}

// targetServer returns the server of --url with a token for each website.
func (o *generateOptions) targetServer(s *population.Scenario) (*send.Server, error) {
	server := &send.Server{URL: strings.TrimRight(o.url, "/"), Tokens: map[int64]string{}, Client: &http.Client{Timeout: time.Minute}}
	for _, value := range o.tokens {
		website, token, hasWebsite := strings.Cut(value, "=")
		if !hasWebsite && len(s.Websites) == 1 {
			server.Tokens[s.Websites[0].ID] = value
			continue
		}
		id, err := strconv.ParseInt(website, 10, 64)
		if err != nil || !hasWebsite {
			return nil, errors.New("invalid --token: the scenario has several websites, so it must be WEBSITE=TOKEN, such as 1=lh_…")
		}
		server.Tokens[id] = token
	}
	var errs []error
	for i := range s.Websites {
		if id := s.Websites[i].ID; server.Tokens[id] == "" {
			errs = append(errs, fmt.Errorf("missing --token with scope ingest for website %d: create one with lifthouse token create --scope ingest --website %d", id, id))
		}
	}
	return server, errors.Join(errs...)
}

// sendEvents sends the events to their destination and returns its name, or "" if
// there is no destination.
func (p *program) sendEvents(ctx context.Context, o *generateOptions, s *population.Scenario) (sent send.Progress, destination string, err error) {
	switch {
	case o.output != "":
		update, clearProgress := p.sendProgress(o.output, s.TotalVisitors())
		stdout := bufio.NewWriterSize(p.out, 1<<20)
		sent, err = send.WriteFile(ctx, s, o.output, stdout, update)
		clearProgress()
		return sent, o.output, errors.Join(err, stdout.Flush())
	case o.url != "":
		server, err := o.targetServer(s)
		if err != nil {
			return sent, "", err
		}
		update, clearProgress := p.sendProgress(o.url, s.TotalVisitors())
		sent, err = server.PostScenario(ctx, s, update)
		clearProgress()
		return sent, o.url, err
	case o.store != "":
		err = p.withStore(ctx, o.store, func(store *app.Store) error {
			sent, err = p.insertScenario(ctx, store, s)
			return err
		})
		return sent, schema.ShowAddress(o.store), err
	}
	return sent, "", nil
}

// writeTruth writes the truth to --truth or to standard output.
func (p *program) writeTruth(o *generateOptions, s *population.Scenario) error {
	write := func(w io.Writer) error { return encodeJSON(w, s.ComputeTruth()) }
	switch {
	case o.truth != "":
		return writeFile(o.truth, write)
	case o.output != "-" && o.output+o.store+o.url != "":
		return write(p.out)
	}
	return nil
}
