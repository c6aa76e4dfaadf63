package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

const rollupHelp = `Rollup refreshes the rollups, from which reports of large campaigns and widgets are computed. A server refreshes them
every two seconds (--rollup-interval); use this command for a store without a server, and to verify rollups. On a cluster,
each ClickHouse server has rollups of its own events.

--rebuild rebuilds all rollups from the events. --verify then compares reports from the rollup of every campaign and widget
with reports counted from the events, and exits with 1 if any differ.`

func (p *program) rollupCommand() *cobra.Command {
	var rebuild, verify bool
	cmd := &cobra.Command{
		Use:   "rollup",
		Short: "Refresh, rebuild or verify the rollups",
		Long:  rollupHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if s.Refresher == nil {
					return errors.New("the store has no rollups, so its reports are counted from the events: a server needs ClickHouse " + schema.VerifiedRelease + " and tables that are not replicated; a cluster needs an address clickhouse://… with cluster=NAME")
				}
				if err := p.rollup(ctx, s, rebuild); err != nil || !verify {
					return err
				}
				return p.verifyRollups(ctx, s.Engine)
			})
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "rebuild all rollups from the events")
	cmd.Flags().BoolVar(&verify, "verify", false, "compare reports from rollups with reports from the events")
	return cmd
}

func (p *program) rollup(ctx context.Context, s *app.Store, rebuild bool) error {
	if !rebuild {
		if err := s.Refresher.RefreshAll(ctx); err != nil {
			return err
		}
		p.say("Rollups are up to date.")
		return nil
	}
	n := 0
	err := s.Refresher.Rebuild(ctx, func(of plan.Subject, elapsed time.Duration, err error) {
		if err != nil {
			p.complain("%s: %v", of, err)
			return
		}
		n++
		p.say("%s: rebuilt in %s", of, elapsed.Round(time.Millisecond))
	})
	if err == nil && n == 0 {
		p.say("There are no rollups: campaigns and widgets with fewer than %d events do not need them.", s.Engine.Rollups.LeastEvents())
	}
	return err
}

// verifyRollups compares reports of every subject with a rollup.
func (p *program) verifyRollups(ctx context.Context, e *engine.Engine) error {
	subjects, err := e.Rollups.Subjects(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, of := range subjects {
		compared, skipped, err := e.Verify(ctx, of)
		var differs *engine.DiffersError
		switch {
		case errors.As(err, &differs):
			wrong = append(wrong, err)
		case err != nil:
			return err
		case len(skipped) > 0:
			p.say("%s: %d reports are equal; not compared: %s", of, compared, strings.Join(skipped, "; "))
		default:
			p.say("%s: %d reports are equal", of, compared)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%[2]d of %[1]d subjects differ: %[3]w", len(subjects), len(wrong), errors.Join(wrong...))
	}
	return nil
}
