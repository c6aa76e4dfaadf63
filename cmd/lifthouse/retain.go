package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

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
			return p.withStore(cmd.Context(), func(ctx context.Context, s *store) error {
				return p.retain(ctx, s, days, dryRun, yes)
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", 0, "how many days ago it ended, at least")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would go, erase nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (p *program) retain(ctx context.Context, s *store, days int, dryRun, yes bool) error {
	found, err := s.expired(ctx, days, time.Now())
	if err != nil {
		return err
	}
	var events uint64
	for _, e := range found {
		events += e.events
		p.say("%s %d %q of website %d, ended %s: %d events", e.Subject, e.ID, e.Name, e.WebsiteID, e.EndDate.Format(time.DateOnly), e.events)
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
	if err := s.erase(ctx, found); err != nil {
		return err
	}
	p.say("%d events of %d subjects erased", events, len(found))
	return nil
}

// expired is a subject that ended long ago and still has events.
type expired struct {
	catalogue.Ended
	events uint64
}

func (e *expired) subject() ingest.SubjectID {
	return ingest.SubjectID{WebsiteID: e.WebsiteID, Subject: e.Subject, ID: e.ID}
}

// expired returns the subjects that ended so many days ago or before, and of
// which anything is stored, as the catalogue stands now: another server may
// just have started one again.
func (s *store) expired(ctx context.Context, days int, now time.Time) ([]expired, error) {
	if err := s.Catalogue.Refresh(ctx); err != nil {
		return nil, err
	}
	var ended []expired
	var subjects []ingest.SubjectID
	for _, e := range s.Catalogue.Snapshot().Ended(now.AddDate(0, 0, -days)) {
		ended = append(ended, expired{Ended: e})
		subjects = append(subjects, ended[len(ended)-1].subject())
	}
	if len(ended) == 0 {
		return nil, nil
	}
	counts, err := s.Writer.CountSubjects(ctx, subjects)
	if err != nil {
		return nil, err
	}
	var found []expired
	for _, e := range ended {
		if events, stored := counts[e.subject()]; stored {
			e.events = events
			found = append(found, e)
		}
	}
	return found, nil
}

func (s *store) erase(ctx context.Context, found []expired) error {
	subjects := make([]ingest.SubjectID, len(found))
	for i := range found {
		subjects[i] = found[i].subject()
	}
	return s.Writer.DropSubjects(ctx, subjects)
}

// retainEvery is how often a server looks for what ended long ago.
const retainEvery = 24 * time.Hour

// followRetention erases what ended so many days ago, now and each day, until
// the context ends.
func (s *store) followRetention(ctx context.Context, days int) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		found, err := s.expired(ctx, days, time.Now())
		if err == nil && len(found) > 0 {
			err = s.erase(ctx, found)
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "what ended long ago is not erased", "error", err)
		}
		for _, e := range found {
			if err == nil {
				slog.InfoContext(ctx, "erased, for it ended long ago", "subject", e.Subject, "id", e.ID, "website", e.WebsiteID, "ended", e.EndDate, "events", e.events)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
