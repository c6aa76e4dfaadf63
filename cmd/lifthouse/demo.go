package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

func (p *program) demoCommand() *cobra.Command {
	var traffic bool
	cmd := newCommand("demo", noArgs, func(cmd *cobra.Command, _ []string) error {
		if p.running != nil {
			return usageError{errors.New("a server is already running on this store")}
		}
		if !cmd.Flags().Changed("store") {
			p.address = "embedded:./demo"
		}
		return p.serveDemo(cmd.Context(), traffic)
	})
	p.serveFlags(cmd)
	cmd.Flags().BoolVar(&traffic, "traffic", true,
		"send the events of a few visitors per second while the demo is served")
	return cmd
}

func (p *program) serveDemo(ctx context.Context, traffic bool) (err error) {
	address, err := p.storeAddress()
	if err != nil {
		return err
	}
	if address.Dir != "" {
		if err := demo.ClaimDirectory(address.Dir); err != nil {
			return err
		}
	}
	s, err := p.openStore(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if address.Dir == "" && !demosOnly(s.Catalogue.Snapshot().AllAccounts()) {
		return errors.New("the store has other accounts and is not a demo store: name an empty database")
	}
	if err := p.makeDemo(ctx, s); err != nil {
		return err
	}
	// Replace the token of the last start.
	const tokenName = "demo"
	for _, token := range s.Catalogue.Snapshot().AccountTokens(demo.Account) {
		if token.Name == tokenName {
			if _, err := s.Catalogue.RevokeToken(ctx, demo.Account, token.ID); err != nil {
				return err
			}
		}
	}
	token, _, err := s.Catalogue.CreateToken(ctx, catalogue.Token{
		AccountID: demo.Account, Name: tokenName, Scopes: []catalogue.Scope{catalogue.ScopeAdmin},
	})
	if err != nil {
		return err
	}
	visits, end := context.WithCancel(ctx)
	var sending sync.WaitGroup
	ready := func(_ *app.Store, url string) {
		if traffic {
			visitors := demo.NewTraffic(time.Now())
			sending.Go(func() {
				schema.Repeat(visits, time.Second, "send the events of the demo", func(ctx context.Context) error {
					return s.Writer.WriteEvents(ctx, visitors.NextEvents(time.Now()))
				})
			})
		}
		p.printLine("Lifthouse demo answers at %s/v1 (store %s). Ctrl-C stops it. Try:\n", url,
			schema.ShowAddress(p.address))
		p.printLine("  curl -s -H 'Authorization: Bearer %s' '%s/v1/campaigns/%d/results'\n", token, url, demo.Campaign)
		p.printLine("Or look at %s/ in a browser, and sign in with the token.\n", url)
		p.printLine("Use it in other commands with --store %s.", schema.ShowAddress(p.address))
	}
	err = p.serveStore(ctx, s, ready)
	end()
	sending.Wait()
	return err
}

// demosOnly reports whether the catalogue is empty or contains only the demo account.
func demosOnly(accounts []*catalogue.AccountResources) bool {
	return len(accounts) == 0 || len(accounts) == 1 && accounts[0].Name == demo.Name
}

// makeDemo fills an empty store. It adds the catalogue last, which marks the store as complete.
func (p *program) makeDemo(ctx context.Context, s *app.Store) error {
	if len(s.Catalogue.Snapshot().AllAccounts()) > 0 {
		return nil
	}
	p.printLine("Creating the demo store …")
	now := time.Now().UTC()
	start := now.Truncate(24*time.Hour).AddDate(0, 0, -demo.Days) // up to yesterday; visitors of today arrive later
	events := slices.DeleteFunc(demo.ShopEvents(start), func(e schema.Event) bool { return e.Time.After(now) })
	if err := s.Writer.WriteEvents(ctx, events); err != nil {
		return err
	}
	// reports do not wait until so many events are folded
	if err := s.Facts.FoldAccepted(ctx, func(int, int) {}); err != nil {
		return err
	}
	if _, err := s.Catalogue.ApplyFile(ctx, demo.ShopCatalogue(start), false); err != nil {
		return err
	}
	for subject, outcome := range demo.Outcomes(start) {
		if _, err := s.Catalogue.SetOutcome(ctx, demo.Account, 0, subject, &outcome); err != nil {
			return err
		}
	}
	return nil
}
