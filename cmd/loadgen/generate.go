package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/engine/embedded"
	"lifthouse/loadgen"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const generateHelp = `Generate makes visitors, their events and the truth about them. The same population and seed give
the same bytes, whatever the number of cores. Events go to one place:

  -o FILE          JSON lines (.gz and .zst are compressed) or .parquet; - is standard output
  --store STORE    straight into a store that no process holds; the catalogue is applied too
  --url URL        POST to a running server, with a --token of the scope ingest

The truth, JSON of the rates, means and lifts that were planted, is computed from the population's
parameters; it goes to --truth FILE, or to standard output unless events go there.

Without -f the population is a small shop; with -f it is what the YAML file says:

  seed: 1
  start: 2026-03-01
  days: 28
  traffic: {views: 3, returning: 0.3, crossovers: 0.01, sourceChanges: 0.3, late: 0.01, duplicates: 0.005}
  websites:
    - id: 1
      domain: shop.example.com
      goals:                                  # rate: share of the visitors; again: chance of one more
        - {id: 3, name: Purchase, rate: 0.06, again: 0.15, value: 54, spread: 0.9, margin: 0.25, noise: 0.2, extra: 0.08}
      campaigns:
        - id: 12
          name: Banner
          primaryGoalId: 3
          visitors: 60000
          controlShare: 50
          variations: [{id: 1, name: Banner, share: 100}]
          effects:                            # all that hold multiply
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

// generation is what the command's flags say.
type generation struct {
	file      string // of the population
	visitors  int
	days      int
	start     string
	seed      uint64
	out       string
	store     string
	url       string
	tokens    []string
	truth     string
	catalogue string
}

func (p *program) generateCommand() *cobra.Command {
	var g generation
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make events whose truth is known",
		Long:  generateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.scenario(cmd)
			if err != nil {
				return err
			}
			return p.generate(cmd.Context(), &g, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&g.file, "file", "f", "", "YAML file with the population")
	flags.IntVar(&g.visitors, "visitors", 0, "how many in all, divided as the population has them")
	flags.IntVar(&g.days, "days", 0, "on which visitors come first")
	flags.StringVar(&g.start, "start", "", "the first of the days, such as 2026-03-01")
	flags.Uint64Var(&g.seed, "seed", 0, "chooses the draws")
	flags.StringVarP(&g.out, "output", "o", "", "file for the events; - is standard output")
	flags.StringVar(&g.store, "store", "", "store for the events, such as embedded:./data")
	flags.StringVar(&g.url, "url", "", "server for the events, such as http://127.0.0.1:8080")
	flags.StringArrayVar(&g.tokens, "token", nil, "for --url, of the scope ingest; with several websites WEBSITE=TOKEN for each")
	flags.StringVar(&g.truth, "truth", "", "file for the truth")
	flags.StringVar(&g.catalogue, "catalogue", "", "file for the catalogue that lifthouse apply reads")
	return cmd
}

// scenario is the population of the file, or the small shop, changed by the
// flags that were given.
func (g *generation) scenario(cmd *cobra.Command) (*loadgen.Scenario, error) {
	s := loadgen.DefaultScenario()
	if g.file != "" {
		file, err := os.Open(g.file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		if s, err = loadgen.ReadScenario(file); err != nil {
			return nil, usageError{fmt.Errorf("%s:\n%w", g.file, err)}
		}
	}
	changed := cmd.Flags().Changed
	if changed("visitors") {
		if g.visitors < 1 {
			return nil, usageError{fmt.Errorf("--visitors %d: want at least 1", g.visitors)}
		}
		s.SetVisitors(g.visitors)
	}
	if changed("days") {
		s.Days = g.days
	}
	if changed("seed") {
		s.Seed = g.seed
	}
	if changed("start") {
		start, err := time.Parse(time.DateOnly, g.start)
		if err != nil {
			return nil, usageError{fmt.Errorf("--start %q: want a day such as 2026-03-01", g.start)}
		}
		s.Start = catalogue.Date{Time: start}
	}
	if err := s.Validate(); err != nil {
		return nil, usageError{err}
	}
	return &s, nil
}

func (p *program) generate(ctx context.Context, g *generation, s *loadgen.Scenario) error {
	if err := g.check(s); err != nil {
		return usageError{err}
	}
	if g.catalogue != "" {
		if err := writeFile(g.catalogue, s.Catalogue().Write); err != nil {
			return err
		}
	}
	started := time.Now()
	sent, to, err := p.send(ctx, g, s)
	if err != nil {
		return err
	}
	if to != "" {
		seconds := time.Since(started).Seconds()
		p.complain("%s: %d events of %d visitors, %.1f s, %.0f events/s", to, sent.Events, sent.Visitors, seconds, float64(sent.Events)/seconds)
	}
	return p.tellTruth(g, s)
}

// check is what is wrong with where the events are to go.
func (g *generation) check(s *loadgen.Scenario) error {
	var errs []error
	places := 0
	for _, place := range []string{g.out, g.store, g.url} {
		if place != "" {
			places++
		}
	}
	if places > 1 {
		errs = append(errs, errors.New("-o, --store and --url: want one of them"))
	}
	if places == 0 && g.truth == "" && g.catalogue == "" {
		errs = append(errs, errors.New("where do the events go? -o FILE, --store STORE or --url URL; or only --truth FILE, --catalogue FILE"))
	}
	if g.url == "" && len(g.tokens) > 0 {
		errs = append(errs, errors.New("--token: goes with --url"))
	}
	if g.url != "" {
		_, err := g.receiver(s)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// receiver is the server with a token for each website.
func (g *generation) receiver(s *loadgen.Scenario) (*loadgen.Receiver, error) {
	r := &loadgen.Receiver{URL: strings.TrimRight(g.url, "/"), Tokens: map[int64]string{}, Client: &http.Client{Timeout: time.Minute}}
	for _, given := range g.tokens {
		website, token, several := strings.Cut(given, "=")
		if !several && len(s.Websites) == 1 {
			r.Tokens[s.Websites[0].ID] = given
			continue
		}
		id, err := strconv.ParseInt(website, 10, 64)
		if err != nil || !several {
			return nil, errors.New("--token: the population has several websites; want WEBSITE=TOKEN, such as 1=lh_…")
		}
		r.Tokens[id] = token
	}
	var errs []error
	for i := range s.Websites {
		if id := s.Websites[i].ID; r.Tokens[id] == "" {
			errs = append(errs, fmt.Errorf("--token: want one of the scope ingest for website %d: lifthouse token create --scope ingest --website %d", id, id))
		}
	}
	return r, errors.Join(errs...)
}

// send makes the events and sends them where they are to go.
func (p *program) send(ctx context.Context, g *generation, s *loadgen.Scenario) (sent loadgen.Progress, to string, err error) {
	switch {
	case g.out != "":
		show := p.progress(g.out, s.Visitors())
		out := bufio.NewWriterSize(p.out, 1<<20)
		sent, err = loadgen.WriteFile(ctx, s, g.out, out, show.update)
		show.clear()
		return sent, g.out, errors.Join(err, out.Flush())
	case g.url != "":
		receiver, err := g.receiver(s)
		if err != nil {
			return sent, "", err
		}
		show := p.progress(g.url, s.Visitors())
		sent, err = receiver.Post(ctx, s, show.update)
		show.clear()
		return sent, g.url, err
	case g.store != "":
		err = p.withStore(ctx, g.store, func(store *app.Store) error {
			sent, err = p.fill(ctx, store, s)
			return err
		})
		return sent, schema.ShowAddress(g.store), err
	}
	return sent, "", nil
}

// fill writes a scenario into a store, and then declares it.
func (p *program) fill(ctx context.Context, store *app.Store, s *loadgen.Scenario) (loadgen.Progress, error) {
	show := p.progress("store", s.Visitors())
	sent, outcome, err := loadgen.Store(ctx, s, store.Writer, show.update)
	show.clear()
	if err != nil {
		return sent, err
	}
	p.complain("%d rows inserted, %d duplicates (%d conflicting)", outcome.Inserted, outcome.Duplicates, outcome.Conflicts)
	_, err = store.Catalogue.Apply(ctx, s.Catalogue(), false)
	return sent, err
}

// withStore does the work on a store, which no other process may hold.
func (p *program) withStore(ctx context.Context, address string, work func(*app.Store) error) error {
	home, err := schema.ParseAddress(address, os.Getenv)
	if err != nil {
		return usageError{err}
	}
	store, err := app.Open(ctx, home, app.Options{Limits: engine.DefaultLimits, Complain: p.complain})
	var locked *embedded.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("%w; a server that holds it takes events over HTTP: loadgen generate --url", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// serving does the work on a store as a server has it: it remembers what is
// stored of each subject, and looks each second.
func serving(ctx context.Context, s *app.Store, work func() error) error {
	following, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { s.Engine.FollowVersions(following, time.Second) })
	defer background.Wait()
	defer stop()
	return work()
}

func (p *program) tellTruth(g *generation, s *loadgen.Scenario) error {
	write := func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s.Truth())
	}
	switch {
	case g.truth != "":
		return writeFile(g.truth, write)
	case g.out != "-" && g.out+g.store+g.url != "":
		return write(p.out)
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
