package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/embedded"
	"lifthouse/engine/wording"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

// errOnlyEmbedded reports that backups are only supported for embedded stores.
var errOnlyEmbedded = usageError{errors.New("--store: must be embedded:DIR; use BACKUP and RESTORE of ClickHouse on " +
	"servers")}

func (p *program) backupCommand() *cobra.Command {
	return newCommand("backup", oneArg, func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if s.Dir == "" {
				return errOnlyEmbedded
			}
			dir, err := filepath.Abs(p.absolutePath(args[0]))
			if err != nil {
				return err
			}
			if err := s.Writer.PauseWrites(ctx,
				func() error { return schema.WriteBackup(ctx, s.Conn, dir) }); err != nil {
				return err
			}
			p.printLine("wrote the backup to %s", args[0])
			return nil
		})
	})
}

func (p *program) restoreCommand() *cobra.Command {
	return newCommand("restore", oneArg, func(cmd *cobra.Command, args []string) error {
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
		to := p.absolutePath(address.Dir)
		if !isEmpty(to) {
			return fmt.Errorf("restore: %s has files already; use a new store, --store", to)
		}
		if err := app.RestoreBackup(cmd.Context(), to, from); err != nil {
			return err
		}
		p.printLine("restored %s into %s", args[0], address.Dir)
		return nil
	})
}

func (p *program) copyCommand() *cobra.Command {
	var from string
	cmd := newCommand("copy", noArgs, func(cmd *cobra.Command, _ []string) error {
		if from == "" {
			return usageError{errors.New("--from: must be the folder or the address of the store to copy")}
		}
		given := from
		if info, err := os.Stat(p.absolutePath(from)); err == nil && info.IsDir() {
			given = "embedded:" + from
		}
		source, err := schema.ParseAddress(given, p.getenv)
		if err != nil {
			return usageError{fmt.Errorf("--from: %w", err)}
		}
		if source.Dir != "" {
			if source.Dir = p.absolutePath(source.Dir); isEmpty(source.Dir) {
				return usageError{fmt.Errorf("--from: there is no store at %s", source.Dir)}
			}
			if p.running != nil || strings.HasPrefix(p.address, "embedded:") {
				return usageError{errors.New("--from: both stores are embedded; use lifthouse backup and lifthouse " +
					"restore")}
			}
		}
		return p.withStoreMade(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			started := time.Now()
			show := terminal.NewProgress()
			copied, err := s.CopyFrom(ctx, source, func(done, total uint64) {
				show.ShowLine(func() {
					p.printDiagnostic("%d of %d events, %.0f %%", done, total, 100*float64(done)/float64(max(total, 1)))
				})
			})
			if errors.As(err, new(*embedded.LockedError)) {
				return fmt.Errorf("%w: stop the server, and repeat the command", err)
			}
			if err != nil {
				return err
			}
			p.printLine("catalogue: %s copied", wording.CountNoun(copied.Catalogue, "row"))
			p.printLine("looks: %d copied", copied.Looks)
			p.printLine("messages: %d copied", copied.Messages)
			p.printLine("events: %s copied, %.1f s; each counts once, however often it is copied",
				wording.CountNoun(copied.Events, "row"), time.Since(started).Seconds())
			return nil
		})
	})
	cmd.Flags().StringVar(&from, "from", "", "the store to copy: a folder, or an address like that of --store")
	return cmd
}
