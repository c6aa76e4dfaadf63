package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/remote"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/embedded"
	"lifthouse/engine/wording"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

// storeAddress returns the address of the store, with an absolute directory.
func (p *program) storeAddress() (schema.Address, error) {
	address, err := schema.ParseAddress(p.address, p.getenv)
	if err != nil {
		return address, usageError{err}
	}
	if address.Dir != "" {
		address.Dir = p.absolutePath(address.Dir)
	}
	return address, nil
}

// openStore opens a store and brings its tables up to date. It waits for at most a time for another process.
func (p *program) openStore(ctx context.Context, wait time.Duration) (s *app.Store, err error) {
	address, err := p.storeAddress()
	if err != nil {
		return nil, err
	}
	p.opening.Concurrency = p.serving.API.StoreSlots
	if p.opening.SecretFolder != "" {
		p.opening.SecretFolder = p.absolutePath(p.opening.SecretFolder)
	}
	err = p.awaitHolder(ctx, wait, func() (err error) {
		s, err = app.OpenStore(ctx, address, p.opening)
		return err
	})
	return s, err
}

// withStore runs work on an existing store. It returns an error if the store does not exist, for example because its
// directory is misspelt.
func (p *program) withStore(ctx context.Context, work func(context.Context, *app.Store) error) error {
	address, err := p.storeAddress()
	hasDirectory := err == nil && address.Dir != ""
	if hasDirectory && p.running == nil && isEmpty(address.Dir) {
		return fmt.Errorf("there is no store at %s: check --store; lifthouse apply and lifthouse serve create one",
			address.Dir)
	}
	return p.withStoreMade(ctx, work)
}

// isEmpty reports whether a directory is empty or does not exist.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// withStoreMade runs work on the store, which it creates if necessary. If another process holds the store, it forwards
// the command to that process, and waits while that process starts.
func (p *program) withStoreMade(ctx context.Context, work func(context.Context, *app.Store) error) error {
	if p.running != nil {
		return work(ctx, p.running)
	}
	s, err := p.openStore(ctx, commandTimeout)
	if locked, is := errors.AsType[*embedded.LockedError](err); is {
		code, delegateErr := p.forwardCommand(ctx, locked)
		if delegateErr != nil {
			return fmt.Errorf("%w (and it accepts no commands: %w)", err, delegateErr)
		}
		if code != exitOK {
			return &exitError{code}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, s), s.Close())
}

// forwardCommand executes this command line in the process that holds the store, and returns its exit code.
func (p *program) forwardCommand(ctx context.Context, holder *embedded.LockedError) (int, error) {
	c := remote.Command{Dir: p.dir, Args: p.args, Env: map[string]string{}, In: p.stdin, Out: p.stdout, Err: p.stderr}
	for _, name := range remote.Env {
		c.Env[name] = p.getenv(name)
	}
	return remote.RunCommand(ctx, filepath.Join(holder.Dir, remote.SocketName), c)
}

func (p *program) readyCommand() *cobra.Command {
	var url string
	cmd := newCommand("ready", noArgs, func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second) // below that of health checks
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
		if err != nil {
			return usageError{err}
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s/readyz: %s", url, answer.Status)
		}
		return answer.Body.Close()
	})
	cmd.Flags().StringVar(&url, "url", "http://"+app.DefaultListen, "URL of the server")
	return cmd
}

// release is the version, set by .goreleaser.yaml and the Dockerfile.
var release string

// buildVersion returns the version of the release or of the module. Without one, it returns the version of the module
// and the commit that the program was built from.
func buildVersion() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return info.Main.Version + " " + setting.Value
		}
	}
	return info.Main.Version
}

func (p *program) migrateCommand() *cobra.Command {
	return newCommand("migrate", noArgs, func(cmd *cobra.Command, _ []string) error {
		return p.withStoreMade(cmd.Context(), func(context.Context, *app.Store) error {
			p.printLine("The tables are up to date.")
			return nil
		})
	})
}

// errOnlyEmbedded reports that backups are only supported for embedded stores.
var errOnlyEmbedded = usageError{errors.New("--store: must be embedded:DIR; use BACKUP and RESTORE of ClickHouse on " +
	"servers")}

func (p *program) backupCommand() *cobra.Command {
	return newCommand("backup", oneArg, func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			if s.Dir == "" {
				return errOnlyEmbedded
			}
			dir := filepath.Clean(p.absolutePath(args[0]))
			all := sizeOf(filepath.Join(s.Dir, "store"))
			err := terminal.ShowWork(p.stderr, "writing the backup", "MB",
				func() (int64, int64) { return min(sizeOf(dir), all), all }, func() error {
					return s.Writer.PauseWrites(ctx, func() error { return schema.WriteBackup(ctx, s.Conn, dir) })
				})
			if err != nil {
				return err
			}
			p.printLine("wrote the backup to %s", args[0])
			return nil
		})
	})
}

// sizeOf returns the size of the files in a folder in MB. It skips what disappears at the same time.
func sizeOf(dir string) int64 {
	size := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // another process has removed it
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size / 1e6
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
		from := filepath.Clean(p.absolutePath(args[0]))
		to := p.absolutePath(address.Dir)
		if !isEmpty(to) {
			return fmt.Errorf("restore: %s has files already; use a new store, --store", to)
		}
		all := sizeOf(from)
		err = terminal.ShowWork(p.stderr, "restoring", "MB", func() (int64, int64) { return min(sizeOf(to), all), all },
			func() error { return app.RestoreBackup(cmd.Context(), to, from) })
		if err != nil {
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
			source.Dir = p.absolutePath(source.Dir)
			if isEmpty(source.Dir) {
				return usageError{fmt.Errorf("--from: there is no store at %s", source.Dir)}
			}
			if p.running != nil || strings.HasPrefix(p.address, "embedded:") {
				return usageError{errors.New("--from: both stores are embedded; use lifthouse backup and lifthouse " +
					"restore")}
			}
		}
		return p.withStoreMade(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			started := time.Now()
			var done, all atomic.Int64
			var copied app.Copied
			err := terminal.ShowWork(p.stderr, "copying", "event",
				func() (int64, int64) { return done.Load(), all.Load() }, func() (err error) {
					copied, err = s.CopyFrom(ctx, source, func(copied, total uint64) {
						done.Store(int64(copied)) //nolint:gosec // a number of rows
						all.Store(int64(total))   //nolint:gosec // a number of rows
					})
					return err
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
			p.printLine("notes: %d copied", copied.Notes)
			p.printLine("rates: %d copied", copied.Rates)
			p.printLine("readouts: %d copied", copied.Documents)
			p.printLine("events: %s copied, %.1f s; each counts once, however often it is copied",
				wording.CountNoun(copied.Events, "row"), time.Since(started).Seconds())
			return nil
		})
	})
	cmd.Flags().StringVar(&from, "from", "", "the store to copy: a folder, or an address like that of --store")
	return cmd
}
