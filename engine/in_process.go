package engine

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"sync"
	"time"

	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MaxInProcessEvents is the default maximum number of events of a subject that
// are counted in process. For so few events, the store takes longer to plan a
// query than to return the events. No sum over so many amounts of a visitor
// overflows an int64.
const MaxInProcessEvents uint64 = 100_000

// inProcessSlots are the slots of sql/in_process.sql.
type inProcessSlots struct {
	slots
	Shows     bool // whether attributes of the first view are needed
	AllEvents bool // whether events that do not count are needed, for the window
}

// eventRow is one row of sql/in_process.sql.
type eventRow struct {
	visitorIndex         int // index of the visitor
	visitor              uint64
	at                   int64 // milliseconds since 1970
	eventID              uint64
	variationID          int64
	kind                 uint8
	shows                bool
	value, profit, extra int64
	dimension            string
}

// The values of the column event; 0 is an event that does not count.
const (
	viewKind uint8 = 1 + iota
	clickKind
	submitKind
	completionKind
	conversionKind
	contactKind
	goalKind
)

// inProcess holds the events of a subject and the totals of each visitor.
type inProcess struct {
	plan                 *Plan
	from, to             int64
	recentFrom, recentTo time.Time
	events               []eventRow
	visitors             []visitorTotals
	indexOf              map[uint64]int // by visitor id
}

// inProcessPool keeps released values. Their slices are most of the allocations
// of such a report.
var inProcessPool = sync.Pool{New: func() any { return &inProcess{indexOf: map[uint64]int{}} }}

// release returns the value to the pool.
func (f *inProcess) release() {
	clear(f.events)
	clear(f.indexOf)
	clear(f.visitors)
	f.events, f.visitors = f.events[:0], f.visitors[:0]
	inProcessPool.Put(f)
}

// visitorTotals holds the totals of one visitor.
type visitorTotals struct {
	first        *eventRow // first view: the minimum by time, variation and id
	variationID  int64     // of any view
	multiExposed bool
	lastActive   int64 // before the window's end
	views        int64
	goals        int64
	Actions
	value, profit, extra int64
}

// inProcessSource counts the events in this process.
type inProcessSource struct{ *execution }

func (x inProcessSource) name() string { return SourceInProcess }

// read reads the events once for the rows and the steps of the series.
func (x inProcessSource) read(ctx context.Context) (*answer, string, error) {
	f, err := x.events(ctx)
	if err != nil {
		return nil, "", err
	}
	defer f.release()
	switch {
	case x.Interval == "":
		return x.answer(f.rows(), nil), "", nil
	case x.outliers == nil:
		return x.answer(f.rows(), f.steps()), "", nil
	}
	steps, err := x.steps(ctx)
	return x.answer(f.rows(), steps), "", err
}

// events reads the events and computes the totals of each visitor. The caller
// must release the result.
func (x inProcessSource) events(ctx context.Context) (*inProcess, error) {
	query, err := x.query()
	if err != nil {
		return nil, err
	}
	f := inProcessPool.Get().(*inProcess) //nolint:forcetypeassert // New
	f.plan, f.from, f.to = x.Plan, x.from().UnixMilli(), x.to().UnixMilli()
	f.recentFrom, f.recentTo = recent(x.stored.ingested)
	f.events = slices.Grow(f.events, int(min(x.stored.events, MaxInProcessEvents))) //nolint:gosec // few
	e := eventRow{shows: true}
	to := []any{&e.visitor, &e.at, &e.variationID, &e.kind, &e.value, &e.profit, &e.extra}
	if needsAttributes(x.Plan) {
		to = append(to, &e.eventID, &e.shows, &e.dimension)
	}
	err = x.store.each(ctx, query, func(found driver.Rows) error {
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

// needsAttributes reports whether attributes of the first view are needed.
func needsAttributes(p *Plan) bool {
	return p.Dimension != "" || len(p.Filters.Lists)+len(p.Filters.Texts) > 0
}

func (x inProcessSource) query() (*Query, error) {
	q, reference := x.referenceQuery()
	return q, q.render("in_process.sql", inProcessSlots{slots: reference, Shows: needsAttributes(x.Plan), AllEvents: !x.Filters.From.IsZero()})
}

// groupByVisitor sets the visitor index of each event. Most events follow an
// event of the same visitor.
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

// findFirstViews finds the first view of each visitor, and counts the views.
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

// countEvents adds up the events of each visitor from the first view to the end
// of the window.
func (f *inProcess) countEvents() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.kind > viewKind && f.counts(v, e) {
			v.add(e)
		}
	}
}

// counts reports whether an event is within the counted period of its visitor.
func (f *inProcess) counts(v *visitorTotals, e *eventRow) bool {
	return v.first != nil && e.at >= v.first.at && e.at < f.to
}

// add adds an event.
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

// inReport reports whether the visitor is in the report, or was active in the
// window but exposed before it.
func (f *inProcess) inReport(v *visitorTotals) bool {
	return v.first != nil && v.first.shows && v.first.at < f.to && v.lastActive >= f.from
}

// rows returns the sums over the visitors in the report, and over those that
// were active in the window but exposed before it.
func (f *inProcess) rows() []row {
	type segment struct {
		variationID                 int64
		dimension                   string
		exposedBefore, multiExposed bool
	}
	at := map[segment]int{}
	var rows []row
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
		m.Recent += one(v.first.at >= f.recentFrom.UnixMilli() && v.first.at < f.recentTo.UnixMilli())
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

// add adds a visitor.
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
