package main

import (
	"context"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

func (p *program) exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write the catalogue as the file that apply reads",
		Long: `Export prints accounts, websites, goals, targets, campaigns and widgets as the file that apply
reads: applied to this store it changes nothing, applied to an empty one it makes the same. Tokens
are never in it, nor is what the shares were before they changed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if err := s.Catalogue.Refresh(ctx); err != nil {
					return err
				}
				return s.Catalogue.Snapshot().File().Write(p.out)
			})
		},
	}
}
