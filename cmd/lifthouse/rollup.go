package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"

	"github.com/spf13/cobra"
)

const rollupHelp = `Settle takes up new events in the sums from which reports of large campaigns and widgets are answered. A server does
so each second (--rollup-interval); this is for stores that none serves, and for doubts.

--rebuild makes the sums anew from the events. --verify then makes some reports both ways, from the sums and from the
events, of every subject that is settled, and exits with 1 if any differ.`

func (p *program) rollupCommand() *cobra.Command {
	var rebuild, verify bool
	cmd := &cobra.Command{
		Use:   "rollup",
		Short: "Bring the sums behind large reports up to date, or make them anew",
		Long:  rollupHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if s.Refresher == nil {
					return errors.New("only an embedded store is settled: reports of a server's are counted from its events")
				}
				if err := p.rollup(ctx, s, rebuild); err != nil || !verify {
					return err
				}
				return p.verifyRollups(ctx, s.Engine)
			})
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "make the sums anew from the events")
	cmd.Flags().BoolVar(&verify, "verify", false, "compare reports from the sums with those counted from the events")
	return cmd
}

func (p *program) rollup(ctx context.Context, s *app.Store, rebuild bool) error {
	if !rebuild {
		if err := s.Refresher.RefreshAll(ctx); err != nil {
			return err
		}
		p.say("Settled.")
		return nil
	}
	n := 0
	err := s.Refresher.Rebuild(ctx, func(of engine.Subject, elapsed time.Duration, err error) {
		if err != nil {
			p.complain("%s: %v", of, err)
			return
		}
		n++
		p.say("%s: settled anew in %s", of, elapsed.Round(time.Millisecond))
	})
	if err == nil && n == 0 {
		p.say("Nothing to settle: reports of at most %d events are counted from them.", s.Engine.InProcessEvents())
	}
	return err
}

// verifySettled compares reports of every subject that is settled.
func (p *program) verifyRollups(ctx context.Context, e *engine.Engine) error {
	subjects, err := e.RollupSubjects(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, of := range subjects {
		compared, err := e.Verify(ctx, of)
		var differs *engine.DiffersError
		switch {
		case errors.As(err, &differs):
			wrong = append(wrong, err)
		case err != nil:
			return err
		case compared == 0:
			p.say("%s: not compared, for events come all the time", of)
		default:
			p.say("%s: %d reports are the same", of, compared)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("of %d subjects %d differ: %w", len(subjects), len(wrong), errors.Join(wrong...))
	}
	return nil
}
