package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *program) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the store's tables up to date",
		Long:  "Migrate runs the migrations that a store has not had. Every command that opens a store does so too.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStoreMade(cmd.Context(), func(context.Context, *store) error {
				p.say("The tables are up to date.")
				return nil
			})
		},
	}
}
