package main

import (
	"context"
	"fmt"
	"time"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

const retainHelp = `Retain erases the events of campaigns and of widgets, with their experiments, that ended at least so many
days ago; reports and counters follow. A subject has ended when it was stopped, or declared inactive, and
its end date has passed; one that is active, or archived, stays whatever its dates say. A subject goes whole or not
at all, so that no visitor's history in it is cut; goals without exposures stay, and so does what the catalogue
says. It lists what would go and asks first. 'lifthouse serve --retention-days N' does the same each day.`

func (p *program) retainCommand() *cobra.Command {
	var days int
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "retain --days N",
		Short: "Erase what ended long ago",
		Long:  retainHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 {
				return usageError{fmt.Errorf("--days \"%d\": want 1 or more", days)}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				return p.retain(ctx, s, days, dryRun, yes)
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", 0, "how many days ago it ended, at least")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would go, erase nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (p *program) retain(ctx context.Context, s *app.Store, days int, dryRun, yes bool) error {
	found, err := s.Expired(ctx, days, time.Now())
	if err != nil {
		return err
	}
	var events uint64
	for _, e := range found {
		events += e.Events
		p.say("%s %d %q of website %d, ended %s: %d events", e.Subject, e.ID, e.Name, e.WebsiteID, e.EndDate.Format(time.DateOnly), e.Events)
	}
	switch {
	case len(found) == 0:
		p.say("Nothing is stored of what ended %d days ago or before.", days)
		return nil
	case dryRun:
		p.say("%d events of %d subjects would be erased; nothing was (dry run).", events, len(found))
		return nil
	case !yes:
		p.say("Erase %d events of %d subjects for good? [y/N]", events, len(found))
		if err := p.consent(); err != nil {
			return err
		}
	}
	if err := s.Erase(ctx, found); err != nil {
		return err
	}
	p.say("%d events of %d subjects erased", events, len(found))
	return nil
}
