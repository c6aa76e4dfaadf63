package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"lifthouse/api"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

// defaultListen reaches this machine only.
const defaultListen = "127.0.0.1:8080"

// refreshEvery is well under the second within which a change made by another
// server has to be in force.
const refreshEvery = 400 * time.Millisecond

// versionsEvery is how often the data of another server's writers are noticed.
const versionsEvery = time.Second

// drain is how long requests that run may take to end when the server stops.
const drain = time.Second

func (p *program) serveCommand() *cobra.Command {
	listen := p.getenv("LIFTHOUSE_LISTEN")
	if listen == "" {
		listen = defaultListen
	}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API under /v1",
		Long:  "Serve answers the API until it is interrupted. Commands that are given the same store meanwhile are carried out by it.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.running != nil {
				return usageError{errors.New("the store is being served already")}
			}
			s, err := p.openStore(cmd.Context())
			if err != nil {
				return err
			}
			return errors.Join(p.serve(cmd.Context(), s, listen, p.firstSteps), s.Close())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "address to answer at (LIFTHOUSE_LISTEN)")
	return cmd
}

// serve answers requests and takes errands until the context ends. ready is
// called with the API's URL once it can be reached.
func (p *program) serve(ctx context.Context, s *store, listen string, ready func(*store, string)) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w; choose another address with --listen", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { s.catalogue.Follow(ctx, refreshEvery) })
	background.Go(func() { s.engine.FollowVersions(ctx, versionsEvery) })
	if s.dir != "" {
		errands, err := listenForErrands(ctx, filepath.Join(s.dir, socketName))
		if err != nil {
			p.complain("other commands cannot reach this store while it is served: %v", err)
		} else {
			background.Go(func() { takeErrands(ctx, errands, s) })
		}
	}
	server := &http.Server{
		Handler:           api.New(s.engine, s.catalogue, api.DefaultOptions),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	background.Go(func() { failed <- server.Serve(listener) })
	ready(s, "http://"+listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	deadline, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	if err := server.Shutdown(deadline); err != nil {
		return errors.Join(server.Close())
	}
	return nil
}

// firstSteps says where the API is, and what to do with a store that is empty.
func (p *program) firstSteps(s *store, url string) {
	p.say("Lifthouse answers at %s/v1 (store %s). Ctrl-C stops it.", url, schema.ShowAddress(p.address))
	if len(s.catalogue.Snapshot().Accounts()) > 0 {
		return
	}
	p.say(`
The store is empty. From a second terminal:
  lifthouse apply -f catalog.yaml              declare accounts, websites, goals and campaigns
  lifthouse import events.ndjson               bring in what visitors did
  lifthouse token create --scope read          make a token to ask with`)
}
