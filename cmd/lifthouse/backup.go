package main

import (
	"context"
	"errors"
	"path/filepath"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/inputs"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

// errOnlyEmbedded reports that backups are only supported for embedded stores.
var errOnlyEmbedded = usageError{errors.New("--store: must be embedded:DIR; use BACKUP and RESTORE of ClickHouse on servers")}

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Write a backup of the store to a new directory",
		Long: `Backup writes all events, the catalogue and the digests of the tokens to the new directory DIR. A running server
continues to answer requests; new events wait until the backup is complete. 'lifthouse restore' restores it.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if s.Dir == "" {
					return errOnlyEmbedded
				}
				dir, err := filepath.Abs(p.absolutePath(args[0]))
				if err != nil {
					return err
				}
				if err := s.Writer.PauseWrites(ctx, func() error { return schema.WriteBackup(ctx, s.Conn, dir) }); err != nil {
					return err
				}
				p.printLine("wrote the backup to %s", args[0])
				return nil
			})
		},
	}
}

func (p *program) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Create a store from a backup",
		Long:  "Restore creates the store that --store names from a directory written by 'lifthouse backup'. The store must not exist.",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := schema.ParseAddress(p.address, p.getenv)
			if err != nil {
				return usageError{err}
			}
			if address.Dir == "" {
				return errOnlyEmbedded
			}
			from, err := filepath.Abs(p.absolutePath(args[0]))
			if err != nil {
				return err
			}
			var backup inputs.Files
			backup.AddPath(args[0], from)
			if err := backup.CheckOutput("--store", address.Dir, p.absolutePath(address.Dir)); err != nil {
				return usageError{err}
			}
			if err := app.RestoreBackup(cmd.Context(), p.absolutePath(address.Dir), from); err != nil {
				return err
			}
			p.printLine("restored %s into %s", args[0], address.Dir)
			return nil
		},
	}
}
