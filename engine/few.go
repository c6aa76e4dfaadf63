package engine

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"sync"

	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// FewEvents is how many events a subject may have to be counted here: the
// store takes longer to understand a statement that counts them than to hand
// them over. No sum over so many of a visitor's amounts overflows.
const FewEvents uint64 = 100_000

// fewSlots are what differs between reports in sql/few.sql.
type fewSlots struct {
	slots
	Shows     bool // whether it matters what the first view shows
	AllEvents bool // whether it matters when events were that do not count
}

// seen is one line of an answer of sql/few.sql.
type seen struct {
	of                   int // its visitor's place among those counted
	visitor              uint64
	at                   int64 // milliseconds since 1970
	eventID              uint64
	variationID          int64
	kind                 uint8
	shows                bool
	value, profit, extra int64
	dimension            string
}

// The numbers that the kinds have in the table of events; 0 is an event that
// does not count.
const (
	viewKind uint8 = 1 + iota
	clickKind
	submitKind
	completionKind
	conversionKind
	contactKind
	goalKind
)

// few has the events of a subject, and what they say of each visitor.
type few struct {
	plan     *Plan
	from, to int64
	events   []seen
	visitors []counting
	places   map[uint64]int // of the visitors
}

// fews are some that were let go: what they hold is most of what a report of
// few events takes.
var fews = sync.Pool{New: func() any { return &few{places: map[uint64]int{}} }}

// letGo has the next report use what this one holds.
func (f *few) letGo() {
	clear(f.events)
	clear(f.places)
	clear(f.visitors)
	f.events, f.visitors = f.events[:0], f.visitors[:0]
	fews.Put(f)
}

// counting is what the events say of one visitor.
type counting struct {
	first       *seen // the least view in time, variation and id
	variationID int64 // of some view
	crossover   bool
	lastSeen    int64 // before the window's end
	views       int64
	goals       int64
	Actions
	value, profit, extra int64
}

// fewMoments reads the events themselves and counts them, to the same rows as
// exactMoments.
func (p *Plan) fewMoments(ctx context.Context, from *store) ([]row, error) {
	f, err := p.readFew(ctx, from)
	if err != nil {
		return nil, err
	}
	defer f.letGo()
	return f.rows(), nil
}

// readFew reads the events, and what they say of each visitor. The caller lets
// it go.
func (p *Plan) readFew(ctx context.Context, from *store) (*few, error) {
	query, err := p.fewQuery()
	if err != nil {
		return nil, err
	}
	f := fews.Get().(*few) //nolint:forcetypeassert // New
	f.plan, f.from, f.to = p, p.from().UnixMilli(), p.to().UnixMilli()
	f.events = slices.Grow(f.events, int(min(p.events, FewEvents))) //nolint:gosec // few
	e := seen{shows: true}
	to := []any{&e.visitor, &e.at, &e.variationID, &e.kind, &e.value, &e.profit, &e.extra}
	if p.shows() {
		to = append(to, &e.eventID, &e.shows, &e.dimension)
	}
	err = from.each(ctx, query, func(found driver.Rows) error {
		err := found.Scan(to...)
		f.events = append(f.events, e)
		return err
	})
	if err != nil {
		f.letGo()
		return nil, err
	}
	f.know()
	f.expose()
	f.count()
	return f, nil
}

func (p *Plan) shows() bool {
	return p.Dimension != "" || len(p.Filters.Lists)+len(p.Filters.Texts) > 0
}

func (p *Plan) fewQuery() (*Query, error) {
	q, exact := p.exact()
	return q, q.render("few.sql", fewSlots{slots: exact, Shows: p.shows(), AllEvents: !p.Filters.From.IsZero()})
}

// know gives each event its visitor. Most stand next to others of the same one.
func (f *few) know() {
	for i := range f.events {
		e := &f.events[i]
		if i > 0 && f.events[i-1].visitor == e.visitor {
			e.of = f.events[i-1].of
			continue
		}
		of, known := f.places[e.visitor]
		if !known {
			of = len(f.visitors)
			f.places[e.visitor] = of
			f.visitors = append(f.visitors, counting{})
		}
		e.of = of
	}
}

// expose finds each visitor's first view.
func (f *few) expose() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.of]
		if e.at < f.to {
			v.lastSeen = max(v.lastSeen, e.at)
		}
		if e.kind != viewKind {
			continue
		}
		switch {
		case v.first == nil:
			v.first, v.variationID = e, e.variationID
		case cmp.Or(cmp.Compare(e.at, v.first.at), cmp.Compare(e.variationID, v.first.variationID), cmp.Compare(e.eventID, v.first.eventID)) < 0:
			v.first = e
		}
		v.crossover = v.crossover || e.variationID != v.variationID
		if e.at < f.to {
			v.did(e)
		}
	}
}

// count adds up what each visitor did from the first view on, within the
// window's end.
func (f *few) count() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.of]
		if e.kind > viewKind && f.counts(v, e) {
			v.did(e)
		}
	}
}

// counts says whether an event that the report counts is one of the visitor
// that it counts.
func (f *few) counts(v *counting, e *seen) bool {
	return v.first != nil && e.at >= v.first.at && e.at < f.to
}

// did counts an event in.
func (v *counting) did(e *seen) {
	switch e.kind {
	case viewKind:
		v.views++
	case goalKind:
		v.goals++
		v.value += e.value
		v.profit += e.profit
		v.extra += e.extra
	case clickKind:
		v.Clicks++
	case submitKind:
		v.Submits++
	case completionKind:
		v.Completions++
	case conversionKind:
		v.Conversions++
	case contactKind:
		v.Contacts++
	}
}

// seenInWindow says whether the report has the visitor, or tells that it was
// exposed before.
func (f *few) seenInWindow(v *counting) bool {
	return v.first != nil && v.first.shows && v.first.at < f.to && v.lastSeen >= f.from
}

// rows sums the visitors who are in the report, or were seen in its window but
// first exposed before.
func (f *few) rows() []row {
	type standing struct {
		variationID        int64
		dimension          string
		earlier, crossover bool
	}
	at := map[standing]int{}
	var rows []row
	recentFrom, recentTo := f.plan.recent()
	for i := range f.visitors {
		v := &f.visitors[i]
		if !f.seenInWindow(v) {
			continue
		}
		key := standing{v.first.variationID, v.first.dimension, v.first.at < f.from, v.crossover}
		place, known := at[key]
		if !known {
			place, at[key] = len(rows), len(rows)
			rows = append(rows, row{variationID: key.variationID, dimension: key.dimension, earlier: key.earlier, crossover: key.crossover, Moments: noMoments()})
		}
		m := &rows[place].Moments
		m.add(v)
		m.SinceShares += one(v.first.at >= f.plan.SharesSince.UnixMilli())
		m.Recent += one(v.first.at >= recentFrom.UnixMilli() && v.first.at < recentTo.UnixMilli())
	}
	return rows
}

func noMoments() Moments {
	m := Moments{ValueGoals: new(big.Int)}
	for _, sums := range []*stats.Sums{&m.Goals, &m.Value.Sums, &m.Profit.Sums, &m.ExtraValue.Sums} {
		sums.Sum, sums.Squares = new(big.Int), new(big.Int)
	}
	return m
}

// add counts a visitor in.
func (m *Moments) add(v *counting) {
	m.Visitors++
	m.Views += v.views
	m.Actions = m.merge(v.Actions)
	m.Converted += one(v.goals > 0)
	m.Completed += one(v.Completions > 0)
	m.Conversion += one(v.Conversions > 0)
	if v.goals == 0 {
		return
	}
	goals, value := big.NewInt(v.goals), big.NewInt(v.value)
	addSums(&m.Goals, goals)
	m.Value.add(value)
	m.Profit.add(big.NewInt(v.profit))
	m.ExtraValue.add(big.NewInt(v.extra))
	m.ValueGoals.Add(m.ValueGoals, value.Mul(value, goals))
}

func (a *Amounts) add(amount *big.Int) {
	if amount.Sign() == 0 {
		return
	}
	a.Nonzero++
	a.Negative += one(amount.Sign() < 0)
	addSums(&a.Sums, amount)
}

func addSums(s *stats.Sums, amount *big.Int) {
	s.Sum.Add(s.Sum, amount)
	s.Squares.Add(s.Squares, new(big.Int).Mul(amount, amount))
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
