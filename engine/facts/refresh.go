package facts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// Refresher brings the facts of a store up to date with its events. A process has one.
type Refresher struct {
	conn driver.Conn

	mu       sync.Mutex            // held by a refresh; guards the following
	position Position              // of the stored facts
	known    bool                  // whether the position is known: it is read again after an error
	byDay    map[plan.Subject]bool // subjects with cells by day
}

// NewRefresher returns the refresher of a store.
func NewRefresher(conn driver.Conn) *Refresher { return &Refresher{conn: conn} }

// Settings of a refresh.
const (
	// visitorsAtOnce is the number of visitors that are folded at once: some 300 MB of rows, and one part.
	visitorsAtOnce = 50_000
	// leastVisitorsByDay is the number of visitors from which a subject has cells by day. Below,
	// reports over days are fast without them.
	leastVisitorsByDay = 100_000
)

// Refresh folds the visitors with events that were accepted since the last refresh, and inserts what changed.
// It returns the position of the facts.
func (r *Refresher) Refresh(ctx context.Context) (Position, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(ctx); err != nil {
		return Position{}, err
	}
	through, err := r.lastAccepted(ctx)
	if err != nil || through <= r.position.Through {
		return r.position, err
	}
	touched, err := schema.QueryRows(ctx, r.conn, touchedVisitors, scanVisitor, clickhouse.Named("after", r.position.Through), clickhouse.Named("through", through))
	if err != nil {
		return Position{}, fmt.Errorf("read the visitors with new events: %w", err)
	}
	return r.fold(ctx, touched, through)
}

// RefreshVisitors is like Refresh if these are all visitors with events that were accepted since the
// last refresh, until through, in milliseconds since 1970.
func (r *Refresher) RefreshVisitors(ctx context.Context, touched []Visitor, through int64) (Position, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(ctx); err != nil {
		return Position{}, err
	}
	slices.SortFunc(touched, compareVisitors)
	return r.fold(ctx, slices.Compact(touched), through)
}

func compareVisitors(a, b Visitor) int {
	return cmp.Or(cmp.Compare(a.Website, b.Website), cmp.Compare(a.ID, b.ID))
}

func scanVisitor(row driver.Rows, v *Visitor) error { return row.Scan(&v.Website, &v.ID) }

// open reads the position and the subjects with cells by day, unless they are known.
func (r *Refresher) open(ctx context.Context) (err error) {
	if r.known {
		return nil
	}
	if r.position, err = ReadPosition(ctx, r.conn); err != nil {
		return err
	}
	r.byDay = map[plan.Subject]bool{}
	err = schema.EachRow(ctx, r.conn, statement("subjects_by_day.sql", ""), func(row driver.Rows) error {
		var of plan.Subject
		var kind uint8
		err := row.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID)
		of.Kind = kindsOfSubjects[kind]
		r.byDay[of] = true
		return err
	})
	if err != nil {
		return fmt.Errorf("read the subjects with cells by day: %w", err)
	}
	r.known = true
	return nil
}

// lastAccepted returns the latest acceptance time of the stored events.
func (r *Refresher) lastAccepted(ctx context.Context) (through int64, err error) {
	if err := r.conn.QueryRow(ctx, statement("last_accepted.sql", "")).Scan(&through); err != nil {
		return 0, fmt.Errorf("read the last acceptance time: %w", err)
	}
	return through, nil
}

// fold folds the visitors, who are sorted, some at a time. The position includes the events until
// through once all are folded.
func (r *Refresher) fold(ctx context.Context, touched []Visitor, through int64) (Position, error) {
	for from := 0; ; from += visitorsAtOnce {
		to := min(from+visitorsAtOnce, len(touched))
		next := Position{r.position.Refresh + 1, r.position.Through}
		if to == len(touched) {
			next.Through = through
		}
		if err := r.foldSome(ctx, touched[from:to], through, next); err != nil {
			r.known = false
			return Position{}, err
		}
		if to == len(touched) {
			return r.position, nil
		}
	}
}

// foldSome folds some visitors, and inserts what changed together with the next position.
func (r *Refresher) foldSome(ctx context.Context, touched []Visitor, through int64, next Position) error {
	had, want, err := r.rowsOf(ctx, touched, through)
	if err != nil {
		return err
	}
	changes := fold.Changes(nil, had, want)
	if changes, err = r.withCells(ctx, changes, had, want); err != nil {
		return err
	}
	if r.position.Refresh > 0 {
		changes = append(changes, fold.Change{Row: r.position.row(), Cancels: true})
	}
	changes = append(changes, fold.Change{Row: next.row()})
	if err := insertChanges(ctx, r.conn, next.Refresh, changes); err != nil {
		return err
	}
	stored, err := ReadPosition(ctx, r.conn)
	if err != nil {
		return err
	}
	if stored != next {
		return fmt.Errorf("facts: another process made refresh %d", next.Refresh)
	}
	r.position = next
	return nil
}

// rowsOf returns the stored rows of the visitors, and the rows that they should have. What is stored is
// computed from the events of the last position, and confirmed by the number of events of
// each visitor and their digests; only the rows of visitors for whom it is not so are read.
func (r *Refresher) rowsOf(ctx context.Context, touched []Visitor, through int64) (had, want []fold.Row, err error) {
	if len(touched) == 0 {
		return nil, nil, nil
	}
	var before []fold.Event
	ends := map[Visitor][2]int{} // ends of the rows of a visitor in had and want
	err = eachVisitor(ctx, r.conn, touched, through, func(v Visitor, events []fold.Event) error {
		before = before[:0]
		for i := range events {
			if events[i].Accepted <= r.position.Through {
				before = append(before, events[i])
			}
		}
		had, want = fold.Rows(before, had), fold.Rows(events, want)
		ends[v] = [2]int{len(had), len(want)}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the events of visitors: %w", err)
	}
	expected := map[visitorOf]made{}
	madeOfRows(had, expected)
	stored, err := r.readMade(ctx, touched)
	if err != nil {
		return nil, nil, err
	}
	wrong := differing(expected, stored)
	if len(wrong) == 0 {
		return had, want, nil
	}
	return r.mend(ctx, wrong, had, want, stored)
}

// readMade returns what the stored rows of the visitors are made of.
func (r *Refresher) readMade(ctx context.Context, touched []Visitor) (map[visitorOf]made, error) {
	if r.position.Refresh == 0 {
		return nil, nil
	}
	stored, err := readMade(ctx, r.conn, touched)
	if err != nil {
		return nil, fmt.Errorf("read what the facts are made of: %w", err)
	}
	return stored, nil
}

// differing returns the visitors whose stored rows are made of other events than expected.
func differing(expected, stored map[visitorOf]made) map[Visitor]bool {
	wrong := map[Visitor]bool{}
	for of, m := range expected {
		if stored[of] != m {
			wrong[Visitor{of.Subject.WebsiteID, of.Visitor}] = true
		}
	}
	for of, m := range stored {
		if expected[of] != m {
			wrong[Visitor{of.Subject.WebsiteID, of.Visitor}] = true
		}
	}
	return wrong
}

// mend replaces the stored rows of some visitors by those that are really stored. A visitor
// whose rows are made of more events than there are has lost events: the visitor is reported, and
// keeps the rows.
func (r *Refresher) mend(ctx context.Context, wrong map[Visitor]bool, had, want []fold.Row, stored map[visitorOf]made) (_, _ []fold.Row, err error) {
	wanted := map[visitorOf]made{}
	madeOfRows(want, wanted)
	lost := map[Visitor]bool{}
	for of, m := range stored {
		if m.seen > wanted[of].seen {
			lost[Visitor{of.Subject.WebsiteID, of.Visitor}] = true
			slog.ErrorContext(ctx, "events of a visitor are lost; the reports keep what they counted: restore a backup", "visitor", of.Visitor, "subject", of.Subject, "events", wanted[of].seen, "counted", m.seen)
		}
	}
	without := func(rows []fold.Row, of map[Visitor]bool) []fold.Row {
		return slices.DeleteFunc(rows, func(row fold.Row) bool { return of[Visitor{row.Subject.WebsiteID, row.Visitor}] })
	}
	had, want = without(had, wrong), without(want, lost)
	var read []Visitor
	for v := range wrong {
		if !lost[v] {
			read = append(read, v)
		}
	}
	slices.SortFunc(read, compareVisitors)
	for some := range slices.Chunk(read, visitorsAtOnce) {
		with, err := withTouched(ctx, some)
		if err != nil {
			return nil, nil, err
		}
		err = readRows(with, r.conn, visitorRows, func(row *fold.Row) error {
			had = append(had, *row)
			return nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read the facts of visitors: %w", err)
		}
	}
	return had, want, nil
}

// withCells appends the changes of cells when rows of visitors change from had to want.
func (r *Refresher) withCells(ctx context.Context, changes []fold.Change, had, want []fold.Row) ([]fold.Change, error) {
	if len(changes) == 0 {
		return changes, nil
	}
	added := fold.Cells{}
	add := func(rows []fold.Row, sign int64) {
		for from, to := 0, 0; from < len(rows); from = to {
			for to = from + 1; to < len(rows) && rows[to].Subject == rows[from].Subject && rows[to].Visitor == rows[from].Visitor; to++ {
			}
			added.Add(rows[from:to], sign, r.byDay[rows[from].Subject])
		}
	}
	add(had, -1)
	add(want, 1)
	stored, err := r.readCells(ctx, added)
	if err != nil {
		return nil, err
	}
	for _, subject := range grown(added, stored, r.byDay) {
		if err := r.divideByDay(ctx, subject, added, had, want); err != nil {
			return nil, err
		}
	}
	return appendCells(changes, added, stored), nil
}

// appendCells appends the changes of cells to which something is added.
func appendCells(changes []fold.Change, added, stored fold.Cells) []fold.Change {
	for key, sums := range added {
		if *sums == (fold.Sums{}) {
			continue
		}
		if had := stored[key]; had != nil {
			changes = append(changes, fold.Change{Row: cellRow(&key, had), Cancels: true})
			sums.Add(had, 1)
		}
		if *sums != (fold.Sums{}) {
			changes = append(changes, fold.Change{Row: cellRow(&key, sums)})
		}
	}
	return changes
}

// grown returns the subjects that get enough visitors for cells by day.
func grown(added, stored fold.Cells, byDay map[plan.Subject]bool) []plan.Subject {
	visitors := map[plan.Subject]int64{}
	for _, cells := range []fold.Cells{added, stored} {
		for key, sums := range cells {
			if key.Grain == fold.OfAll && key.Goal == 0 && key.Variation != "" && !byDay[key.Subject] {
				visitors[key.Subject] += int64(sums[fold.Visitors].Low) //nolint:gosec // visitors
			}
		}
	}
	var subjects []plan.Subject
	for subject, n := range visitors {
		if n >= leastVisitorsByDay {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// divideByDay adds the cells by day of a subject, which has none yet: of its stored visitors,
// changed from had to want.
func (r *Refresher) divideByDay(ctx context.Context, subject plan.Subject, added fold.Cells, had, want []fold.Row) error {
	byDay := fold.Cells{}
	var rows []fold.Row
	end := func() {
		byDay.Add(rows, 1, true)
		rows = rows[:0]
	}
	add := func(r *fold.Row) {
		if len(rows) > 0 && rows[0].Visitor != r.Visitor {
			end()
		}
		rows = append(rows, *r)
	}
	if r.position.Refresh > 0 {
		err := readRows(clickhouse.Context(ctx, clickhouse.WithSettings(reading)), r.conn, subjectRows, func(r *fold.Row) error {
			add(r)
			return nil
		}, subjectParams(subject)...)
		if err != nil {
			return fmt.Errorf("read the facts of %s: %w", subject, err)
		}
		end()
	}
	for _, changed := range []struct {
		rows []fold.Row
		sign int64
	}{{had, -1}, {want, 1}} {
		for from, to := 0, 0; from < len(changed.rows); from = to {
			of := changed.rows[from]
			for to = from + 1; to < len(changed.rows) && changed.rows[to].Subject == of.Subject && changed.rows[to].Visitor == of.Visitor; to++ {
			}
			if of.Subject == subject {
				byDay.Add(changed.rows[from:to], changed.sign, true)
			}
		}
	}
	for key, sums := range byDay {
		if key.Grain == fold.OfDay {
			added[key] = sums
		}
	}
	r.byDay[subject] = true
	return nil
}

func subjectParams(s plan.Subject) []any {
	return []any{clickhouse.Named("website_id", s.WebsiteID), clickhouse.Named("subject", string(s.Kind)), clickhouse.Named("subject_id", s.ID), clickhouse.Named("experiment_id", s.ExperimentID)}
}

// readCells returns the stored cells to which something is added.
func (r *Refresher) readCells(ctx context.Context, added fold.Cells) (fold.Cells, error) {
	stored := fold.Cells{}
	if r.position.Refresh == 0 {
		return stored, nil
	}
	const day = 24 * int64(time.Hour/time.Millisecond)
	type wantedGoal struct {
		subject plan.Subject
		grain   fold.Grain
		goal    int64
		first   int64
	}
	wanted := map[wantedGoal]bool{}
	for key := range added {
		wanted[wantedGoal{key.Subject, key.Grain, key.Goal, key.First * day}] = true
	}
	var websites, ids, experiments, goals, firsts []int64
	var subjects, ofGrains []string
	for w := range wanted {
		websites, subjects, ids, experiments = append(websites, w.subject.WebsiteID), append(subjects, string(w.subject.Kind)), append(ids, w.subject.ID), append(experiments, w.subject.ExperimentID)
		ofGrains, goals, firsts = append(ofGrains, grains[w.grain]), append(goals, w.goal), append(firsts, w.first)
	}
	with, err := withTable(ctx, "wanted",
		tableColumn{"website_id", "Int64", websites}, tableColumn{"subject", "Enum8('none' = 0, 'campaign' = 1, 'widget' = 2)", subjects},
		tableColumn{"subject_id", "Int64", ids}, tableColumn{"experiment_id", "Int64", experiments},
		tableColumn{"grain", "Enum8('visitor' = 1, 'goal' = 2, 'all' = 3, 'day' = 4, 'position' = 5)", ofGrains},
		tableColumn{"goal_id", "Int64", goals}, tableColumn{"first_ms", "Int64", firsts})
	if err != nil {
		return nil, err
	}
	err = schema.EachRow(with, r.conn, wantedCells, func(row driver.Rows) error {
		key, sums, copies, err := scanCell(row)
		if err != nil {
			return err
		}
		if copies != 1 || stored[key] != nil {
			return fmt.Errorf("a cell of %s is stored %d times: %w", key.Subject, copies, ErrIncomplete)
		}
		stored[key] = sums
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read cells: %w", err)
	}
	return stored, nil
}

func scanCell(row driver.Rows) (key fold.CellKey, sums *fold.Sums, copies int64, err error) {
	const day = 24 * int64(time.Hour/time.Millisecond)
	var kind, grain uint8
	var first int64
	var since uint64
	var large []*big.Int
	err = row.Scan(&key.Subject.WebsiteID, &kind, &key.Subject.ID, &key.Subject.ExperimentID, &grain, &key.Goal, &key.Variation, &first, &since, &large, &copies)
	if err != nil {
		return key, nil, 0, err
	}
	if len(large) != fold.NumberOfSums {
		return key, nil, 0, fmt.Errorf("a cell of %s has %d sums", key.Subject, len(large))
	}
	key.Subject.Kind, key.Grain, key.First, key.Day = kindsOfSubjects[kind], fold.Grain(grain), first/day, int64(since)/day //nolint:gosec // milliseconds
	sums = &fold.Sums{}
	for i, x := range large {
		sums[i] = fold.ToInt128(x)
	}
	return key, sums, copies, nil
}
