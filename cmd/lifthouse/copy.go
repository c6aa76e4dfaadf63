package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/embedded"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

const copyHelp = `Copy adds the catalogue, the tokens, the recorded looks, the messages to webhooks and the events of another store to the
store that --store names. The other store is an embedded store, which no server may hold, or one on servers. It is not
changed. One process can open one embedded store: between two embedded stores, use 'lifthouse backup' and 'lifthouse restore'.

  lifthouse copy --from ./data --store clickhouse://ch.example.com/lifthouse

Each event counts once, however often it is copied: repeat the command after an interruption, or to copy what arrived in the
meantime. The catalogue is copied if the store has no other definitions of the same ids; else nothing is copied. The audit
log, rejected lines and events_inbox are not copied. Servers of the store fold the events.`

func (p *program) copyCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "copy --from ADDRESS",
		Short: "Copy another store into the store",
		Long:  copyHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := p.sourceOf(from)
			if err != nil {
				return err
			}
			return p.withStoreMade(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				return p.copyStore(ctx, s, source)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the store to copy: a folder, or an address like that of --store")
	return cmd
}

// sourceOf parses the address of the store to copy.
func (p *program) sourceOf(given string) (source schema.Address, err error) {
	if given == "" {
		return source, usageError{errors.New("--from: must be the folder or the address of the store to copy")}
	}
	if isFolder(p.absolutePath(given)) {
		given = "embedded:" + given
	}
	if source, err = schema.ParseAddress(given, p.getenv); err != nil {
		return source, usageError{fmt.Errorf("--from: %w", err)}
	}
	if source.Dir == "" {
		return source, nil
	}
	if source.Dir = p.absolutePath(source.Dir); isEmpty(source.Dir) {
		return source, usageError{fmt.Errorf("--from: there is no store at %s", source.Dir)}
	}
	if p.running != nil || strings.HasPrefix(p.address, "embedded:") {
		return source, usageError{errors.New("--from: both stores are embedded; use lifthouse backup and lifthouse restore")}
	}
	return source, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (p *program) copyStore(ctx context.Context, s *app.Store, source schema.Address) error {
	started := time.Now()
	show := terminal.NewProgress(p.stderr, "copy", false)
	copied, err := s.CopyFrom(ctx, source, func(done, total uint64) {
		show.ShowAmounts(int64(done), int64(total), func() { //nolint:gosec // fewer than 2^63
			p.printDiagnostic("%d of %d events, %.0f %%", done, total, 100*float64(done)/float64(max(total, 1)))
		})
	})
	show.ClearBar()
	var locked *embedded.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("%w: stop the server, and repeat the command", err)
	}
	if err != nil {
		return err
	}
	p.printLine("catalogue: %s copied", terminal.CountWithNoun(copied.Catalogue, "row"))
	p.printLine("looks: %d copied", copied.Looks)
	p.printLine("messages: %d copied", copied.Messages)
	p.printLine("events: %s copied, %.1f s; each counts once, however often it is copied", terminal.CountWithNoun(copied.Events, "row"), time.Since(started).Seconds())
	return nil
}
