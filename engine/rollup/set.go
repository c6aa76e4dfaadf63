package rollup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/live"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// Set has the rollups of a store: those of one server, or those of every replica of a cluster.
type Set struct {
	totals      *live.Totals // of the store
	leastEvents uint64
	shards      [][]*Index // by shard: its replicas
}

// NewSet returns the rollups of a store on one server. Subjects with at most few events are
// counted in process and have no rollup.
func NewSet(conn driver.Conn, few uint64, c *catalogue.Catalogue, totals *live.Totals) *Set {
	return &Set{totals: totals, leastEvents: few + 1, shards: [][]*Index{{NewIndex(conn, few, c, totals)}}}
}

// fewOfShard is the part of the events of a subject with a rollup that each of the shards is
// expected to have at least: visitors are spread evenly. A subject with fewer on a shard is
// counted from the events.
const fewOfShard = 0.5

// SetReplicas sets the connections to the replicas of each shard. Each replica has rollups of its
// own. It must be called before the first use.
func (s *Set) SetReplicas(replicas [][]driver.Conn, limits source.Limits, c *catalogue.Catalogue) {
	few := uint64(fewOfShard * float64(s.leastEvents) / float64(max(len(replicas), 1)))
	s.shards = make([][]*Index, len(replicas))
	for i, conns := range replicas {
		for _, conn := range conns {
			index := NewIndex(conn, few, c, live.New(&source.Store{Conn: conn, Limits: limits}))
			index.ShareReplica()
			s.shards[i] = append(s.shards[i], index)
		}
	}
}

// Share declares that other processes write to the store; see Index.Share.
func (s *Set) Share(ctx context.Context) (possible bool, err error) { return s.shards[0][0].Share(ctx) }

// Indexes returns the rollups of each server.
func (s *Set) Indexes() []*Index { return slices.Concat(s.shards...) }

// EachReplica returns the rollups of one replica of each shard, for every replica that can be
// reached; of one server, its rollups.
func (s *Set) EachReplica() (all []*Set) {
	replicas := 1
	for _, shard := range s.shards {
		replicas = max(replicas, len(shard))
	}
	for i := range replicas {
		of := &Set{totals: s.totals, leastEvents: s.leastEvents}
		for _, shard := range s.shards {
			if x := shard[min(i, len(shard)-1)]; !x.away.Load() {
				of.shards = append(of.shards, []*Index{x})
			}
		}
		if len(of.shards) == len(s.shards) {
			all = append(all, of)
		}
	}
	return all
}

// only returns the rollups if they are those of one server that is not a replica.
func (s *Set) only() *Index {
	if len(s.shards) == 1 && len(s.shards[0]) == 1 && !s.shards[0][0].isReplica() {
		return s.shards[0][0]
	}
	return nil
}

// LeastEvents returns the minimum number of events of a subject with a rollup.
func (s *Set) LeastEvents() uint64 { return s.leastEvents }

// Current returns the rollup of a subject if it can serve a report: it has all stored events, or
// was refreshed recently. On a cluster, it is that of one replica of each shard.
func (s *Set) Current(subject plan.Subject, stored source.Stored) (*Current, bool) {
	if x := s.only(); x != nil {
		shard, lacks, usable := x.current(subject, stored.Ingested)
		if !usable {
			return nil, false
		}
		current := NewCurrent(shard)
		current.Lacks = lacks
		return current, true
	}
	var shards []Shard
	var events uint64
	recent := true
	for _, replicas := range s.shards {
		var best *Shard
		var bestUsable bool
		for _, x := range replicas {
			if shard, _, usable := x.current(subject, stored.Ingested); shard.index != nil && (best == nil || shard.Events > best.Events) {
				best, bestUsable = &shard, usable
			}
		}
		if best != nil { // else the shard has no events of the subject, or the sum is not that of all events
			shards, events, recent = append(shards, *best), events+best.Events, recent && bestUsable
		}
	}
	if len(shards) == 0 || events != stored.Events && (!recent || len(shards) < len(s.shards)) {
		return nil, false
	}
	current := NewCurrent(shards...)
	current.Lacks = events != stored.Events
	return current, true
}

// HasAll reports whether the rollup of a subject has all its events, or the subject has no
// rollup. It returns false if the totals or the states must be read.
func (s *Set) HasAll(subject plan.Subject) bool {
	if x := s.only(); x != nil {
		return x.HasAll(subject)
	}
	stored, known := s.totals.Last(subject)
	if !known {
		return false
	}
	current, usable := s.Current(subject, stored)
	return stored.Events < s.leastEvents || usable && !current.Lacks
}

// each calls work for the rollups of every server at the same time. On a cluster, it skips
// servers that cannot be reached: they have no usable rollups meanwhile.
func (s *Set) each(ctx context.Context, work func(context.Context, *Index) error) error {
	if x := s.only(); x != nil {
		return work(ctx, x)
	}
	var all errgroup.Group
	for _, x := range s.Indexes() {
		all.Go(func() error { return x.ifReached(ctx, work) })
	}
	return all.Wait()
}

// ifReached calls work, which sends a request. It returns no error if the rollups of a replica
// cannot be used, and logs when this changes.
func (x *Index) ifReached(ctx context.Context, work func(context.Context, *Index) error) error {
	err := work(ctx, x)
	if !x.isReplica() {
		return err
	}
	away := isUnusable(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if x.away.Swap(away) != away {
		if away {
			if fault := (*source.StoreError)(nil); errors.As(err, &fault) {
				err = fault.Unwrap()
			}
			slog.WarnContext(ctx, "the rollups of a replica cannot be used; reports read other replicas, or count the events", "server", schema.ReplicaOf(x.conn), "err", err)
		} else {
			slog.InfoContext(ctx, "the rollups of a replica can be used again", "server", schema.ReplicaOf(x.conn))
		}
	}
	if away {
		x.unsure.Store(true)
		return nil
	}
	return err
}

// Load reads the states, unless they were read already.
func (s *Set) Load(ctx context.Context) error {
	if x := s.only(); x != nil {
		return x.Load(ctx)
	}
	var all errgroup.Group
	for _, x := range s.Indexes() {
		if !x.away.Load() { // else Poll tries again
			all.Go(func() error {
				_ = x.ifReached(ctx, func(ctx context.Context, x *Index) error { return x.Load(ctx) }) // Poll reports other errors
				return nil
			})
		}
	}
	return all.Wait()
}

// Away returns the servers whose rollups could not be used at the last request.
func (s *Set) Away() (servers []string) {
	for _, x := range s.Indexes() {
		if x.away.Load() {
			servers = append(servers, schema.ReplicaOf(x.conn))
		}
	}
	return servers
}

// Reload reads the states again.
func (s *Set) Reload(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, x *Index) error { return x.Reload(ctx) })
}

// pollTimeout is the time after which a replica is taken for one that cannot be reached.
const pollTimeout = 3 * time.Second

// Poll reads the states, and again if other processes may have changed them.
func (s *Set) Poll(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, x *Index) error {
		if x.isReplica() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, pollTimeout)
			defer cancel()
		}
		return x.Poll(ctx)
	})
}

// Update adds all written events to the rollup of a subject. It does nothing without a
// refresher, or if a rebuild is necessary or runs.
func (s *Set) Update(ctx context.Context, subject plan.Subject) error {
	return s.each(ctx, func(ctx context.Context, x *Index) error { return x.Update(ctx, subject) })
}

// Watch records that a report of the subject is about to be read, so that its rollup is
// refreshed soon after each event for a while.
func (s *Set) Watch(subject plan.Subject) {
	if x := s.only(); x != nil {
		x.watched.note(subject)
	}
}

// Postponed reports whether a few events of the subject have waited for at least the given
// time because nobody watches it. It returns false on a cluster.
func (s *Set) Postponed(subject plan.Subject, atLeast time.Duration) bool {
	x := s.only()
	return x != nil && x.Postponed(subject, atLeast)
}

// LookAgain records that events of any subject may have changed.
func (s *Set) LookAgain() {
	for _, x := range s.Indexes() {
		if x.isReplica() {
			x.totals.Written(nil)
		}
		x.LookAgain()
	}
}

// Wait records that events of the subjects were stored or deleted, so that their rollups must be
// refreshed.
func (s *Set) Wait(subjects []plan.Subject) {
	for _, x := range s.Indexes() {
		if x.isReplica() && len(subjects) > 0 {
			x.totals.Written(subjects)
		}
		x.Wait(subjects)
	}
}

// Inserted records events that this process inserted; see Index.Inserted. It does nothing on a
// cluster.
func (s *Set) Inserted(events []schema.Event, accepted time.Time) {
	if x := s.only(); x != nil {
		x.Inserted(events, accepted)
	}
}

// Subjects reads the states and returns the subjects with a rollup, sorted.
func (s *Set) Subjects(ctx context.Context) ([]plan.Subject, error) {
	if err := s.Reload(ctx); err != nil {
		return nil, err
	}
	var all []plan.Subject
	for _, x := range s.Indexes() {
		all = append(all, x.subjects()...)
	}
	slices.SortFunc(all, func(a, b plan.Subject) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all), nil
}

// Lag returns the longest time that events of a subject have been waiting for a refresh, on the
// replica of each shard where this is shortest.
func (s *Set) Lag() time.Duration {
	var most time.Duration
	for _, replicas := range s.shards {
		least := replicas[0].Lag()
		for _, x := range replicas[1:] {
			least = min(least, x.Lag())
		}
		most = max(most, least)
	}
	return most
}

// Refused returns the number of refreshes that were refused because events were being deleted.
func (s *Set) Refused() uint64 { return s.sum((*Index).Refused) }

// Unusable returns the number of refreshes that were refused because of a RestoredError.
func (s *Set) Unusable() uint64 { return s.sum((*Index).Unusable) }

// Restored returns a RestoredError if the events were restored so that rollups are impossible.
func (s *Set) Restored() *RestoredError {
	for _, x := range s.Indexes() {
		if err := x.Restored(); err != nil {
			return err
		}
	}
	return nil
}

// Activity reads what processes do with the rollups; see Index.Activity. On a cluster, it is the
// last refresh on any replica, and the removals on the replica with most of them.
func (s *Set) Activity(ctx context.Context) (last *Activity, err error) {
	for _, x := range s.Indexes() {
		var a *Activity
		err := x.ifReached(ctx, func(ctx context.Context, x *Index) (err error) {
			a, err = x.Activity(ctx)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case a == nil:
		case last == nil:
			last = a
		default:
			if a.Refreshed.After(last.Refreshed) {
				last.Refreshed, last.RefreshedBy = a.Refreshed, a.RefreshedBy
			}
			if a.Removals > last.Removals {
				last.Removals, last.Began, last.BegunBy = a.Removals, a.Began, a.BegunBy
			}
		}
	}
	return last, nil
}

// Lost returns the number of refreshes without effect because another process did the same.
func (s *Set) Lost() uint64 { return s.sum((*Index).Lost) }

func (s *Set) sum(of func(*Index) uint64) (total uint64) {
	for _, x := range s.Indexes() {
		total += of(x)
	}
	return total
}

// Retire deletes the rollups of the subjects for which of returns true, and reports whether there
// were any; see Index.Retire. A replica that cannot be reached does so when it finds the events
// missing.
func (s *Set) Retire(ctx context.Context, of func(ingest.Subject) bool) (retired bool, err error) {
	some := make(chan bool, len(s.Indexes()))
	err = s.each(ctx, func(ctx context.Context, x *Index) error {
		had, err := x.Retire(ctx, of)
		some <- had
		return err
	})
	close(some)
	for had := range some {
		retired = retired || had
	}
	return retired, err
}

// BeginRemoval records that events are about to be deleted; see Index.BeginRemoval.
func (s *Set) BeginRemoval(ctx context.Context) (end func(context.Context) error, err error) {
	indexes := s.Indexes()
	ends := make([]func(context.Context) error, len(indexes))
	for i, x := range indexes {
		begin := func(ctx context.Context, x *Index) (err error) {
			ends[i], err = x.BeginRemoval(ctx)
			return err
		}
		if err := x.ifReached(ctx, begin); err != nil {
			return nil, fmt.Errorf("begin a removal: %w", err)
		}
	}
	return func(ctx context.Context) error {
		var errs []error
		for i, end := range ends {
			if end != nil {
				errs = append(errs, indexes[i].ifReached(ctx, func(ctx context.Context, _ *Index) error { return end(ctx) }))
			}
		}
		return errors.Join(errs...)
	}, nil
}
