package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/remote"
	"lifthouse/engine/embedded"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

const serveHelp = `Serve answers the API until it is interrupted. Other commands for the same store are forwarded to it.

Every setting can be a flag, an environment variable or a line of a YAML file: --query-timeout 30s,
LIFTHOUSE_QUERY_TIMEOUT=30s, or query-timeout: 30s in the file that --config or LIFTHOUSE_CONFIG names. Flags override the
environment, the environment overrides the file. 'lifthouse check' prints the settings in effect and validates them.`

func (p *program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API under /v1 and the dashboard",
		Long:  serveHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.running != nil {
				return usageError{errors.New("a server is already running on this store")}
			}
			s, err := p.openToServe(cmd.Context())
			if err != nil {
				return err
			}
			return errors.Join(p.serveStore(cmd.Context(), s, p.firstSteps), s.Close())
		},
	}
	p.serveFlags(cmd)
	return cmd
}

// A server waits for a store that another process holds if that process will end by itself, as an import does. A command
// waits if that process will end or serve soon, as a starting server does.
const (
	holderTimeout  = time.Minute
	commandTimeout = 10 * time.Second
	holderPoll     = 200 * time.Millisecond
)

// openToServe opens the store. It waits while the store is held by a process that
// does not serve it.
func (p *program) openToServe(ctx context.Context) (s *app.Store, err error) {
	p.serves = true
	return s, p.awaitHolder(ctx, holderTimeout, func() error {
		s, err = p.openStore(ctx)
		return err
	})
}

// awaitHolder calls open again while the store is held by a process that does not serve it, for at most a time.
func (p *program) awaitHolder(ctx context.Context, most time.Duration, open func() error) error {
	waiting := false
	for until := time.Now().Add(most); ; {
		err := open()
		var locked *embedded.LockedError
		if !errors.As(err, &locked) || remote.IsServed(ctx, filepath.Join(locked.Dir, remote.SocketName)) || time.Now().After(until) {
			return err
		}
		if !waiting {
			waiting = true
			p.printDiagnostic("process %d holds %s, as a starting server or an import does; waiting for it for at most %v",
				locked.PID, locked.Dir, most)
		}
		select {
		case <-time.After(holderPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serveStore answers requests and executes forwarded commands until the context ends.
// It calls ready with the URL once the API can be reached.
func (p *program) serveStore(ctx context.Context, s *app.Store, ready func(s *app.Store, url string)) error {
	slog.SetDefault(app.NewLogger(p.stderr, p.serving.logLevel, p.serving.logFormat == logJSON))
	p.logSettings(ctx)
	endTraces, err := app.StartTracing(ctx, buildVersion(), p.getenv)
	if err != nil {
		return err
	}
	defer endTraces()
	o := p.serving.ServerOptions
	if o.TLS, err = p.loadTLSConfig(); err != nil {
		return err
	}
	o.API.Release, o.API.Timeout = buildVersion(), p.limits.Time
	o.Ready = func(url string) { ready(s, url) }
	o.Stopping = p.limitStop
	if s.Dir != "" {
		listener, err := remote.ListenSocket(ctx, filepath.Join(s.Dir, remote.SocketName))
		if err != nil {
			p.printDiagnostic("other commands cannot use this store while it is served: %v", err)
		} else {
			defer func() { _ = listener.Close() }()
			o.Commands = func(ctx context.Context) {
				remote.ServeCommands(ctx, listener, func(ctx context.Context, c remote.Command) int { return runForwarded(ctx, c, s, o) })
			}
		}
	}
	return s.ServeAPI(ctx, &o)
}

// runForwarded runs a command line of another process on the store of this server.
func runForwarded(ctx context.Context, c remote.Command, s *app.Store, o app.ServerOptions) int {
	getenv := func(name string) string {
		if slices.Contains(remote.Env, name) {
			return c.Env[name]
		}
		return ""
	}
	p := &program{stdin: c.In, stdout: c.Out, stderr: c.Err, dir: c.Dir, args: c.Args, getenv: getenv, running: s, server: o}
	return p.runCommand(ctx)
}

// limitStop ends the process if the server does not stop in time. It interrupts
// whatever still runs, as a kill does, and the store recovers from that.
func (p *program) limitStop() {
	if p.overdue != nil {
		time.AfterFunc(p.serving.DrainDelay+p.serving.DrainTimeout+p.stopMargin, func() { close(p.overdue) })
	}
}

// logSettings logs the settings in effect and warnings about them.
func (p *program) logSettings(ctx context.Context) {
	var values []slog.Attr
	for _, s := range p.settings {
		values = append(values, slog.String(s.Name, shownValue(s)))
	}
	slog.LogAttrs(ctx, slog.LevelInfo, "configuration", values...)
	for _, warning := range append(p.serving.NetworkWarnings(p.serving.tlsCert != ""), p.settings.UnknownVariables(p.environ)...) {
		slog.WarnContext(ctx, warning)
	}
}

// firstSteps prints the URL of the API, and what to do with an empty store.
func (p *program) firstSteps(s *app.Store, url string) {
	p.printLine("Lifthouse answers at %s/v1 (store %s). Ctrl-C stops it.", url, schema.ShowAddress(p.address))
	if len(s.Catalogue.Snapshot().AllAccounts()) > 0 {
		return
	}
	p.printLine(`
The store is empty. From a second terminal:
  lifthouse apply -f catalog.yaml              declare accounts, websites, goals and campaigns
  lifthouse import events.ndjson               import events
  lifthouse token create --scope read          create a token for the API`)
}
