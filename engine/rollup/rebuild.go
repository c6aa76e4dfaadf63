package rollup

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/source"
	"lifthouse/engine/visitors"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// expr is trusted SQL, made of constants only.
type expr string

// slots are the slots of sql/rebuild.sql and sql/frequent.sql.
type slots struct {
	Attributes expr
	Columns    []expr // attributes of the first view of a visitor
	Shown      expr   // attributes of a view in one string
	Sets       []expr
	Ranked     []expr // attributes whose values are ranked
	Attribute  expr   // of sql/frequent.sql
	Order      generation.Order
}

// statements are those that read the events of a subject.
type statements struct {
	rebuild, touched, touchedKnown, accepted, extent, newest, copies, stored, restored string
	frequent                                                                           map[string]string // by the name of the cube
}

// statementsBy has the statements of each order.
var statementsBy = map[generation.Order]statements{
	generation.ByTime:  newStatements(generation.ByTime),
	generation.ByBlock: newStatements(generation.ByBlock),
	generation.BySet:   newStatements(generation.BySet),
}

func newStatements(by generation.Order) statements {
	render := func(file string) string { return source.MustRender(sqlTemplates, file, newSlots(by)) }
	touched := func(known bool) string {
		return source.MustRender(sqlTemplates, "touched.sql", struct {
			Columns []string
			Threads int
			Order   generation.Order
			Known   bool // the visitors are known
		}{visitors.Attributes, threads, by, known})
	}
	return statements{
		rebuild: render("rebuild.sql"), frequent: newFrequentStatements(by), accepted: render("accepted.sql"), extent: render("extent.sql"),
		newest: render("newest.sql"), copies: render("copies.sql"), stored: render("stored.sql"), restored: render("restored.sql"),
		touched: touched(false), touchedKnown: touched(true),
	}
}

func newFrequentStatements(by generation.Order) map[string]string {
	rendered := map[string]string{}
	for _, c := range frequentCubes() {
		rendered[c.name] = source.MustRender(sqlTemplates, "frequent.sql", slots{Order: by, Attribute: expr(c.by[0])})
	}
	return rendered
}

// threads is the number of threads of a step. The other cores are left for
// reports and writes.
const threads = 1

func newSlots(by generation.Order) slots {
	s := slots{Order: by}
	shown := make([]string, 0, len(attributeColumns))
	for i, column := range attributeColumns {
		s.Columns = append(s.Columns, expr(fmt.Sprintf("shown[%d] AS %s", i+1, column)))
		shown = append(shown, column)
	}
	s.Attributes = expr(strings.Join(attributeColumns, ", "))
	s.Shown = expr(strings.Join(shown, `, '\0', `))
	for i := range cubes {
		cube := &cubes[i]
		s.Sets = append(s.Sets, expr(", "+strings.Join(cube.columns(), ", ")))
		if cube.rank {
			s.Ranked = append(s.Ranked, expr(cube.by[0]))
		}
	}
	return s
}

// masks returns the result of the SQL function grouping for each cube: one bit
// per column that is not a dimension of the cube, the first column in the
// highest bit.
func masks() (masks []uint64, names []string) {
	columns := slices.Concat([]string{"first_day", "day", "variation_id", "multi_exposed"}, attributeColumns)
	for i := range cubes {
		kept := cubes[i].columns()
		var mask uint64
		for _, column := range columns {
			mask <<= 1
			if !slices.Contains(kept, column) {
				mask |= 1
			}
		}
		masks, names = append(masks, mask), append(names, cubes[i].name)
	}
	return masks, names
}

// largeEvents is the number of events from which generations have a bucket of
// their own.
const largeEvents = 2_000_000

// visitorParams returns the parameters for the events of a range of visitors.
func (d *backlog) visitorParams(through position, bounds [2]uint64) []any {
	return append(d.untilParams(through), clickhouse.Named("first_visitor", bounds[0]), clickhouse.Named("last_visitor", bounds[1]))
}

// rangeParams returns the parameters of a rebuild of a range of visitors.
func (d *backlog) rangeParams(of generation.ID, through position, values frequent, bounds [2]uint64) []any {
	masks, names := masks()
	return append(append(d.visitorParams(through, bounds), values.params()...),
		clickhouse.Named("bucket", of.Bucket),
		clickhouse.Named("generation", of.Number),
		clickhouse.Named("shares_since", d.sharesSince),
		clickhouse.Named("attributes", uint8(len(attributeColumns))), //nolint:gosec // few
		clickhouse.Named("most", int64(maxAmount)),
		clickhouse.Named("masks", masks),
		clickhouse.Named("cubes", names))
}

// rebuild computes a new generation, which replaces the previous ones.
func (s *builder) rebuild(ctx context.Context, d *backlog, through position) error {
	next := &State{SharesSince: d.sharesSince, Through: time.UnixMilli(0).UTC()}
	if err := s.mayRebuild(ctx, d, through); err != nil {
		return err
	}
	values, err := s.chooseFrequent(ctx, d, through)
	if err == nil && d.stored <= s.foldEvents {
		err = s.rebuildSmall(ctx, d, next, through, values)
	} else if err == nil {
		err = s.rebuildLarge(ctx, d, next, through, values)
	}
	if err != nil || next.Events == 0 { // the events were removed, but the counters are not updated yet
		return err
	}
	if d.state != nil {
		s.replace(d.state.Generation, d.state.Visitors.ID)
	}
	d.state = next
	return nil
}

// rebuildSmall adds up the events in this process, and inserts one block per table.
func (s *builder) rebuildSmall(ctx context.Context, d *backlog, next *State, through position, values frequent) error {
	var err error
	if next.Generation, err = s.newGeneration(ctx, "rebuild", d.subject, false); err != nil {
		return err
	}
	rowsID, err := s.newGeneration(ctx, "rows", d.subject, false)
	if err != nil {
		return err
	}
	next.Visitors = visitors.New(rowsID, nil)
	rows, changes, err := s.fold(ctx, d, next, through, values)
	if err != nil || next.Events == 0 {
		return err
	}
	if rows.Full() {
		next.Visitors = visitors.Generation{}
	} else if err := rows.InsertFirst(ctx, s.conn); err != nil {
		return err
	}
	return s.publish(ctx, next, func(ctx context.Context) error { return changes.insert(ctx, s.conn, d.subject, next, true) })
}

// rebuildLarge adds up the events in the store, by ranges of visitors.
func (s *builder) rebuildLarge(ctx context.Context, d *backlog, next *State, through position, values frequent) error {
	var variations []int64
	row := s.conn.QueryRow(ctx, d.statements().extent, d.untilParams(through)...)
	if err := row.Scan(&next.Events, &next.Through, &next.Newest, &variations); err != nil {
		return err
	}
	if next.Events == 0 {
		return nil
	}
	var err error
	if next.Generation, err = s.newGeneration(ctx, "rebuild", d.subject, next.Events >= largeEvents); err != nil {
		return err
	}
	next.Visitors.Variations = variations
	for _, bounds := range visitorRanges(next.Events) {
		next.Inserts++
		if err := s.conn.Exec(ctx, d.statements().rebuild, d.rangeParams(next.Generation, through, values, bounds)...); err != nil {
			return err
		}
	}
	if err := s.rebuildRows(ctx, d, next, through); err != nil {
		return err
	}
	if err := merge(ctx, s.conn, next.Generation); err != nil {
		return err
	}
	s.stamp(next, through)
	return s.publish(ctx, next, func(ctx context.Context) error { return complete(ctx, s.conn, d.subject, next) })
}

// visitorRanges divides the visitors into ranges of their hashed ids, with
// about rangeEvents events each.
func visitorRanges(events uint64) [][2]uint64 {
	n := 1 + events/rangeEvents
	width := math.MaxUint64/n + 1
	if n == 1 {
		return [][2]uint64{{0, math.MaxUint64}}
	}
	ranges := make([][2]uint64, n)
	for i := range ranges {
		first := uint64(i) * width //nolint:gosec // few
		ranges[i] = [2]uint64{first, first + width - 1}
	}
	ranges[n-1][1] = math.MaxUint64
	return ranges
}
