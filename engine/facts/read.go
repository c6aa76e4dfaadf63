package facts

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// reportTemplates are the files of sql/.
var reportTemplates = template.Must(source.Templates().ParseFS(sqlFiles, "sql/*.sql"))

// statement returns a file of sql/ with the columns of the attributes and a condition.
func statement(file, where string) string {
	var text strings.Builder
	slots := struct{ Attributes, Where string }{strings.Join(fold.Attributes, ", "), where}
	if err := reportTemplates.ExecuteTemplate(&text, file, slots); err != nil {
		panic(err) // files are embedded
	}
	return text.String()
}

var (
	touchedVisitors = statement("touched.sql", "")
	visitorEvents   = statement("events.sql", "")
	madeOf          = statement("made_of.sql", "")
	visitorRows     = statement("rows.sql", "grain IN ('visitor', 'goal') AND visitor_id IN (SELECT visitor_id FROM touched) AND (website_id, visitor_id) IN touched")
	subjectRows     = statement("rows.sql", "website_id = {website_id:Int64} AND subject = {subject:String} AND subject_id = {subject_id:Int64} AND experiment_id = {experiment_id:Int64} AND grain IN ('visitor', 'goal')")
	wantedCells     = statement("cells.sql", "(website_id, subject, subject_id, experiment_id, grain, goal_id) IN (SELECT website_id, subject, subject_id, experiment_id, grain, goal_id FROM wanted) AND toUnixTimestamp64Milli(first_time) IN (SELECT first_ms FROM wanted)")
)

// Visitor identifies a visitor of a website.
type Visitor struct {
	Website int64
	ID      uint64
}

// reading are the settings of the statements of a refresh: compiling takes longer than most of
// them, and one thread each leaves the other cores to reports.
var reading = clickhouse.Settings{"max_threads": 1, "compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0}

// withTable returns a context with an external table.
func withTable(ctx context.Context, name string, columns ...tableColumn) (context.Context, error) {
	definitions := make([]func(*ext.Table) error, len(columns))
	for i, c := range columns {
		definitions[i] = ext.Column(c.name, c.of)
	}
	table, err := ext.NewTable(name, definitions...)
	if err != nil {
		return nil, err
	}
	for i, c := range columns {
		if _, err := table.Block().Columns[i].Append(c.values); err != nil {
			return nil, fmt.Errorf("external table %s: %w", name, err)
		}
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(reading), clickhouse.WithExternalTable(table)), nil
}

type tableColumn struct {
	name   string
	of     column.Type
	values any // a slice with one value per row
}

// withTouched returns a context with the table touched.
func withTouched(ctx context.Context, visitors []Visitor) (context.Context, error) {
	websites, ids := make([]int64, len(visitors)), make([]uint64, len(visitors))
	for i, v := range visitors {
		websites[i], ids[i] = v.Website, v.ID
	}
	return withTable(ctx, "touched", tableColumn{"website_id", "Int64", websites}, tableColumn{"visitor_id", "UInt64", ids})
}

// kindsOfSubjects are the kinds of subjects by their number in the column subject.
var kindsOfSubjects = []schema.Subject{schema.SubjectNone, schema.SubjectCampaign, schema.SubjectWidget}

// eachVisitor calls each with all events of each of the visitors that were accepted until a time, one
// visitor after the other in the order of their keys. each must not keep the events.
func eachVisitor(ctx context.Context, conn driver.Conn, visitors []Visitor, through int64, each func(Visitor, []fold.Event) error) error {
	ctx, err := withTouched(ctx, visitors)
	if err != nil {
		return err
	}
	first, last := visitors[0], visitors[len(visitors)-1]
	var events []fold.Event
	end := func() error {
		if len(events) == 0 {
			return nil
		}
		of := Visitor{events[0].Subject.WebsiteID, events[0].Visitor}
		err := each(of, events)
		events = events[:0]
		return err
	}
	err = schema.EachRow(ctx, conn, visitorEvents, func(row driver.Rows) error {
		e, err := scanEvent(row)
		if err != nil {
			return err
		}
		if len(events) > 0 && (events[0].Visitor != e.Visitor || events[0].Subject.WebsiteID != e.Subject.WebsiteID) {
			if err := end(); err != nil {
				return err
			}
		}
		events = append(events, e)
		return nil
	}, clickhouse.Named("first_website", first.Website), clickhouse.Named("first_visitor", first.ID),
		clickhouse.Named("last_website", last.Website), clickhouse.Named("last_visitor", last.ID), clickhouse.Named("through", through))
	return errors.Join(err, end())
}

func scanEvent(row driver.Rows) (e fold.Event, err error) {
	var kind, event uint8
	err = row.Scan(&e.Subject.WebsiteID, &e.Visitor, &kind, &e.Subject.ID, &e.Subject.ExperimentID, &e.ID, &e.At, &e.Variation, &event, &e.Goal,
		&e.Amounts[0], &e.Amounts[1], &e.Amounts[2], &e.Accepted, &e.Attributes)
	if err == nil {
		e.Subject.Kind, e.Kind, e.Attributes = kindsOfSubjects[kind], visit.Kind(event), withoutNone(e.Attributes)
	}
	return e, err
}

// made says of which events the rows of a visitor of a subject are made.
type made struct {
	seen   int64
	digest uint64
}

// visitorOf identifies a visitor of a subject.
type visitorOf struct {
	Subject plan.Subject
	Visitor uint64
}

// madeOfRows adds what the rows of visitors are made of.
func madeOfRows(rows []fold.Row, to map[visitorOf]made) {
	for i := range rows {
		if r := &rows[i]; r.Grain == fold.OfVisitor && r.Seen > 0 {
			of := visitorOf{r.Subject, r.Visitor}
			m := to[of]
			to[of] = made{m.seen + int64(r.Seen), m.digest ^ r.Digest}
		}
	}
}

// readMade returns what the stored rows of the visitors are made of.
func readMade(ctx context.Context, conn driver.Conn, visitors []Visitor) (map[visitorOf]made, error) {
	ctx, err := withTouched(ctx, visitors)
	if err != nil {
		return nil, err
	}
	found := map[visitorOf]made{}
	return found, schema.EachRow(ctx, conn, madeOf, func(row driver.Rows) error {
		var of visitorOf
		var kind uint8
		var m made
		if err := row.Scan(&of.Subject.WebsiteID, &of.Visitor, &kind, &of.Subject.ID, &of.Subject.ExperimentID, &m.seen, &m.digest); err != nil {
			return err
		}
		of.Subject.Kind = kindsOfSubjects[kind]
		found[of] = m
		return nil
	})
}

// readRows calls each for the stored rows of visitors and goal events that a statement selects, by visitor. A row
// that is stored twice comes twice. Cancelling rows without a cancelled one are an error.
func readRows(ctx context.Context, conn driver.Conn, statement string, each func(*fold.Row) error, params ...any) error {
	return schema.EachRow(ctx, conn, statement, func(row driver.Rows) error {
		r, copies, err := scanFact(row)
		if err != nil {
			return err
		}
		if copies < 0 {
			return fmt.Errorf("facts: a row of visitor %d of %s is cancelled without being stored: %w", r.Visitor, r.Subject, ErrIncomplete)
		}
		for range copies {
			if err := each(&r); err != nil {
				return err
			}
		}
		return nil
	}, params...)
}

func scanFact(row driver.Rows) (r fold.Row, copies int64, err error) {
	var kind, grain uint8
	to := []any{
		&r.Subject.WebsiteID, &r.Visitor, &kind, &r.Subject.ID, &r.Subject.ExperimentID, &grain, &r.Goal, &r.Variation, &r.Attributes, &r.First, &r.Since, &r.Number,
		&r.MultiExposed, &r.Seen, &r.Digest,
	}
	for i := range r.Counts {
		to = append(to, &r.Counts[i])
	}
	to = append(to, &r.Later, &r.LaterKinds)
	for i := range r.Amounts {
		to = append(to, &r.Amounts[i])
	}
	for i := range r.Before {
		to = append(to, &r.Before[i])
	}
	if err := row.Scan(append(to, &copies)...); err != nil {
		return r, 0, err
	}
	r.Subject.Kind, r.Grain, r.Attributes = kindsOfSubjects[kind], fold.Grain(grain), withoutNone(r.Attributes)
	return r, copies, nil
}

// withoutNone returns joined attributes as they are in rows: if all are empty, the text is, too.
func withoutNone(attributes string) string {
	if strings.Trim(attributes, string(fold.Separator)) == "" {
		return ""
	}
	return attributes
}
