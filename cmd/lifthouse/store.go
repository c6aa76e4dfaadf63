package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/remote"
	"lifthouse/engine/embedded"
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
	err = p.awaitHolder(ctx, wait, func() (err error) {
		s, err = app.OpenStore(ctx, address, p.opening)
		return err
	})
	return s, err
}

// withStore runs work on an existing store. It returns an error if the store does not exist, for example because its
// directory is misspelt.
func (p *program) withStore(ctx context.Context, work func(context.Context, *app.Store) error) error {
	if address, err := p.storeAddress(); err == nil && address.Dir != "" && p.running == nil && isEmpty(address.Dir) {
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
