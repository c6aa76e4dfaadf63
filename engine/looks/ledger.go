package looks

import (
	"cmp"
	"context"
	_ "embed" // statements
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
)

//go:embed sql/recorded.sql
var recordedSQL string

//go:embed sql/record.sql
var recordSQL string

// Record is a row of the ledger: what a look, harm or the end of a subject says about a declared question, for one
// variation.
type Record struct {
	Declaration
	plan.GoalWindow // goal 0: all goals count
	Metric          query.Metric
	Row
}

// Declaration identifies what a subject declares for its conclusion.
type Declaration struct {
	Subject schema.Subject
	Hash    uint64
}

// DeclarationOf returns what a plan declares.
func DeclarationOf(p *plan.Plan) Declaration {
	of := []any{p.Rules.Methodology, p.Rules.SignificanceLevel, p.Rules.LookRules, p.MultipleExposures}
	if prior := p.Rules.Prior; prior != nil { // however many campaigns it was learned from
		of = append(of, stats.Prior{Mean: prior.Mean, StandardDeviation: prior.StandardDeviation})
	}
	if p.Declared.Cap != nil {
		of = append(of, p.Declared.Cap.String())
	}
	if p.Declared.ConversionWindow.IsSet() {
		of = append(of, p.Declared.ConversionWindow)
	}
	for _, v := range p.Variations {
		if !v.Added {
			of = append(of, v.ID)
		}
	}
	return Declaration{Subject: p.Subject, Hash: xxhash.Sum64String(fmt.Sprint(of...))}
}

// maxAge is how long rows read from the table are reused. Other servers write only a few rows a week.
const maxAge = time.Minute

// Ledger is the table looks, which has the result of each look, written once.
type Ledger struct {
	conn driver.Conn

	mu     sync.Mutex                             // protects the following, and is held while the table is read
	readAt time.Time                              // zero: not read
	of     map[schema.Subject]map[uint64][]Record // by the hash of the declaration
}

// NewLedger returns the ledger of a store.
func NewLedger(conn driver.Conn) *Ledger { return &Ledger{conn: conn} }

// RecordedLooks returns the recorded looks of a declaration, in order. It reads the table at most once a minute.
func (l *Ledger) RecordedLooks(ctx context.Context, d Declaration) ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readIfOld(ctx); err != nil {
		return nil, err
	}
	return l.of[d.Subject][d.Hash], nil
}

// SubjectRecords returns the rows of a subject, of all its declarations, in a constant order. It reads the table at
// most once a minute.
func (l *Ledger) SubjectRecords(ctx context.Context, subject schema.Subject) ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readIfOld(ctx); err != nil {
		return nil, err
	}
	of := l.of[subject]
	var found []Record
	for _, hash := range slices.Sorted(maps.Keys(of)) {
		found = append(found, of[hash]...)
	}
	return found, nil
}

// Version returns a number that changes with the rows, and is equal on all servers that have read the same rows.
func (l *Ledger) Version(ctx context.Context) (version uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readIfOld(ctx); err != nil {
		return 0, err
	}
	for _, of := range l.of {
		for hash, records := range of {
			version += hash * uint64(len(records))
		}
	}
	return version, nil
}

// readIfOld reads the table if it was read long ago. The caller holds the lock.
func (l *Ledger) readIfOld(ctx context.Context) error {
	if time.Since(l.readAt) < maxAge {
		return nil
	}
	records, err := ReadRecords(ctx, l.conn, nil)
	if err != nil {
		return err
	}
	l.of, l.readAt = map[schema.Subject]map[uint64][]Record{}, time.Now()
	for d, of := range byDeclaration(records) {
		l.setRecords(d, of)
	}
	return nil
}

func (l *Ledger) setRecords(d Declaration, records []Record) {
	if l.of[d.Subject] == nil {
		l.of[d.Subject] = map[uint64][]Record{}
	}
	l.of[d.Subject][d.Hash] = records
}

func byDeclaration(records []Record) map[Declaration][]Record {
	all := map[Declaration][]Record{}
	for _, r := range records {
		all[r.Declaration] = append(all[r.Declaration], r)
	}
	return all
}

// ReadRecords returns the recorded looks of a declaration; nil: of all.
func ReadRecords(ctx context.Context, conn driver.Conn, only *Declaration) ([]Record, error) {
	of := Declaration{}
	if only != nil {
		of = *only
	}
	records, err := schema.QueryRows(ctx, conn, recordedSQL, func(row driver.Rows, r *Record) error {
		var subject, kind, metric, window, body string
		var number uint32
		var recordedAt time.Time
		s := &r.Subject
		if err := row.Scan(&s.WebsiteID, &subject, &s.ID, &s.ExperimentID, &r.Hash, &r.GoalID, &metric, &window, &kind,
			&r.VariationID, &number, &r.End, &body, &recordedAt); err != nil {
			return err
		}
		err := r.Window.UnmarshalText([]byte(window))
		if err = cmp.Or(err, json.Unmarshal([]byte(body), &r.Row)); err != nil {
			return fmt.Errorf("look %d of %s: %w", number, s, err)
		}
		s.Kind, r.Kind = schema.SubjectKind(subject), Kind(kind)
		r.Metric, r.RecordedAt = query.Metric(metric), recordedAt.UTC()
		return nil
	}, clickhouse.Named("all", only == nil), clickhouse.Named("website", of.Subject.WebsiteID),
		clickhouse.Named("subject", string(of.Subject.Kind)),
		clickhouse.Named("id", of.Subject.ID), clickhouse.Named("experiment", of.Subject.ExperimentID),
		clickhouse.Named("question", of.Hash))
	if err != nil {
		return nil, fmt.Errorf("read the recorded looks: %w", err)
	}
	return records, nil
}

// WriteRecords writes the records that are not in the table yet, and returns their number. It reads only the looks of
// their declarations, because the table grows with all campaigns.
func (l *Ledger) WriteRecords(ctx context.Context, records []Record) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	written := 0
	for d, of := range byDeclaration(records) {
		stored, err := ReadRecords(ctx, l.conn, &d)
		if err != nil {
			return written, err
		}
		missing := slices.DeleteFunc(of, func(r Record) bool {
			return slices.ContainsFunc(stored, func(o Record) bool { // about the same, at the same variation
				return r.GoalWindow == o.GoalWindow && r.Metric == o.Metric && r.Kind == o.Kind &&
					r.VariationID == o.VariationID && r.Number == o.Number
			})
		})
		if len(missing) > 0 {
			bodies := make(map[*Record]string, len(missing))
			for i := range missing {
				body, err := json.Marshal(missing[i].Row)
				if err != nil {
					return written, fmt.Errorf("encode a look: %w", err)
				}
				bodies[&missing[i]] = string(body)
			}
			if err := schema.InsertRows(ctx, l.conn, recordSQL, missing, func(r *Record) []any {
				s := r.Subject
				return []any{
					s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, r.Hash, r.GoalID, string(r.Metric),
					r.Window.String(), string(r.Kind), r.VariationID,
					uint32(r.Number), r.End, bodies[r], r.RecordedAt, //nolint:gosec // few looks
				}
			}); err != nil {
				return written, fmt.Errorf("record looks: %w", err)
			}
			written += len(missing)
			if stored, err = ReadRecords(ctx, l.conn, &d); err != nil {
				l.readAt = time.Time{}
				return written, err
			}
		}
		if l.of != nil {
			l.setRecords(d, stored)
		}
	}
	return written, nil
}

// isAbout reports whether the record is about the goal and the metric of a plan.
func (r Record) isAbout(p *plan.Plan) bool {
	return r.GoalWindow == p.Goal() && r.Metric == p.Metric
}

// CopyRecords adds the recorded looks of another store that this store lacks, and returns their number.
func CopyRecords(ctx context.Context, to, from driver.Conn) (int, error) {
	records, err := ReadRecords(ctx, from, nil)
	if err != nil {
		return 0, err
	}
	return NewLedger(to).WriteRecords(ctx, records)
}
