package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine"
	"lifthouse/schema/catalogue"

	"github.com/spf13/cobra"
)

func (p *program) discoverCommand() *cobra.Command {
	var how engine.Declaration
	var dryRun, asJSON bool
	cmd := newCommand("discover", func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return usageError{fmt.Errorf("discover: takes one name, got %q", args)}
		case len(args) == 1 && how.Goal == "" && !how.Ignored:
			return usageError{errors.New("discover: needs --goal, the goal that decides, such as --goal purchase")}
		}
		for _, share := range how.Shares {
			if share < 0 || share > 100 {
				return usageError{fmt.Errorf("--shares \"%d\": must be from 0 to 100, such as 60,40", share)}
			}
		}
		return nil
	}, nil)
	flags := cmd.Flags()
	bounds.Var(flags, &how.WebsiteID, "website", 0, 0, bounds.MaxID,
		"id of the website; required if several have the campaign")
	flags.StringVar(&how.Goal, "goal", "", "key or id of the primary goal, which is declared if it is new")
	flags.StringVar(&how.Control, "control", "", "key or id of control; default: control, or 0")
	flags.IntSliceVar(&how.Shares, "shares", nil, "planned shares in percent, control first; default: equal")
	bounds.Var(flags, &how.Days, "days", catalogue.DefaultPlannedDays, 1, 730, "planned days")
	flags.BoolVar(&how.Ignored, "ignore", false, "do not list the campaign any more")
	flags.BoolVar(&dryRun, "dry-run", false, "print the catalogue file and change nothing")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		if _, err := s.Facts.AwaitNoted(ctx); err != nil { // so that what was just sent is listed
			return err
		}
		all, err := s.Engine.Discover(ctx, s.owned)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return p.printDiscovered(all, asJSON)
		}
		how.Campaign = args[0]
		file, found, err := engine.DeclareDiscovered(all, s.owned, how)
		switch {
		case !found:
			return fmt.Errorf("discover: no campaign %q without a declaration, or several websites have one: set "+
				"--website", args[0])
		case err != nil:
			return fmt.Errorf("discover: %w", err)
		}
		changes, err := s.Catalogue.ApplyFile(ctx, file, dryRun)
		if err != nil {
			return err
		}
		if err := file.WriteYAML(p.stdout); err != nil {
			return err
		}
		p.sayChanges(ctx, s.Store, file, changes, dryRun)
		return nil
	})
}

// printDiscovered prints the campaigns that are not declared.
func (p *program) printDiscovered(all []engine.Discovered, asJSON bool) error {
	if asJSON {
		return p.writeJSON(all)
	}
	if len(all) == 0 {
		p.printLine("All campaigns in the events are declared.")
		return nil
	}
	rows := [][]any{{"CAMPAIGN", "WEBSITE", "SOURCE", "FIRST VIEW", "VISITORS", "VARIATIONS", "EQUAL SPLIT"}}
	for i := range all {
		d := &all[i]
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
	if err := p.printTable(rows); err != nil {
		return err
	}
	p.printLine("\nDeclare one with: lifthouse discover %q --goal purchase", all[0].Name())
	return nil
}
