package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"lifthouse/api"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

const (
	// catalogueInterval must be shorter than a second: within a second, every server
	// must apply a change that another server made.
	catalogueInterval = 400 * time.Millisecond
	journalInterval   = 500 * time.Millisecond // time until a rejected line can be looked up
)

// startBackgroundTasks starts the background tasks of a server. They run until the context
// ends.
func (s *Store) startBackgroundTasks(ctx context.Context, o *ServerOptions, handler *api.API, background *sync.WaitGroup) {
	background.Go(func() { s.FollowChanges(ctx) })
	background.Go(func() { s.Journal.FlushPeriodically(ctx, journalInterval) })
	background.Go(func() { watch.NewRecorder(s.Engine, s.Catalogue, s.Outbox).FollowLooks(ctx) })
	background.Go(func() { watch.FollowRuns(ctx, s.Catalogue, s.Outbox) })
	sender := s.WebhookSender(watch.SenderOptions{
		PublicURL: o.API.PublicURL, Release: o.API.Release, AllowPrivate: o.PrivateWebhooks, Count: handler.CountDelivery,
	})
	background.Go(func() { sender.FollowMessages(ctx) })
	if o.RetentionDays > 0 {
		background.Go(func() { s.followRetention(ctx, o.RetentionDays) })
	}
	background.Go(func() { s.followInbox(ctx, handler.CountInbox) })
	if cluster, _ := schema.ClusterOf(s.Conn); cluster != "" {
		background.Go(func() { s.followServers(ctx, handler.SetServers) })
	}
}

// WebhookSender returns the sender of webhooks. Of the servers of a store, one at a time delivers messages.
func (s *Store) WebhookSender(o watch.SenderOptions) *watch.Sender {
	if s.Dir == "" {
		o.Holder = rand.Text()
	}
	return watch.NewSender(s.Outbox, s.Catalogue, o)
}

// FollowChanges keeps the catalogue, the facts and the statuses up to date until the context ends.
func (s *Store) FollowChanges(ctx context.Context) {
	var all sync.WaitGroup
	if s.Dir == "" { // other servers may change the catalogue
		all.Go(func() { s.Catalogue.RefreshPeriodically(ctx, catalogueInterval) })
	}
	all.Go(func() { s.Facts.FollowEvents(ctx) })
	s.Statuses.FollowQueue(ctx)
	all.Wait()
}

// followInbox moves events that other ClickHouse clients inserted into events_inbox.
// An embedded store has no other clients. Its inbox has rows only if the store was
// restored from a server's backup.
func (s *Store) followInbox(ctx context.Context, moved func(ingest.Moved)) {
	inbox := ingest.NewInbox(s.Conn, s.Writer)
	inbox.Times, inbox.Moved, inbox.Reject = s.Times, moved, s.Journal.BufferRejects
	inbox.Owns = func(ctx context.Context) (func(int64) bool, error) {
		err := s.Catalogue.RefreshSnapshot(ctx) // a website may have been declared just before its events
		return s.HasWebsite, err
	}
	if s.Dir == "" {
		inbox.MovePeriodically(ctx, catalogueInterval)
		return
	}
	if _, err := inbox.MoveRows(ctx); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "move events from events_inbox failed", "err", err)
	}
}

// serversInterval is the time between two listings of the servers of a cluster.
const serversInterval = 15 * time.Second

// followServers lists the servers of a cluster until the context ends.
func (s *Store) followServers(ctx context.Context, set func([]schema.Server)) {
	tick := time.NewTicker(serversInterval)
	defer tick.Stop()
	for {
		servers, err := schema.ReadServers(ctx, s.Conn)
		switch {
		case err == nil:
			set(servers)
		case ctx.Err() == nil:
			slog.WarnContext(ctx, "list the servers of the cluster failed", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
