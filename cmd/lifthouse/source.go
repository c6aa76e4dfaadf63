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

// sourceOptions are the flags of source add.
type sourceOptions struct {
	website       catalogue.Website // its id, or the domain and the currency of a website that may be created
	name, mapping string
	views         string
	rate          int
	sender        catalogue.Sender
}

func (p *program) sourceAddCommand() *cobra.Command {
	var o sourceOptions
	cmd := newCommand("source-add", func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || o.mapping == "" && !ingest.IsShipped(args[0]) {
			return usageError{fmt.Errorf("source add: the sender %s, or a name with --mapping FILE",
				faults.OneOf(ingest.ShippedMappings()...))}
		}
		return checkViews(args[0], o.views)
	}, nil)
	cmd.Use = fmt.Sprintf(cmd.Use, strings.Join(ingest.ShippedMappings(), "|"))
	flags := cmd.Flags()
	flags.StringVar(&o.website.Domain, "domain", "",
		"domain of the website, which is created if the store does not have it")
	bounds.Var(flags, &o.website.ID, "website", 0, 0, bounds.MaxID, "id of the website; required if there are several")
	flags.StringVar(&o.website.Currency, "currency", "", "currency of a website that is created, such as EUR")
	flags.StringVar(&o.views, "views", "", "for shopify and tag: the sender of the views, whose visitors orders name: "+
		strings.Join(api.ViewSenders(), ", "))
	flags.StringVar(&o.name, "name", "", "name of the source; default: that of the mapping")
	flags.StringVar(&o.mapping, "mapping", "", "YAML file with an own mapping, which may extend a shipped one")
	flags.BoolVar(&o.sender.ViewsOnly, "views-only", false, "reject goals: for the key of a page, which is public")
	flags.StringVar(&o.sender.SecretFile, "secret-file", "",
		"file with the secret with which Shopify or WooCommerce signs its webhooks")
	bounds.Var(flags, &o.rate, "rate", catalogue.DefaultRate, 0, 1_000_000,
		"limit of events per second, and of events at once except in one request; 0: none")
	p.publicURLFlag(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			return p.addSource(ctx, s, args[0], &o)
		})
	}
	return cmd
}

// addSource creates the key of a source, and prints its address and what to paste at the sender.
func (p *program) addSource(ctx context.Context, s *app.Store, sender string, o *sourceOptions) error {
	owned, site, err := p.websiteOfSource(ctx, s, o.website)
	if err != nil {
		return err
	}
	views := o.views
	if api.NamesVisitors(sender) && views == "" {
		views, err = viewsOf(s, owned, site, sender)
		if err != nil {
			return err
		}
	}
	if err := p.readSender(s, sender, site, o); err != nil {
		return err
	}
	key, _, err := s.Catalogue.CreateToken(ctx, catalogue.Token{
		AccountID: owned, WebsiteID: site, Name: cmp.Or(o.name, sender),
		Scopes: []catalogue.Scope{catalogue.ScopeIngest}, Sender: &o.sender,
	})
	if err != nil {
		return fmt.Errorf("source add: %w", err)
	}
	p.printLine("%s", api.SourceAddress(p.publicURL(), key))
	p.printDiagnostic("%s\nThen: lifthouse source list", api.PasteText(sender, views, p.publicURL(), key))
	return nil
}

// readSender sets the mapping, the secret and the rate of the source, and checks that they can be used.
func (p *program) readSender(s *app.Store, sender string, website int64, o *sourceOptions) error {
	of := &o.sender
	of.Mapping = sender
	of.Rate = &o.rate
	if o.mapping != "" {
		text, err := os.ReadFile(p.absolutePath(o.mapping))
		if err != nil {
			return err
		}
		of.Mapping = string(text)
	}
	if of.SecretFile != "" {
		of.SecretFile = p.absolutePath(of.SecretFile)
		if _, err := s.Secrets.ReadSecret(of.SecretFile); err != nil {
			return fmt.Errorf("--secret-file: %w", err)
		}
	}
	if _, err := ingest.NewIntake(of.Mapping, website, sender, of.ViewsOnly); err != nil {
		return fmt.Errorf("--mapping %s: %w", o.mapping, err)
	}
	return nil
}

// checkViews returns an error unless views is a sender of views, and only given for a sender whose orders name
// visitors.
func checkViews(sender, views string) error {
	switch {
	case views == "":
		return nil
	case !api.NamesVisitors(sender):
		return usageError{errors.New("--views: is only for shopify and tag, whose scripts read the visitor")}
	case views == "ga4" || slices.Contains(api.ViewSenders(), views):
		return nil
	}
	return usageError{fmt.Errorf("--views %q: %s", views, faults.OneOf(append(api.ViewSenders(), "ga4")...))}
}

// viewsOf returns the only sender of views among the sources of a website. A tag beside another one is taken for that
// of the pixel. If there is none or several, the views of a tag are its own, and for another sender it is an error.
func viewsOf(s *app.Store, account, website int64, sender string) (string, error) {
	var found []string
	for _, token := range s.Catalogue.Snapshot().AccountTokens(account) {
		isOfSite := token.Sender != nil && token.WebsiteID == website
		if isOfSite && slices.Contains(api.ViewSenders(), token.Sender.Mapping) {
			found = append(found, token.Sender.Mapping)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(name string) bool { return name == "tag" })
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case sender == "tag":
		return sender, nil
	}
	return "", usageError{fmt.Errorf("source add %s: needs --views, the sender of the views, because orders must name "+
		"the same visitors: %s", sender, strings.Join(api.ViewSenders(), ", "))}
}

// websiteOfSource returns the account and the website of a new source. It creates the website of a domain that the
// store does not have, and the first account.
func (p *program) websiteOfSource(ctx context.Context, s *app.Store, asked catalogue.Website) (account, website int64,
	err error,
) {
	domain := asked.Domain
	id := asked.ID
	snapshot := s.Catalogue.Snapshot()
	last := int64(0)
	for _, owned := range snapshot.AllAccounts() {
		account = owned.ID
		for _, site := range catalogue.ByID(owned.Websites) {
			last = max(last, site.ID)
			isAsked := site.ID == id
			if domain != "" {
				isAsked = site.Domain == domain
			}
			if isAsked {
				if asked.Currency != "" && asked.Currency != site.Currency {
					err = fmt.Errorf("--currency: website %d exists and has %s: change it with lifthouse apply",
						site.ID, cmp.Or(site.Currency, "none"))
				}
				return owned.ID, site.ID, err
			}
		}
	}
	if domain == "" && asked.Currency != "" {
		return 0, 0, usageError{errors.New("--currency: needs --domain, of a website that is created")}
	}
	if domain == "" {
		account, err = accountOr(0, snapshot)
		if err != nil {
			return 0, 0, errors.Join(err, errors.New("or name the website: --domain shop.example.com"))
		}
		website, err = websiteOr(id, snapshot.AccountResources(account))
		return account, website, err
	}
	declared := catalogue.Account{ID: cmp.Or(account, 1), Name: domain}
	if account != 0 {
		declared.Name = snapshot.AccountResources(account).Name
	}
	declared.Websites = []catalogue.Website{{ID: last + 1, Domain: domain, Currency: asked.Currency}}
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

// droppedNote says what was dropped from the accepted items of a source; empty: nothing.
func droppedNote(source *api.Source) string {
	names := map[string]string{
		"attribute": "own attributes", "property": "properties", "item": "fields of lines",
		"items": "lines of events that are no goals", "properties": "properties of events that are no goals",
		"details": "lines of items of more than 32 KiB, which were added up",
	}
	var dropped []string
	for _, kind := range slices.Sorted(maps.Keys(source.Dropped)) {
		dropped = append(dropped, fmt.Sprintf("%s (%d)", names[kind], source.Dropped[kind]))
	}
	if len(dropped) == 0 {
		return ""
	}
	return fmt.Sprintf("Dropped from accepted items of %s, because they were invalid or too many: %s", source.Name,
		strings.Join(dropped, ", "))
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
			ignored := 0
			names := []string{}
			for _, name := range slices.Sorted(maps.Keys(source.Ignored)) {
				ignored += source.Ignored[name]
				names = append(names, fmt.Sprintf("%s (%d)", cmp.Or(name, "without a name"), source.Ignored[name]))
			}
			if ignored > 0 {
				notes = append(notes, fmt.Sprintf("Ignored of %s: %s", source.Name, strings.Join(names, ", ")))
			}
			notes = append(notes, customersNotes(&source)...)
			if source.Cut > 0 {
				notes = append(notes, fmt.Sprintf("Cut in %s of %s: attributes of more than 512 bytes",
					wording.CountNoun(source.Cut, "item"), source.Name))
			}
			if note := droppedNote(&source); note != "" {
				notes = append(notes, note)
			}
			rows = append(rows, []any{
				source.ID, source.Name, source.WebsiteID, last, source.Accepted, source.Purchases, source.NoVisitor,
				ignored, source.Rejected,
			})
		}
		for _, warning := range list.Warnings {
			notes = append(notes, "Warning: "+warning.Message)
		}
		for _, of := range list.Orders {
			notes = append(notes, of.Text)
		}
		err = p.printList(rows, "Account %d has no source; make one with lifthouse source add.", s.owned.ID)
		for _, note := range notes {
			p.printLine("\n%s", render.PrintableText(strings.ReplaceAll(note, "\n", " "))) // senders name items
		}
		return err
	})
}

// customersNotes says how many accepted items of a source name a customer and no visitor.
func customersNotes(source *api.Source) []string {
	if source.ByCustomer == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Without a visitor, of customers, in %s: %s", source.Name,
		wording.CountNoun(source.ByCustomer, "item"))}
}
