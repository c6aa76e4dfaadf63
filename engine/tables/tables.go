// Package tables writes flat tables of all campaigns and experiments, for programs that analyze data: as Parquet, CSV,
// JSON or lines of JSON. A table has one definition of its columns, the fields of its rows. Equal data are equal bytes.
package tables

import (
	"context"
	"io"
	"reflect"
	"slices"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/notes"
	"lifthouse/schema/outbox"
)

// Table is a table.
type Table struct {
	Name       string   `json:"name"`
	Grain      string   `json:"grain"` // what a row is
	Parameters []string `json:"parameters"`
	Columns    []Column `json:"columns"`

	write   func(context.Context, *reading, io.Writer, Format) (rows int64, err error)
	version func(context.Context, *reading) (string, error) // nil: not even an unchanged table is kept
}

// All are all tables, in the order of the documentation.
var All = []Table{
	newTable("experiments", "a campaign or an experiment", readExperiments, versionOfSubjects),
	newTable("results", "a variation in a row of the scorecard, with the data of today", readResults,
		versionOfSubjects),
	newTable("looks", "a variation at a look of the ledger, which never changes, or at one that is not recorded",
		readLooks, versionOfSubjects),
	newTable("decisions", "an entry of the log", readDecisions, nil),
	newTable("worth", "a variation other than control, with what it is worth", readWorth, versionOfWorth),
	newTable("series", "what a day (UTC) adds to a goal with a role of a variation; the sums are those of results",
		readSeries, versionOfSubjects),
	newTable("segments",
		"a variation among the visitors with a value of an attribute; it describes, and concludes nothing",
		readSegments, versionOfSubjects),
}

// newTable returns a table with rows of a type.
func newTable[R any](
	name, grain string, read func(context.Context, *reading, func(*R) error) error,
	version func(context.Context, *reading) (string, error),
) Table {
	fields := fieldsOf(reflect.TypeFor[R]())
	t := Table{Name: name, Grain: grain, Parameters: query.TableParameters(name), version: version}
	for i := range fields {
		t.Columns = append(t.Columns, fields[i].Column)
	}
	t.write = func(ctx context.Context, of *reading, to io.Writer, format Format) (rows int64, err error) {
		file := newWriter[R](to, format, fields)
		err = read(ctx, of, func(row *R) error {
			rows++
			return file.writeRow(row)
		})
		if err != nil {
			return rows, err
		}
		return rows, file.close()
	}
	return t
}

// FindTable returns the table with a name; nil: there is none.
func FindTable(name string) *Table {
	if at := slices.IndexFunc(All, func(t Table) bool { return t.Name == name }); at >= 0 {
		return &All[at]
	}
	return nil
}

// Reader reads the rows of the tables of a store.
type Reader struct {
	Engine    *engine.Engine
	Summaries *watch.Summaries
	Catalogue *catalogue.Catalogue
	Outbox    *outbox.Outbox
	Notes     *notes.Notes
	Documents *documents.Documents
}

// reading is one reading of a table: a request, and the versions of the data of its subjects.
type reading struct {
	Reader
	query.Table
	owned    *catalogue.AccountResources
	subjects []schema.Subject
	versions []engine.Version
	changes  []time.Time // of the subjects
	accepted map[schema.Subject]time.Time
}

// Snapshot is a table at versions of the data.
type Snapshot struct {
	IsStale bool   // accepted events wait
	Version string // of all that the table depends on; empty: it is read each time

	table   *Table
	reading *reading
}

// OpenTable returns a table of an account at the current versions of the data.
func (r Reader) OpenTable(
	ctx context.Context, t *Table, owned *catalogue.AccountResources, asked query.Table,
) (*Snapshot, error) {
	of := &reading{Reader: r, Table: asked, owned: owned}
	all := owned.Subjects()
	slices.SortFunc(all, schema.Subject.Compare)
	for _, subject := range all {
		if of.isInScope(subject) {
			of.subjects = append(of.subjects, subject)
		}
	}
	versions, waiting, err := r.Engine.ReadVersions(ctx, owned, of.subjects)
	if err != nil {
		return nil, err
	}
	of.versions = versions
	if err := of.readChanges(ctx); err != nil {
		return nil, err
	}
	s := &Snapshot{IsStale: waiting.Events > 0, table: t, reading: of}
	if t.version != nil && !s.IsStale {
		s.Version, err = t.version(ctx, of)
	}
	return s, err
}

// WriteFile writes the table to a file, and returns the number of its rows.
func (s *Snapshot) WriteFile(ctx context.Context, to io.Writer, format Format) (rows int64, err error) {
	return s.table.write(ctx, s.reading, to, format)
}
