package main

import (
	"context"
	"errors"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/check"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/facts"

	"github.com/spf13/cobra"
)

const factsHelp = `Facts folds the events that arrived since the last refresh into the facts, from which all reports are computed. A
server does so by itself, and so do lifthouse report and looks.

--verify compares the facts of all visitors with their events and exits with 1 if any differ; it changes nothing. --rebuild
deletes all facts and folds all events again, one minute for ten million events; reports are incomplete until then.`

func (p *program) factsCommand() *cobra.Command {
	var rebuild, verify bool
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "Refresh, verify or rebuild the facts, from which reports are computed",
		Long:  factsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.unreadFacts = rebuild
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				for _, shard := range s.Engine.Facts {
					if err := p.refreshFacts(ctx, shard, rebuild, verify); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "delete all facts and fold all events again")
	cmd.Flags().BoolVar(&verify, "verify", false, "compare the facts of all visitors with their events")
	return cmd
}

// refreshFacts refreshes or rebuilds the facts of a shard, and then verifies them.
func (p *program) refreshFacts(ctx context.Context, shard *facts.Refresher, rebuild, verify bool) error {
	refresh := shard.RefreshFacts
	if rebuild {
		refresh = shard.RebuildFacts
	}
	at, err := refresh(ctx)
	if err != nil {
		return err
	}
	p.printLine("The facts include all events that were accepted until %s.", at.FoldedThrough().Format(timeOfFacts))
	if !verify {
		return nil
	}
	show := terminal.NewProgress(p.err, "verify", false)
	visitors, faults, err := check.VerifyFacts(ctx, shard, func(share float64) {
		show.ShowAmounts(int64(100*share), 100, func() { p.printDiagnostic("%.0f %%", 100*share) })
	})
	show.ClearBar()
	if err := errors.Join(append(faults, err)...); err != nil {
		return err
	}
	p.printLine("The facts of %s are those of their events.", terminal.CountWithNoun(visitors, "visitor"))
	return nil
}

// timeOfFacts is the layout of the time until which facts include the events.
const timeOfFacts = "2006-01-02T15:04:05.000Z07:00"
