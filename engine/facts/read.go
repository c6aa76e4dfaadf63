package facts

import (
	"context"
	"embed"
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/template"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// reportTemplates are the files of sql/.
var reportTemplates = func() *template.Template {
	files := template.New("").Option("missingkey=error")
	return template.Must(files.ParseFS(sqlFiles, "sql/*.sql"))
}()

// tables has the names of a server's tables. On a shard of a cluster, these are the local tables.
type tables struct{ Facts, Sent string }

var (
	ofServer = tables{"facts", "events"}
	ofShard  = tables{"facts_local", "events_local"}
)

// attributes are the columns of the attributes of a first view.
var attributes = strings.Join(schema.AttributeColumns, ", ")

// render returns a statement of a refresh: a file of sql/ with a condition. Some files have none.
func (s *server) render(file, where string) string {
	slots := struct {
		tables
		Attributes, Where, InGeneration string
	}{s.tables, attributes, where, s.inGeneration()}
	return renderFile(file, slots)
}

// renderFile returns a file of sql/ with its slots.
func renderFile(file string, slots any) string {
	var text strings.Builder
	if err := reportTemplates.ExecuteTemplate(&text, file, slots); err != nil {
		panic(err) // files are embedded
	}
	return text.String()
}

// The conditions of rows and cells.
const (
	ofVisitors = "(section BETWEEN {first_visitor:UInt64} AND {last_visitor:UInt64} OR " +
		"section BETWEEN {first_goal:UInt64} AND {last_goal:UInt64})" // see sectionsOfVisitors
	inSections = "section IN {sections:Array(UInt64)}"
	inGrain    = "section BETWEEN {first_section:UInt64} AND {last_section:UInt64}"
)

// server is a connection to a server with facts: the only server, or a replica of a shard.
type server struct {
	driver.Conn
	tables
	generation uint32 // of the facts
	money      *money
	fixed      *shelf // nil: the books may change
}

// currentBooks returns the books of the websites.
func (s *server) currentBooks() *shelf {
	if s.fixed != nil {
		return s.fixed
	}
	return s.money.currentBooks()
}

// withBooks returns the server with the books of the websites as they are now.
func (s *server) withBooks() *server {
	one := *s
	one.fixed = s.money.currentBooks()
	return &one
}

// reading are the settings of the statements of a refresh. Compiling takes longer than most of these statements, and a
// single thread leaves the other cores to reports.
var reading = clickhouse.Settings{
	"max_threads": 1, "compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0,
}

// visitorParams returns the parameters that select visitors. They may also select visitors of other websites with the
// same ids, whose rows the caller must leave out.
func visitorParams(visitors []schema.Visitor) []any {
	websites := []int64{}
	ids := make([]uint64, len(visitors))
	for i, v := range visitors {
		ids[i] = v.ID
		if !slices.Contains(websites, v.WebsiteID) {
			websites = append(websites, v.WebsiteID)
		}
	}
	return []any{clickhouse.Named("websites", websites), clickhouse.Named("visitors", ids)}
}

// scannedKind is the kind of a subject that is read as a number, as in the column subject.
type scannedKind schema.SubjectKind

// Scan implements sql.Scanner.
func (k *scannedKind) Scan(number any) error {
	n, _ := number.(uint8)
	kinds := [...]schema.SubjectKind{schema.SubjectNone, schema.SubjectCampaign, schema.SubjectWidget}
	*k = scannedKind(kinds[n])
	return nil
}

const ofSomeVisitors = "website_id IN {websites:Array(Int64)} AND visitor_id IN {visitors:Array(UInt64)}"

// readEvents returns all events of the visitors that were accepted until a time, by visitor.
func (s *server) readEvents(ctx context.Context, visitors []schema.Visitor, through int64) ([]fold.Event, error) {
	events, err := s.readEventsWhere(ctx, ofSomeVisitors, through, visitorParams(visitors)...)
	of := setOf(visitors)
	return slices.DeleteFunc(events, func(e fold.Event) bool { return !of[visitorOfEvent(&e)] }), err
}

// readEventsWhere returns all events with a condition on visitors that were accepted until a time, by visitor, with the
// rows of their customers.
func (s *server) readEventsWhere(
	ctx context.Context, where string, through int64, params ...any,
) ([]fold.Event, error) {
	var events []fold.Event
	var last string // the details that were decoded last, because most goals have the same
	var decoded schema.Details
	kept := s.currentBooks()
	err := schema.EachRow(ctx, s, s.render("events.sql", where), func(row driver.Rows) error {
		var e fold.Event
		var details string
		of := &e.Subject
		err := row.Scan(&of.WebsiteID, &e.Visitor, (*scannedKind)(&of.Kind), &of.ID, &of.ExperimentID, &e.ID,
			&e.Revision, &e.Cancelled, &e.At, &e.Variation, (*uint8)(&e.Kind), &e.Goal, &e.Amounts[0], &e.Amounts[1],
			&e.Amounts[2], &e.Accepted, &e.Version, &e.Attributes, &details)
		if err == nil && details != last {
			decoded, err = schema.DecodeDetails(details)
			last = details
		}
		if details != "" {
			e.SetDetails(details, &decoded, kept.of[of.WebsiteID])
		}
		events = append(events, e)
		return err
	}, append(params, clickhouse.Named("through", through))...)
	if err == nil {
		events, err = s.addCustomers(ctx, events, through)
	}
	if err != nil {
		return nil, fmt.Errorf("read the events of visitors: %w", err)
	}
	slices.SortFunc(events, func(a, b fold.Event) int { return visitorOfEvent(&a).Compare(visitorOfEvent(&b)) })
	return events, nil
}

func visitorOfEvent(e *fold.Event) schema.Visitor {
	return schema.Visitor{WebsiteID: e.Subject.WebsiteID, ID: e.Visitor}
}

func visitorOfRow(r *fold.FactRow) schema.Visitor {
	return schema.Visitor{WebsiteID: r.Subject.WebsiteID, ID: r.Visitor}
}

// splitVisitors returns the events of each visitor. Events are ordered by visitor.
func splitVisitors(events []fold.Event) iter.Seq[[]fold.Event] {
	return fold.SplitRuns(events, func(a, b *fold.Event) bool { return visitorOfEvent(a) == visitorOfEvent(b) })
}

// foldEvents returns the rows that events fold to. Events are ordered by visitor. most is the number of events of a
// visitor above which the visitor is automated.
func foldEvents(events []fold.Event, most int) []fold.FactRow {
	rows := make([]fold.FactRow, 0, len(events)) // about a row for each event
	for own := range splitVisitors(events) {
		rows = fold.AppendVisitorRows(own, most, rows)
	}
	return rows
}

// setOf returns the set of visitors.
func setOf(visitors []schema.Visitor) map[schema.Visitor]bool {
	set := make(map[schema.Visitor]bool, len(visitors))
	for _, v := range visitors {
		set[v] = true
	}
	return set
}

// made identifies the events from which the rows of a visitor of a subject were made: their number, and a digest.
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

// madeOfRows returns the number and the digest of the events in the rows of each visitor of a subject.
func madeOfRows(rows []fold.FactRow) map[visitorOf]made {
	to := map[visitorOf]made{}
	for i := range rows {
		if r := &rows[i]; r.Grain == fold.OfVisitor && r.Seen > 0 {
			of := visitorOf{r.Subject, r.Visitor}
			m := to[of]
			to[of] = made{m.seen + int64(r.Seen), m.digest ^ r.Digest}
		}
	}
	return to
}

// sectionsOf returns the sections of the rows of a grain of some subjects.
func (s *server) sectionsOf(subjects iter.Seq[schema.Subject], grain fold.Grain) []uint64 {
	sections := []uint64{}
	for subject := range subjects {
		sections = append(sections, s.sectionOf(subject, grain))
	}
	return sections
}

// itemColumns are the columns of the lines of a goal event: lists with an element for each line.
type itemColumns struct {
	product, variant, category, brand, name []string
	quantity, revenue, profit               []int64
}

// scanTargets returns the targets for the columns, in the order of row_columns.sql.
func (c *itemColumns) scanTargets() []any {
	return []any{&c.product, &c.variant, &c.category, &c.brand, &c.name, &c.quantity, &c.revenue, &c.profit}
}

// items returns the lines; nil: there are none.
func (c *itemColumns) items() []schema.Item {
	var items []schema.Item
	for i := range c.product {
		items = append(items, schema.Item{
			Product: c.product[i], Variant: c.variant[i], Category: c.category[i], Brand: c.brand[i], Name: c.name[i],
			Quantity: c.quantity[i], Revenue: c.revenue[i], Profit: c.profit[i],
		})
	}
	return items
}

// readRows calls each for the stored rows of visitors and goal events with a condition, by visitor. For a row that is
// stored twice, it calls each twice. A row that cancels a missing row is an error.
func (s *server) readRows(ctx context.Context, where string, each func(*fold.FactRow) error, params ...any) error {
	return schema.EachRow(ctx, s, s.render("rows.sql", where), func(row driver.Rows) error {
		var r fold.FactRow
		var copies int64
		if err := scanRow(row, &r, &copies); err != nil {
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

// scanRow scans a row of facts with the columns of row_columns.sql, and others after them.
func scanRow(row driver.Rows, r *fold.FactRow, others ...any) error {
	var lines itemColumns
	if err := row.Scan(slices.Concat(scanTargets(r), lines.scanTargets(), others)...); err != nil {
		return err
	}
	r.Items = lines.items()
	trimAttributes(r)
	return nil
}

// scanTargets returns the targets for the columns of a row of facts but those of its lines, in the order of
// row_columns.sql.
func scanTargets(r *fold.FactRow) []any {
	s := &r.Subject
	to := []any{
		&s.WebsiteID, &r.Visitor, (*scannedKind)(&s.Kind), &s.ID, &s.ExperimentID, (*uint8)(&r.Grain), &r.Goal,
		&r.Variation, &r.Attributes, &r.First, &r.Since, &r.Number, &r.MultiExposed, &r.Seen, &r.Digest,
	}
	for i := range r.Counts {
		to = append(to, &r.Counts[i])
	}
	return append(to, &r.Later, &r.LaterKinds, &r.Amounts[0], &r.Amounts[1], &r.Amounts[2],
		&r.Before[0], &r.Before[1], &r.Before[2], &r.Marks, &r.Foreign, &r.Custom, &r.Properties)
}

// trimAttributes removes the attributes of a stored row if all are empty, as in rows that are folded.
func trimAttributes(r *fold.FactRow) {
	if strings.Trim(r.Attributes, schema.AttributeSeparator) == "" {
		r.Attributes = ""
	}
}

const insertedColumns = "section, website_id, subject, subject_id, experiment_id, grain, goal_id, sign, variation, " +
	"visitor_id, first_time, since_ms, number, multi_exposed_at, seen, digest, views, clicks, submits, completions, " +
	"conversions, contacts, later_ms, later_kinds, value, profit, extra_value, value_before, profit_before, " +
	"extra_value_before, marks, foreign_currency, custom, properties, item_product, item_variant, item_category, " +
	"item_brand, item_name, item_quantity, item_revenue, item_profit, sums"

// prepareChanges returns a batch that inserts the changes of a refresh as one part, or none of them. Of several inserts
// with the same token, only the first is stored: ClickHouse ignores the others and returns no error. An empty token
// equals no other.
func (s *server) prepareChanges(ctx context.Context, token string, changes []fold.Change) (driver.Batch, error) {
	const most = 1 << 40
	settings := clickhouse.Settings{
		"max_insert_block_size": most, "min_insert_block_size_rows": most, "min_insert_block_size_bytes": most,
		"optimize_on_insert": 0, "insert_deduplicate": 0,
	}
	if token != "" {
		settings["insert_deduplicate"] = 1
		settings["insert_deduplication_token"] = token
	}
	insert := "INSERT INTO " + s.Facts + " (" + insertedColumns + ", " + attributes + ")"
	return schema.PrepareColumns(ctx, s, settings, insert, s.columnsOf(changes))
}

// grains are the values of the column grain by fold.Grain.
var grains = []string{
	fold.OfVisitor: "visitor", fold.OfGoal: "goal", fold.OfAll: "all", fold.OfDay: "day", fold.OfPosition: "position",
}

// sectionsOfGrain returns the parameters first_section and last_section, the range of the sections of a grain.
func (s *server) sectionsOfGrain(grain fold.Grain) []any {
	first := s.firstSection(grain)
	return []any{clickhouse.Named("first_section", first), clickhouse.Named("last_section", first|hashMask)}
}

// sectionsOfVisitors returns the parameters of the condition ofVisitors.
func (s *server) sectionsOfVisitors() []any {
	visitors, goals := s.firstSection(fold.OfVisitor), s.firstSection(fold.OfGoal)
	return []any{
		clickhouse.Named("first_visitor", visitors), clickhouse.Named("last_visitor", visitors|hashMask),
		clickhouse.Named("first_goal", goals), clickhouse.Named("last_goal", goals|hashMask),
	}
}

// listOfItems returns a function that returns the lists of a field of the lines.
func listOfItems[T any](changes []fold.Change, field func(*schema.Item) T) func() any {
	return schema.ColumnValues(changes, func(c *fold.Change) []T {
		list := make([]T, len(c.Items))
		for i := range c.Items {
			list[i] = field(&c.Items[i])
		}
		return list
	})
}

// columnsOf returns functions that return the values of insertedColumns and of the attributes.
func (s *server) columnsOf(changes []fold.Change) []func() any {
	type section struct {
		schema.Subject
		fold.Grain
	}
	sections := map[section]uint64{}
	columns := []func() any{
		schema.ColumnValues(changes, func(c *fold.Change) uint64 {
			of := section{c.Subject, c.Grain}
			if _, known := sections[of]; !known {
				sections[of] = s.sectionOf(of.Subject, of.Grain)
			}
			return sections[of]
		}),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Subject.WebsiteID }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return string(c.Subject.Kind) }),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Subject.ID }),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Subject.ExperimentID }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return grains[c.Grain] }),
		schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Goal }),
		schema.ColumnValues(changes, func(c *fold.Change) int8 {
			if c.Cancels {
				return -1
			}
			return 1
		}),
		schema.ColumnValues(changes, func(c *fold.Change) string { return c.Variation }),
		schema.ColumnValues(changes, func(c *fold.Change) uint64 { return c.Visitor }),
		schema.ColumnValues(changes, func(c *fold.Change) time.Time { return time.UnixMilli(c.First).UTC() }),
		schema.ColumnValues(changes, func(c *fold.Change) uint64 { return c.Since }),
		schema.ColumnValues(changes, func(c *fold.Change) uint32 { return c.Number }),
		schema.ColumnValues(changes, func(c *fold.Change) time.Time { return time.UnixMilli(c.MultiExposed).UTC() }),
		schema.ColumnValues(changes, func(c *fold.Change) uint32 { return c.Seen }),
		schema.ColumnValues(changes, func(c *fold.Change) uint64 { return c.Digest }),
	}
	for k := range len(fold.FactRow{}.Counts) {
		columns = append(columns, schema.ColumnValues(changes, func(c *fold.Change) uint32 { return c.Counts[k] }))
	}
	columns = append(columns,
		schema.ColumnValues(changes, func(c *fold.Change) []uint64 { return c.Later }),
		schema.ColumnValues(changes, func(c *fold.Change) []uint8 { return c.LaterKinds }),
	)
	for k := range len(fold.FactRow{}.Amounts) {
		columns = append(columns, schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Amounts[k] }))
	}
	for k := range len(fold.FactRow{}.Before) {
		columns = append(columns, schema.ColumnValues(changes, func(c *fold.Change) int64 { return c.Before[k] }))
	}
	columns = append(columns,
		schema.ColumnValues(changes, func(c *fold.Change) uint8 { return c.Marks }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return c.Foreign }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return c.Custom }),
		schema.ColumnValues(changes, func(c *fold.Change) string { return c.Properties }),
		listOfItems(changes, func(item *schema.Item) string { return item.Product }),
		listOfItems(changes, func(item *schema.Item) string { return item.Variant }),
		listOfItems(changes, func(item *schema.Item) string { return item.Category }),
		listOfItems(changes, func(item *schema.Item) string { return item.Brand }),
		listOfItems(changes, func(item *schema.Item) string { return item.Name }),
		listOfItems(changes, func(item *schema.Item) int64 { return item.Quantity }),
		listOfItems(changes, func(item *schema.Item) int64 { return item.Revenue }),
		listOfItems(changes, func(item *schema.Item) int64 { return item.Profit }),
		schema.ColumnValues(changes, sumsColumn),
	)
	return append(columns, attributesOf(changes)...)
}

// attributesOf returns functions that return the values of the columns attributes: the joined attributes, divided.
func attributesOf(changes []fold.Change) (columns []func() any) {
	split := make([][]string, len(schema.AttributeColumns))
	for k := range split {
		split[k] = make([]string, len(changes))
	}
	for i := range changes {
		rest := changes[i].Attributes
		for k := 0; k < len(split) && rest != ""; k++ {
			split[k][i], rest, _ = strings.Cut(rest, schema.AttributeSeparator)
		}
	}
	for k := range split {
		columns = append(columns, func() any { return split[k] })
	}
	return columns
}
