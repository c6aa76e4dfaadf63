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
package settle

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"text/template"
	"time"

	"lifthouse/engine"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/settle.sql sql/touched.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

//go:embed sql/accepted.sql
var accepted string

//go:embed sql/extent.sql
var extent string

//go:embed sql/stored.sql
var storedEvents string

const (
	// laneEvents is how many events a rebuild takes at once, about: what they
	// are turned into is held in memory, some 300 bytes an event.
	laneEvents = 3_000_000
	// stepEvents is the most that a step takes at once. Its visitors have
	// earlier events too, which it reads as well.
	stepEvents = 500_000
	// mostAmount bounds what one visitor's amounts may add up to, in
	// 1/schema.MoneyScale: a hundred of the largest events. The squares of
	// 10^8 such visitors still fit 128 bits.
	mostAmount = 1_000_000_000_000_000
	// calm is for how long nothing has to come of a subject that many events
	// came of, until they are worth a rebuild.
	calm = time.Second
)

// Settler settles the subjects of a store that no other process writes to.
type Settler struct {
	conn    driver.Conn
	writer  *ingest.Writer
	engine  *engine.Engine
	turn    sync.Mutex
	refused map[engine.Subject]bool // what cannot be settled
}

// New returns the settler of a store.
func New(conn driver.Conn, writer *ingest.Writer, e *engine.Engine) *Settler {
	return &Settler{conn: conn, writer: writer, engine: e, refused: map[engine.Subject]bool{}}
}

// due is a subject of whom events are not settled.
type due struct {
	subject     engine.Subject
	stored      uint64    // events
	ingested    time.Time // the last
	settled     *schema.Settlement
	sharesSince int64
}

// Follow settles at the given interval until the context ends. It rests for
// nine times as long as it worked, so that it never takes more than a tenth of
// the machine from those who write and ask.
func (s *Settler) Follow(ctx context.Context, every time.Duration) {
	const rests = 9
	for {
		began := time.Now()
		if err := s.Round(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "not settled", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(every, rests*time.Since(began))):
		}
	}
}

// Round settles what is due of all subjects.
func (s *Settler) Round(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	through := s.writer.Through()
	all, err := s.due(ctx, through)
	if err != nil {
		return err
	}
	var errs []error
	for i := range all {
		d := &all[i]
		switch {
		case d.mustRebuild():
			err = s.rebuild(ctx, d, through)
		case d.tail() <= max(stepEvents, d.settled.Events/2):
			err = s.catchUp(ctx, d, through)
		case time.Since(d.ingested) < calm && d.tail() < d.settled.Events:
			continue
		default:
			err = s.rebuild(ctx, d, through)
		}
		errs = append(errs, s.told(ctx, d.subject, err))
	}
	return errors.Join(errs...)
}

// Settle settles one subject through everything that is written, unless that
// would take a rebuild.
func (s *Settler) Settle(ctx context.Context, subject engine.Subject) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	through := s.writer.Through()
	all, err := s.due(ctx, through)
	if err != nil {
		return err
	}
	for i := range all {
		if d := &all[i]; d.subject == subject && !d.mustRebuild() && d.tail() <= stepEvents {
			return s.told(ctx, subject, s.step(ctx, d, through))
		}
	}
	return nil
}

// Rebuild makes the sums of all subjects anew, and calls done for each.
func (s *Settler) Rebuild(ctx context.Context, done func(engine.Subject, time.Duration, error)) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	through := s.writer.Through()
	all, err := s.all(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		began := time.Now()
		err := s.told(ctx, all[i].subject, s.rebuild(ctx, &all[i], through))
		done(all[i].subject, time.Since(began), err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// told notes a subject that cannot be settled, and has the engine know of one
// that is.
func (s *Settler) told(ctx context.Context, subject engine.Subject, err error) error {
	var exception *clickhouse.Exception
	const thrown = 395 // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	switch {
	case errors.Is(err, errTooLarge), errors.As(err, &exception) && exception.Code == thrown:
		s.refused[subject] = true
		slog.WarnContext(ctx, "a subject is not settled; its reports are counted event by event", "subject", subject,
			"reason", "a visitor's amounts are so large that their squares do not fit, or an attribute has the byte 0")
		return nil
	case err != nil:
		return fmt.Errorf("settle %s: %w", subject, err)
	}
	return s.engine.RefreshSettled(ctx)
}

func (d *due) mustRebuild() bool {
	return d.settled == nil || d.settled.SharesSince != d.sharesSince
}

func (d *due) tail() uint64 { return d.stored - min(d.stored, d.settled.Events) }

// due returns the subjects that something came of since they were settled.
func (s *Settler) due(ctx context.Context, through time.Time) ([]due, error) {
	all, err := s.all(ctx)
	var some []due
	for _, d := range all {
		if !s.refused[d.subject] && (d.mustRebuild() || d.settled.Through.Before(d.ingested) && d.settled.Through.Before(through)) {
			some = append(some, d)
		}
	}
	return some, err
}

// all returns the subjects that are worth it: those of the catalogue of which
// many events are stored.
func (s *Settler) all(ctx context.Context) ([]due, error) {
	states, err := schema.Settlements(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	settled := map[engine.Subject]*schema.Settlement{}
	for i := range states {
		state := &states[i]
		of := engine.SubjectOf(state)
		if state.Complete && settled[of] == nil { // the later ones come first
			settled[of] = state
		}
	}
	rows, err := s.conn.Query(ctx, storedEvents, clickhouse.Named("least", s.engine.Few()+1))
	if err != nil {
		return nil, fmt.Errorf("read what is stored: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []due
	for rows.Next() {
		var d due
		var of string
		if err := rows.Scan(&d.subject.WebsiteID, &of, &d.subject.ID, &d.subject.ExperimentID, &d.stored, &d.ingested); err != nil {
			return nil, fmt.Errorf("read what is stored: %w", err)
		}
		d.subject.Kind = schema.Subject(of)
		since, known := s.engine.SharesSince(d.subject)
		if known {
			d.sharesSince, d.settled = since.UnixMilli(), settled[d.subject]
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
