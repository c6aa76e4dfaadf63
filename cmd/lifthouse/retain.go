package main

import (
	"context"
	"fmt"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"

	"github.com/spf13/cobra"
)

const retainHelp = `Retain deletes the events of campaigns and widgets, with their experiments, that ended at least the given number of
days ago, and updates reports and counters. A campaign or widget has ended if it is stopped, or declared inactive, and its
end date has passed. Active and archived ones are kept. All events of a campaign or widget are deleted together, so that no
visitor's history is cut. Unattributed goals and the catalogue are kept. Retain lists what it would delete and asks for
confirmation. 'lifthouse serve --retention-days N' does the same every day.`

func (p *program) retainCommand() *cobra.Command {
	var days int
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "retain --days N",
		Short: "Delete events past their retention period",
		Long:  retainHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days == 0 {
				return usageError{fmt.Errorf("--days is missing: must be an integer from 1 to %d", bounds.MaxDays)}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				return p.applyRetention(ctx, s, days, dryRun, yes)
			})
		},
	}
	bounds.Var(cmd.Flags(), &days, "days", 0, 1, bounds.MaxDays, "retention period in days after the end")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be deleted without deleting it")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func (p *program) applyRetention(ctx context.Context, s *app.Store, days int, dryRun, yes bool) error {
	found, err := s.ExpiredSubjects(ctx, days, time.Now())
	if err != nil {
		return err
	}
	var events uint64
	for _, e := range found {
		events += e.Events
		p.printLine("%s %d %q of website %d, ended %s: %s", e.Kind, e.ID, e.Name, e.WebsiteID, e.EndDate.Format(time.DateOnly), terminal.CountWithNoun(e.Events, "event"))
	}
	switch {
	case len(found) == 0:
		p.printLine("No events are past the retention period of %s.", terminal.CountWithNoun(days, "day"))
		return nil
	case dryRun:
		p.printLine("Dry run: %s of %s would be deleted; nothing was deleted.", terminal.CountWithNoun(events, "event"), terminal.CountWithNoun(len(found), "subject"))
		return nil
	case !yes:
		p.printLine("Delete %s of %s permanently? [y/N]", terminal.CountWithNoun(events, "event"), terminal.CountWithNoun(len(found), "subject"))
		if err := p.confirmDeletion(); err != nil {
			return err
		}
	}
	if err := s.EraseSubjects(ctx, found); err != nil {
		return err
	}
	p.printLine("deleted %s of %s", terminal.CountWithNoun(events, "event"), terminal.CountWithNoun(len(found), "subject"))
	return nil
}
