package main

import (
	"context"
	"errors"
	"fmt"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/wording"

	"github.com/spf13/cobra"
)

func (p *program) factsCommand() *cobra.Command {
	var rebuild, verify bool
	var accepted int
	cmd := newCommand("facts", noArgs, func(cmd *cobra.Command, _ []string) error {
		if accepted > 0 && !rebuild {
			return usageError{errors.New("--accept-loss: needs --rebuild")}
		}
		p.opening.UnreadFacts = rebuild
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if rebuild {
				if err := p.acceptLoss(ctx, s, accepted); err != nil {
					return err
				}
			}
			for _, shard := range s.Facts {
				refresh := shard.RefreshFacts
				if rebuild {
					refresh = shard.RebuildFacts
				}
				at, err := refresh(ctx)
				if err != nil {
					return err
				}
				p.printLine("The facts include all events that were accepted until %s.",
					at.FoldedThrough().Format("2006-01-02T15:04:05.000Z07:00"))
				if !verify {
					continue
				}
				visitors, faults, err := verifyFacts(ctx, shard, p.showVerified())
				if err := errors.Join(append(faults, err)...); err != nil {
					return err
				}
				p.printLine("The facts of %s are those of their events.", wording.CountNoun(visitors, "visitor"))
			}
			return nil
		})
	})
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "delete all facts and fold all events again")
	cmd.Flags().BoolVar(&verify, "verify", false, "compare the facts of all visitors with their events")
	bounds.Var(cmd.Flags(), &accepted, "accept-loss", 0, 0, bounds.MaxCount,
		"with --rebuild: number of visitors whose lost events no report will count any more")
	return cmd
}

// acceptLoss returns an error unless the given number of visitors have lost events. It adds the loss to the audit log.
func (p *program) acceptLoss(ctx context.Context, s *app.Store, accepted int) error {
	lost, byWebsite := 0, map[int64]int{}
	for _, shard := range s.Facts {
		_, _ = shard.RefreshFacts(ctx) // includes events that were sent again; a rebuild is the remedy for some errors
		found, err := shard.VerifyFacts(ctx, p.showVerified())
		if err != nil {
			p.printDiagnostic("the facts cannot be read, so it is not known whether events are lost: %v", err)
		}
		for _, v := range found.Lost {
			byWebsite[v.WebsiteID]++
			lost++
		}
	}
	switch lost {
	case accepted:
	case 0:
		return errors.New("--accept-loss: no stored events are lost")
	default:
		return fmt.Errorf("stored events of %s are lost, and only the facts still count them: "+
			"restore a backup (lifthouse restore), or send the events again; to rebuild the facts without them, use "+
			"--accept-loss %d", wording.CountNoun(lost, "visitor"), lost)
	}
	for website, visitors := range byWebsite {
		if err := s.Catalogue.RecordAcceptedLoss(ctx, website, visitors); err != nil {
			return err
		}
	}
	return nil
}

// showVerified returns a function that shows the progress of a comparison.
func (p *program) showVerified() func(share float64) {
	show := terminal.NewProgress()
	return func(share float64) { show.ShowLine(func() { p.printDiagnostic("%.0f %%", 100*share) }) }
}
