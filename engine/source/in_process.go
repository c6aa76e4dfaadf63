package source

import (
	"context"
	"slices"
	"sync"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MaxInProcessEvents is the default maximum number of events of a subject that
// are counted in process. For so few events, the store takes longer to plan a
// query than to return the events. No sum over so many amounts of a visitor
// overflows an int64.
const MaxInProcessEvents uint64 = 100_000

// InProcessSlots are the slots of sql/in_process.sql.
type InProcessSlots struct {
	Slots
	Shows        bool // whether attributes of the first view are needed
	AllEvents    bool // whether events that do not count are needed, for the window
	SomeVisitors bool // only the events of some visitors, and a limited number
	ByGoal       bool // also the goals of the events
}

// eventRow is one row of sql/in_process.sql.
type eventRow struct {
	visit.Event
	visitorIndex int // index of the visitor
	visitor      uint64
	goal         int64 // only if several goals are read
	shows        bool  // of a view: whether its visitor is in the report
	dimension    string
}

// counting holds the events of a subject and the totals of each visitor.
type counting struct {
	plan                 *plan.Plan
	from, to             int64
	recentFrom, recentTo int64
	limit                int64 // of the total value of a visitor; 0: none
	events               []eventRow
	packed               *packedFold // counts the events in memory; nil: events has them
	visitors             []visitorTotals
	indexOf              map[uint64]int // by visitor id
}

// countings keeps released values. Their slices are most of the allocations
// of such a report.
var countings = sync.Pool{New: func() any { return &counting{indexOf: map[uint64]int{}} }}

// release returns the value to the pool.
func (f *counting) release() {
	clear(f.events)
	clear(f.indexOf)
	clear(f.visitors)
	f.events, f.visitors, f.packed = f.events[:0], f.visitors[:0], nil
	countings.Put(f)
}

// visitorTotals holds the totals of one visitor.
type visitorTotals struct {
	visit.Exposure
	visit.Visitor
	lastActive int64  // before the window's end
	shows      bool   // whether the first view passes the filters of visitors
	dimension  string // of the first view
}

// InProcess counts the events in this process.
type InProcess struct{ *Execution }

// Name returns NameInProcess.
func (x InProcess) Name() string { return NameInProcess }

// Read reads the events once for the rows and the steps of the series. With a
// z-score, the steps have another query, without the removal of outliers.
func (x InProcess) Read(ctx context.Context) (*visit.Rows, string, error) {
	f, err := x.count(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	defer f.release()
	if x.Cap != nil && x.Limited == nil {
		limited := *x.Execution
		limited.Limited = visit.NewCap(*x.Cap, f.totals())
		x.Execution = &limited
	}
	f.limit = x.limit()
	switch {
	case x.Interval == "":
		return x.Answer(f.rows(), nil), "", nil
	case x.Outliers == nil:
		return x.Answer(f.rows(), f.steps()), "", nil
	}
	steps, err := x.stepsWithoutOutliers(ctx)
	return x.Answer(f.rows(), steps), "", err
}

// stepsWithoutOutliers returns the steps of the series before the removal of outliers.
func (x InProcess) stepsWithoutOutliers(ctx context.Context) ([]visit.Step, error) {
	all := x.WithoutOutliers()
	fold, err := all.packedFold(ctx)
	if fold == nil && err == nil {
		return x.steps(ctx)
	}
	if err != nil {
		return nil, err
	}
	f := all.countPacked(fold, x.CountedGoal())
	defer f.release()
	return f.steps(), nil
}

// count reads the events of the given visitors, or of all if there are none, and
// computes the totals of each visitor. The caller must release the result.
func (x *Execution) count(ctx context.Context, visitors []uint64) (*counting, error) {
	if events, known := x.known(); known && visitors == nil {
		return x.countGoal(events, x.CountedGoal()), nil
	}
	if visitors == nil {
		if fold, err := x.packedFold(ctx); fold != nil || err != nil {
			return x.countPacked(fold, x.CountedGoal()), err
		}
	}
	query, err := x.InProcessQuery(visitors)
	if err != nil {
		return nil, err
	}
	f := x.counting()
	if err := x.readEvents(ctx, query, false, f); err != nil {
		f.release()
		return nil, err
	}
	f.count()
	return f, nil
}

// counting returns an empty counting. The caller must release it.
func (x *Execution) counting() *counting {
	f := countings.Get().(*counting) //nolint:forcetypeassert // New
	f.plan, f.from, f.to, f.limit = x.Plan, x.From().UnixMilli(), x.To().UnixMilli(), x.limit()
	recentFrom, recentTo := plan.Recent(x.Stored.Ingested)
	f.recentFrom, f.recentTo = recentFrom.UnixMilli(), recentTo.UnixMilli()
	return f
}

// readEvents appends the rows of a statement.
func (x *Execution) readEvents(ctx context.Context, query *Query, byGoal bool, f *counting) error {
	f.events = slices.Grow(f.events, int(min(x.Stored.Events, MaxInProcessEvents))) //nolint:gosec // few
	e := eventRow{shows: true}
	to := []any{&e.visitor, &e.At, &e.Variation, (*uint8)(&e.Kind), &e.Amounts[0], &e.Amounts[1], &e.Amounts[2]}
	if byGoal {
		to = append(to, &e.goal)
	}
	if needsAttributes(x.Plan) {
		to = append(to, &e.ID, &e.shows, &e.dimension)
	}
	return x.Store.Each(ctx, query, func(found driver.Rows) error {
		err := found.Scan(to...)
		f.events = append(f.events, e)
		return err
	})
}

// count computes the totals of each visitor.
func (f *counting) count() {
	f.groupByVisitor()
	f.findFirstViews()
	f.countEvents()
	for i := range f.visitors {
		if v := &f.visitors[i]; v.Exposed {
			first := &f.events[v.Row]
			v.shows, v.dimension = first.shows, first.dimension
		}
	}
}

// needsAttributes reports whether attributes of the first view are needed.
func needsAttributes(p *plan.Plan) bool {
	return p.Dimension != "" || len(p.Filters.Lists)+len(p.Filters.Texts) > 0
}

// InProcessQuery compiles the query of the events of the given visitors, or of
// all if there are none.
func (x *Execution) InProcessQuery(visitors []uint64) (*Query, error) {
	q, reference := x.referenceQuery()
	if visitors != nil {
		q.Params = append(q.Params, Param{"visitor_ids", visitors}, Param{"limit", uint64(maxRecountedEvents + 1)})
	}
	return q, q.Render("in_process.sql", InProcessSlots{Slots: reference, Shows: needsAttributes(x.Plan), AllEvents: !x.Filters.From.IsZero(), SomeVisitors: visitors != nil})
}

// groupByVisitor sets the visitor index of each event. Most events follow an
// event of the same visitor.
func (f *counting) groupByVisitor() {
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
func (f *counting) findFirstViews() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.At < f.to {
			v.lastActive = max(v.lastActive, e.At)
		}
		if e.Kind != visit.View {
			continue
		}
		v.See(&e.Event, i)
		if e.At < f.to {
			v.Add(&e.Event)
		}
	}
}

// countEvents adds up the other events of each visitor.
func (f *counting) countEvents() {
	for i := range f.events {
		e := &f.events[i]
		v := &f.visitors[e.visitorIndex]
		if e.Kind > visit.View && f.counts(v, &e.Event) {
			v.Add(&e.Event)
		}
	}
}

// counts reports whether an event is part of the visitor's report and before the
// end of the window.
func (f *counting) counts(v *visitorTotals, e *visit.Event) bool {
	return v.Counts(e) && e.At < f.to
}

// inReport reports whether the visitor is in the report, or was active in the
// window but exposed before it.
func (f *counting) inReport(v *visitorTotals) bool {
	return v.Exposed && v.shows && v.First.At < f.to && v.lastActive >= f.from
}

// totals returns the total values of the converted visitors of all variations. Filters
// of visitors do not restrict them.
func (f *counting) totals() []int64 {
	var totals []int64
	for i := range f.visitors {
		v := &f.visitors[i]
		declared := slices.ContainsFunc(f.plan.Variations, func(of plan.Variation) bool { return of.ID == v.First.Variation })
		if !v.Exposed || v.First.At < f.from || v.First.At >= f.to || v.Goals.Events == 0 || !declared ||
			v.MultiExposed && f.plan.MultipleExposures == catalogue.ExcludeMultiExposed {
			continue
		}
		totals = append(totals, v.Goals.Amounts[0])
	}
	return totals
}

// rows returns the sums over the visitors in the report, and over those that
// were active in the window but exposed before it.
func (f *counting) rows() []visit.Row {
	at := map[visit.Segment]*visit.Cell{}
	var order []visit.Segment
	var none visit.Visitor
	for i := range f.visitors {
		v := &f.visitors[i]
		if !f.inReport(v) {
			continue
		}
		key := visit.Segment{VariationID: v.First.Variation, Dimension: v.dimension, ExposedBefore: v.First.At < f.from, MultiExposed: v.MultiExposed}
		c := at[key]
		if c == nil {
			c = visit.NewCell(f.limit)
			at[key], order = c, append(order, key)
		}
		c.Change(&none, &v.Visitor)
		if v.First.At >= f.plan.SharesSince.UnixMilli() {
			c.SinceShares++
		}
		if v.First.At >= f.recentFrom && v.First.At < f.recentTo {
			c.Recent++
		}
	}
	rows := make([]visit.Row, len(order))
	for i, key := range order {
		rows[i] = visit.Row{Segment: key, Moments: at[key].Moments()}
	}
	return rows
}
