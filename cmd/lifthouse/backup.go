package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/embedded"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

// errOnlyEmbedded: a ClickHouse server writes where its own configuration
// allows.
var errOnlyEmbedded = usageError{errors.New("--store: must be embedded:DIR; a ClickHouse server has BACKUP and RESTORE of its own")}

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Write the whole store into a new folder",
		Long: `Backup writes all events, the catalogue and the tokens' digests into the new folder DIR. A store that is served
goes on answering meanwhile; what comes in waits. 'lifthouse restore' reads it.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if s.Dir == "" {
					return errOnlyEmbedded
				}
				dir, err := filepath.Abs(p.path(args[0]))
				if err != nil {
					return err
				}
				if err := s.Writer.Exclusively(ctx, func() error { return schema.Backup(ctx, s.Conn, dir) }); err != nil {
					return err
				}
				p.say("backed up into %s", args[0])
				return nil
			})
		},
	}
}

func (p *program) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Make a store of a backup",
		Long:  "Restore fills the store that --store names, a new one, from the folder that 'lifthouse backup' wrote.",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := schema.ParseAddress(p.address, p.getenv)
			if err != nil {
				return usageError{err}
			}
			if address.Dir == "" {
				return errOnlyEmbedded
			}
			from, err := filepath.Abs(p.path(args[0]))
			if err != nil {
				return err
			}
			if err := restore(cmd.Context(), p.path(address.Dir), from); err != nil {
				return err
			}
			p.say("restored %s into %s", args[0], address.Dir)
			return nil
		},
	}
}

func restore(ctx context.Context, dir, from string) (err error) {
	e, err := embedded.Open(ctx, dir, embedded.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	options, err := app.EmbeddedOptions(ctx, e)
	if err != nil {
		return err
	}
	conn, err := schema.Reach(ctx, schema.Address{Dir: dir, Options: options})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := schema.Restore(ctx, conn, from); err != nil {
		return err
	}
	if _, err := schema.Migrate(ctx, conn); err != nil {
		return fmt.Errorf("bring the restored tables up to date: %w", err)
	}
	return nil
}
