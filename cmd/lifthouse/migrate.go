package main

import (
	"context"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

func (p *program) migrateCommand() *cobra.Command {
	return newCommand("migrate", noArgs, func(cmd *cobra.Command, _ []string) error {
		return p.withStoreMade(cmd.Context(), func(context.Context, *app.Store) error {
			p.printLine("The tables are up to date.")
			return nil
		})
	})
}
