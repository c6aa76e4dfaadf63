package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/loadgen"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

const standardHelp = `Standard makes the data set on which figures are comparable: one campaign of 5 million visitors and
about 28 million events, and 200 small ones of 3,700 to 17,000 visitors, over 10 websites and 60
days; 1 to 80 events a visitor, minutes and days apart, 22 % of the later ones goals of five kinds,
log-normal revenue on the first, 1 % crossovers, all attributes filled. It goes through the writer
into a new store, with its catalogue; a token to read it is printed.`

func (p *program) standardCommand() *cobra.Command {
	var store, toFile string
	var scale float64
	var seed uint64
	var optimize bool
	cmd := &cobra.Command{
		Use:   "standard",
		Short: "Make the standard data set in a store",
		Long:  standardHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var errs []error
			if store == "" {
				errs = append(errs, errors.New("--store: want the store to be made, such as embedded:./standard"))
			}
			if !(scale > 0 && scale <= 100) {
				errs = append(errs, fmt.Errorf("--scale %v: want more than 0, at most 100", scale))
			}
			if err := errors.Join(errs...); err != nil {
				return usageError{err}
			}
			s := loadgen.Standard(scale, seed)
			return p.withStore(cmd.Context(), store, func(o *app.Store) error {
				return p.standard(cmd.Context(), o, &s, standardMade{store, toFile, scale, optimize})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&store, "store", "", "store to be made, such as embedded:./standard")
	flags.Float64Var(&scale, "scale", 1, "of the numbers of visitors")
	flags.Uint64Var(&seed, "seed", 1, "chooses the draws")
	flags.BoolVar(&optimize, "optimize", false, "merge the parts at the end, as they are some time later anyway")
	flags.StringVar(&toFile, "json", "", "file for how it went")
	return cmd
}

// standardMade is how the data set is to be made.
type standardMade struct {
	store    string
	toFile   string
	scale    float64
	optimize bool
}

func (p *program) standard(ctx context.Context, store *app.Store, s *loadgen.Scenario, how standardMade) error {
	if accounts := store.Catalogue.Snapshot().Accounts(); len(accounts) > 0 {
		return fmt.Errorf("%s is in use: it has a catalogue; the standard data set wants a store of its own", schema.ShowAddress(how.store))
	}
	started := time.Now()
	sent, err := p.fill(ctx, store, s)
	if err != nil {
		return err
	}
	made := loadgen.StandardResult{Scale: how.scale, Visitors: sent.Visitors, Events: sent.Events, Seconds: time.Since(started).Seconds()}
	made.EventsPerSecond = float64(made.Events) / made.Seconds
	p.complain("%d events of %d visitors, %.1f s, %.0f events/s", made.Events, made.Visitors, made.Seconds, made.EventsPerSecond)
	if how.toFile != "" {
		if err := writeFile(how.toFile, func(w io.Writer) error { return json.NewEncoder(w).Encode(made) }); err != nil {
			return err
		}
	}
	if how.optimize {
		started = time.Now()
		if err := loadgen.Merge(ctx, store.Conn); err != nil {
			return err
		}
		p.complain("parts merged, %.1f s", time.Since(started).Seconds())
	}
	token, _, err := store.Catalogue.CreateToken(ctx, catalogue.Token{AccountID: s.Account, Name: "standard", Scopes: []catalogue.Scope{catalogue.ScopeRead}})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, token)
	return err
}
