package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/audit"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

func (p *program) applyCommand() *cobra.Command {
	var file string
	var dryRun, prune, yes, correctShares bool
	cmd := newCommand("apply", noArgs, func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return usageError{errors.New("apply: no file given: lifthouse apply -f catalog.yaml")}
		}
		return p.withStoreMade(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if prune && !yes && !dryRun && file == ingest.StandardInput {
				return usageError{errors.New("apply: --prune requires --yes if the catalogue is read from standard " +
					"input")}
			}
			text, err := p.openInput(file)
			if err != nil {
				return err
			}
			defer func() { _ = text.Close() }()
			defer context.AfterFunc(ctx, func() { _ = text.Close() })()
			declared, err := catalogue.ReadYAML(text)
			if err != nil && !errors.As(err, new(faults.List)) { // ApplyFile returns these with those that it finds
				return fmt.Errorf("%s: %w", file, err)
			}
			declared.CorrectShares, declared.Prune = correctShares, prune
			change := func(dryRun bool) ([]catalogue.Change, error) {
				changes, err := s.Catalogue.ApplyFile(ctx, declared, dryRun)
				if found, is := errors.AsType[faults.List](err); is {
					err = fmt.Errorf("%s: nothing was changed:\n%w", file, found)
				}
				return changes, err
			}
			confirms := prune && !yes && !dryRun
			changes, err := change(dryRun || confirms)
			archived := slices.DeleteFunc(slices.Clone(changes), func(c catalogue.Change) bool { return !c.Archived })
			if err == nil && confirms {
				for _, change := range archived {
					p.sayChange(change)
				}
				if len(archived) > 0 && !p.confirm("Archive %s that the file does not have? Their events are kept.",
					wording.CountNoun(len(archived), "resource")) {
					p.printLine("Nothing was changed.")
					return nil
				}
				changes, err = change(false)
			}
			if err != nil {
				return err
			}
			p.sayChanges(ctx, s, declared, changes, dryRun)
			return p.sayOrderChanges(ctx, s, changes)
		})
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "catalogue as YAML; - for standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the changes without making them")
	cmd.Flags().BoolVar(&prune, "prune", false, "archive resources that are not in the file, after confirmation")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&correctShares, "correct-shares", false,
		"apply the shares in the file from the beginning, and discard their history")
	return cmd
}

func (p *program) sayChanges(ctx context.Context, s *app.Store, declared catalogue.File, changes []catalogue.Change,
	dryRun bool,
) {
	// Estimate which effects the plans of changed campaigns can detect, by the index of the change.
	estimates := map[int]string{}
	for i := range declared.Accounts {
		account := &declared.Accounts[i]
		at := map[int64]int{}
		for c, change := range changes {
			if change.AccountID == account.ID && change.Kind == "campaign" && !change.Archived {
				at[change.ID] = c
			}
		}
		known := s.Catalogue.Snapshot().AccountResources(account.ID)
		if len(at) == 0 || len(known.Campaigns) == 0 {
			continue
		}
		owned := *known // in a dry run, the definitions before the change
		owned.Campaigns = maps.Clone(known.Campaigns)
		for w := range account.Websites {
			for _, campaign := range account.Websites[w].Campaigns {
				campaign.WebsiteID = account.Websites[w].ID
				state := known.Campaigns[campaign.ID].State
				owned.Campaigns[campaign.ID] = catalogue.LiveCampaign{Campaign: campaign, State: state}
			}
		}
		found, err := s.Engine.EstimatePlans(ctx, &owned, slices.Sorted(maps.Keys(at)))
		if err != nil {
			p.printLine("What the plans can detect is not known: %v", err)
		}
		for id, estimate := range found {
			lines := []string{estimate.InWords(owned.Campaigns[id].MDE)}
			for _, cost := range estimate.Priors {
				lines = append(lines, cost.InWords(owned.Campaigns[id].MDE))
			}
			estimates[at[id]] = strings.Join(lines, "\n    ")
		}
	}
	for i, change := range changes {
		p.sayChange(change)
		if estimates[i] != "" {
			p.printLine("    %s", estimates[i])
		}
	}
	switch {
	case len(changes) == 0:
		p.printLine("No changes: the catalogue is up to date.")
	case dryRun:
		p.printLine("%s; nothing was changed (dry run).", wording.CountNoun(len(changes), "change"))
	default:
		p.printLine("%s changed.", wording.CountNoun(len(changes), "resource"))
	}
}

func (p *program) sayChange(change catalogue.Change) {
	sign, what := "~", "changed"
	switch {
	case change.Created:
		sign, what = "+", "new"
	case change.Archived:
		sign, what = "-", "archived"
	}
	id := ""
	if change.ID < schema.FirstKeyID { // otherwise nobody knows it
		id = fmt.Sprint(change.ID, " ")
	}
	p.printLine("%s %s %s%q (%s)", sign, change.Kind, id, change.Name, what)
	for _, field := range change.Fields {
		p.printLine("    %s: %s -> %s", field.Field, cmp.Or(field.Before, "none"), cmp.Or(field.After, "none"))
	}
	for _, share := range change.Shares {
		p.printLine("    %5.1f %% %s", 100*share.Share, share.Name)
	}
	for _, note := range change.Notes {
		p.printLine("    %s", note)
	}
}

// sayOrderChanges says how long the orders of the websites of changed campaigns and goals change.
func (p *program) sayOrderChanges(ctx context.Context, s *app.Store, changes []catalogue.Change) error {
	said := map[int64]bool{}
	for _, change := range changes {
		owned := s.Catalogue.Snapshot().AccountResources(change.AccountID)
		website := owned.Campaigns[change.ID].WebsiteID
		if change.Kind == "goal" {
			website = owned.Goals[change.ID].WebsiteID
		}
		if change.Kind != "campaign" && change.Kind != "goal" || website == 0 || said[website] {
			continue
		}
		said[website] = true
		found, err := s.Engine.ReadOrderChanges(ctx, website)
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(found)) {
			if goal, known := owned.Goals[id]; known && found[id].Revisions > 0 {
				p.printLine("%s", found[id].InWords(goal.Name))
			}
		}
	}
	return nil
}

func (p *program) exportCommand() *cobra.Command {
	return newCommand("export", noArgs, func(cmd *cobra.Command, _ []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if err := s.Catalogue.RefreshSnapshot(ctx); err != nil {
				return err
			}
			return s.Catalogue.Snapshot().CatalogueFile().WriteYAML(p.stdout)
		})
	})
}

func (p *program) auditCommand() *cobra.Command {
	var account int64
	var since time.Duration
	var limit int
	var asJSON, asCSV bool
	var mde float64
	cmd := newCommand("audit", cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
		ofFile := map[string]bool{"account": false, "since": false, "limit": false, "mde": true, "csv": true}
		for name, is := range ofFile {
			if cmd.Flags().Changed(name) && is != (len(args) == 1) {
				return usageError{fmt.Errorf("audit: --%s is valid only %s a file", name,
					map[bool]string{true: "with", false: "without"}[is])}
			}
		}
		if len(args) == 1 {
			table, err := p.readTable(args[0])
			if err != nil {
				return err
			}
			found := audit.New(table, mde/100)
			switch {
			case asJSON:
				return p.writeJSON(found)
			case asCSV:
				return found.WriteCSV(p.stdout)
			}
			for _, sentence := range append([]string{found.Text}, found.Sentences...) {
				p.printLine("%s", sentence)
			}
			rows := [][]any{{"TEST", "TREATMENT", "SHIPPED", "JUDGEMENT"}}
			for _, test := range found.Tests {
				for i := range test.Treatments {
					t := &test.Treatments[i]
					rows = append(rows, []any{test.Name, t.Name, map[bool]string{true: "yes"}[t.Shipped], t.Text})
				}
			}
			return p.printTable(rows)
		}
		from := time.Unix(0, 0)
		if since > 0 {
			from = time.Now().Add(-since)
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			changes, err := s.Catalogue.ReadAuditLog(ctx, account, from, limit)
			if err != nil {
				return err
			}
			if asJSON {
				return p.writeJSON(changes)
			}
			rows := [][]any{{"time", "account", "what", "id", "change", "by"}}
			for _, c := range changes {
				rows = append(rows, []any{c.At.Format(time.RFC3339), c.AccountID, c.Kind, c.ID, c.Change, c.By})
			}
			return p.printList(rows, "There are no changes.")
		})
	})
	bounds.Var(cmd.Flags(), &account, "account", 0, 0, bounds.MaxID, "id of the account; 0: all accounts")
	bounds.Var(cmd.Flags(), &since, "since", 0, 0, bounds.MaxAge, "maximum age of the changes, such as 720h; 0: all")
	bounds.Var(cmd.Flags(), &limit, "limit", 100, 1, 1_000_000, "maximum number of changes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the definition or state after each change")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV, a row per treatment of FILE")
	bounds.Var(cmd.Flags(), &mde, "mde", 20, 1, 100, "minimum effect of the tests of FILE in percent")
	return cmd
}

// readTable reads a table of past tests; -: standard input.
func (p *program) readTable(name string) (*audit.Table, error) {
	file, err := p.openInput(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	table, err := audit.ReadTable(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, note := range table.Notes {
		_, _ = fmt.Fprintf(p.stderr, "%s: %s\n", name, note)
	}
	return table, nil
}
