package facts

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/template"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// reportTemplates are the files of sql/.
var reportTemplates = template.Must(source.ParseTemplates().ParseFS(sqlFiles, "sql/*.sql"))

// tables has the names of a server's tables and the statements of refreshes. On a shard of a cluster, these are
// the local tables.
type tables struct {
	Facts, Sent string // names
	Attributes  string // columns, separated by commas
	Where       string

	position, lastAccepted, waiting, fingerprint, touched, events              string
	madeOf, subjectsByDay, stored, shortSubjects                               string
	countRows                                                                  string
	visitorRows, subjectRows, allRows, sectionCells, cellsOfGrain, cellsOfDays string
	insert                                                                     string
}

func newTables(facts, sent string) *tables {
	t := &tables{Facts: facts, Sent: sent, Attributes: strings.Join(fold.Attributes, ", ")}
	t.position, t.lastAccepted = t.renderStatement("position.sql", ""), t.renderStatement("last_accepted.sql", "")
	t.waiting = t.renderStatement("waiting.sql", "")
	t.fingerprint, t.touched = t.renderStatement("fingerprint.sql", ""), t.renderStatement("touched.sql", "")
	t.events, t.stored = t.renderStatement("events.sql", ""), t.renderStatement("stored_visitors.sql", "")
	t.shortSubjects = t.renderStatement("short_subjects.sql", "")
	t.countRows = t.renderStatement("count_rows.sql", "")
	t.madeOf, t.subjectsByDay = t.renderStatement("made_of.sql", ""), t.renderStatement("subjects_by_day.sql", "")
	const ofVisitors, inSections = "grain IN ('visitor', 'goal')", "section IN {sections:Array(UInt64)}"
	const ofSome = ofVisitors + " AND website_id IN {websites:Array(Int64)} AND visitor_id IN {visitors:Array(UInt64)}"
	const ofDays = " AND goal_id IN {goals:Array(Int64)} AND toUnixTimestamp64Milli(first_time) IN {firsts:Array(Int64)}"
	t.visitorRows, t.allRows = t.renderStatement("rows.sql", ofSome), t.renderStatement("rows.sql", ofVisitors)
	t.subjectRows, t.sectionCells = t.renderStatement("rows.sql", inSections), t.renderStatement("cells.sql", inSections)
	t.cellsOfGrain = t.renderStatement("cells.sql", "section BETWEEN {first_section:UInt64} AND {last_section:UInt64}")
	t.cellsOfDays = t.renderStatement("cells.sql", inSections+ofDays)
	t.insert = "INSERT INTO " + facts + " (" + insertedColumns + ", " + t.Attributes + ")"
	return t
}

// renderStatement renders a file of sql/ with a condition.
func (t *tables) renderStatement(file, where string) string {
	with := *t
	with.Where = where
	var text strings.Builder
	if err := reportTemplates.ExecuteTemplate(&text, file, with); err != nil {
		panic(err) // files are embedded
	}
	return text.String()
}

var (
	ofServer = newTables("facts", "events")
	ofShard  = newTables("facts_local", "events_local")
)

// server is a connection to a server with facts: the only server, or a replica of a shard.
type server struct {
	driver.Conn
	*tables
}

// reading are the settings of the statements of a refresh. Compiling takes longer than most of
// these statements, and a single thread leaves the other cores to reports.
var reading = clickhouse.Settings{
	"max_threads": 1, "compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0,
}

// visitorParams returns the parameters that select visitors. They may also select visitors of other
// websites with the same ids, which is harmless.
func visitorParams(visitors []schema.Visitor) []any {
	websites, ids := []int64{}, make([]uint64, len(visitors))
	for i, v := range visitors {
		if ids[i] = v.ID; !slices.Contains(websites, v.WebsiteID) {
			websites = append(websites, v.WebsiteID)
		}
	}
	return []any{clickhouse.Named("websites", websites), clickhouse.Named("visitors", ids)}
}

// kindsOfSubjects are the kinds of subjects by their number in the column subject.
var kindsOfSubjects = []schema.SubjectKind{schema.SubjectNone, schema.SubjectCampaign, schema.SubjectWidget}

// scannedKind is the kind of a subject that is read as a number.
type scannedKind schema.SubjectKind

// Scan implements sql.Scanner.
func (k *scannedKind) Scan(number any) error {
	n, _ := number.(uint8)
	*k = scannedKind(kindsOfSubjects[n])
	return nil
}

// readEvents returns all events of the visitors that were accepted until a time, by visitor.
func (s *server) readEvents(ctx context.Context, visitors []schema.Visitor, through int64) ([]fold.Event, error) {
	var events []fold.Event
	err := schema.EachRow(ctx, s, s.events, func(row driver.Rows) error {
		e, err := scanEvent(row)
		events = append(events, e)
		return err
	}, append(visitorParams(visitors), clickhouse.Named("through", through))...)
	if err != nil {
		return nil, fmt.Errorf("read the events of visitors: %w", err)
	}
	slices.SortFunc(events, func(a, b fold.Event) int {
		return cmp.Or(cmp.Compare(a.Subject.WebsiteID, b.Subject.WebsiteID), cmp.Compare(a.Visitor, b.Visitor))
	})
	return events, nil
}

func visitorOfEvent(e *fold.Event) schema.Visitor {
	return schema.Visitor{WebsiteID: e.Subject.WebsiteID, ID: e.Visitor}
}

func visitorOfRow(r *fold.Row) schema.Visitor {
	return schema.Visitor{WebsiteID: r.Subject.WebsiteID, ID: r.Visitor}
}

// splitVisitors returns the events of each visitor. Events are ordered by visitor.
func splitVisitors(events []fold.Event) iter.Seq[[]fold.Event] {
	return fold.SplitRuns(events, func(a, b *fold.Event) bool { return visitorOfEvent(a) == visitorOfEvent(b) })
}

// setOf returns the set of visitors.
func setOf(visitors []schema.Visitor) map[schema.Visitor]bool {
	set := make(map[schema.Visitor]bool, len(visitors))
	for _, v := range visitors {
		set[v] = true
	}
	return set
}

func scanEvent(row driver.Rows) (e fold.Event, err error) {
	s := &e.Subject
	err = row.Scan(&s.WebsiteID, &e.Visitor, (*scannedKind)(&s.Kind), &s.ID, &s.ExperimentID, &e.ID, &e.At, &e.Variation,
		(*uint8)(&e.Kind), &e.Goal, &e.Amounts[0], &e.Amounts[1], &e.Amounts[2], &e.Accepted, &e.Version, &e.Attributes)
	e.Attributes = withoutNone(e.Attributes)
	return e, err
}

// made identifies the events from which the rows of a visitor of a subject were made: their
// number, and a digest.
type made struct {
	seen   int64
	digest uint64
}

// visitorOf identifies a visitor of a subject.
type visitorOf struct {
	Subject schema.Subject
	Visitor uint64
}

func (of visitorOf) visitor() schema.Visitor {
	return schema.Visitor{WebsiteID: of.Subject.WebsiteID, ID: of.Visitor}
}

// madeOfRows adds the number and the digest of the events in the rows to each visitor's entry.
func madeOfRows(rows []fold.Row, to map[visitorOf]made) {
	for i := range rows {
		if r := &rows[i]; r.Grain == fold.OfVisitor && r.Seen > 0 {
			of := visitorOf{r.Subject, r.Visitor}
			m := to[of]
			to[of] = made{m.seen + int64(r.Seen), m.digest ^ r.Digest}
		}
	}
}

// readMade returns the number and the digest of the events in the stored rows, for the visitors
// of some subjects.
func (s *server) readMade(
	ctx context.Context, visitors []schema.Visitor, subjects iter.Seq[schema.Subject],
) (map[visitorOf]made, error) {
	found := map[visitorOf]made{}
	err := schema.EachRow(ctx, s, s.madeOf, func(row driver.Rows) error {
		var of visitorOf
		var m made
		s := &of.Subject
		err := row.Scan(&s.WebsiteID, &of.Visitor, (*scannedKind)(&s.Kind), &s.ID, &s.ExperimentID, &m.seen, &m.digest)
		found[of] = m
		return err
	}, append(visitorParams(visitors), clickhouse.Named("sections", sectionsOf(subjects, fold.OfVisitor)))...)
	if err != nil {
		return nil, fmt.Errorf("read what the facts are made of: %w", err)
	}
	return found, nil
}

// sectionsOf returns the sections of the rows of a grain of some subjects.
func sectionsOf(subjects iter.Seq[schema.Subject], grain fold.Grain) []uint64 {
	sections := []uint64{}
	for subject := range subjects {
		sections = append(sections, SectionOf(subject, grain))
	}
	return sections
}

// readRows calls each for the stored rows of visitors and goal events that a statement selects, by visitor. For a
// row that is stored twice, it calls each twice. A row that cancels a missing row is an error.
func (s *server) readRows(ctx context.Context, statement string, each func(*fold.Row) error, params ...any) error {
	return schema.EachRow(ctx, s, statement, func(row driver.Rows) error {
		r, copies, err := scanFact(row)
		if err != nil {
			return err
		}
		if copies < 0 {
			const text = "facts: a row of visitor %d of %s is cancelled without being stored: %w"
			return fmt.Errorf(text, r.Visitor, r.Subject, ErrIncomplete)
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
	s := &r.Subject
	to := []any{
		&s.WebsiteID, &r.Visitor, (*scannedKind)(&s.Kind), &s.ID, &s.ExperimentID, (*uint8)(&r.Grain), &r.Goal, &r.Variation,
		&r.Attributes, &r.First, &r.Since, &r.Number, &r.MultiExposed, &r.Seen, &r.Digest,
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
	r.Attributes = withoutNone(r.Attributes)
	return r, copies, nil
}

// withoutNone returns joined attributes as they are in rows. If all attributes are empty, the
// text is empty.
func withoutNone(attributes string) string {
	if strings.Trim(attributes, string(fold.Separator)) == "" {
		return ""
	}
	return attributes
}
