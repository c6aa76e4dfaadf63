package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/arrivals"
)

const eventsHelp = `Events prints the last accepted events and the last rejected lines, with the reason and the beginning of each
line. Use it to check whether tracking works. Times are arrival times in UTC. A visitor is shown by the hash of its id, as
it is stored. Rejected lines are kept for a week, at most a few hundred per request or file. Values that look like
passwords or tokens are masked.

  lifthouse events --website 1 --follow
  lifthouse events --rejects --last 100 --json`

// eventsQuery holds the flags of the command.
type eventsQuery struct {
	arrivals.Query
	follow, raw bool
}

// maxShown is the maximum number of events, and of rejected lines, to print.
const maxShown = 10_000

func (p *program) eventsCommand() *cobra.Command {
	var q eventsQuery
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print the last events, and rejected lines with their reasons",
		Long:  eventsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Last < 0 || q.Last > maxShown {
				return usageError{fmt.Errorf("--last %d: must be from 0 to %d", q.Last, maxShown)}
			}
			if q.Website < 0 {
				return usageError{fmt.Errorf("--website %d: must be the id of a website", q.Website)}
			}
			err := p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error { return p.events(ctx, s, q) })
			if q.follow && cmd.Context().Err() != nil {
				err = nil // the user ended it
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&q.Website, "website", 0, "id of the website; default: all websites")
	cmd.Flags().IntVar(&q.Last, "last", 20, "maximum number of events, and of rejected lines")
	cmd.Flags().BoolVar(&q.follow, "follow", false, "keep printing new events until interrupted")
	cmd.Flags().BoolVar(&q.OnlyRejected, "rejects", false, "print rejected lines only")
	cmd.Flags().BoolVar(&q.raw, "json", false, "print one JSON object per line")
	return cmd
}

func (p *program) events(ctx context.Context, s *app.Store, q eventsQuery) error {
	if q.follow && p.running == nil && s.Dir != "" {
		return errors.New("--follow: this store is not served, so no events can arrive; start 'lifthouse serve' first")
	}
	f := arrivals.NewFollower(s.Conn, q.Query)
	last, err := f.Before(ctx)
	if err != nil {
		return err
	}
	arrivals.Write(p.out, last, q.raw)
	if !q.follow {
		if len(last) == 0 && !q.raw {
			p.say("Nothing has arrived.")
		}
		return nil
	}
	tick := time.NewTicker(arrivals.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		more, err := f.New(ctx)
		if err != nil {
			return err
		}
		arrivals.Write(p.out, more, q.raw)
	}
}
