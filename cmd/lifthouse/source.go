package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"lifthouse/api"
	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/render"
	"lifthouse/engine/wording"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

func (p *program) sourceAddCommand() *cobra.Command {
	var domain, name, mapping string
	var website int64
	var rate int
	sender := catalogue.Sender{}
	cmd := newCommand("source-add", func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || mapping == "" && !ingest.IsShipped(args[0]) {
			return usageError{fmt.Errorf("source add: the sender %s, or a name with --mapping FILE",
				faults.OneOf(ingest.ShippedMappings()...))}
		}
		return nil
	}, nil)
	cmd.Use = fmt.Sprintf(cmd.Use, strings.Join(ingest.ShippedMappings(), "|"))
	flags := cmd.Flags()
	flags.StringVar(&domain, "domain", "", "domain of the website, which is created if the store does not have it")
	bounds.Var(flags, &website, "website", 0, 0, bounds.MaxID, "id of the website; required if there are several")
	flags.StringVar(&name, "name", "", "name of the source; default: that of the mapping")
	flags.StringVar(&mapping, "mapping", "", "YAML file with an own mapping, which may extend a shipped one")
	flags.BoolVar(&sender.ViewsOnly, "views-only", false, "reject goals: for the key of a page, which is public")
	flags.StringVar(&sender.SecretFile, "secret-file", "",
		"file with the secret with which Shopify or WooCommerce signs its webhooks")
	bounds.Var(flags, &rate, "rate", catalogue.DefaultRate, 0, 1_000_000,
		"limit of events per second, and of events at once except in one request; 0: none")
	p.publicURLFlag(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			owned, site, err := p.websiteOfSource(ctx, s, domain, website)
			if err != nil {
				return err
			}
			if sender.Mapping = args[0]; mapping != "" {
				text, err := os.ReadFile(p.absolutePath(mapping))
				if err != nil {
					return err
				}
				sender.Mapping = string(text)
			}
			if sender.SecretFile != "" {
				sender.SecretFile = p.absolutePath(sender.SecretFile)
				if _, err := s.Secrets.ReadSecret(sender.SecretFile); err != nil {
					return fmt.Errorf("--secret-file: %w", err)
				}
			}
			if _, err := ingest.NewIntake(sender.Mapping, site, args[0], sender.ViewsOnly); err != nil {
				return fmt.Errorf("--mapping %s: %w", mapping, err)
			}
			sender.Rate = &rate
			key, _, err := s.Catalogue.CreateToken(ctx, catalogue.Token{
				AccountID: owned, WebsiteID: site, Name: cmp.Or(name, args[0]),
				Scopes: []catalogue.Scope{catalogue.ScopeIngest}, Sender: &sender,
			})
			if err != nil {
				return fmt.Errorf("source add: %w", err)
			}
			p.printLine("%s", api.SourceAddress(p.publicURL(), key))
			p.printDiagnostic("%s\nThen: lifthouse source list", api.PasteText(args[0], p.publicURL(), key))
			return nil
		})
	}
	return cmd
}

// websiteOfSource returns the account and the website of a new source. It creates the website of a domain that the
// store does not have, and the first account.
func (p *program) websiteOfSource(ctx context.Context, s *app.Store, domain string, id int64) (account, website int64,
	err error,
) {
	snapshot := s.Catalogue.Snapshot()
	last := int64(0)
	for _, owned := range snapshot.AllAccounts() {
		account = owned.ID
		for _, site := range catalogue.ByID(owned.Websites) {
			last = max(last, site.ID)
			if domain != "" && site.Domain == domain || domain == "" && site.ID == id {
				return owned.ID, site.ID, nil
			}
		}
	}
	if domain == "" {
		if account, err = accountOr(0, snapshot); err != nil {
			return 0, 0, errors.Join(err, errors.New("or name the website: --domain shop.example.com"))
		}
		website, err = websiteOr(id, snapshot.AccountResources(account))
		return account, website, err
	}
	declared := catalogue.Account{ID: cmp.Or(account, 1), Name: domain}
	if account != 0 {
		declared.Name = snapshot.AccountResources(account).Name
	}
	declared.Websites = []catalogue.Website{{ID: last + 1, Domain: domain}}
	version := snapshot.AccountResources(declared.ID).Version
	_, err = s.Catalogue.ApplyFile(ctx, catalogue.File{
		AccountID: declared.ID, Accounts: []catalogue.Account{declared},
		Replaces: func(current uint64) bool { return current == version }, // nobody else took the id of the website
	}, false)
	return declared.ID, last + 1, err
}

// publicURL returns the base of the links that a command makes.
func (p *program) publicURL() string {
	return cmp.Or(p.serving.API.PublicURL, p.server.API.PublicURL, "http://"+app.DefaultListen)
}

func (p *program) sourceListCommand() *cobra.Command {
	cmd := newCommand("source-list", noArgs, nil)
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		rows := [][]any{{
			"ID", "SOURCE", "WEBSITE", "LAST REQUEST", "ACCEPTED", "PURCHASES", "NO VISITOR", "IGNORED", "REJECTED",
		}}
		list, err := s.Sources(ctx, s.owned.ID)
		if err != nil {
			return err
		}
		var notes []string
		for _, source := range list.Sources {
			last := "never"
			if source.LastRequest != nil {
				last = source.LastRequest.Format(time.RFC3339)
			}
			ignored, names := 0, []string{}
			for _, name := range slices.Sorted(maps.Keys(source.Ignored)) {
				ignored += source.Ignored[name]
				names = append(names, fmt.Sprintf("%s (%d)", cmp.Or(name, "without a name"), source.Ignored[name]))
			}
			if ignored > 0 {
				notes = append(notes, fmt.Sprintf("Ignored of %s: %s", source.Name, strings.Join(names, ", ")))
			}
			if source.Cut > 0 {
				notes = append(notes, fmt.Sprintf("Cut in %s of %s: attributes of more than 512 bytes",
					wording.CountNoun(source.Cut, "item"), source.Name))
			}
			rows = append(rows, []any{
				source.ID, source.Name, source.WebsiteID, last, source.Accepted, source.Purchases, source.NoVisitor,
				ignored, source.Rejected,
			})
		}
		for _, warning := range list.Warnings {
			notes = append(notes, "Warning: "+warning.Message)
		}
		err = p.printList(rows, "Account %d has no source; make one with lifthouse source add.", s.owned.ID)
		for _, note := range notes {
			p.printLine("\n%s", render.PrintableText(strings.ReplaceAll(note, "\n", " "))) // senders name items
		}
		return err
	})
}
