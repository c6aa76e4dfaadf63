package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"lifthouse/api"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// ServerOptions configure a server.
type ServerOptions struct {
	API           api.Options
	Listen        string      // address of the API
	Admin         string      // address of metrics and profiles; empty: they are not served
	TLS           *tls.Config // nil: no TLS
	ReadTimeout   time.Duration
	DrainTimeout  time.Duration // maximum time for running requests to end when the server stops
	DrainDelay    time.Duration // time during which readiness fails and new requests are still accepted
	RetentionDays int           // 0: no retention

	PrivateWebhooks bool // whether webhooks may have private and loopback addresses

	Ready    func(url string)          // called when the API can be reached
	Commands func(ctx context.Context) // executes forwarded commands until the context ends; may be nil
	Stopping func()                    // called when the server begins to stop; may be nil
}

// ServeAPI answers requests and keeps the store up to date until the context ends.
func (s *Store) ServeAPI(ctx context.Context, o *ServerOptions) error {
	listener, err := listenTCP(ctx, "--listen", o.Listen)
	if err != nil {
		return err
	}
	s.warnDetachedParts(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	following, stop := context.WithCancel(context.WithoutCancel(ctx)) // ends after the last request
	defer stop()
	scheme := "http://"
	if o.TLS != nil {
		scheme = "https://"
	}
	address := scheme + listener.Addr().String()
	o.API.PublicURL = cmp.Or(o.API.PublicURL, address)
	handler := s.API(following, o.API)
	s.startBackgroundTasks(following, o, handler, &background)
	if o.Commands != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		background.Go(func() { o.Commands(ctx) })
	}
	failed := make(chan error, 2)
	if o.Admin != "" {
		inner, err := listenTCP(ctx, "--admin-address", o.Admin)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		admin := httpServer(handler.AdminHandler(), &ServerOptions{})
		defer func() { _ = admin.Close() }()
		slog.InfoContext(ctx, "serving metrics and profiles", "url", "http://"+inner.Addr().String()+"/metrics")
		background.Go(func() {
			if err := admin.Serve(inner); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	server := httpServer(handler, o)
	if o.TLS == nil {
		background.Go(func() { failed <- server.Serve(listener) })
	} else {
		server.TLSConfig = o.TLS
		background.Go(func() { failed <- server.ServeTLS(listener, "", "") })
	}
	o.Ready(address)
	select {
	case err := <-failed:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	if o.Stopping != nil {
		o.Stopping()
	}
	handler.StartDraining()
	return o.drainServer(ctx, server)
}

// warnDetachedParts logs the parts of tables that ClickHouse has set aside.
func (s *Store) warnDetachedParts(ctx context.Context) {
	detached, err := schema.ReadDetachedParts(ctx, s.Conn)
	if err != nil {
		slog.WarnContext(ctx, err.Error())
	}
	for _, p := range detached {
		slog.WarnContext(ctx, "ClickHouse has set aside a part; lifthouse check --deep says whether events are lost",
			"table", p.Table, "reason", p.Reason, "path", p.Path)
	}
}

// drainServer accepts requests for DrainDelay, and then waits up to DrainTimeout for those that are running.
func (o *ServerOptions) drainServer(ctx context.Context, server *http.Server) error {
	if o.DrainDelay > 0 {
		<-time.After(o.DrainDelay)
	}
	deadline, end := context.WithTimeout(context.WithoutCancel(ctx), o.DrainTimeout)
	defer end()
	if err := server.Shutdown(deadline); err != nil {
		slog.WarnContext(ctx, "running requests were cut off", "err", err)
		return server.Close()
	}
	return nil
}

func listenTCP(ctx context.Context, flag, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address with %s", err, flag)
	}
	return listener, nil
}

// httpServer returns a server that limits the time a client may take. The write timeout covers the request, the query
// and a minute to send the response.
func httpServer(handler http.Handler, o *ServerOptions) *http.Server {
	const headerTimeout = 10 * time.Second
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: min(headerTimeout, cmp.Or(o.ReadTimeout, headerTimeout)),
		ReadTimeout:       o.ReadTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	if o.API.Timeout > 0 {
		server.WriteTimeout = o.ReadTimeout + o.API.Timeout + time.Minute
	}
	return server
}

// catalogueInterval must be shorter than a second: within a second, every server must apply a change that another
// server made.
const catalogueInterval = 400 * time.Millisecond

// eraseExpired deletes the events of subjects, and the orders of customers, past their retention period.
func (s *Store) eraseExpired(ctx context.Context, days int) error {
	found, err := s.ExpiredSubjects(ctx, days, time.Now())
	if err == nil && len(found) > 0 {
		err = s.EraseSubjects(ctx, found)
	}
	if err != nil {
		return err
	}
	for _, e := range found {
		slog.InfoContext(ctx, "deleted events past their retention period", "subject", e.Subject,
			"id", e.ID, "website", e.WebsiteID, "ended", e.EndDate, "events", e.Events)
	}
	dropped, err := s.Writer.DropOldCustomers(ctx, time.Now().AddDate(0, 0, -days))
	if dropped > 0 {
		slog.InfoContext(ctx, "deleted orders past their retention period", "customers", dropped)
	}
	return err
}

// startBackgroundTasks starts the background tasks of a server. They run until the context ends.
func (s *Store) startBackgroundTasks(
	ctx context.Context, o *ServerOptions, handler *api.API, background *sync.WaitGroup,
) {
	background.Go(func() { s.FollowChanges(ctx) })
	background.Go(func() { s.Writer.ForgetNames(ctx, s.Dir == "") })
	background.Go(func() { s.Journal.FlushPeriodically(ctx, 500*time.Millisecond) }) // then rejected lines are found
	recorder := watch.NewRecorder(s.Engine, s.Catalogue, s.Outbox, s.Summaries)
	recorder.MakeReadout = s.Readouts(o.API.Release, o.API.PublicURL).MakeOwn
	background.Go(func() { recorder.FollowLooks(ctx) })
	background.Go(func() { watch.FollowRuns(ctx, s.Catalogue, s.Outbox) })
	sender := s.WebhookSender(watch.SenderOptions{
		PublicURL: o.API.PublicURL, Release: o.API.Release, AllowPrivate: o.PrivateWebhooks,
		Count: handler.CountDelivery,
	})
	background.Go(func() { sender.FollowMessages(ctx) })
	if o.RetentionDays > 0 {
		const task = "delete events past their retention period"
		background.Go(func() {
			schema.Repeat(ctx, 24*time.Hour, task, func(ctx context.Context) error {
				return s.eraseExpired(ctx, o.RetentionDays)
			})
		})
	}
	// Move events that other ClickHouse clients inserted into events_inbox. An embedded store has no other clients. Its
	// inbox has rows only if the store was restored from a server's backup.
	inbox := ingest.NewInbox(s.Conn, s.Writer)
	inbox.Times, inbox.Moved, inbox.Reject = s.Times, handler.CountInbox, s.Journal.BufferRejects
	inbox.Owns = func(ctx context.Context) (func(int64) bool, error) {
		err := s.Catalogue.RefreshSnapshot(ctx) // a website may have been declared just before its events
		return s.HasWebsite, err
	}
	background.Go(func() {
		if s.Dir == "" {
			inbox.MovePeriodically(ctx, catalogueInterval)
		} else if _, err := inbox.MoveRows(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "move events from events_inbox failed", "err", err)
		}
	})
	if cluster, _ := schema.ClusterOf(s.Conn); cluster != "" {
		background.Go(func() {
			schema.Repeat(ctx, 15*time.Second, "list the servers of the cluster", func(ctx context.Context) error {
				servers, err := schema.ReadServers(ctx, s.Conn)
				if err == nil {
					handler.SetServers(servers)
				}
				return err
			})
		})
	}
}

// WebhookSender returns the sender of webhooks. Of the servers of a store, one at a time delivers messages.
func (s *Store) WebhookSender(o watch.SenderOptions) *watch.Sender {
	if s.Dir == "" {
		o.Holder = rand.Text()
	}
	o.Secrets = s.Secrets
	return watch.NewSender(s.Outbox, s.Catalogue, o)
}

// FollowChanges keeps the catalogue, the facts and the summaries up to date until the context ends.
func (s *Store) FollowChanges(ctx context.Context) {
	var all sync.WaitGroup
	if s.Dir == "" { // other servers may change the catalogue
		all.Go(func() { s.Catalogue.RefreshPeriodically(ctx, catalogueInterval) })
	}
	// A server shows within a second what another one recorded. Into an embedded store, only commands copy looks.
	interval := catalogueInterval
	if s.Dir != "" {
		interval = time.Minute
	}
	all.Go(func() { s.Engine.Ledger.FollowRecords(ctx, interval) })
	if s.Dir == "" { // other servers measure interactions, once a day
		all.Go(func() { schema.Repeat(ctx, 10*time.Second, "read interactions", s.Engine.ReadDaily) })
	}
	all.Go(func() { s.Facts.FollowEvents(ctx) })
	s.Summaries.FollowQueue(ctx)
	all.Wait()
}

// DefaultListen can be reached from this machine only.
const DefaultListen = "127.0.0.1:8080"

// NetworkWarnings returns warnings about addresses that other machines can reach.
func (o *ServerOptions) NetworkWarnings(hasTLS bool) []string {
	var warnings []string
	if !isLocal(o.Listen) && !hasTLS {
		warnings = append(warnings,
			"listen "+o.Listen+" can be reached from other machines without TLS, so tokens are sent in clear text; "+
				"set --tls-cert and --tls-key, or listen at "+DefaultListen+" behind a proxy with TLS")
	}
	if o.Admin != "" && !isLocal(o.Admin) {
		warnings = append(warnings,
			"admin-address "+o.Admin+" can be reached from other machines and requires no token")
	}
	return warnings
}

// isLocal reports whether an address can be reached from this machine only.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
