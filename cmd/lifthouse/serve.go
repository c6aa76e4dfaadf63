package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lifthouse/api"
	"lifthouse/api/mcp"
	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/remote"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/embedded"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

func (p *program) serveCommand() *cobra.Command {
	cmd := newCommand("serve", noArgs, func(cmd *cobra.Command, _ []string) error {
		if p.running != nil {
			return usageError{errors.New("a server is already running on this store")}
		}
		s, err := p.openStore(cmd.Context(), holderTimeout)
		if err != nil {
			return err
		}
		firstSteps := func(s *app.Store, url string) {
			p.printLine("Lifthouse answers at %s/v1 (store %s). Ctrl-C stops it.", url, schema.ShowAddress(p.address))
			if len(s.Catalogue.Snapshot().AllAccounts()) > 0 {
				return
			}
			p.printLine(`
The store is empty. From a second terminal:
  lifthouse source add segment --domain shop.example.com   an address for events; the help lists the senders
  lifthouse token create --scope admin                     a token for the page at %s
  lifthouse discover                                       campaigns that arrived, to declare
or, for files:
  lifthouse apply -f catalog.yaml                          declare accounts, websites, goals and campaigns
  lifthouse import events.ndjson                           import events`, url)
		}
		return errors.Join(p.serveStore(cmd.Context(), s, firstSteps), s.Close())
	})
	p.serveFlags(cmd)
	return cmd
}

// A server waits for a store that another process holds if that process will end by itself, as an import does. A
// command waits if that process will end or serve soon, as a starting server does.
const (
	holderTimeout  = time.Minute
	commandTimeout = 10 * time.Second
)

// awaitHolder calls open again while the store is held by a process that does not serve it, for at most a time.
func (p *program) awaitHolder(ctx context.Context, most time.Duration, open func() error) error {
	waiting := false
	for until := time.Now().Add(most); ; {
		err := open()
		var locked *embedded.LockedError
		if !errors.As(err, &locked) || remote.IsServed(ctx, filepath.Join(locked.Dir, remote.SocketName)) ||
			!time.Now().Before(until) {
			return err
		}
		if !waiting {
			waiting = true
			holder := "another process"
			if locked.PID != 0 {
				holder = fmt.Sprintf("process %d", locked.PID)
			}
			p.printDiagnostic("%s uses %s, as a starting server or an import does; waiting for it for at most %v",
				holder, locked.Dir, most)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serveStore answers requests and executes forwarded commands until the context ends. It calls ready with the URL once
// the API can be reached.
func (p *program) serveStore(ctx context.Context, s *app.Store, ready func(s *app.Store, url string)) error {
	var level slog.Level
	_ = level.UnmarshalText([]byte(p.serving.logLevel)) // is valid
	logging := &slog.HandlerOptions{Level: level}
	slog.SetDefault(slog.New(slog.NewTextHandler(p.stderr, logging)))
	if p.serving.logFormat == logJSON {
		slog.SetDefault(slog.New(slog.NewJSONHandler(p.stderr, logging)))
	}
	var values []slog.Attr
	for _, s := range p.settings {
		values = append(values, slog.String(s.Name, shownValue(s)))
	}
	slog.LogAttrs(ctx, slog.LevelInfo, "configuration", values...)
	for _, warning := range p.settingWarnings() {
		slog.WarnContext(ctx, warning)
	}
	o := p.serving.ServerOptions
	var err error
	o.TLS, err = p.loadTLSConfig()
	if err != nil {
		return err
	}
	o.API.Release = buildVersion()
	o.API.Timeout = p.opening.Limits.Time
	o.Ready = func(url string) { ready(s, url) }
	// the process ends if the server does not stop in time, as by a kill; the store recovers from that
	o.Stopping = func() {
		if p.overdue != nil {
			time.AfterFunc(p.serving.DrainDelay+p.serving.DrainTimeout+p.stopMargin, func() { close(p.overdue) })
		}
	}
	if s.Dir != "" {
		listener, err := remote.ListenSocket(ctx, filepath.Join(s.Dir, remote.SocketName))
		if err != nil {
			p.printDiagnostic("other commands cannot use this store while it is served: %v", err)
		} else {
			defer func() { _ = listener.Close() }()
			o.Commands = func(ctx context.Context) {
				remote.ServeCommands(ctx, listener, func(ctx context.Context, c remote.Command) int {
					return runForwarded(ctx, c, s, o)
				})
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
	p := &program{
		stdin: c.In, stdout: c.Out, stderr: c.Err, dir: c.Dir, args: c.Args, getenv: getenv, running: s, server: o,
	}
	return p.runCommand(ctx)
}

// settingWarnings returns warnings about settings that are valid.
func (p *program) settingWarnings() []string {
	return append(p.serving.NetworkWarnings(p.serving.tlsCert != ""), p.settings.UnknownVariables(p.environ)...)
}

// serveOptions are the settings of commands that serve.
type serveOptions struct {
	app.ServerOptions
	tlsCert, tlsKey     string // paths
	logFormat, logLevel string
}

// The names of settings that several commands have, and the values of --log-format.
const (
	publicURLFlag       = "public-url"
	maxEventAge         = "max-event-age"
	maxEventSkew        = "max-event-skew"
	privateWebhooks     = "webhook-private-addresses"
	privateWebhooksHelp = "allow webhooks to private and loopback addresses"
	logText             = "text"
	logJSON             = "json"
)

func (p *program) serveFlags(cmd *cobra.Command) {
	o := &p.serving
	flags := cmd.Flags()
	d := api.DefaultOptions
	flags.StringVar(&o.Listen, "listen", app.DefaultListen, "address of the API and the dashboard")
	flags.StringVar(&o.API.PublicURL, publicURLFlag, "",
		"URL at which people open the dashboard, for links in webhooks and share links; default: the address of "+
			"--listen")
	flags.StringVar(&o.Admin, "admin-address", "",
		"address of /metrics and /debug/pprof, such as 127.0.0.1:8081; they require no token; default: not served")
	flags.StringVar(&o.tlsCert, "tls-cert", "", "PEM file with the certificate chain; requires --tls-key")
	flags.StringVar(&o.tlsKey, "tls-key", "", "PEM file with the private key of the certificate")
	flags.StringVar(&o.logFormat, "log-format", logText, "text or json")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info (each request), warn or error")
	bounds.Var(flags, &o.ReadTimeout, "read-timeout", time.Minute, 0, bounds.MaxWait,
		"maximum time for a client to send a request")
	bounds.Var(flags, &o.DrainTimeout, "drain-timeout", 5*time.Second, 0, bounds.MaxWait,
		"time for running requests to finish when the server stops")
	bounds.Var(flags, &o.DrainDelay, "drain-delay", 0, 0, bounds.MaxWait,
		"time for which /readyz returns 503 before the server stops accepting requests")
	flags.StringSliceVar(&o.API.Origins, "cors-origin", nil,
		"origins that may read responses (CORS), such as https://dash.example.com; *: any")
	bounds.Var(flags, &o.API.MaxBody, "max-body", d.MaxBody, 0, bounds.MaxMemory,
		"maximum size of a request body in bytes; 0: no limit")
	bounds.Var(flags, &o.API.MaxEvents, "max-events-body", d.MaxEvents, 0, bounds.MaxMemory,
		"maximum size of a body of events after decompression, in bytes; 0: no limit")
	bounds.Var(flags, &o.API.WaitingEvents, "events-queue", d.WaitingEvents, 1, 100_000_000,
		"events that may wait to be written before POST /events returns 503")
	p.timeFlags(cmd)
	flags.BoolVar(&o.PrivateWebhooks, privateWebhooks, false, privateWebhooksHelp)
	bounds.Var(flags, &o.RetentionDays, "retention-days", 0, 0, bounds.MaxDays,
		"days after which the events of a stopped campaign or widget are deleted, at start and every day; 0: never")
	bounds.Var(flags, &o.API.ResultsAge, "results-age", d.ResultsAge, 0, bounds.MaxAge,
		"maximum age of a cached table or plot while the data do not change; reports have none; 0: no cache")
	bounds.Var(flags, &o.API.ResultsMemory, "results-memory", d.ResultsMemory, 0, bounds.MaxMemory,
		"memory for cached results in bytes; 0: no cache")
	bounds.Var(flags, &o.API.TokenRate, "rate-limit", d.TokenRate, 0, 1_000_000,
		"requests per second of a token, with bursts of twice as many; 0: no limit")
	bounds.Var(flags, &o.API.AuthFailures, "auth-failures", d.AuthFailures, 0, 1_000_000,
		"unknown tokens per minute from one address before it gets 429; valid tokens are never refused; 0: no limit")
	bounds.Var(flags, &o.API.StoreSlots, "store-concurrency", d.StoreSlots, 0, 10_000,
		"requests that may query the store at the same time; 0: no limit")
	bounds.Var(flags, &o.API.StoreQueue, "store-queue", d.StoreQueue, 0, 1_000_000,
		"requests that may wait for a free slot of --store-concurrency")
	bounds.Var(flags, &o.API.StoreWait, "store-wait", d.StoreWait, 0, bounds.MaxWait,
		"maximum time that a request waits for a slot before it gets 503")
}

// timeFlags adds the settings for the allowed times of events to a command.
func (p *program) timeFlags(cmd *cobra.Command) {
	p.opening.Times = ingest.DefaultTimes
	bounds.Var(cmd.Flags(), &p.opening.Times.MaxAge, maxEventAge, ingest.DefaultTimes.MaxAge, 0, bounds.MaxAge,
		"maximum age of an event, such as 2160h; 0: any time since 1970")
	bounds.Var(cmd.Flags(), &p.opening.Times.MaxSkew, maxEventSkew, ingest.DefaultTimes.MaxSkew, 0, bounds.MaxAge,
		"how far in the future the time of an event may be")
}

// settingFaults returns all invalid settings, sorted by name.
func (o *serveOptions) settingFaults() []string {
	var faults []string
	check := func(valid bool, name, value, want string) {
		if !valid {
			faults = append(faults, fmt.Sprintf("%s %q: must be %s", name, value, want))
		}
	}
	if (o.tlsCert == "") != (o.tlsKey == "") {
		faults = append(faults, "tls-cert, tls-key: both are required")
	}
	check(slices.Contains([]string{logText, logJSON}, o.logFormat), "log-format", o.logFormat, logText+" or "+logJSON)
	check(new(slog.Level).UnmarshalText([]byte(o.logLevel)) == nil,
		"log-level", o.logLevel, "debug, info, warn or error")
	const addressForm = "host:port, such as " + app.DefaultListen
	check(isAddress(o.Listen), "listen", o.Listen, addressForm)
	check(o.Admin == "" || isAddress(o.Admin), "admin-address", o.Admin, addressForm)
	check(o.API.PublicURL == "" || isPublicURL(o.API.PublicURL), "public-url", o.API.PublicURL,
		"http:// or https:// with a host, without a slash at the end, such as https://lifthouse.example.com")
	for _, origin := range o.API.Origins {
		check(origin == "*" || isOrigin(origin),
			"cors-origin", origin, "scheme://host or scheme://host:port, or *")
	}
	slices.Sort(faults)
	return faults
}

// isAddress reports whether a text is host:port, where the host may be empty.
func isAddress(address string) bool {
	_, _, err := net.SplitHostPort(address)
	return err == nil
}

// isPublicURL reports whether paths of pages can be appended to a URL.
func isPublicURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	isHTTP := u.Scheme == "http" || u.Scheme == "https"
	endsWithPath := u.RawQuery == "" && u.Fragment == "" && !strings.HasSuffix(text, "/")
	return isHTTP && u.Host != "" && endsWithPath
}

// isOrigin reports whether a text is an origin of pages: a scheme and a host, and nothing else.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return false
	}
	return text == u.Scheme+"://"+u.Host
}

// loadTLSConfig returns the TLS configuration, or nil if TLS is off.
func (p *program) loadTLSConfig() (*tls.Config, error) {
	if p.serving.tlsCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(p.absolutePath(p.serving.tlsCert), p.absolutePath(p.serving.tlsKey))
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", p.serving.tlsCert, p.serving.tlsKey, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (p *program) mcpCommand() *cobra.Command {
	cmd := newCommand("mcp", noArgs, nil)
	p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		p.serving.API = api.DefaultOptions
		p.serving.API.Release = buildVersion()
		p.serving.API.Timeout = p.opening.Limits.Time
		following, stop := context.WithCancel(ctx)
		var background sync.WaitGroup
		if p.running == nil { // no server keeps the store up to date
			background.Go(func() { s.FollowChanges(following) })
		}
		defer background.Wait()
		defer stop()
		return s.MCP(following, p.serving.API).ServeStreams(ctx, mcp.Caller{AccountID: s.owned.ID}, p.stdin, p.stdout)
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if terminal.Is(p.stdin) {
			p.printDiagnostic("an AI assistant starts this command; 'lifthouse mcp --help' describes how; Ctrl-D ends")
		}
		err := run(cmd, args)
		if cmd.Context().Err() != nil {
			err = nil // the assistant ended the command
		}
		return err
	}
	return cmd
}

func (p *program) demoCommand() *cobra.Command {
	var traffic bool
	cmd := newCommand("demo", noArgs, func(cmd *cobra.Command, _ []string) (err error) {
		if p.running != nil {
			return usageError{errors.New("a server is already running on this store")}
		}
		if !cmd.Flags().Changed("store") {
			p.address = "embedded:./demo"
		}
		ctx := cmd.Context()
		s, err := p.openDemo(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		token, err := replaceDemoToken(ctx, s.Catalogue)
		if err != nil {
			return err
		}
		visits, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		ready := func(_ *app.Store, url string) {
			if traffic {
				sending.Go(func() { sendDemoTraffic(visits, s) })
			}
			p.printLine("Lifthouse demo answers at %s/v1 (store %s). Ctrl-C stops it. Try:\n", url,
				schema.ShowAddress(p.address))
			p.printLine("  curl -s -H 'Authorization: Bearer %s' '%s/v1/campaigns/%d/results'\n", token, url,
				demo.Campaign)
			p.printLine("Or look at %s/ in a browser, and sign in with the token.\n", url)
			p.printLine("Use it in other commands with --store %s.", schema.ShowAddress(p.address))
		}
		err = p.serveStore(ctx, s, ready)
		end()
		sending.Wait()
		return err
	})
	p.serveFlags(cmd)
	cmd.Flags().BoolVar(&traffic, "traffic", true,
		"send the events of a few visitors per second while the demo is served")
	return cmd
}

// openDemo opens the store of the demo, and fills it if it is empty. It opens no store with data of others.
func (p *program) openDemo(ctx context.Context) (*app.Store, error) {
	address, err := p.storeAddress()
	if err != nil {
		return nil, err
	}
	if address.Dir != "" {
		if err := demo.ClaimDirectory(address.Dir); err != nil {
			return nil, err
		}
	}
	s, err := p.openStore(ctx, 0)
	if err != nil {
		return nil, err
	}
	if address.Dir == "" && !demosOnly(s.Catalogue.Snapshot().AllAccounts()) {
		err = errors.New("the store has other accounts and is not a demo store: name an empty database")
	} else {
		err = p.makeDemo(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// replaceDemoToken returns a new token of the demo, and revokes that of the last start.
func replaceDemoToken(ctx context.Context, c *catalogue.Catalogue) (string, error) {
	const tokenName = "demo"
	for _, token := range c.Snapshot().AccountTokens(demo.Account) {
		if token.Name == tokenName {
			if _, err := c.RevokeToken(ctx, demo.Account, token.ID); err != nil {
				return "", err
			}
		}
	}
	token, _, err := c.CreateToken(ctx, catalogue.Token{
		AccountID: demo.Account, Name: tokenName, Scopes: []catalogue.Scope{catalogue.ScopeAdmin},
	})
	return token, err
}

// sendDemoTraffic stores the events of a few visitors every second until the context ends.
func sendDemoTraffic(ctx context.Context, s *app.Store) {
	visitors := demo.NewTraffic(time.Now())
	schema.Repeat(ctx, time.Second, "send the events of the demo", func(ctx context.Context) error {
		return writeDemo(ctx, s, visitors.NextEvents(time.Now()))
	})
}

// writeDemo stores events of the demo, and the names in them.
func writeDemo(ctx context.Context, s *app.Store, events []schema.Event) error {
	names, err := s.Writer.Names(ctx)
	if err != nil {
		return err
	}
	if err := names.NoteEvents(events, "demo"); err != nil {
		return err
	}
	return s.Writer.WriteEvents(ctx, events)
}

// demosOnly reports whether the catalogue is empty or contains only the demo account.
func demosOnly(accounts []*catalogue.AccountResources) bool {
	return len(accounts) == 0 || len(accounts) == 1 && accounts[0].Name == demo.Name
}

// makeDemo fills an empty store. It adds the catalogue last, which marks the store as complete.
func (p *program) makeDemo(ctx context.Context, s *app.Store) error {
	if len(s.Catalogue.Snapshot().AllAccounts()) > 0 {
		return nil
	}
	p.printLine("Creating the demo store …")
	now := time.Now().UTC()
	start := now.Truncate(24*time.Hour).AddDate(0, 0, -demo.Days) // up to yesterday; visitors of today arrive later
	events := slices.DeleteFunc(demo.ShopEvents(start), func(e schema.Event) bool { return e.Time.After(now) })
	if err := writeDemo(ctx, s, events); err != nil {
		return err
	}
	// reports do not wait until so many events are folded
	if err := s.Facts.FoldAccepted(ctx); err != nil {
		return err
	}
	if _, err := s.Catalogue.ApplyFile(ctx, demo.ShopCatalogue(start), false); err != nil {
		return err
	}
	for subject, outcome := range demo.Outcomes(start) {
		if _, err := s.Catalogue.SetOutcome(ctx, demo.Account, 0, subject, &outcome); err != nil {
			return err
		}
	}
	return nil
}
