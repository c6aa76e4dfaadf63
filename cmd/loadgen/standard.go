package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/loadgen/measure"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const standardHelp = `Standard inserts the standard data set into a new store, with its catalogue, and prints a token with
scope read. Benchmark results on the standard data set are comparable.

At scale 1 the data set has one campaign with 5 million visitors and about 28 million events, and 200
campaigns with 3,700 to 17,000 visitors, on 10 websites and over 60 days. A visitor has 1 to 80 events,
minutes and days apart. 22 % of the events after the first view are goals of five kinds. The first goal
has log-normal revenue. 1 % of the visitors see several variations. All attributes are set.

With --campaigns N, it has N campaigns, the large one among them: 80 % have ended, and the others run on
website 1. Loadgen bench --mix bulk needs 500.`

// minScale is the least scale of the standard data set.
const minScale = 0.0001

// standardOptions has the flags of the command.
type standardOptions struct {
	store     string
	scale     float64
	seed      uint64
	campaigns int // 0: those of the standard data set
	optimize  bool
	jsonFile  string
}

func (p *program) standardCommand() *cobra.Command {
	var o standardOptions
	cmd := &cobra.Command{
		Use:   "standard",
		Short: "Insert the standard data set into a new store",
		Long:  standardHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.store == "" {
				return usageError{errors.New("missing --store: must be a new store, such as embedded:./standard")}
			}
			return p.withStore(cmd.Context(), o.store, func(store *app.Store) error {
				return p.insertStandard(cmd.Context(), store, &o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.store, "store", "", "address of the new store, such as embedded:./standard (required)")
	bounds.Var(flags, &o.scale, "scale", 1, minScale, 100, "factor of all numbers of visitors")
	bounds.Var(flags, &o.seed, "seed", 1, 0, math.MaxUint64, "seed of the random numbers")
	bounds.Var(flags, &o.campaigns, "campaigns", 0, 0, 10_000, "number of campaigns, of which 80 % have ended; 0: 201, which run")
	flags.BoolVar(&o.optimize, "optimize", false, "merge the parts of the events table at the end")
	flags.StringVar(&o.jsonFile, "json", "", "write the insertion rate to this JSON file")
	return cmd
}

func (p *program) insertStandard(ctx context.Context, store *app.Store, o *standardOptions) error {
	if accounts := store.Catalogue.Snapshot().AllAccounts(); len(accounts) > 0 {
		return fmt.Errorf("store %s is in use because it has a catalogue: the standard data set needs a new store", schema.ShowAddress(o.store))
	}
	s := population.StandardScenario(o.scale, o.seed)
	if o.campaigns > 0 {
		s = population.ManyScenario(o.campaigns, o.scale, o.seed)
	}
	started := time.Now()
	sent, err := p.insertScenario(ctx, store, &s)
	if err != nil {
		return err
	}
	result := measure.Insertion{Scale: o.scale, Visitors: sent.Visitors, Events: sent.Events, Seconds: time.Since(started).Seconds()}
	result.EventsPerSecond = float64(result.Events) / result.Seconds
	p.printDiagnostic("inserted %d events of %d visitors in %.1f s (%.0f events/s)", result.Events, result.Visitors, result.Seconds, result.EventsPerSecond)
	if o.jsonFile != "" {
		if err := writeJSON(o.jsonFile, result); err != nil {
			return err
		}
	}
	if o.optimize {
		started = time.Now()
		if err := measure.MergeParts(ctx, store.Conn); err != nil {
			return err
		}
		p.printDiagnostic("merged parts in %.1f s", time.Since(started).Seconds())
	}
	token, _, err := store.Catalogue.CreateToken(ctx, catalogue.Token{AccountID: population.Account, Name: "standard", Scopes: []catalogue.Scope{catalogue.ScopeRead}})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, token)
	return err
}
