package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"lifthouse/api"
	"lifthouse/schema"
)

// ServerOptions configure a server.
type ServerOptions struct {
	API           api.Options
	Listen        string      // address of the API
	Admin         string      // address of metrics and profiles; empty: they are not served
	TLS           *tls.Config // nil: no TLS
	HeaderTimeout time.Duration
	ReadTimeout   time.Duration
	IdleTimeout   time.Duration
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
	s.warnOfDetachedParts(ctx)
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
		admin, err := serveAdmin(ctx, handler, o, &background, failed)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer func() { _ = admin.Close() }()
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
	return drainServer(ctx, handler, server, o)
}

// warnOfDetachedParts logs the parts that ClickHouse has set aside.
func (s *Store) warnOfDetachedParts(ctx context.Context) {
	parts, err := schema.ReadDetachedParts(ctx, s.Conn)
	if err != nil {
		slog.WarnContext(ctx, err.Error())
	}
	for _, p := range parts {
		slog.WarnContext(ctx, "ClickHouse has set aside a part; lifthouse check --deep says whether events are lost",
			"table", p.Table, "reason", p.Reason, "path", p.Path)
	}
}

func listenTCP(ctx context.Context, flag, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address with %s", err, flag)
	}
	return listener, nil
}

// httpServer returns a server that limits the time a client may take. The write
// timeout covers the request, the query and a minute to send the response.
func httpServer(handler http.Handler, o *ServerOptions) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: o.HeaderTimeout,
		ReadTimeout:       o.ReadTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	if o.API.Timeout > 0 {
		server.WriteTimeout = o.ReadTimeout + o.API.Timeout + time.Minute
	}
	return server
}

// serveAdmin serves metrics and profiles.
func serveAdmin(ctx context.Context, handler *api.API, o *ServerOptions, background *sync.WaitGroup, failed chan<- error) (*http.Server, error) {
	listener, err := listenTCP(ctx, "--admin-address", o.Admin)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: handler.AdminHandler(), ReadHeaderTimeout: o.HeaderTimeout, IdleTimeout: o.IdleTimeout,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	slog.InfoContext(ctx, "serving metrics and profiles", "url", "http://"+listener.Addr().String()+"/metrics")
	background.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	})
	return server, nil
}

// drainServer makes the readiness probe fail, stops accepting requests, and waits for
// the running ones.
func drainServer(ctx context.Context, handler *api.API, server *http.Server, o *ServerOptions) error {
	handler.StartDraining()
	if o.DrainDelay > 0 {
		<-time.After(o.DrainDelay)
	}
	deadline, stop := context.WithTimeout(context.WithoutCancel(ctx), o.DrainTimeout)
	defer stop()
	if err := server.Shutdown(deadline); err != nil {
		slog.WarnContext(ctx, "running requests were cut off", "err", err)
		return server.Close()
	}
	return nil
}
