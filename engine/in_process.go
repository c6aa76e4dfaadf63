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
const MaxInProcessEvents uint64 = 100_000

// fewSlots are what differs between reports in sql/in_process.sql.
type inProcessSlots struct {
	slots
	Shows     bool // whether it matters what the first view shows
	AllEvents bool // whether it matters when events were that do not count
}

// seen is one line of an answer of sql/in_process.sql.
type eventRow struct {
	visitorIndex         int // its visitor's place among those counted
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
type inProcess struct {
	plan     *Plan
	from, to int64
	events   []eventRow
	visitors []visitorTotals
	indexOf  map[uint64]int // of the visitors
}

// fews are some that were let go: what they hold is most of what a report of
// few events takes.
var inProcessPool = sync.Pool{New: func() any { return &inProcess{indexOf: map[uint64]int{}} }}

// letGo has the next report use what this one holds.
func (f *inProcess) release() {
	clear(f.events)
	clear(f.indexOf)
	clear(f.visitors)
	f.events, f.visitors = f.events[:0], f.visitors[:0]
	inProcessPool.Put(f)
}

// counting is what the events say of one visitor.
type visitorTotals struct {
	first        *eventRow // the least view in time, variation and id
	variationID  int64     // of some view
	multiExposed bool
	lastActive   int64 // before the window's end
	views        int64
	goals        int64
	Actions
	value, profit, extra int64
}

// fewMoments reads the events themselves and counts them, to the same rows as
// exactMoments.
func (p *Plan) inProcessMoments(ctx context.Context, from *store) ([]row, error) {
	f, err := p.readInProcess(ctx, from)
	if err != nil {
		return nil, err
	}
	defer f.release()
	return f.rows(), nil
}

// readFew reads the events, and what they say of each visitor. The caller lets
// it go.
func (p *Plan) readInProcess(ctx context.Context, from *store) (*inProcess, error) {
	query, err := p.inProcessQuery()
	if err != nil {
		return nil, err
	}
	f := inProcessPool.Get().(*inProcess) //nolint:forcetypeassert // New
	f.plan, f.from, f.to = p, p.from().UnixMilli(), p.to().UnixMilli()
	f.events = slices.Grow(f.events, int(min(p.events, MaxInProcessEvents))) //nolint:gosec // few
	e := eventRow{shows: true}
	to := []any{&e.visitor, &e.at, &e.variationID, &e.kind, &e.value, &e.profit, &e.extra}
	if p.needsAttributes() {
		to = append(to, &e.eventID, &e.shows, &e.dimension)
	}
	err = from.each(ctx, query, func(found driver.Rows) error {
		err := found.Scan(to...)
		f.events = append(f.events, e)
		return err
	})
	if err != nil {
		f.release()
		return nil, err
	}
	f.groupByVisitor()
	f.findFirstViews()
	f.countEvents()
	return f, nil
}

func (p *Plan) needsAttributes() bool {
	return p.Dimension != "" || len(p.Filters.Lists)+len(p.Filters.Texts) > 0
}

func (p *Plan) inProcessQuery() (*Query, error) {
	q, reference := p.referenceQuery()
	return q, q.render("in_process.sql", inProcessSlots{slots: reference, Shows: p.needsAttributes(), AllEvents: !p.Filters.From.IsZero()})
}

// know gives each event its visitor. Most stand next to others of the same one.
func (f *inProcess) groupByVisitor() {
	for i := range f.events {
		e := &f.events[i]
		if i > 0 && f.events[i-1].visitor == e.visitor {
			e.visitorIndex = f.events[i-1].visitorIndex
			continue
		}
		of, known := f.indexOf[e.visitor]
		if !known {
			of = len(f.visitors)
			f.indexOf[e.visitor] = of
			f.visitors = append(f.visitors, visitorTotals{})
		}
		e.visitorIndex = of
	}
}

// expose finds each visitor's first view.
func (f *inProcess) findFirstViews() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.at < f.to {
			v.lastActive = max(v.lastActive, e.at)
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
		v.multiExposed = v.multiExposed || e.variationID != v.variationID
		if e.at < f.to {
			v.add(e)
		}
	}
}

// count adds up what each visitor did from the first view on, within the
// window's end.
func (f *inProcess) countEvents() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.kind > viewKind && f.counts(v, e) {
			v.add(e)
		}
	}
}

// counts says whether an event that the report counts is one of the visitor
// that it counts.
func (f *inProcess) counts(v *visitorTotals, e *eventRow) bool {
	return v.first != nil && e.at >= v.first.at && e.at < f.to
}

// did counts an event in.
func (v *visitorTotals) add(e *eventRow) {
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
func (f *inProcess) inReport(v *visitorTotals) bool {
	return v.first != nil && v.first.shows && v.first.at < f.to && v.lastActive >= f.from
}

// rows sums the visitors who are in the report, or were seen in its window but
// first exposed before.
func (f *inProcess) rows() []row {
	type segment struct {
		variationID                 int64
		dimension                   string
		exposedBefore, multiExposed bool
	}
	at := map[segment]int{}
	var rows []row
	recentFrom, recentTo := f.plan.recent()
	for i := range f.visitors {
		v := &f.visitors[i]
		if !f.inReport(v) {
			continue
		}
		key := segment{v.first.variationID, v.first.dimension, v.first.at < f.from, v.multiExposed}
		place, known := at[key]
		if !known {
			place, at[key] = len(rows), len(rows)
			rows = append(rows, row{variationID: key.variationID, dimension: key.dimension, exposedBefore: key.exposedBefore, multiExposed: key.multiExposed, Moments: noMoments()})
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
func (m *Moments) add(v *visitorTotals) {
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
