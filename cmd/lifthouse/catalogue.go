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
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

// applyOptions are the flags of apply.
type applyOptions struct {
	file                              string
	dryRun, prune, yes, correctShares bool
}

func (p *program) applyCommand() *cobra.Command {
	var o applyOptions
	cmd := newCommand("apply", noArgs, func(cmd *cobra.Command, _ []string) error {
		if o.file == "" {
			return usageError{errors.New("apply: no file given: lifthouse apply -f catalog.yaml")}
		}
		return p.withStoreMade(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			return p.applyFile(ctx, s, &o)
		})
	})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "catalogue as YAML; - for standard input")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print the changes without making them")
	cmd.Flags().BoolVar(&o.prune, "prune", false, "archive resources that are not in the file, after confirmation")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&o.correctShares, "correct-shares", false,
		"apply the shares in the file from the beginning, and discard their history")
	return cmd
}

// applyFile changes the catalogue to what a file declares, after a confirmation if resources are archived, and prints
// the changes.
func (p *program) applyFile(ctx context.Context, s *app.Store, o *applyOptions) error {
	confirms := o.prune && !o.yes && !o.dryRun
	if confirms && o.file == ingest.StandardInput {
		return usageError{errors.New("apply: --prune requires --yes if the catalogue is read from standard " +
			"input")}
	}
	declared, err := p.readCatalogue(ctx, o.file)
	if err != nil {
		return err
	}
	declared.CorrectShares = o.correctShares
	declared.Prune = o.prune
	change := func(dryRun bool) ([]catalogue.Change, error) {
		changes, err := s.Catalogue.ApplyFile(ctx, declared, dryRun)
		if found, is := errors.AsType[faults.List](err); is {
			err = fmt.Errorf("%s: nothing was changed:\n%w", o.file, found)
		}
		return changes, err
	}
	changes, err := change(o.dryRun || confirms)
	if err == nil && confirms {
		if !p.confirmArchiving(changes) {
			p.printLine("Nothing was changed.")
			return nil
		}
		changes, err = change(false)
	}
	if err != nil {
		return err
	}
	p.sayChanges(ctx, s, declared, changes, o.dryRun)
	return p.sayOrderChanges(ctx, s, changes)
}

// readCatalogue reads a catalogue file; -: standard input. It ignores the faults that ApplyFile returns with those that
// it finds.
func (p *program) readCatalogue(ctx context.Context, file string) (catalogue.File, error) {
	text, err := p.openInput(file)
	if err != nil {
		return catalogue.File{}, err
	}
	defer func() { _ = text.Close() }()
	defer context.AfterFunc(ctx, func() { _ = text.Close() })()
	declared, err := catalogue.ReadYAML(text)
	if err != nil && !errors.As(err, new(faults.List)) {
		return catalogue.File{}, fmt.Errorf("%s: %w", file, err)
	}
	return declared, nil
}

// confirmArchiving prints the changes that archive resources, and asks whether to make them.
func (p *program) confirmArchiving(changes []catalogue.Change) bool {
	archived := slices.DeleteFunc(slices.Clone(changes), func(c catalogue.Change) bool { return !c.Archived })
	for _, change := range archived {
		p.sayChange(change)
	}
	return len(archived) == 0 || p.confirm("Archive %s that the file does not have? Their events are kept.",
		wording.CountNoun(len(archived), "resource"))
}

// sayChanges prints changes, with the effects that the plans of changed campaigns can detect.
func (p *program) sayChanges(ctx context.Context, s *app.Store, declared catalogue.File, changes []catalogue.Change,
	dryRun bool,
) {
	estimates := map[int]string{} // by the index of the change
	for i := range declared.Accounts {
		p.estimatePlans(ctx, s, &declared.Accounts[i], changes, estimates)
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

// estimatePlans estimates which effects the plans of the changed campaigns of an account can detect.
func (p *program) estimatePlans(ctx context.Context, s *app.Store, account *catalogue.Account,
	changes []catalogue.Change, estimates map[int]string,
) {
	at := map[int64]int{} // index of the change, by campaign
	for i, change := range changes {
		isCampaign := change.AccountID == account.ID && change.Kind == "campaign"
		if isCampaign && !change.Archived {
			at[change.ID] = i
		}
	}
	known := s.Catalogue.Snapshot().AccountResources(account.ID)
	if len(at) == 0 || len(known.Campaigns) == 0 {
		return
	}
	owned := withDeclared(known, account)
	found, err := s.Engine.EstimatePlans(ctx, owned, slices.Sorted(maps.Keys(at)))
	if err != nil {
		p.printLine("What the plans can detect is not known: %v", err)
	}
	for id, estimate := range found {
		lines := []string{estimate.InWords(owned.Campaigns[id].MDE)}
		for _, cost := range estimate.Priors {
			lines = append(lines, cost.Text)
		}
		if later := estimate.LaterInWords(); later != "" {
			lines = append(lines, later)
		}
		estimates[at[id]] = strings.Join(lines, "\n    ")
	}
}

// withDeclared returns the resources of an account, which in a dry run are those before the change, with the campaigns
// as the file declares them.
func withDeclared(known *catalogue.AccountResources, account *catalogue.Account) *catalogue.AccountResources {
	owned := *known
	owned.Campaigns = maps.Clone(known.Campaigns)
	for _, site := range account.Websites {
		for _, campaign := range site.Campaigns {
			campaign.WebsiteID = site.ID
			state := known.Campaigns[campaign.ID].State
			owned.Campaigns[campaign.ID] = catalogue.LiveCampaign{Campaign: campaign, State: state}
		}
	}
	return &owned
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
		hasOrders := change.Kind == "campaign" || change.Kind == "goal"
		if !hasOrders || website == 0 || said[website] {
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

// auditOptions are the flags of audit.
type auditOptions struct {
	account int64
	since   time.Duration
	limit   int
	asJSON  bool
}

func (p *program) auditCommand() *cobra.Command {
	var o auditOptions
	cmd := newCommand("audit", noArgs, func(cmd *cobra.Command, _ []string) error {
		from := time.Unix(0, 0)
		if o.since > 0 {
			from = time.Now().Add(-o.since)
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			return p.printAuditLog(ctx, s, from, &o)
		})
	})
	bounds.Var(cmd.Flags(), &o.account, "account", 0, 0, bounds.MaxID, "id of the account; 0: all accounts")
	bounds.Var(cmd.Flags(), &o.since, "since", 0, 0, bounds.MaxAge, "maximum age of the changes, such as 720h; 0: all")
	bounds.Var(cmd.Flags(), &o.limit, "limit", 100, 1, 1_000_000, "maximum number of changes")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, with the definition or state after each change")
	return cmd
}

// printAuditLog prints the changes of the catalogue since a time.
func (p *program) printAuditLog(ctx context.Context, s *app.Store, from time.Time, o *auditOptions) error {
	changes, err := s.Catalogue.ReadAuditLog(ctx, o.account, from, o.limit)
	if err != nil {
		return err
	}
	if o.asJSON {
		return p.writeJSON(changes)
	}
	rows := [][]any{{"time", "account", "what", "id", "change", "by"}}
	for _, c := range changes {
		rows = append(rows, []any{c.At.Format(time.RFC3339), c.AccountID, c.Kind, c.ID, c.Change, c.By})
	}
	return p.printList(rows, "There are no changes.")
}
