package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/arrivals"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/story"
	"lifthouse/schema/ingest"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	arrivals.Query
	asJSON, summary, follow bool
	visitor                 string
}

func (p *program) eventsCommand() *cobra.Command {
	var o eventsOptions
	cmd := newCommand("events", noArgs, func(cmd *cobra.Command, _ []string) error {
		if err := o.checkFlags(cmd); err != nil {
			return err
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if o.visitor != "" {
				return p.printVisitor(ctx, s, &o)
			}
			names, err := s.Writer.Names(ctx)
			switch {
			case err != nil:
				return err
			case o.summary:
				return p.printReceived(ctx, s, &o, names)
			case o.follow:
				return arrivals.NewFollower(s.Conn, o.Query, names.KeyOf).WriteNewArrivals(ctx, p.stdout, o.asJSON)
			default:
				return p.printLastArrivals(ctx, s, &o, names)
			}
		})
	})
	bounds.Var(cmd.Flags(), &o.Website, "website", 0, 0, bounds.MaxID, "id of the website; default: all websites")
	bounds.Var(cmd.Flags(), &o.Last, "last", 20, 0, 10_000, "maximum number of events, and of rejected lines")
	cmd.Flags().BoolVar(&o.OnlyRejected, "rejects", false, "print rejected lines only")
	cmd.Flags().StringVar(&o.visitor, "visitor", "",
		"id of a visitor, as it was sent: print what reports make of the visitor")
	cmd.Flags().BoolVar(&o.summary, "summary", false,
		"print how many events were accepted in the last hour, day and week")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on with what arrives until interrupted")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// checkFlags returns an error if flags contradict each other.
func (o *eventsOptions) checkFlags(cmd *cobra.Command) error {
	for _, other := range []string{"last", "rejects", "follow"} {
		if err := onlyOne(cmd, "visitor", "summary", other); err != nil {
			return err
		}
	}
	if err := onlyOne(cmd, "visitor", "json"); err != nil {
		return err
	}
	if cmd.Flags().Changed("visitor") && o.visitor == "" {
		return usageError{errors.New("--visitor: must be the id of a visitor")}
	}
	return nil
}

// printVisitor prints what reports make of a visitor.
func (p *program) printVisitor(ctx context.Context, s *app.Store, o *eventsOptions) error {
	most := s.Engine.MaxVisitorEvents()
	of, err := s.Journal.ReadVisitor(ctx, o.visitor, websitesOf(o.Website), most+1)
	if err != nil {
		return err
	}
	chapters := story.ExplainEvents(of, most, s.Catalogue.Snapshot(), s.Engine.AsOfFirstView)
	return arrivals.WriteStory(p.stdout, o.visitor, of, chapters)
}

// printReceived prints how many events were accepted in the last hour, day and week.
func (p *program) printReceived(ctx context.Context, s *app.Store, o *eventsOptions, names *ingest.Names) error {
	stored, err := ingest.CountReceived(ctx, s.Conn, o.Website, time.Now())
	if err != nil {
		return err
	}
	all := arrivals.ReceivedOf(stored, s.Catalogue.Snapshot(), names.KeyOf)
	if o.asJSON {
		for _, r := range all {
			if err := p.writeJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	for i, r := range all {
		if i > 0 {
			p.printLine("")
		}
		r.WriteText(p.stdout)
	}
	if len(all) == 0 {
		p.printLine("Nothing was accepted in the last week.")
	}
	return nil
}

// printLastArrivals prints the last events and rejected lines.
func (p *program) printLastArrivals(ctx context.Context, s *app.Store, o *eventsOptions, names *ingest.Names) error {
	last, err := arrivals.LastArrivals(ctx, s.Conn, o.Query, names.KeyOf)
	if err != nil {
		return err
	}
	if len(last) == 0 && !o.asJSON {
		p.printLine("Nothing has arrived.")
	}
	return arrivals.WriteAll(p.stdout, last, o.asJSON)
}

// websitesOf returns the website that a flag names, or none for all.
func websitesOf(id int64) []int64 {
	if id == 0 {
		return nil
	}
	return []int64{id}
}
