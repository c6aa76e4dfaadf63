// Package daily stores what was done last about each subject or website. So a process does not do again what was done
// on the same day, by itself before a restart or by another process.
package daily

import (
	"context"
	"embed"
	"slices"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements are the files of sql/.
var statements = schema.ReadStatements(statementFiles)

// Kind says what was done.
type Kind string

// The kinds.
const (
	Checked  Kind = "checked"  // the due looks of a subject were recorded, and any harm
	Judged   Kind = "judged"   // a subject was judged, and its decision was reported
	Tested   Kind = "tested"   // the split of an imported subject was tested
	Measured Kind = "measured" // the interactions of a website were measured, a subject of the kind SubjectNone
)

// Key identifies what is done each day.
type Key struct {
	Kind    Kind
	Subject schema.Subject
}

// Row says when something was done last.
type Row struct {
	Key
	Day   time.Time // its start
	Basis uint64    // hash of what it was based on
	Body  string    // JSON of what was found; may be empty

	version uint64 // greater than that of the row before it
}

// Log is the table daily of a store. It keeps the rows in memory.
type Log struct {
	conn driver.Conn

	mu    sync.Mutex // guards the following
	rows  map[Key]Row
	noted map[Key]bool // rows that are not written yet
}

// New returns the log of a store. It has no rows until they are read.
func New(conn driver.Conn) *Log { return &Log{conn: conn, rows: map[Key]Row{}, noted: map[Key]bool{}} }

// DayOf returns the start of the day of a time.
func DayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// ReadRows reads the table. Later rows in memory stay: they are not written yet, or the replica that answers lacks
// them.
func (l *Log) ReadRows(ctx context.Context) error {
	stored, err := readRows(ctx, l.conn)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range stored {
		if own := l.rows[r.Key]; r.version < own.version {
			continue
		} else if l.noted[r.Key] { // another process wrote a row since
			own.version = r.version + 1
			r = own
		}
		l.rows[r.Key] = r
	}
	return nil
}

func readRows(ctx context.Context, conn driver.Conn) ([]Row, error) {
	rows, err := schema.QueryRows(ctx, conn, statements["last"], func(row driver.Rows, r *Row) error {
		s := &r.Subject
		err := row.Scan((*string)(&r.Kind), &s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID, &r.version,
			&r.Day, &r.Basis, &r.Body)
		r.Day = r.Day.UTC()
		return err
	})
	return rows, schema.WrapError(err, "read what was done today")
}

// LastRow returns the last row of a key. If there is none, its day is zero.
func (l *Log) LastRow(key Key) Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[key]
}

// RowsOf returns the last rows of a kind.
func (l *Log) RowsOf(kind Kind) (rows []Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, r := range l.rows {
		if key.Kind == kind {
			rows = append(rows, r)
		}
	}
	return rows
}

// IsDone reports whether something was done on the day of a time, with the same basis. It also counts what was done on
// the next day, by a server whose clock is ahead. A later day is from a clock that was wrong, and does not count.
func (l *Log) IsDone(key Key, basis uint64, now time.Time) bool {
	last := l.LastRow(key)
	today := DayOf(now)
	isOfToday := !last.Day.Before(today) && !last.Day.After(today.AddDate(0, 0, 1))
	return isOfToday && last.Basis == basis
}

// NoteDone replaces the row of a key in memory. WriteNoted stores it. It returns the number of rows that wait for
// WriteNoted.
func (l *Log) NoteDone(r Row) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.version = l.rows[r.Key].version + 1
	l.rows[r.Key] = r
	l.noted[r.Key] = true
	return len(l.noted)
}

// WriteNoted stores the rows that were noted.
func (l *Log) WriteNoted(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []Row
	for key := range l.noted {
		rows = append(rows, l.rows[key])
	}
	err := schema.InsertRows(ctx, l.conn, statements["insert"], rows, func(r *Row) []any {
		s := r.Subject
		return []any{
			string(r.Kind), s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, r.version, r.Day, r.Basis, r.Body,
		}
	})
	if err == nil {
		clear(l.noted)
	}
	return schema.WrapError(err, "record what was done today")
}

// DropSubjects deletes the rows of campaigns and widgets, and of the experiments of these widgets.
func (l *Log) DropSubjects(ctx context.Context, subjects []schema.Subject) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	websites, kinds, ids := make([]int64, len(subjects)), make([]string, len(subjects)), make([]int64, len(subjects))
	for i, s := range subjects {
		websites[i] = s.WebsiteID
		kinds[i] = string(s.Kind)
		ids[i] = s.ID
	}
	for key := range l.rows {
		if slices.Contains(subjects, key.Subject.WithoutExperiment()) {
			delete(l.rows, key)
			delete(l.noted, key)
		}
	}
	err := l.conn.Exec(ctx, statements["drop"], clickhouse.Named("website_ids", websites),
		clickhouse.Named("subjects", kinds), clickhouse.Named("subject_ids", ids))
	return schema.WrapError(err, "delete what was done for subjects")
}

// CopyMeasured adds what another store measured of websites of which this store has nothing. The day is dropped, so it
// is measured again, with the events of this store.
func (l *Log) CopyMeasured(ctx context.Context, from driver.Conn) error {
	rows, err := readRows(ctx, from)
	if err == nil {
		err = l.ReadRows(ctx)
	}
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Kind == Measured && l.LastRow(r.Key).version == 0 {
			r.Day = time.Unix(0, 0).UTC()
			l.NoteDone(r)
		}
	}
	return l.WriteNoted(ctx)
}
