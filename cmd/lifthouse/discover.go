package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/spf13/cobra"
)

// discovering are the flags of lifthouse discover.
type discovering struct {
	engine.Declaration
	account, website    int64
	search              string
	dryRun, asJSON, all bool
	drop, isConfirmed   bool
}

func (p *program) discoverCommand() *cobra.Command {
	var o discovering
	cmd := newCommand("discover", nil, nil)
	cmd.Args = o.checkArgs
	flags := cmd.Flags()
	bounds.Var(flags, &o.account, "account", 0, 0, bounds.MaxID,
		"id of the account; required if there are several and no --website")
	bounds.Var(flags, &o.website, "website", 0, 0, bounds.MaxID,
		"id of the website; required if several have the campaign")
	flags.StringVar(&o.Goal, "goal", "", "key or id of the primary goal, which is declared if it is new")
	flags.StringVar(&o.Control, "control", "", "key or id of control; default: control, or 0")
	flags.IntSliceVar(&o.Shares, "shares", nil, "planned shares in percent, control first; default: equal")
	bounds.Var(flags, &o.Days, "days", catalogue.DefaultPlannedDays, 1, 730, "planned days")
	flags.BoolVar(&o.Ignored, "ignore", false, "do not list the campaign any more")
	flags.StringVar(&o.search, "search", "", "list the campaigns whose names contain a text, in any case")
	flags.BoolVar(&o.all, "all", false, fmt.Sprintf("list all campaigns, not only the first %d", mostListed))
	flags.BoolVar(&o.drop, "drop", false,
		"delete the campaign, or all campaigns, variations and goals that are not declared, with their events")
	flags.BoolVar(&o.isConfirmed, "yes", false, "do not ask for confirmation of --drop")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be changed and change nothing")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			account := o.account
			owner, known := s.Catalogue.Snapshot().AccountOfWebsite(o.website)
			switch {
			case o.website != 0 && !known:
				return fmt.Errorf("--website %d: no account has such a website", o.website)
			case account == 0:
				account = owner
			}
			id, err := accountOr(account, s.Catalogue.Snapshot())
			if err != nil {
				return err
			}
			owned := ownedStore{s, s.Catalogue.Snapshot().AccountResources(id)}
			if o.website != 0 {
				if _, err := websiteOr(o.website, owned.owned); err != nil {
					return err
				}
			}
			switch {
			case o.drop:
				return p.dropUndeclared(ctx, owned, &o, args)
			case len(args) == 0:
				return p.listUndeclared(ctx, owned, &o)
			}
			return p.declareCampaign(ctx, owned, &o, args[0])
		})
	}
	return cmd
}

func (o *discovering) checkArgs(cmd *cobra.Command, args []string) error {
	named := len(args) == 1
	hasGoal := o.Goal != "" || o.Ignored || o.drop // or needs none
	switch {
	case len(args) > 1:
		return usageError{fmt.Errorf("discover: takes one name, got %q", args)}
	case named && !hasGoal:
		return usageError{errors.New("discover: needs --goal, the goal that decides, such as --goal purchase")}
	case named && (o.search != "" || o.all):
		return usageError{errors.New("discover: --search and --all are valid only without a name")}
	}
	for _, share := range o.Shares {
		if share < 0 || share > 100 {
			return usageError{fmt.Errorf("--shares \"%d\": must be from 0 to 100, such as 60,40", share)}
		}
	}
	if err := onlyOne(cmd, "drop", "goal", "ignore"); err != nil {
		return err
	}
	return onlyOne(cmd, "drop", "json")
}

// mostListed is the number of campaigns that discover lists.
const mostListed = 50

// findUndeclared returns the campaigns of the account, or of a website, that the catalogue does not declare.
func (o *discovering) findUndeclared(ctx context.Context, s ownedStore) ([]engine.Discovered, error) {
	if _, err := s.Facts.AwaitNoted(ctx); err != nil { // so that what was just sent is listed
		return nil, err
	}
	all, err := s.Engine.Discover(ctx, s.owned)
	return engine.SelectDiscovered(all, o.website, o.search), err
}

func (p *program) listUndeclared(ctx context.Context, s ownedStore, o *discovering) error {
	all, err := o.findUndeclared(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case o.asJSON:
		return p.writeJSON(all)
	case len(all) == 0 && o.search != "":
		p.printLine("No campaign in the events that is not declared contains %q.", o.search)
		return nil
	case len(all) == 0:
		p.printLine("All campaigns in the events are declared.")
		return nil
	}
	shown := all
	if !o.all {
		shown = all[:min(len(all), mostListed)]
	}
	rows := [][]any{{"CAMPAIGN", "WEBSITE", "SOURCE", "FIRST VIEW", "VISITORS", "VARIATIONS", "EQUAL SPLIT"}}
	for i := range shown {
		d := &shown[i]
		var variations []string
		for k := range d.Variations {
			v := &d.Variations[k]
			variations = append(variations, fmt.Sprintf("%s %.1f %%", v.Name(), 100*v.Share))
		}
		split := "not tested"
		if d.EqualSplit != nil {
			split = fmt.Sprintf("p = %.2g", *d.EqualSplit)
		}
		rows = append(rows, []any{
			d.Name(), d.WebsiteID, d.Source, d.FirstView.Format(time.DateOnly), d.Visitors,
			strings.Join(variations, ", "), split,
		})
	}
	err = p.printTable(rows)
	if more := len(all) - len(shown); more > 0 {
		p.printLine("\nAnd %d more, with fewer visitors: --all lists them, --search TEXT finds some.", more)
	}
	website := ""
	if len(s.owned.Websites) > 1 || len(s.Catalogue.Snapshot().AllAccounts()) > 1 {
		website = fmt.Sprintf(" --website %d", all[0].WebsiteID)
	}
	p.printLine("\nDeclare one with: lifthouse discover %q --goal purchase%s", all[0].Name(), website)
	return err
}

func (p *program) declareCampaign(ctx context.Context, s ownedStore, o *discovering, name string) error {
	all, err := o.findUndeclared(ctx, s)
	if err != nil {
		return err
	}
	how := o.Declaration
	how.WebsiteID, how.Campaign = o.website, name
	file, found, err := engine.DeclareDiscovered(all, s.owned, how)
	if !found {
		return fmt.Errorf("discover: no campaign %q without a declaration, or several websites have one: set "+
			"--website", name)
	}
	if list, is := errors.AsType[faults.List](err); is { // the fields have the names of flags
		for i := range list {
			list[i].Name = "--" + list[i].Name
			list[i].WithoutValue = list[i].WithoutValue || list[i].Value == ""
		}
		return usageError{list}
	}
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	changes, err := s.Catalogue.ApplyFile(ctx, file, o.dryRun)
	if err != nil {
		return err
	}
	if err := file.WriteYAML(p.stdout); err != nil {
		return err
	}
	p.sayChanges(ctx, s.Store, file, changes, o.dryRun)
	return nil
}

// dropUndeclared deletes the names that the catalogue does not declare, or those of one campaign, with their events.
func (p *program) dropUndeclared(ctx context.Context, s ownedStore, o *discovering, args []string) error {
	names, err := s.Writer.Names(ctx)
	if err != nil {
		return err
	}
	isAsked := func(name schema.Name) bool {
		_, owns := s.owned.Websites[name.WebsiteID]
		isOfWebsite := o.website == 0 || name.WebsiteID == o.website
		if !owns || !isOfWebsite {
			return false
		}
		if len(args) == 0 {
			return true
		}
		return name.Kind == schema.NameCampaign && slices.Contains([]string{name.Key, fmt.Sprint(name.ID)}, args[0])
	}
	var dropped []schema.NamedID
	kinds := map[schema.NameKind]int{}
	for _, name := range names.UndeclaredNames(isAsked) {
		dropped = append(dropped, name.NamedID)
		kinds[name.Kind]++
	}
	if len(dropped) == 0 && len(args) == 1 {
		return fmt.Errorf("discover: no campaign %q without a declaration", args[0])
	}
	if len(dropped) == 0 {
		p.printLine("All campaigns, variations and goals in the events are declared.")
		return nil
	}
	what := fmt.Sprintf("%s, %s and %s that are not declared",
		wording.CountNoun(kinds[schema.NameCampaign], "campaign"),
		wording.CountNoun(kinds[schema.NameVariation], "variation"), wording.CountNoun(kinds[schema.NameGoal], "goal"))
	switch {
	case o.dryRun:
		p.printLine("Dry run: %s would be deleted with their events; nothing was deleted.", what)
		return nil
	case !o.isConfirmed && !p.confirm("Delete %s, with their events, permanently?", what):
		return errNotConfirmed
	}
	if err := s.Writer.DropNames(ctx, dropped); err != nil {
		return err
	}
	p.printLine("deleted %s, with their events", what)
	return nil
}
