// Package settle keeps the table settled up to date: sums over visitors, from
// which the engine answers without a look at the events. It follows the
// events at a small distance.
//
// A step takes the visitors of whom events came since the last one, takes out
// what they had in the sums, and puts in what they have now; both from their
// events, so that nothing drifts. It is one insert of one block, whole or not
// at all, with the state that says how far it got: a process that dies leaves
// nothing to repair. A rebuild makes a new generation of a subject's sums in
// several inserts, and then says in one that it stands in place of the last.
// It is cheaper where many events came, and the answer to anything that
// changed the past: see schema.DropSettled.
package rollup

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"text/template"
	"time"

	"lifthouse/engine"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/rebuild.sql sql/touched.sql sql/frequent.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

//go:embed sql/accepted.sql
var accepted string

//go:embed sql/extent.sql
var extent string

//go:embed sql/backlogs.sql
var storedEvents string

const (
	// laneEvents is how many events a rebuild takes at once, about: what they
	// are turned into is held in memory, some 300 bytes an event.
	rangeEvents = 3_000_000
	// stepEvents is the most that a step takes at once. Its visitors have
	// earlier events too, which it reads as well.
	stepEvents = 500_000
	// mostAmount bounds what one visitor's amounts may add up to, in
	// 1/schema.MoneyScale: a hundred of the largest events. The squares of
	// 10^8 such visitors still fit 128 bits.
	maxAmount = 1_000_000_000_000_000
	// pouring is how many events a second, of all subjects, are an import rather
	// than visitors: it is over sooner if it has the machine for itself, and one
	// rebuild after it is cheaper than steps on its way.
	bulkRate = 5_000
	// patience bounds for how long it is waited for.
	maxDeferral = 5 * time.Minute
	// mostFrequent is how many values lie apart: four times those that a report
	// shows, so that these are among them for long after others rose.
	maxFrequent = 200
	// rests is how many times as long as it worked the settler rests, so that it
	// takes a tenth of the machine from those who write and ask, but not longer
	// than longestRest: what waits is also what is answered slowly.
	idleFactor = 9
	maxIdle    = 5 * time.Second
	// settleMayWait is how long a report waits for a refresh that is under way:
	// longer than a step takes, shorter than a rebuild, beside which it is counted
	// from the events.
	refreshWait = time.Second
)

// Settler settles the subjects of a store that no other process writes to.
type Refresher struct {
	conn       driver.Conn
	writer     *ingest.Writer
	engine     *engine.Engine
	refreshing chan struct{}                  // held by who refreshes
	lastLook   time.Time                      // at what is due
	observed   map[engine.Subject]observation // then

	maxFrequent int
	frequent    map[engine.Subject]frequentValues
}

// sighting is how much was stored of a subject when it was looked at last.
type observation struct {
	stored        uint64
	deferredSince time.Time // since then for an import to come to its end; zero: it does not
}

// New returns the settler of a store.
func New(conn driver.Conn, writer *ingest.Writer, e *engine.Engine) *Refresher {
	return &Refresher{conn: conn, writer: writer, engine: e, refreshing: make(chan struct{}, 1), observed: map[engine.Subject]observation{}, maxFrequent: maxFrequent, frequent: map[engine.Subject]frequentValues{}}
}

// due is a subject of whom events are not settled.
type backlog struct {
	subject     engine.Subject
	stored      uint64    // events
	ingested    time.Time // the last
	state       *schema.RollupState
	sharesSince int64
}

// Follow settles at the given interval until the context ends, and lets
// imports come to their end first.
func (s *Refresher) Follow(ctx context.Context, every time.Duration) {
	s.engine.RollupsFollowed()
	for {
		began := time.Now()
		if err := s.refreshChosen(ctx, s.ready); err != nil && ctx.Err() == nil && !errors.Is(err, ingest.ErrRemoving) {
			slog.WarnContext(ctx, "not settled", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(every, min(idleFactor*time.Since(began), maxIdle))):
		}
	}
}

// refresh does the work, one at a time, while no event is removed. It waits for
// its turn until the first context ends, and works until the second does.
func (s *Refresher) exclusively(waiting, ctx context.Context, work func(context.Context) error) error {
	select {
	case s.refreshing <- struct{}{}:
		defer func() { <-s.refreshing }()
		return s.writer.Refresh(ctx, work)
	case <-waiting.Done():
		return fmt.Errorf("wait for a refresh that is under way: %w", context.Cause(waiting))
	}
}

// Round settles what is due of all subjects.
func (s *Refresher) RefreshAll(ctx context.Context) error {
	return s.refreshChosen(ctx, func(all []backlog) []backlog { return all })
}

// round settles those of the due subjects that are chosen.
func (s *Refresher) refreshChosen(ctx context.Context, chosen func([]backlog) []backlog) error {
	return s.exclusively(ctx, ctx, func(ctx context.Context) error { return s.refreshBacklogs(ctx, chosen) })
}

func (s *Refresher) refreshBacklogs(ctx context.Context, chosen func([]backlog) []backlog) error {
	through := s.writer.Through()
	all, err := s.backlogs(ctx, through)
	if err != nil {
		return err
	}
	all = chosen(all)
	var errs []error
	for i := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d := &all[i]
		switch {
		case d.mustRebuild() || d.size() > max(stepEvents, d.state.Events/2):
			err = s.rebuild(ctx, d, through)
		default:
			err = s.catchUp(ctx, d, through)
		}
		errs = append(errs, s.recordOutcome(ctx, d.subject, err))
	}
	return errors.Join(errs...)
}

// Settle settles one subject through everything that is written, unless that
// would take a rebuild, or one is under way.
func (s *Refresher) RefreshSubject(ctx context.Context, subject engine.Subject) error {
	waiting, cancel := context.WithTimeout(ctx, refreshWait)
	defer cancel()
	return s.exclusively(waiting, ctx, func(ctx context.Context) error { return s.refreshOne(ctx, subject) })
}

func (s *Refresher) refreshOne(ctx context.Context, subject engine.Subject) error {
	through := s.writer.Through()
	all, err := s.backlogs(ctx, through)
	if err != nil {
		return err
	}
	for i := range all {
		if d := &all[i]; d.subject == subject && !d.mustRebuild() && d.size() <= stepEvents {
			return s.recordOutcome(ctx, subject, s.step(ctx, d, through))
		}
	}
	return nil
}

// Rebuild makes the sums of all subjects anew, and calls done for each.
func (s *Refresher) Rebuild(ctx context.Context, done func(engine.Subject, time.Duration, error)) error {
	return s.exclusively(ctx, ctx, func(ctx context.Context) error { return s.rebuildAll(ctx, done) })
}

func (s *Refresher) rebuildAll(ctx context.Context, done func(engine.Subject, time.Duration, error)) error {
	through := s.writer.Through()
	all, err := s.candidates(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		began := time.Now()
		err := s.recordOutcome(ctx, all[i].subject, s.rebuild(ctx, &all[i], through))
		done(all[i].subject, time.Since(began), err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// told notes a subject that cannot be settled, and has the engine know of one
// that is.
func (s *Refresher) recordOutcome(ctx context.Context, subject engine.Subject, err error) error {
	var exception *clickhouse.Exception
	const throwIf = 395 // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	switch {
	case errors.Is(err, errTooLarge), errors.As(err, &exception) && exception.Code == throwIf:
		s.engine.MarkWithoutRollup(subject)
		slog.WarnContext(ctx, "a subject is not settled; its reports are counted event by event", "subject", subject,
			"reason", "a visitor's amounts are so large that their squares do not fit, or an attribute has the byte 0")
		return nil
	case err != nil:
		return fmt.Errorf("settle %s: %w", subject, err)
	}
	s.writer.UpdateRollupManifest(ctx)
	return s.engine.RefreshRollupStates(ctx)
}

func (d *backlog) mustRebuild() bool {
	return d.state == nil || d.state.SharesSince != d.sharesSince
}

// tail is how many events are not settled.
func (d *backlog) size() uint64 {
	if d.state == nil {
		return d.stored
	}
	return d.stored - min(d.stored, d.state.Events)
}

// ready returns those of the subjects that need not wait for an import to come
// to its end: all of which no more events wait than a step takes, or have
// waited for long.
func (s *Refresher) ready(all []backlog) []backlog {
	now := time.Now()
	var came uint64
	for i := range all {
		came += all[i].stored - min(all[i].stored, s.observed[all[i].subject].stored)
	}
	bulk := !s.lastLook.IsZero() && float64(came) > bulkRate*now.Sub(s.lastLook).Seconds()
	s.lastLook = now
	return slices.DeleteFunc(all, func(d backlog) bool {
		next := observation{stored: d.stored}
		if bulk && d.size() > stepEvents {
			next.deferredSince = cmp.Or(s.observed[d.subject].deferredSince, now)
		}
		s.observed[d.subject] = next
		return !next.deferredSince.IsZero() && now.Sub(next.deferredSince) < maxDeferral
	})
}

// due returns the subjects that something came of since they were settled.
func (s *Refresher) backlogs(ctx context.Context, through time.Time) ([]backlog, error) {
	all, err := s.candidates(ctx)
	var backlogs []backlog
	for _, d := range all {
		if !s.engine.WithoutRollup(d.subject) && (d.mustRebuild() || d.state.Through.Before(d.ingested) && d.state.Through.Before(through)) {
			backlogs = append(backlogs, d)
		}
	}
	return backlogs, err
}

// all returns the subjects that are worth it: those of the catalogue of which
// many events are stored.
func (s *Refresher) candidates(ctx context.Context) ([]backlog, error) {
	states, err := schema.RollupStates(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	rollup := map[engine.Subject]*schema.RollupState{}
	for i := range states {
		state := &states[i]
		of := engine.SubjectOf(state)
		if state.Complete && rollup[of] == nil { // the later ones come first
			rollup[of] = state
		}
	}
	rows, err := s.conn.Query(ctx, storedEvents, clickhouse.Named("least", s.engine.InProcessEvents()+1))
	if err != nil {
		return nil, fmt.Errorf("read what is stored: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []backlog
	for rows.Next() {
		var d backlog
		var of string
		if err := rows.Scan(&d.subject.WebsiteID, &of, &d.subject.ID, &d.subject.ExperimentID, &d.stored, &d.ingested); err != nil {
			return nil, fmt.Errorf("read what is stored: %w", err)
		}
		d.subject.Kind = schema.Subject(of)
		since, known := s.engine.SharesSince(d.subject)
		if known {
			d.sharesSince, d.state = since.UnixMilli(), rollup[d.subject]
			all = append(all, d)
		}
	}
	return all, rows.Err()
}

func mustRender(file string, slots any) string {
	var text strings.Builder
	if err := sqlTemplates.ExecuteTemplate(&text, file, slots); err != nil {
		panic(err) // the files are part of the program
	}
	return text.String()
}
