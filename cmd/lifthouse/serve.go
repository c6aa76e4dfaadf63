package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"lifthouse/api"
	"lifthouse/engine/embedded"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

// refreshEvery is well under the second within which a change made by another
// server has to be in force.
const refreshEvery = 400 * time.Millisecond

// versionsEvery is how often the data of another server's writers are noticed.
const versionsEvery = time.Second

// rejectsEvery is how soon a rejected line can be looked up.
const rejectsEvery = 500 * time.Millisecond

func (p *program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API under /v1",
		Long:  serveHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.running != nil {
				return usageError{errors.New("the store is being served already")}
			}
			s, err := p.openToServe(cmd.Context())
			if err != nil {
				return err
			}
			return errors.Join(p.serve(cmd.Context(), s, p.firstSteps), s.Close())
		},
	}
	p.serveFlags(cmd)
	return cmd
}

// How long a server waits for a store that another process holds which ends by
// itself, as an import does, and how often it looks.
const (
	holderTimeout = time.Minute
	holderPoll    = 200 * time.Millisecond
)

// openToServe opens the store. One that is held by a process that does not
// serve is waited for.
func (p *program) openToServe(ctx context.Context) (*store, error) {
	waiting := false
	for until := time.Now().Add(holderTimeout); ; {
		s, err := p.openStore(ctx)
		var locked *embedded.LockedError
		if !errors.As(err, &locked) || isServed(ctx, locked.Dir) || time.Now().After(until) {
			return s, err
		}
		if !waiting {
			waiting = true
			p.complain("process %d holds %s, as an import does: waiting for it, for %v at most", locked.PID, locked.Dir, holderTimeout)
		}
		select {
		case <-time.After(holderPoll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isServed says whether a server takes commands for the store in the folder.
func isServed(ctx context.Context, dir string) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(dir, socketName))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

const serveHelp = `Serve answers the API until it is interrupted. Commands that are given the same store meanwhile are carried out by it.

Every flag can be set by a variable of the environment, --query-timeout by LIFTHOUSE_QUERY_TIMEOUT, and by a line of the
YAML file that --config or LIFTHOUSE_CONFIG names, query-timeout: 30s. Flags come before the environment, the environment
before the file. 'lifthouse check' says what holds, and whether it will do.`

// serve answers requests and takes errands until the context ends. ready is
// called with the API's URL once it can be reached.
func (p *program) serve(ctx context.Context, s *store, ready func(*store, string)) error {
	slog.SetDefault(p.serving.logger(p.err))
	p.logSettings(ctx)
	endTraces, err := p.trace(ctx)
	if err != nil {
		return err
	}
	defer endTraces()
	certificate, err := p.certificate()
	if err != nil {
		return err
	}
	listener, err := listen(ctx, "--listen", p.serving.listen)
	if err != nil {
		return err
	}
	options := p.serving.api
	options.Release = version()
	options.Timeout = p.limits.Time
	var background sync.WaitGroup
	defer background.Wait()
	following, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the last request is answered
	defer stop()
	collector := ingest.NewCollector(following, s.Writer, options.WaitingEvents)
	handler := api.New(s.Engine, s.Catalogue, api.Intake{Collector: collector, Deliveries: ingest.NewDeliveries(s.Conn), Rejects: s.Rejects, Times: s.times}, options)
	p.follow(following, s, handler, &background)
	if s.Dir != "" {
		commands, err := listenForCommands(ctx, filepath.Join(s.Dir, socketName))
		if err != nil {
			p.complain("other commands cannot reach this store while it is served: %v", err)
		} else {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			background.Go(func() { serveCommands(ctx, commands, s) })
		}
	}
	failed := make(chan error, 2)
	if p.serving.admin != "" {
		admin, err := p.serveAdmin(ctx, handler, &background, failed)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer func() { _ = admin.Close() }()
	}
	server := p.httpServer(handler)
	url := "http://" + listener.Addr().String()
	if certificate == nil {
		background.Go(func() { failed <- server.Serve(listener) })
	} else {
		url = "https://" + listener.Addr().String()
		server.TLSConfig = certificate
		background.Go(func() { failed <- server.ServeTLS(listener, "", "") })
	}
	ready(s, url)
	select {
	case err := <-failed:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	p.limitStop()
	return p.drained(ctx, handler, server)
}

// limitStop has the process end when the server should have stopped. Whatever
// still runs is cut off, as by a kill, which the store outlives.
func (p *program) limitStop() {
	if p.overdue != nil {
		time.AfterFunc(p.serving.drainDelay+p.serving.drain+p.stopMargin, func() { close(p.overdue) })
	}
}

// follow has everything go on that a server does without being asked, until the
// context ends.
func (p *program) follow(following context.Context, s *store, handler *api.API, background *sync.WaitGroup) {
	background.Go(func() { s.Catalogue.Follow(following, refreshEvery) })
	background.Go(func() { s.Engine.FollowVersions(following, versionsEvery) })
	background.Go(func() { s.Rejects.Follow(following, rejectsEvery) })
	if every := p.serving.rollupInterval; every > 0 && s.Refresher != nil {
		background.Go(func() { s.Refresher.Follow(following, every) })
	}
	if days := p.serving.retention; days > 0 {
		background.Go(func() { s.followRetention(following, days) })
	}
	background.Go(func() { s.followInbox(following, handler.CountInbox) })
	if s.Dir == "" {
		background.Go(func() { s.followCopies(following) })
	}
}

// followInbox moves on what other clients of the store put into events_inbox.
// An embedded store has no others: there are rows only where it was restored
// from a server's.
func (s *store) followInbox(ctx context.Context, moved func(ingest.Moved)) {
	inbox := ingest.NewInbox(s.Conn, s.Writer)
	inbox.Times, inbox.Moved = s.times, moved
	inbox.Reject = func(r ingest.InboxReject) {
		website, _ := strconv.ParseInt(r.WebsiteID, 10, 64) // 0: it says none
		s.Rejects.Keep(ingest.Reject{WebsiteID: website, Way: ingest.WayInbox, Reason: r.Reason, Text: "event_id=" + r.EventID + " row_id=" + r.RowID})
	}
	inbox.Owns = func(ctx context.Context) (func(int64) bool, error) {
		err := s.Catalogue.Refresh(ctx) // a website may have been declared just before its events came
		return s.Owns, err
	}
	if s.Dir == "" {
		inbox.Follow(ctx, refreshEvery)
		return
	}
	if _, err := inbox.Move(ctx); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "events_inbox is not moved", "error", err)
	}
}

// logSettings tells what holds, and what about it is doubtful.
func (p *program) logSettings(ctx context.Context) {
	var values []slog.Attr
	for _, s := range p.settings {
		values = append(values, slog.String(s.Name, s.shown()))
	}
	slog.LogAttrs(ctx, slog.LevelInfo, "configuration", values...)
	for _, warning := range append(p.serving.exposures(), p.unknownVariables()...) {
		slog.WarnContext(ctx, warning)
	}
}

func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address with %s", err, flag)
	}
	return listener, nil
}

// httpServer bounds how long a client may take. An answer may take as long as
// the store is given for it, and then some to be sent.
func (p *program) httpServer(handler http.Handler) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: p.serving.headers,
		ReadTimeout:       p.serving.reads,
		IdleTimeout:       p.serving.idle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	if p.limits.Time > 0 {
		server.WriteTimeout = p.serving.reads + p.limits.Time + time.Minute
	}
	return server
}

// serveAdmin answers operators at an address of its own.
func (p *program) serveAdmin(ctx context.Context, handler *api.API, background *sync.WaitGroup, failed chan<- error) (*http.Server, error) {
	listener, err := listen(ctx, "--admin-address", p.serving.admin)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler.Admin(), ReadHeaderTimeout: p.serving.headers, IdleTimeout: p.serving.idle, ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn)}
	slog.InfoContext(ctx, "metrics and profiles", "url", "http://"+listener.Addr().String()+"/metrics")
	background.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	})
	return server, nil
}

// drained says that the server is about to stop, takes no more requests, and
// gives those under way some time to end.
func (p *program) drained(ctx context.Context, handler *api.API, server *http.Server) error {
	handler.Drain()
	if p.serving.drainDelay > 0 {
		<-time.After(p.serving.drainDelay)
	}
	deadline, stop := context.WithTimeout(context.WithoutCancel(ctx), p.serving.drain)
	defer stop()
	if err := server.Shutdown(deadline); err != nil {
		slog.WarnContext(ctx, "requests under way are cut off", "error", err)
		return server.Close()
	}
	return nil
}

// firstSteps says where the API is, and what to do with a store that is empty.
func (p *program) firstSteps(s *store, url string) {
	p.say("Lifthouse answers at %s/v1 (store %s). Ctrl-C stops it.", url, schema.ShowAddress(p.address))
	if len(s.Catalogue.Snapshot().Accounts()) > 0 {
		return
	}
	p.say(`
The store is empty. From a second terminal:
  lifthouse apply -f catalog.yaml              declare accounts, websites, goals and campaigns
  lifthouse import events.ndjson               bring in what visitors did
  lifthouse token create --scope read          make a token to ask with`)
}
