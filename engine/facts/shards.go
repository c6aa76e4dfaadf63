package facts

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// Shards are the facts of a store: those of its only server, or of the shards of a cluster.
type Shards []*Refresher

// OpenFacts reads the state of the facts. It must be called before the first report.
func (s Shards) OpenFacts(ctx context.Context) error {
	return s.each(func(shard *Refresher) error {
		_, err := shard.OpenFacts(ctx)
		return err
	})
}

// each calls do for each shard until there is an error.
func (s Shards) each(do func(*Refresher) error) error {
	for _, shard := range s {
		if err := do(shard); err != nil {
			return err
		}
	}
	return nil
}

// FollowEvents keeps the facts up to date with the events until the context ends, and scrubs them.
func (s Shards) FollowEvents(ctx context.Context) {
	var all sync.WaitGroup
	for _, shard := range s {
		all.Go(func() { shard.FollowEvents(ctx) })
	}
	all.Wait()
}

// IsFollowing reports whether FollowEvents keeps the facts up to date.
func (s Shards) IsFollowing() bool { return len(s) > 0 && s[0].IsFollowing() }

// RefreshFacts folds all stored events.
func (s Shards) RefreshFacts(ctx context.Context) error {
	return s.each(func(shard *Refresher) error {
		_, err := shard.RefreshFacts(ctx)
		return source.StoreFailure(ctx, err)
	})
}

// FoldAccepted folds all events that were accepted before the call. It calls progress with the numbers of visitors that
// the running refresh has folded and will fold.
func (s Shards) FoldAccepted(ctx context.Context, progress func(done, touched int)) error {
	return s.each(func(shard *Refresher) error { return shard.FoldAccepted(ctx, progress) })
}

// AwaitNoted waits until the events that this process stored are folded. A server waits for a short time only, and
// returns the events that still wait.
func (s Shards) AwaitNoted(ctx context.Context) (all moments.Waiting, err error) {
	err = s.each(func(shard *Refresher) error {
		waits, err := shard.AwaitNoted(ctx)
		if waits.Events > 0 {
			all.Events += waits.Events
			all.Reason = waits.Reason
		}
		return source.StoreFailure(ctx, err)
	})
	return all, err
}

// LastUnfoldedTime returns the acceptance time of the last event that this process stored and has not folded yet,
// in milliseconds since 1970; 0: all are folded.
func (s Shards) LastUnfoldedTime() (last int64) {
	for _, shard := range s {
		last = max(last, shard.LastUnfoldedTime())
	}
	return last
}

// FoldedThrough returns the latest acceptance time of the events that the facts include, as this process last read it.
func (s Shards) FoldedThrough() (last time.Time) {
	for _, shard := range s {
		if at := shard.ShownPosition().FoldedThrough(); at.After(last) {
			last = at
		}
	}
	return last
}

// StoredEvents returns what is known of the stored events of a subject.
func (s Shards) StoredEvents(ctx context.Context, of schema.Subject) (Stored, error) {
	var stored Stored
	for _, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return Stored{}, source.StoreFailure(ctx, err)
		}
		counters := shard.SubjectCounters(of)
		stored = counters.addTo(stored, at)
	}
	return stored.OrNone(), nil
}

// SubjectCounters returns the counters of a subject.
func (s Shards) SubjectCounters(of schema.Subject) (all SubjectCounters) {
	for _, shard := range s {
		on := shard.SubjectCounters(of)
		all.Merge(&on)
	}
	return all
}

// StoredSubjects returns the subjects with facts.
func (s Shards) StoredSubjects() map[schema.Subject]bool {
	found := map[schema.Subject]bool{}
	for _, shard := range s {
		shard.EachSubject(func(of schema.Subject, _ SubjectCounters) { found[of] = true })
	}
	return found
}

// LastDay returns the later of today and the day of the last acceptance, in days since 1970. It returns false if the
// store does not answer.
func (s Shards) LastDay(ctx context.Context) (day int64, known bool) {
	day = fold.DayOf(time.Now().UnixMilli())
	for _, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return 0, false
		}
		day = max(day, fold.DayOf(at.Through))
	}
	return day, true
}

// VersionOn returns the version of a subject on a day: a number that changes with its facts and with the day.
func (s Shards) VersionOn(day int64, of schema.Subject) uint64 {
	version := uint64(day) //nolint:gosec // not negative
	for _, shard := range s {
		version ^= shard.SubjectCounters(of).Version
	}
	return version
}

// RefreshLag returns the longest time since the last refresh that succeeded.
func (s Shards) RefreshLag() (longest time.Duration) {
	for _, shard := range s {
		longest = max(longest, shard.RefreshLag())
	}
	return longest
}

// LostVisitors returns the number of visitors who were found to have lost events.
func (s Shards) LostVisitors() (n int) {
	for _, shard := range s {
		n += shard.LostVisitors()
	}
	return n
}

// HoldScrubs keeps scrubs from reading facts until release is called.
func (s Shards) HoldScrubs() (release func()) {
	var held []func()
	for _, shard := range s {
		held = append(held, shard.HoldScrubs())
	}
	return func() {
		for _, release := range held {
			release()
		}
	}
}

// EraseVisitors deletes the facts of visitors.
func (s Shards) EraseVisitors(ctx context.Context, visitors []schema.Visitor) error {
	return s.each(func(shard *Refresher) error { return shard.EraseVisitors(ctx, visitors) })
}

// DropSubjects deletes the facts of subjects. It drops the experiments of a widget with the widget, even if their events
// were deleted before.
func (s Shards) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	dropped := map[schema.Subject]bool{}
	for _, of := range subjects {
		dropped[of] = true
	}
	for of := range s.StoredSubjects() {
		if dropped[of.WithoutExperiment()] {
			dropped[of] = true
		}
	}
	of := slices.Collect(maps.Keys(dropped))
	return s.each(func(shard *Refresher) error { return shard.DropSubjects(ctx, of) })
}
