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

func (p *program) eventsCommand() *cobra.Command {
	var q arrivals.Query
	var asJSON, summary, follow bool
	var visitor string
	cmd := newCommand("events", noArgs, func(cmd *cobra.Command, _ []string) error {
		for _, other := range []string{"last", "rejects", "follow"} {
			if err := onlyOne(cmd, "visitor", "summary", other); err != nil {
				return err
			}
		}
		if err := onlyOne(cmd, "visitor", "json"); err != nil {
			return err
		}
		if cmd.Flags().Changed("visitor") && visitor == "" {
			return usageError{errors.New("--visitor: must be the id of a visitor")}
		}
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if visitor != "" {
				most := s.Engine.MaxVisitorEvents()
				of, err := s.Journal.ReadVisitor(ctx, visitor, websitesOf(q.Website), most+1)
				if err != nil {
					return err
				}
				chapters := story.ExplainEvents(of, most, s.Catalogue.Snapshot(), s.Engine.AsOfFirstView)
				return arrivals.WriteStory(p.stdout, visitor, of, chapters)
			}
			names, err := s.Writer.Names(ctx)
			if err != nil {
				return err
			}
			if summary {
				stored, err := ingest.CountReceived(ctx, s.Conn, q.Website, time.Now())
				if err != nil {
					return err
				}
				all := arrivals.ReceivedOf(stored, s.Catalogue.Snapshot(), names.KeyOf)
				for i, r := range all {
					if asJSON {
						if err := p.writeJSON(r); err != nil {
							return err
						}
						continue
					}
					if i > 0 {
						p.printLine("")
					}
					r.WriteText(p.stdout)
				}
				if len(all) == 0 && !asJSON {
					p.printLine("Nothing was accepted in the last week.")
				}
				return nil
			}
			if follow {
				return arrivals.NewFollower(s.Conn, q, names.KeyOf).WriteNewArrivals(ctx, p.stdout, asJSON)
			}
			last, err := arrivals.LastArrivals(ctx, s.Conn, q, names.KeyOf)
			if err != nil {
				return err
			}
			if len(last) == 0 && !asJSON {
				p.printLine("Nothing has arrived.")
			}
			return arrivals.WriteAll(p.stdout, last, asJSON)
		})
	})
	bounds.Var(cmd.Flags(), &q.Website, "website", 0, 0, bounds.MaxID, "id of the website; default: all websites")
	bounds.Var(cmd.Flags(), &q.Last, "last", 20, 0, 10_000, "maximum number of events, and of rejected lines")
	cmd.Flags().BoolVar(&q.OnlyRejected, "rejects", false, "print rejected lines only")
	cmd.Flags().StringVar(&visitor, "visitor", "",
		"id of a visitor, as it was sent: print what reports make of the visitor")
	cmd.Flags().BoolVar(&summary, "summary", false,
		"print how many events were accepted in the last hour, day and week")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what arrives until interrupted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// websitesOf returns the website that a flag names, or none for all.
func websitesOf(id int64) []int64 {
	if id == 0 {
		return nil
	}
	return []int64{id}
}
