package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/report"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
)

const looksHelp = `Looks prints what each look at a campaign or an experiment found: the lift with its interval, z with the bound that it must
reach, and the p-value. A server records a look once, a day after its end, and later data do not change it. A look that no
server recorded is computed from the events.

  lifthouse looks campaign 12
  lifthouse looks experiment 7/2 --json`

func (p *program) looksCommand() *cobra.Command {
	var account int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "looks campaign ID | experiment WIDGET/ID",
		Short: "Print what each look at a campaign or an experiment found",
		Long:  looksHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := (&report.Flags{}).ParseRequest(args, query.ParseReport)
			if err != nil {
				return usageError{err}
			}
			p.orDemo()
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if request.AccountID, err = accountOr(account, s.Catalogue.Snapshot()); err != nil {
					return err
				}
				plan, err := s.Engine.PlanReport(request)
				if err != nil {
					return err
				}
				if err := s.Facts.RefreshFacts(ctx); err != nil {
					return err
				}
				results, err := s.Engine.ComputeReport(ctx, plan)
				if err != nil {
					return err
				}
				if results.Looks == nil {
					return errors.New("looks: nothing is compared: it needs a campaign or an experiment with at least two variations")
				}
				if asJSON || !terminal.Is(p.stdout) {
					return json.NewEncoder(p.stdout).Encode(results.Looks)
				}
				_, err = p.stdout.WriteString(render.Looks(results))
				return err
			})
		},
	}
	flags := cmd.Flags()
	accountFlag(cmd, &account)
	flags.BoolVar(&asJSON, "json", false, "print JSON, also on a terminal")
	return cmd
}
