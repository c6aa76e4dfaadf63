package main

import (
	"context"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

const migrateHelp = `Migrate runs pending migrations. Every command that opens a store does the same. Several processes
can migrate a store at the same time.

The tables of a cluster have a different form: all commands need cluster=NAME in the address. NAME is the name of the cluster in remote_servers of the servers.`

func (p *program) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Run pending migrations of the tables",
		Long:  migrateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStoreMade(cmd.Context(), func(context.Context, *app.Store) error {
				p.printLine("The tables are up to date.")
				return nil
			})
		},
	}
}
