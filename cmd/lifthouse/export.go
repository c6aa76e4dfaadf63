package main

import (
	"context"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

func (p *program) exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print the catalogue as a file for apply",
		Long: `Export prints accounts, websites, goals, targets, campaigns and widgets as a YAML file for apply.
Applying the file to this store changes nothing; applying it to an empty store creates the same
catalogue. The file has no tokens and no history of shares.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if err := s.Catalogue.RefreshSnapshot(ctx); err != nil {
					return err
				}
				return s.Catalogue.Snapshot().CatalogueFile().WriteYAML(p.stdout)
			})
		},
	}
}
