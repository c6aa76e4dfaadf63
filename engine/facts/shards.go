package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cespare/xxhash/v2"
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

// FoldAccepted folds all events that were accepted before the call.
func (s Shards) FoldAccepted(ctx context.Context) error {
	return s.each(func(shard *Refresher) error { return shard.RefreshNoted(ctx) })
}

// FoldProgress returns how far the folds of all events are.
func (s Shards) FoldProgress() (all Progress) {
	for _, shard := range s {
		one := shard.FoldProgress()
		if all.Began.IsZero() || !one.Began.IsZero() && one.Began.Before(all.Began) {
			all.Began = one.Began
		}
		all.Done += one.Done
		all.All += one.All
		all.From += one.From
		all.IsRebuild = all.IsRebuild || one.IsRebuild
	}
	return all
}

// AwaitNoted waits until the events that this process stored are folded. A server waits for a short time only, and
// returns the events that still wait.
func (s Shards) AwaitNoted(ctx context.Context) (all moments.Waiting, err error) {
	for _, shard := range s {
		waits, err := shard.AwaitNoted(ctx)
		if waits.Events > 0 {
			all.Events += waits.Events
			all.Reason = waits.Reason
			all.Fold = waits.Fold
		}
		if err != nil {
			return all, source.StoreFailure(ctx, err)
		}
	}
	return all, nil
}

// CountWaiting returns the number of events that wait and may change the facts of a subject.
func (s Shards) CountWaiting(ctx context.Context, of schema.Subject) (events int64, err error) {
	for _, shard := range s {
		n, err := shard.CountWaiting(ctx, of)
		if err != nil {
			return 0, source.StoreFailure(ctx, err)
		}
		events += n
	}
	return events, nil
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
	states := make([]state, len(s))
	for i, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return Stored{}, source.StoreFailure(ctx, err)
		}
		states[i] = state{Position: at, SubjectCounters: shard.SubjectCounters(of)}
	}
	stored := newStored(states)
	if stored.Events == 0 {
		return Stored{}, nil
	}
	return stored, nil
}

// SubjectCounters returns the counters of a subject.
func (s Shards) SubjectCounters(of schema.Subject) (all SubjectCounters) {
	if len(s) == 1 {
		return s[0].SubjectCounters(of)
	}
	for _, shard := range s {
		all.Merge(new(shard.SubjectCounters(of)))
	}
	return all
}

// StoredSubjects returns the subjects with facts.
func (s Shards) StoredSubjects() map[schema.Subject]bool {
	found := map[schema.Subject]bool{}
	for _, shard := range s {
		for of := range shard.AllCounters() {
			found[of] = true
		}
	}
	return found
}

// EventsByName returns the numbers of events of campaigns and goals of a website, and the visitors of variations.
func (s Shards) EventsByName(website int64) map[schema.NamedID]int64 {
	found := map[schema.NamedID]int64{}
	for _, shard := range s {
		for of, counters := range shard.AllCounters() {
			if of.WebsiteID != website {
				continue
			}
			for goal, n := range counters.Goals {
				found[schema.NamedID{WebsiteID: website, Kind: schema.NameGoal, ID: goal}] += n.Events
			}
			if of.Kind != schema.SubjectCampaign {
				continue
			}
			campaign := schema.NamedID{WebsiteID: website, Kind: schema.NameCampaign, ID: of.ID}
			found[campaign] += int64(counters.AllEvents()) //nolint:gosec // a count
			for variation, n := range counters.FirstExposed {
				found[schema.NamedID{
					WebsiteID: website, Kind: schema.NameVariation, CampaignID: of.ID, ID: variation,
				}] += n
			}
		}
	}
	return found
}

// Moment is what a report depends on beside the facts of its subject.
type Moment struct {
	Day      int64     // the later of today and AcceptedDay, in days since 1970
	Accepted time.Time // acceptance time of the last folded event of any subject
}

// AcceptedDay returns the day of the last acceptance, in days since 1970.
func (m Moment) AcceptedDay() int64 { return fold.DayOf(m.Accepted.UnixMilli()) }

// Midnight returns the start of the day (UTC).
func (m Moment) Midnight() time.Time {
	return time.Unix(0, 0).UTC().Add(time.Duration(m.Day) * 24 * time.Hour)
}

// ReadMoment returns the moment. It returns false if the store does not answer.
func (s Shards) ReadMoment(ctx context.Context) (m Moment, known bool) {
	m.Accepted = time.Unix(0, 0).UTC()
	for _, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return Moment{}, false
		}
		m.Accepted = schema.LaterTime(m.Accepted, at.FoldedThrough())
	}
	m.Day = max(fold.DayOf(time.Now().UnixMilli()), m.AcceptedDay())
	return m, true
}

// LastAttempt returns a number that changes with each refresh that this process knows.
func (s Shards) LastAttempt() (attempt uint64) {
	for _, shard := range s {
		attempt ^= shard.ShownPosition().Attempt
	}
	return attempt
}

// VersionAt returns the version of a subject: a number that changes with its facts, with the day, and with the day of
// the last acceptance, from which paces are estimated.
func (s Shards) VersionAt(m Moment, of schema.Subject) uint64 {
	const bitsOfDay = 32
	days := uint64(m.Day)<<bitsOfDay | uint64(m.AcceptedDay()) //nolint:gosec // not negative
	return days ^ s.SubjectCounters(of).Version ^ s.ratesVersion()
}

// ratesVersion returns a number that changes with the rates: reports say if they are old. It is 0 without rates.
func (s Shards) ratesVersion() uint64 {
	if len(s) == 0 {
		return 0
	}
	now := s[0].money.knownVersion()
	if now.Count == 0 {
		return 0
	}
	return xxhash.Sum64String(fmt.Sprint(now))
}

// SettledVersionOn returns the version of a subject's settled facts on a day: a number that changes with the day, and
// if the sums of the subject up to the end of an earlier day (UTC) may have changed. It differs between processes.
func (s Shards) SettledVersionOn(day int64, of schema.Subject) uint64 {
	version := uint64(day) //nolint:gosec // not negative
	for _, shard := range s {
		version ^= shard.published.settledVersion(of)
	}
	return version
}

// RefreshLag returns the longest time since the last refresh or scrub of a shard that succeeded; 0: there was none yet.
func (s Shards) RefreshLag() (longest time.Duration) {
	for _, shard := range s {
		longest = max(longest, shard.published.lag())
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

// RefoldVisitors computes the facts of visitors again.
func (s Shards) RefoldVisitors(ctx context.Context, visitors []schema.Visitor) error {
	return s.each(func(shard *Refresher) error { return shard.RefoldVisitors(ctx, visitors) })
}

// DropSubjects deletes the facts of subjects. It drops the experiments of a widget with the widget, even if their
// events were deleted before.
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

// SubjectCounters are totals of a subject that need no rows. They include stored events that no report counts.
type SubjectCounters struct {
	Visitors int64                   // that a report counts
	Events   [moments.Goal + 1]int64 // by kind
	Goals    map[int64]GoalCounters
	// visitors by the variation of their first view, also those that no report counts because they saw several
	FirstExposed map[int64]int64
	fold.Extent
	Version uint64 // changes whenever a report may change; the same on all servers

	all fold.Cells // of which these are the totals
}

// GoalCounters are the events of a goal, and the sums of their amounts.
type GoalCounters struct {
	Events, Negative  int64       // Negative: those with a value below 0
	Unknown           int64       // those whose amounts have no rate, and are in no sum
	Value, ExtraValue fold.Int128 // in 1/schema.MoneyScale
}

// Plus returns the counters of two sets of events.
func (g GoalCounters) Plus(o GoalCounters) GoalCounters {
	value, extra := g.Value.Plus(o.Value), g.ExtraValue.Plus(o.ExtraValue)
	return GoalCounters{g.Events + o.Events, g.Negative + o.Negative, g.Unknown + o.Unknown, value, extra}
}

// countersOf returns the counters of a subject with these cells of the grain fold.OfAll.
func countersOf(cells fold.Cells) SubjectCounters {
	t := SubjectCounters{Goals: map[int64]GoalCounters{}, FirstExposed: map[int64]int64{}, all: cells}
	for key, cell := range cells {
		t.Version ^= xxhash.Sum64String(fmt.Sprint(key.Goal, " ", key.Variation, cell.CellSums, cell.Extent))
		t.ExtendBy(&cell.Extent)
		if key.Goal != 0 {
			t.Goals[key.Goal] = t.Goals[key.Goal].Plus(GoalCounters{
				cell.CountAt(fold.Goals), cell.CountAt(fold.NegativeGoals), cell.CountAt(fold.UnknownValues),
				cell.AmountSum(0), cell.AmountSum(2),
			})
			continue
		}
		if fold.IsCounted(key.Variation) {
			t.Visitors += cell.CountAt(fold.Visitors)
			id, _ := strconv.ParseInt(strings.TrimSuffix(key.Variation, fold.MultiExposed), 10, 64) // by VariationOf
			t.FirstExposed[id] += cell.CountAt(fold.Visitors)
		}
		for kind := moments.View; kind < moments.Goal; kind++ {
			t.Events[kind] += cell.CountAt(fold.Views + int(kind-moments.View))
		}
		t.Events[moments.Goal] += cell.CountAt(fold.Goals)
	}
	return t
}

// Merge adds the counters of other visitors, on another shard.
func (t *SubjectCounters) Merge(o *SubjectCounters) {
	if t.Goals == nil {
		t.Goals, t.FirstExposed = map[int64]GoalCounters{}, map[int64]int64{}
	}
	t.Visitors += o.Visitors
	for variation, n := range o.FirstExposed {
		t.FirstExposed[variation] += n
	}
	for kind, n := range o.Events {
		t.Events[kind] += n
	}
	for goal, of := range o.Goals {
		t.Goals[goal] = t.Goals[goal].Plus(of)
	}
	t.ExtendBy(&o.Extent)
	t.Version ^= o.Version
}

// AllEvents returns the number of events.
func (t *SubjectCounters) AllEvents() (n uint64) {
	for _, of := range t.Events {
		n += uint64(of) //nolint:gosec // not negative
	}
	return n
}

// readCountersOn returns the counters of a subject on a server at the moment.
func (r *Refresher) readCountersOn(ctx context.Context, on *server, subject schema.Subject) (SubjectCounters, error) {
	if r.alone {
		return r.SubjectCounters(subject), nil
	}
	sections := []uint64{on.sectionOf(subject, fold.OfAll)}
	cells, err := on.readCells(ctx, inSections, clickhouse.Named("sections", sections))
	return countersOf(cells), err
}

// SubjectCounters returns the counters of a subject at the last refresh.
func (r *Refresher) SubjectCounters(subject schema.Subject) SubjectCounters {
	return r.published.countersOf(subject)
}

// AllCounters returns the counters of all subjects at the last refresh.
func (r *Refresher) AllCounters() map[schema.Subject]SubjectCounters {
	return r.published.allCounters()
}

// StoredPosition returns the position of the stored facts. It waits while a refresh stores facts. If the facts were
// deleted, it returns the StoreError Rebuilt until all events are folded again: no report may count incomplete facts.
func (r *Refresher) StoredPosition(ctx context.Context) (Position, error) {
	return r.positionOn(ctx, r.currentServer(), false)
}

// positionOn returns the position of a server; held: the caller holds off inserts.
func (r *Refresher) positionOn(ctx context.Context, server *server, held bool) (Position, error) {
	if !r.alone {
		at, err := server.readPosition(ctx)
		if err == nil && wereDeleted(at, r.ShownPosition()) {
			err = &source.StoreError{Fault: source.Rebuilt}
		}
		return at, err
	}
	if !held {
		r.inserting.RLock()
		defer r.inserting.RUnlock()
	}
	shown, rebuilt := r.published.position()
	if rebuilt {
		return Position{}, &source.StoreError{Fault: source.Rebuilt}
	}
	return shown, nil
}

// shownServer returns the current server with the facts from which reports are computed.
func (r *Refresher) shownServer(ctx context.Context) (*server, error) {
	at, err := r.StoredPosition(ctx)
	if err != nil {
		return nil, err
	}
	return r.currentServer().of(at.Generation), nil
}

// ShownPosition returns the position that this process stored or read last.
func (r *Refresher) ShownPosition() Position {
	shown, _ := r.published.position()
	return shown
}

// LostVisitors returns the number of visitors who were found to have lost events.
func (r *Refresher) LostVisitors() int { return r.published.lostVisitors() }

// publishState makes the position and the counters of changed subjects visible to readers. changed has the first day
// whose sums may have changed. all means that no other subject has facts. While a generation is built, and while facts
// that were deleted are folded again, what is shown stays.
func (r *Refresher) publishState(changed map[schema.Subject]int64, all bool) {
	switch {
	case r.turn.position.Rebuilding:
		return
	case r.turn.deleted:
		r.published.setRebuilt()
		return
	}
	if _, wasRebuilt := r.published.position(); wasRebuilt {
		changed = map[schema.Subject]int64{}
		all = true
		for subject := range r.turn.cells.all {
			changed[subject] = anyDay
		}
	}
	counters := map[schema.Subject]SubjectCounters{}
	for subject := range changed {
		own := r.turn.cells.allOf(subject)
		if len(own) == 0 { // a subject without facts takes no memory
			delete(r.turn.cells.all, subject)
			continue
		}
		counters[subject] = countersOf(maps.Clone(own)) // refreshes change the cells
	}
	r.published.publish(r.turn.position, changed, counters, all)
}

// Stored are the totals of the stored events of a subject.
type Stored struct {
	Events           uint64
	Ingested, Newest time.Time // last acceptance time (1970: no fold is complete), and latest event time
	First            time.Time // of the first view on time, or else of the first view; zero: none
	// Complete is the time up to which the events of the subject are complete: that of its newest event, or the start
	// of the day (UTC) of the last acceptance if that is later and not all views come from files. So it changes with
	// the version of the subject only, which has the day.
	Complete time.Time
}

// SettledAfter returns the end of the last day (UTC) whose orders have settled, if they take so long.
func (s *Stored) SettledAfter(settle time.Duration) time.Time {
	return s.Complete.Add(-settle).Truncate(24 * time.Hour)
}

// newStored returns the totals of a subject with these states.
func newStored(states []state) (s Stored) {
	s.Ingested = time.Unix(0, 0).UTC()
	onTime := false // whether a view was accepted on time
	for i := range states {
		on := &states[i]
		s.Events += on.AllEvents()
		onTime = onTime || on.FirstOnTime != 0
		if first := fold.TimeOf(cmp.Or(on.FirstOnTime, on.FirstView)); s.First.IsZero() ||
			!first.IsZero() && first.Before(s.First) {
			s.First = first
		}
		s.Ingested = schema.LaterTime(s.Ingested, on.FoldedThrough())
		s.Newest = schema.LaterTime(s.Newest, time.UnixMilli(on.Newest).UTC())
	}
	s.Complete = s.Newest
	if onTime {
		s.Complete = schema.LaterTime(s.Newest, s.Ingested.Truncate(24*time.Hour))
		if s.Newest.After(s.Ingested) { // by a wrong clock
			s.Complete = s.Ingested
		}
	}
	return s
}
