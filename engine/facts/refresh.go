package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/fold"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Refresher brings the facts of a store up to date with its events. A process has one for a store on one server, or one
// per shard of a cluster.
type Refresher struct {
	// LeastVisitorsByDay is the number of visitors from which a subject has cells by day. It must be set before the
	// first refresh.
	LeastVisitorsByDay int64
	// LongestWait is the maximum time that a report of a server waits until events are folded; a second by default.
	LongestWait time.Duration
	// VisitorsInOrder is the number of visitors that are folded at once if all visitors are. It must be set before the
	// first refresh.
	VisitorsInOrder int
	// MaxVisitorEvents is the number of distinct events of a website above which a visitor is automated. It must be set
	// before the first refresh.
	MaxVisitorEvents int

	money    *money
	servers  []*server // the only one, or the replicas of a shard, which have the same facts
	alone    bool      // no other process writes to the store
	current  atomic.Int32
	building uint32 // generation that it builds; 0: it refreshes the generation from which reports are computed

	busy chan struct{} // holds an element during a refresh; guards turn
	turn turn

	rebuilds chan struct{} // holds an element while a generation is built

	wake      chan struct{} // makes FollowEvents refresh at once
	following atomic.Bool   // FollowEvents runs
	backlog   *backlog
	published *published

	kept *cache.Cache // what reports read again and again: visitors of the recent days, and values of attributes

	deleting  sync.RWMutex // held while events are deleted before their facts
	inserting sync.RWMutex // held while facts are stored: the position of the store is unknown; reports may hold it off
}

// turn is the state of the stored facts that refreshes fold into. One refresh at a time uses it: the one that holds
// Refresher.busy.
type turn struct {
	on         *server   // the server that the refresh uses
	known      bool      // whether the following fields match the store; false after an error, to read them again
	readAt     time.Time // when they last matched
	opened     bool      // no deletion that began before this process is still running
	deleted    bool      // the facts were deleted, and not all events are folded again
	lookedBack time.Time // last refresh with longOverlap
	position   Position
	cells      cells
	automated  map[schema.Visitor]bool // by the limit in force: later events do not change their facts
	unchanged  map[foldedEvents]uint64 // fingerprints of the events
}

func newRefresher(of tables, replicas ...driver.Conn) *Refresher {
	r := &Refresher{
		LeastVisitorsByDay: leastVisitorsByDay, LongestWait: time.Second, MaxVisitorEvents: fold.MaxVisitorEvents,
		VisitorsInOrder: visitorsInOrder,
		busy:            make(chan struct{}, 1), wake: make(chan struct{}, 1), rebuilds: make(chan struct{}, 1),
		turn:    turn{automated: map[schema.Visitor]bool{}, unchanged: map[foldedEvents]uint64{}},
		backlog: newBacklog(), published: newPublished(), money: &money{},
		// 300 bytes for the visitors of the recent days of a subject, and at most 20,000 for the values of an attribute
		kept: cache.New(4 << 20),
	}
	for _, conn := range replicas {
		r.servers = append(r.servers, &server{Conn: conn, tables: of, money: r.money})
	}
	return r
}

// NewRefresher returns the refresher of a store on one server. alone means that no other process writes to the store.
func NewRefresher(conn driver.Conn, alone bool) *Refresher {
	r := newRefresher(ofServer, conn)
	r.alone = alone
	if alone {
		r.backlog.note(1) // events that an earlier process stored may wait
	}
	return r
}

// NewShardRefresher returns the refresher of a shard of a cluster, with connections to its replicas.
func NewShardRefresher(replicas []driver.Conn) *Refresher {
	return newRefresher(ofShard, replicas...)
}

// currentServer returns the server that answers at the moment, with the generation of the facts that this process
// stored or read last.
func (r *Refresher) currentServer() *server {
	generation := r.building
	if generation == 0 {
		generation = r.ShownPosition().Generation
	}
	return r.servers[int(r.current.Load())%len(r.servers)].of(generation)
}

const (
	// visitorsAtOnce is the number of visitors that are folded at once. Their ids are parameters of a statement.
	visitorsAtOnce = 16_384
	// overlap is the delay after which another process's event may become visible, and the next refresh still finds it.
	// Once per longOverlapInterval, a refresh also finds events delayed up to longOverlap. The scrub finds the rest.
	overlap             = 10 * time.Second
	longOverlap         = 15 * time.Minute
	longOverlapInterval = 5 * time.Minute
)

// foldedEvents are the events that were accepted after a time, in milliseconds since 1970, and that facts with a
// position include.
type foldedEvents struct {
	after int64
	at    Position
}

// RefreshFacts folds the visitors with events accepted since the last refresh, and inserts the changes. It returns the
// position of the facts. On a server, where another process may store events late, it looks at the last events again,
// or only at their fingerprint if that has not changed: after an import, these can be millions.
func (r *Refresher) RefreshFacts(ctx context.Context) (at Position, err error) {
	return r.changeFacts(ctx, func(ctx context.Context) error {
		if r.turn.position.Through == 0 {
			return r.foldFirst(ctx)
		}
		if r.alone {
			return r.foldEventsAfter(ctx, r.turn.position.Through)
		}
		return r.foldLatest(ctx)
	})
}

// errOutdated means that the facts were folded by another version of the fold than that of this program.
var errOutdated = errors.New("the facts were folded by an earlier release")

// errNewer means that a server of a newer release has folded the facts.
var errNewer = errors.New("the facts were folded by a newer release: update this program")

// changeFacts calls work while no other refresh of this process runs, and after the fold that has begun is complete and
// amounts are converted by the declared currencies and rates. If the facts were folded by an earlier release, it
// rebuilds them before.
func (r *Refresher) changeFacts(ctx context.Context, work func(context.Context) error) (at Position, err error) {
	for {
		at, err = r.runExclusively(ctx, func(ctx context.Context) error {
			switch format := r.turn.position.Format; {
			case format > fold.Version:
				return errNewer
			case format < fold.Version:
				return errOutdated
			}
			if err := r.completeFold(ctx); err != nil {
				return err
			}
			if err := r.foldMoney(ctx); err != nil {
				return err
			}
			return work(ctx)
		})
		if !errors.Is(err, errOutdated) {
			return at, err
		}
		if err := r.rebuildOutdated(ctx); err != nil {
			return at, err
		}
	}
}

// completeFold folds the other visitors of a fold that another process has begun, or this one before an error.
func (r *Refresher) completeFold(ctx context.Context) error {
	at := r.turn.position
	switch {
	case !at.isFolding():
		return nil
	case at.Through == 0:
		return r.foldFirst(ctx)
	}
	touched, _, err := r.readTouched(ctx, at.Through-overlap.Milliseconds())
	if err != nil {
		return err
	}
	touched = slices.DeleteFunc(touched, func(v schema.Visitor) bool { return v.Compare(at.After) <= 0 })
	return r.foldVisitors(ctx, touched, at.Until)
}

// foldLatest folds the visitors with events that another process may have stored since the last refresh, also such as
// were accepted before it and became visible late.
func (r *Refresher) foldLatest(ctx context.Context) error {
	began := time.Now()
	last := foldedEvents{at: r.turn.position}
	last.after = last.at.Through - overlap.Milliseconds()
	looksBack := began.Sub(r.turn.lookedBack) >= longOverlapInterval
	if looksBack {
		last.after = last.at.Through - longOverlap.Milliseconds()
	}
	fingerprint, err := r.readFingerprint(ctx, last.after, math.MaxInt64)
	if err != nil {
		return err
	}
	if folded, known := r.turn.unchanged[last]; !known || folded != fingerprint {
		if err := r.foldEventsAfter(ctx, last.after); err != nil {
			return err
		}
		maps.DeleteFunc(r.turn.unchanged, func(of foldedEvents, _ uint64) bool { return of.at != r.turn.position })
		if r.turn.position == last.at { // events that were stored since the fingerprint change it
			r.turn.unchanged[last] = fingerprint
		}
	}
	if looksBack {
		r.turn.lookedBack = began
	}
	return nil
}

// readFingerprint returns a number that changes when events are stored that were accepted after a time and up to
// another one, in milliseconds since 1970.
func (r *Refresher) readFingerprint(ctx context.Context, after, through int64) (fingerprint uint64, err error) {
	row := r.turn.on.QueryRow(ctx, r.turn.on.render("fingerprint.sql", ""), clickhouse.Named("after", max(after, 0)),
		clickhouse.Named("through", through))
	if err := row.Scan(&fingerprint); err != nil {
		return 0, fmt.Errorf("compute the fingerprint of the last events: %w", err)
	}
	return fingerprint, nil
}

// foldEventsAfter folds the visitors with events that were accepted after a time, in milliseconds since 1970.
func (r *Refresher) foldEventsAfter(ctx context.Context, after int64) error {
	touched, last, err := r.readTouched(ctx, after)
	if err != nil {
		return err
	}
	return r.foldVisitors(ctx, touched, max(r.turn.position.Through, last))
}

// readTouched returns the visitors with events that were accepted after a time, and those of customers with such
// orders, in order, and the last acceptance time of these events. Times are in milliseconds since 1970.
func (r *Refresher) readTouched(ctx context.Context, after int64) (touched []schema.Visitor, last int64, err error) {
	err = schema.EachRow(ctx, r.turn.on, r.turn.on.render("touched.sql", ""), func(row driver.Rows) error {
		var v schema.Visitor
		var accepted int64
		var isVisitor bool
		err := row.Scan(&v.WebsiteID, &v.ID, &accepted, &isVisitor)
		last = max(last, accepted)
		if isVisitor && !r.turn.automated[v] {
			touched = append(touched, v)
		}
		return err
	}, append(limitParams(), clickhouse.Named("after", max(after, 0)))...)
	if err != nil {
		return nil, 0, fmt.Errorf("read the visitors with new events: %w", err)
	}
	return touched, last, nil
}

func scanVisitor(row driver.Rows, v *schema.Visitor) error { return row.Scan(&v.WebsiteID, &v.ID) }

// errOvertaken means that another process has inserted the refresh with the same number.
var errOvertaken = errors.New("another process was faster; " +
	"if this lasts for minutes, a replica was lost with the facts of a refresh: lifthouse facts --rebuild")

// mostOvertaken is the number of times in a row that a refresh may be overtaken.
const mostOvertaken = 20

// runExclusively calls work while no other refresh of this process runs. It calls work again if another process was
// faster. It returns the resulting position.
func (r *Refresher) runExclusively(ctx context.Context, work func(context.Context) error) (Position, error) {
	if err := r.lockRefresh(ctx); err != nil {
		return Position{}, err
	}
	defer func() { <-r.busy }()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(reading))
	for try := 1; ; try++ {
		err := r.loadBooks(ctx)
		if err == nil {
			err = r.loadState(ctx)
		}
		if err == nil && r.turn.position.Refresh > 0 && r.turn.on.currentBooks().rates != r.turn.position.Rates {
			r.money.noteRates() // another process may have stored rates
			err = r.loadBooks(ctx)
		}
		if err == nil {
			err = work(ctx)
		}
		if err == nil {
			r.published.setFresh()
			return r.turn.position, nil
		}
		r.turn.known = false
		if try == mostOvertaken || !r.canRetry(err) {
			return Position{}, fmt.Errorf("refresh the facts: %w", err)
		}
	}
}

// loadBooks reads the rates, and sets the server of the work, during which the books stay the same.
func (r *Refresher) loadBooks(ctx context.Context) error {
	err := r.money.loadRates(ctx, r.currentServer(), r.alone)
	r.turn.on = r.currentServer().withBooks().of(r.turn.position.Generation)
	return err
}

// lockRefresh waits until no other refresh of this process runs, or the context ends.
func (r *Refresher) lockRefresh(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// canRetry reports whether a refresh or a report may succeed at once after an error: another process was faster, or
// another replica may have facts that this one lacks.
func (r *Refresher) canRetry(err error) bool {
	if errors.Is(err, ErrIncomplete) || schema.IsUnreachable(err) {
		r.current.Add(1)
		return errors.Is(err, ErrIncomplete) || len(r.servers) > 1
	}
	return errors.Is(err, errOvertaken) || errors.Is(err, errTooLate)
}

// OpenFacts reads the state of the stored facts that refreshes need, and returns their position.
func (r *Refresher) OpenFacts(ctx context.Context) (Position, error) {
	return r.runExclusively(ctx, func(context.Context) error { return nil })
}

// loadState reads the state of the stored facts, unless it is known and no other process has changed the facts.
func (r *Refresher) loadState(ctx context.Context) error {
	r.turn.readAt = time.Now()
	if r.turn.known && r.alone {
		return nil
	}
	isFirst := !r.turn.opened
	if isFirst {
		if err := r.awaitDeletions(ctx); err != nil {
			return fmt.Errorf("wait for deletions of facts: %w", err)
		}
		r.turn.opened = true
	}
	stored, err := r.readOwnPosition(ctx)
	if err != nil {
		return err
	}
	if r.turn.known && stored == r.turn.position {
		return nil
	}
	r.turn.known = false
	r.turn.position = stored
	r.turn.on.generation = stored.Generation
	r.turn.deleted = wereDeleted(stored, r.ShownPosition())
	if isFirst && stored.Refresh == 0 && r.building == 0 {
		if err := r.warnOfFirstFold(ctx); err != nil {
			return err
		}
	}
	return r.readState(ctx)
}

// readOwnPosition reads the position of the generation that the refresher builds or refreshes.
func (r *Refresher) readOwnPosition(ctx context.Context) (Position, error) {
	if r.building == 0 {
		return r.turn.on.readPosition(ctx)
	}
	at, err := r.turn.on.of(r.building).readPositionOf(ctx)
	if at.Refresh == 0 {
		at.Rebuilding = true
	}
	return at, err
}

// wereDeleted reports whether facts were deleted since a position was shown, and not all events are folded again.
func wereDeleted(stored, shown Position) bool {
	return stored.Generation == shown.Generation && stored.Through == 0 && shown.Through > 0
}

// awaitDeletions waits for deletions of facts that an interrupted process began.
func (r *Refresher) awaitDeletions(ctx context.Context) error {
	const running = "database = currentDatabase() AND table = {table:String} AND NOT is_done"
	count := "SELECT count() FROM system.mutations WHERE " + running
	var unfinished uint64
	err := r.turn.on.QueryRow(ctx, count, clickhouse.Named("table", r.turn.on.Facts)).Scan(&unfinished)
	if err != nil || unfinished == 0 {
		return err
	}
	// Mutations run in order, so this one waits for the others.
	return r.turn.on.Exec(ctx, "ALTER TABLE "+r.turn.on.Facts+" DELETE WHERE false SETTINGS mutations_sync = 1")
}

// warnOfFirstFold warns that all events are folded, if there are any.
func (r *Refresher) warnOfFirstFold(ctx context.Context) error {
	var events uint64
	if err := r.turn.on.QueryRow(ctx, "SELECT count() FROM "+r.turn.on.Sent).Scan(&events); err != nil {
		return fmt.Errorf("count the events: %w", err)
	}
	if events > 0 {
		slog.WarnContext(ctx, "the store has no facts: all events are folded", "events", events)
	}
	return nil
}

// readState reads the stored cells, and the automated visitors by the limit in force.
func (r *Refresher) readState(ctx context.Context) error {
	r.turn.cells = cells{
		leastByDay: r.LeastVisitorsByDay, byDay: map[schema.Subject]bool{}, all: map[schema.Subject]fold.Cells{},
		days: cache.New(32 << 20), // about 2,000 days: visitors who return have few first days
	}
	r.turn.automated = map[schema.Visitor]bool{}
	err := schema.EachRow(ctx, r.turn.on, r.turn.on.render("subjects_by_day.sql", ""), func(row driver.Rows) error {
		var of schema.Subject
		err := row.Scan(&of.WebsiteID, (*scannedKind)(&of.Kind), &of.ID, &of.ExperimentID)
		r.turn.cells.byDay[of] = true
		return err
	}, r.turn.on.sectionsOfGrain(fold.OfDay)...)
	if err != nil {
		return fmt.Errorf("read the subjects with cells by day: %w", err)
	}
	all, err := r.turn.on.readCells(ctx, inGrain, r.turn.on.sectionsOfGrain(fold.OfAll)...)
	if err != nil {
		return err
	}
	sections := map[uint64]bool{} // with automated visitors
	for key, cell := range all {
		r.turn.cells.allOf(key.Subject)[key] = cell
		if key.Goal == 0 && fold.IsAutomated(key.Variation) {
			sections[r.turn.on.sectionOf(key.Subject, fold.OfVisitor)] = true
		}
	}
	if len(sections) > 0 {
		automated, err := schema.QueryRows(ctx, r.turn.on, r.turn.on.render("automated.sql", ""), scanVisitor,
			clickhouse.Named("sections", slices.Collect(maps.Keys(sections))),
			clickhouse.Named("most", r.MaxVisitorEvents))
		if err != nil {
			return fmt.Errorf("read the automated visitors: %w", err)
		}
		r.turn.automated = setOf(automated)
	}
	changed := map[schema.Subject]int64{}
	for subject := range r.turn.cells.all {
		changed[subject] = anyDay
	}
	r.publishState(changed, true)
	r.turn.known = true
	return nil
}

// errTooLate means that the process was paused during a refresh.
var errTooLate = errors.New("the refresh took too long")

// foldVisitors folds sorted visitors in batches. Only the last batch moves the position to through.
func (r *Refresher) foldVisitors(ctx context.Context, touched []schema.Visitor, through int64) error {
	for from := 0; ; from += visitorsAtOnce {
		if from > 0 {
			if err := r.confirmPosition(ctx); err != nil {
				return err
			}
		}
		to := min(from+visitorsAtOnce, len(touched))
		var had, want []fold.FactRow
		if from < to {
			var err error
			had, want, err = r.foldBatch(ctx, touched[from:to], through)
			if err != nil {
				return err
			}
		}
		isLast := to == len(touched)
		hasNewer := through > r.turn.position.Through
		next := r.turn.position.foldedThrough(through)
		if hasNewer && !isLast { // else there is nothing to go on with
			next = r.turn.position.foldedUpTo(touched[to-1], through)
		}
		if err := r.replaceRows(ctx, had, want, next); err != nil || isLast {
			return err
		}
	}
}

// foldBatch folds the events of some visitors up to a time. It returns the rows that are stored, which it computes from
// the events up to the last position, and those that replace them. Unless the visitors have no facts yet, it checks
// each one's number of events and digest, and reads the rows of those that fail the check.
func (r *Refresher) foldBatch(
	ctx context.Context, visitors []schema.Visitor, through int64,
) (had, want []fold.FactRow, err error) {
	events, visitors, err := r.readReadable(ctx, visitors, through)
	if err != nil {
		return nil, nil, err
	}
	want = make([]fold.FactRow, 0, len(events)) // about a row for each event
	var before []fold.Event                     // of a visitor, up to the last position
	for own := range splitVisitors(events) {
		before = before[:0]
		for i := range own {
			if own[i].Accepted <= r.turn.position.Through {
				before = append(before, own[i])
			}
		}
		had = fold.AppendVisitorRows(before, r.MaxVisitorEvents, had)
		want = fold.AppendVisitorRows(own, r.MaxVisitorEvents, want)
	}
	if r.turn.position.Through == 0 { // the visitors have no facts yet
		return had, want, nil
	}
	subjects := map[schema.Subject]bool{}
	for i := range want {
		subjects[want[i].Subject] = true
	}
	if r.LostVisitors() > 0 { // a goal without exposures may count for a subject without stored events
		for subject := range r.turn.cells.all {
			subjects[subject] = true
		}
	}
	had, want, _, err = r.checkRows(ctx, visitors, maps.Keys(subjects), events, had, want)
	return had, want, err
}

// confirmPosition returns errOvertaken if another process has changed the facts since they were read.
func (r *Refresher) confirmPosition(ctx context.Context) error {
	if r.alone {
		return nil
	}
	r.turn.readAt = time.Now()
	stored, err := r.readOwnPosition(ctx)
	if err == nil && stored != r.turn.position {
		err = errOvertaken
	}
	return err
}

// replaceRows inserts the changes of visitors' rows from had to want, together with the next position.
func (r *Refresher) replaceRows(ctx context.Context, had, want []fold.FactRow, next Position) (err error) {
	changes := fold.AppendChanges(nil, had, want)
	if len(changes) == 0 && next.hasSameEvents(r.turn.position) {
		return nil
	}
	changed := map[schema.Subject]int64{}
	if len(changes) > 0 {
		changes, err = r.turn.cells.appendSumChanges(ctx, r.turn.on, changed, changes, had, want)
		if err != nil {
			return err
		}
	}
	return r.storeChanges(ctx, changes, changed, next)
}

// storeChanges inserts changes of rows and cells, together with the next position. changed has the subjects of the
// cells, each with the first day whose sums may change.
func (r *Refresher) storeChanges(
	ctx context.Context, changes []fold.Change, changed map[schema.Subject]int64, next Position,
) error {
	if r.turn.position.Refresh > 0 {
		changes = append(changes, fold.Change{FactRow: r.turn.position.asRow(), Cancels: true})
	} else {
		folded := r.turn.on.currentBooks()
		next.Currencies = folded.currencies
		next.Rates = folded.rates
	}
	changes = append(changes, fold.Change{FactRow: next.asRow()})
	token := ""
	if !r.alone {
		// ClickHouse remembers insert tokens for much longer, so it ignores the second of two refreshes with the same
		// number. The time includes sleep of the machine and jumps of the clock.
		const longestRefresh = time.Minute
		now := time.Now()
		if max(now.Sub(r.turn.readAt), now.Round(0).Sub(r.turn.readAt.Round(0))) > longestRefresh {
			return errTooLate
		}
		token = next.tokenAfter(r.turn.position)
	}
	ctx = context.WithoutCancel(ctx) // an abandoned insert may still be stored
	batch, err := r.turn.on.prepareChanges(ctx, token, changes)
	if err != nil {
		return fmt.Errorf("prepare an insert of facts: %w", err)
	}
	defer func() { _ = batch.Close() }()
	r.inserting.Lock()
	defer r.inserting.Unlock()
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert facts: %w", err)
	}
	if !r.alone {
		switch stored, err := r.readOwnPosition(ctx); {
		case err != nil:
			return err
		case stored != next:
			return errOvertaken
		}
	}
	if checkStored != nil {
		checkStored(ctx, r, next, changed)
	}
	r.turn.position = next
	r.turn.deleted = r.turn.deleted && next.Through == 0
	r.turn.readAt = time.Now()
	r.noteAutomated(changes)
	r.publishState(changed, false)
	return nil
}

// noteAutomated updates the set of automated visitors by stored changes.
func (r *Refresher) noteAutomated(changes []fold.Change) {
	for _, c := range changes { // those that cancel come first
		switch {
		case c.Grain != fold.OfVisitor || !fold.IsAutomated(c.Variation):
		case c.Cancels:
			delete(r.turn.automated, visitorOfRow(c.FactRow))
		case int(c.Number) == r.MaxVisitorEvents:
			r.turn.automated[visitorOfRow(c.FactRow)] = true
		}
	}
}

// checkStored checks a stored change if the program is built with the tag invariants; nil without it.
var checkStored func(ctx context.Context, r *Refresher, next Position, changed map[schema.Subject]int64)
