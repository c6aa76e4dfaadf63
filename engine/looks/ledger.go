package looks

import (
	"cmp"
	"context"
	_ "embed" // statements
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/recorded.sql
var recordedSQL string

//go:embed sql/record.sql
var recordSQL string

//go:embed sql/position.sql
var positionSQL string

// Record is a row of the ledger: what a look, harm or the end of a subject says about a declared question, for one
// variation.
type Record struct {
	Declaration
	plan.Measure
	Metric query.Metric
	LookRow
}

// recordKey identifies a record among those of its declaration.
type recordKey struct {
	measure     plan.Measure
	metric      query.Metric
	kind        Kind
	variationID int64
	number      int
}

func (r *Record) key() recordKey {
	return recordKey{
		measure: r.Measure, metric: r.Metric, kind: r.Kind, variationID: r.VariationID, number: r.Number,
	}
}

// Declaration identifies what a subject declares for its conclusion.
type Declaration struct {
	Subject schema.Subject
	Hash    uint64
}

// declarationVersion is the version of what identifies a declaration. A higher one orphans all recorded looks.
const declarationVersion = 1

// DeclarationOf returns what a plan declares.
func DeclarationOf(p *plan.Plan) Declaration {
	return Declaration{Subject: p.Subject, Hash: identityOfDeclaration(p).Hash()}
}

// identityOfDeclaration returns what identifies the declaration of a plan beside its subject: what its looks, their
// times, their visitors and their conclusions depend on. Its power and minimum effect are not part of it, and neither
// is the number of campaigns from which a prior was learned.
func identityOfDeclaration(p *plan.Plan) *schema.Identity {
	of := schema.NewIdentity("declaration", declarationVersion)
	of.Add("methodology", p.Rules.Methodology)
	of.AddInteger("significanceLevel", int64(p.Rules.SignificanceLevel))
	of.AddInteger("plannedDays", int64(p.Rules.PlannedDays))
	of.AddInteger("plannedVisitors", p.Rules.PlannedVisitors)
	of.AddDuration("maturity", p.Rules.Maturity)
	of.AddNumber("equivalenceMargin", p.Rules.EquivalenceMargin)
	of.Add("multipleExposures", p.MultipleExposures)
	if prior := p.Rules.Prior; prior != nil {
		of.AddNumber("priorMean", prior.Mean)
		of.AddNumber("priorStandardDeviation", prior.StandardDeviation)
	}
	if p.Declared.Cap != nil {
		of.Add("cap", p.Declared.Cap.String())
	}
	if window := p.Declared.ConversionWindow; window.Maturity() > 0 {
		of.AddDuration("windowFrom", window.From)
		of.AddDuration("windowTo", window.To)
		of.AddDuration("settle", window.Settle)
	}
	for _, v := range p.Variations {
		if !v.Added {
			of.AddInteger("variation", v.ID)
		}
	}
	return of
}

// Ledger is the table looks, which has the result of each look, written once. It keeps the rows in memory. Rows that
// another process writes are read by FollowRecords.
type Ledger struct {
	conn driver.Conn

	mu   sync.Mutex                             // protects the following, and is held while the table is read
	read ledgerPosition                         // of the table when it was read
	of   map[schema.Subject]map[uint64][]Record // by the hash of the declaration; nil: not read yet
	// hashes of the rows of each subject
	versions map[schema.Subject]uint64
}

// ledgerPosition changes with each row that is written to the table.
type ledgerPosition struct {
	rows uint64
	last time.Time // when the last row was recorded
}

// NewLedger returns the ledger of a store.
func NewLedger(conn driver.Conn) *Ledger { return &Ledger{conn: conn} }

// FollowRecords reads the rows that other processes write, until the context ends. It looks for them in each interval.
func (l *Ledger) FollowRecords(ctx context.Context, interval time.Duration) {
	schema.Repeat(ctx, interval, "read recorded looks", l.ReadNewRecords)
}

// ReadNewRecords reads the table if it has other rows than those in memory.
func (l *Ledger) ReadNewRecords(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored, err := l.readPosition(ctx)
	if err != nil || l.of != nil && stored == l.read {
		return err
	}
	return l.readAll(ctx)
}

// RecordedLooks returns the recorded looks of a declaration, in order.
func (l *Ledger) RecordedLooks(ctx context.Context, d Declaration) ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readOnce(ctx); err != nil {
		return nil, err
	}
	return l.of[d.Subject][d.Hash], nil
}

// SubjectRecords returns the rows of a subject, of all its declarations, in a constant order.
func (l *Ledger) SubjectRecords(ctx context.Context, subject schema.Subject) ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readOnce(ctx); err != nil {
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
	if err := l.readOnce(ctx); err != nil {
		return 0, err
	}
	for _, of := range l.versions {
		version ^= of
	}
	return version, nil
}

// SubjectVersion returns a number that changes with the rows of a subject, and is equal on all servers that have read
// the same rows.
func (l *Ledger) SubjectVersion(ctx context.Context, subject schema.Subject) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readOnce(ctx); err != nil {
		return 0, err
	}
	return l.versions[subject], nil
}

// readOnce reads the table if it was not read yet. The caller holds the lock.
func (l *Ledger) readOnce(ctx context.Context) error {
	if l.of != nil {
		return nil
	}
	return l.readAll(ctx)
}

// readAll reads the table. The caller holds the lock.
func (l *Ledger) readAll(ctx context.Context) error {
	position, err := l.readPosition(ctx)
	if err != nil {
		return err
	}
	records, err := ReadRecords(ctx, l.conn, nil)
	if err != nil {
		return err
	}
	l.read = position
	l.of = map[schema.Subject]map[uint64][]Record{}
	l.versions = map[schema.Subject]uint64{}
	for d, of := range byDeclaration(records) {
		l.setRecords(d, of)
	}
	return nil
}

// readPosition reads the position of the table.
func (l *Ledger) readPosition(ctx context.Context) (p ledgerPosition, err error) {
	if err := l.conn.QueryRow(ctx, positionSQL).Scan(&p.rows, &p.last); err != nil {
		return p, fmt.Errorf("read the position of the recorded looks: %w", err)
	}
	return p, nil
}

// setRecords replaces the rows of a declaration. The caller holds the lock.
func (l *Ledger) setRecords(d Declaration, records []Record) {
	of := l.of[d.Subject]
	if of == nil {
		of = map[uint64][]Record{}
		l.of[d.Subject] = of
	}
	l.versions[d.Subject] ^= versionOf(of[d.Hash]) ^ versionOf(records)
	of[d.Hash] = records
}

// versionOf returns a hash of rows. It does not depend on their order.
func versionOf(records []Record) (version uint64) {
	for i := range records {
		r := &records[i]
		version ^= r.identity().Hash()
	}
	return version
}

// identity returns what identifies the row. No two rows of the ledger have the same.
func (r *Record) identity() *schema.Identity {
	of := schema.NewIdentity("record", 1)
	of.AddSubject(r.Subject)
	of.Add("declaration", strconv.FormatUint(r.Hash, 10))
	of.AddInteger("goal", r.GoalID)
	of.Add("window", r.Window.String())
	of.Add("metric", string(r.Metric))
	of.Add("kind", string(r.Kind))
	of.AddInteger("variation", r.VariationID)
	of.AddInteger("number", int64(r.Number))
	of.AddInteger("recordedAt", r.RecordedAt.UnixMilli())
	return of
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
		err = cmp.Or(err, json.Unmarshal([]byte(body), &r.LookRow))
		if err != nil {
			return fmt.Errorf("look %d of %s: %w", number, s, err)
		}
		s.Kind = schema.SubjectKind(subject)
		r.Kind = Kind(kind)
		r.Metric = query.Metric(metric)
		if r.Metric.Expression() != nil {
			r.Expression = metric
		}
		r.RecordedAt = recordedAt.UTC()
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
			return slices.ContainsFunc(stored, func(o Record) bool { return o.key() == r.key() })
		})
		if len(missing) > 0 {
			bodies := make(map[*Record]string, len(missing))
			for i := range missing {
				body, err := json.Marshal(missing[i].LookRow)
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
			stored, err = ReadRecords(ctx, l.conn, &d)
			if err != nil {
				l.of = nil
				return written, err
			}
		}
		if l.of != nil {
			l.setRecords(d, stored)
		}
	}
	return written, nil
}

// EndsAfter reports whether the record is about events after a time. A reading of later orders is about those until the
// end of its window, after the look of its visitors.
func (r Record) EndsAfter(at time.Time) bool {
	if r.Kind == OfFollowUp {
		return r.End.Add(r.Window.Maturity()).After(at)
	}
	return r.End.After(at)
}

// isAbout reports whether the record is about the measure and the metric of a plan.
func (r Record) isAbout(p *plan.Plan) bool {
	return r.Measure == p.Measure() && r.Metric == p.Metric
}

// RecordedState returns the rows of a subject's records about the declared question of a plan, and the variations that
// harmed a guardrail.
func RecordedState(declared *plan.Plan, recorded []Record) (rows []LookRow, harmed []int64) {
	declaration := DeclarationOf(declared)
	for _, r := range recorded {
		switch {
		case r.Declaration != declaration || r.Kind == OfFollowUp:
		case r.isAbout(declared):
			rows = append(rows, r.LookRow)
		case r.Kind == OfHarm:
			harmed = append(harmed, r.VariationID)
		}
	}
	return rows, harmed
}

// CopyRecords adds the recorded looks of another store that this store lacks, and returns their number.
func CopyRecords(ctx context.Context, to, from driver.Conn) (int, error) {
	records, err := ReadRecords(ctx, from, nil)
	if err != nil {
		return 0, err
	}
	return NewLedger(to).WriteRecords(ctx, records)
}
