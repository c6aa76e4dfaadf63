package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// Refresher brings the facts of a store up to date with its events. A process has one.
type Refresher struct {
	conn  driver.Conn
	alone bool // no other process refreshes the facts

	mu       sync.Mutex // held by a refresh; guards the following
	known    bool       // whether the following is that of the store: it is read again after an error
	position Position
	cells    cells
}

// NewRefresher returns the refresher of a store. alone says that no other process refreshes its facts.
func NewRefresher(conn driver.Conn, alone bool) *Refresher { return &Refresher{conn: conn, alone: alone} }

// visitorsAtOnce is the number of visitors that are folded at once. Their ids are parameters of a statement.
const visitorsAtOnce = 16_384

// Refresh folds the visitors with events that were accepted since the last refresh, and inserts what changed.
// It returns the position of the facts.
func (r *Refresher) Refresh(ctx context.Context) (Position, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(reading))
	if err := r.open(ctx); err != nil {
		return Position{}, err
	}
	var through int64
	if err := r.conn.QueryRow(ctx, lastAccepted).Scan(&through); err != nil {
		return Position{}, fmt.Errorf("read the last acceptance time: %w", err)
	}
	if through <= r.position.Through {
		return r.position, nil
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
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(reading))
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

// open reads what the refresher must know of the stored facts, unless it is known.
func (r *Refresher) open(ctx context.Context) (err error) {
	if r.known {
		return nil
	}
	if r.position, err = ReadPosition(ctx, r.conn); err != nil {
		return err
	}
	if r.cells, err = openCells(ctx, r.conn); err != nil {
		return err
	}
	r.known = true
	return nil
}

// errOvertaken means that another process has inserted the refresh with the same number.
var errOvertaken = errors.New("another process was faster")

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
			return Position{}, fmt.Errorf("refresh %d: %w", next.Refresh, err)
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
	if len(changes) > 0 {
		if changes, err = r.cells.change(ctx, r.conn, changes, had, want); err != nil {
			return err
		}
	}
	if r.position.Refresh > 0 {
		changes = append(changes, fold.Change{Row: r.position.row(), Cancels: true})
	}
	changes = append(changes, fold.Change{Row: next.row()})
	if err := insertChanges(ctx, r.conn, next.Refresh, changes); err != nil {
		return err
	}
	if !r.alone {
		switch stored, err := ReadPosition(ctx, r.conn); {
		case err != nil:
			return err
		case stored != next:
			return errOvertaken
		}
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
	events, err := readEvents(ctx, r.conn, touched, through)
	if err != nil {
		return nil, nil, err
	}
	var before []fold.Event
	for from, to := 0, 0; from < len(events); from = to {
		before = before[:0]
		for to = from; to < len(events) && events[to].Visitor == events[from].Visitor && events[to].Subject.WebsiteID == events[from].Subject.WebsiteID; to++ {
			if events[to].Accepted <= r.position.Through {
				before = append(before, events[to])
			}
		}
		had, want = fold.Rows(before, had), fold.Rows(events[from:to], want)
	}
	if r.position.Refresh == 0 {
		return had, want, nil
	}
	expected, subjects := map[visitorOf]made{}, map[plan.Subject]bool{}
	madeOfRows(had, expected)
	for i := range want {
		subjects[want[i].Subject] = true
	}
	stored, err := readMade(ctx, r.conn, touched, subjects)
	if err != nil {
		return nil, nil, err
	}
	if wrong := differing(expected, stored); len(wrong) > 0 {
		return r.mend(ctx, wrong, had, want)
	}
	return had, want, nil
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

// mend replaces the rows that some visitors had by those that are stored. A visitor
// whose rows are made of more events than there are has lost events: the visitor is reported, and
// keeps the rows.
func (r *Refresher) mend(ctx context.Context, wrong map[Visitor]bool, had, want []fold.Row) (_, _ []fold.Row, err error) {
	visitors := make([]Visitor, 0, len(wrong))
	for v := range wrong {
		visitors = append(visitors, v)
	}
	var stored []fold.Row
	err = readRows(ctx, r.conn, visitorRows, func(row *fold.Row) error {
		if wrong[Visitor{row.Subject.WebsiteID, row.Visitor}] {
			stored = append(stored, *row)
		}
		return nil
	}, visitorParams(visitors)...)
	if err != nil {
		return nil, nil, fmt.Errorf("read the facts of visitors: %w", err)
	}
	wanted, found := map[visitorOf]made{}, map[visitorOf]made{}
	madeOfRows(want, wanted)
	madeOfRows(stored, found)
	lost := map[Visitor]bool{}
	for of, m := range found {
		if m.seen > wanted[of].seen {
			lost[Visitor{of.Subject.WebsiteID, of.Visitor}] = true
			slog.ErrorContext(ctx, "events of a visitor are lost; reports keep what they counted: restore a backup", "visitor", of.Visitor, "subject", of.Subject, "events", wanted[of].seen, "counted", m.seen)
		}
	}
	without := func(rows []fold.Row, of map[Visitor]bool) []fold.Row {
		return slices.DeleteFunc(rows, func(row fold.Row) bool { return of[Visitor{row.Subject.WebsiteID, row.Visitor}] })
	}
	return append(without(had, wrong), without(stored, lost)...), without(want, lost), nil
}
