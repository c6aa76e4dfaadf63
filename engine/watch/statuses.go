package watch

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/cache"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Statuses keeps the last status of each subject, and computes new ones in the background.
type Statuses struct {
	engine    *engine.Engine
	catalogue *catalogue.Catalogue
	kept      *cache.Cache
	queue     chan statusKey

	mu     sync.Mutex
	queued map[statusKey]bool // guarded by mu
}

type statusKey struct {
	account int64
	subject schema.Subject
}

type statusVersion struct{ data, recorded, catalogue uint64 }

const (
	// statusBytes is the approximate size of a status.
	statusBytes = 1 << 10
	// maxStatuses bounds the number of statuses in memory, and the length of the queue.
	maxStatuses = 20_000
)

// NewStatuses returns the statuses of the subjects of a store.
func NewStatuses(e *engine.Engine, c *catalogue.Catalogue) *Statuses {
	kept := cache.New(maxStatuses * statusBytes)
	return &Statuses{
		engine: e, catalogue: c, kept: kept, queued: map[statusKey]bool{},
		queue: make(chan statusKey, maxStatuses),
	}
}

// LastStatuses returns the last computed status of each subject at once. A subject whose status was never computed has
// none. If the events or definitions of a subject have changed, its status is outdated. In both cases, FollowQueue
// computes a new status.
func (s *Statuses) LastStatuses(ctx context.Context, account int64, subjects []schema.Subject) []*result.Status {
	defined := s.catalogue.Snapshot().AccountResources(account).Version
	found := make([]*result.Status, len(subjects))
	for i, version := range s.engine.LastVersions(ctx, subjects) {
		key := statusKey{account, subjects[i]}
		last, computedAt := s.kept.LastValue(key)
		found[i], _ = last.(*result.Status)
		if version.Known && computedAt != (statusVersion{version.Data, version.Recorded, defined}) {
			s.mu.Lock()
			if !s.queued[key] {
				select {
				case s.queue <- key:
					s.queued[key] = true
				default: // too many are queued
				}
			}
			s.mu.Unlock()
		}
	}
	return found
}

// FollowQueue computes the requested statuses until the context ends.
func (s *Statuses) FollowQueue(ctx context.Context) {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				select {
				case key := <-s.queue:
					var gone *query.NotFoundError
					if err := s.computeStatus(ctx, key); err != nil && ctx.Err() == nil && !errors.As(err, &gone) {
						slog.WarnContext(ctx, "compute status failed", "subject", key.subject, "err", err)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// computeStatus computes and keeps the status of a queued subject. If the store does not answer, it keeps none, and the
// next list request tries again.
func (s *Statuses) computeStatus(ctx context.Context, key statusKey) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.mu.Lock()
	delete(s.queued, key) // a later change is queued again
	s.mu.Unlock()
	return s.renewStatus(ctx, key)
}

// renewStatus computes and keeps the status of a subject. A status that was computed without a look that is recorded by
// now is computed again.
func (s *Statuses) renewStatus(ctx context.Context, key statusKey) error {
	owned := s.catalogue.Snapshot().AccountResources(key.account)
	p, err := plan.New(plan.ResultsRequest(key.account, key.subject), owned)
	if err != nil {
		return err
	}
	for {
		version, err := s.engine.ReadVersion(ctx, key.subject)
		if err != nil || !version.Known {
			return err
		}
		status, err := s.engine.ComputeStatus(ctx, p, version)
		if err != nil {
			return err
		}
		last := s.engine.LastVersions(ctx, []schema.Subject{key.subject})[0]
		if !last.Known || last.Recorded == version.Recorded {
			computedAt := statusVersion{version.Data, version.Recorded, owned.Version}
			s.kept.StoreValue(key, computedAt, status, statusBytes)
			return nil
		}
	}
}
